/* ccc.hpp - the library for C++17: lambdas as tasks, typed channels, a nursery as an object, exceptions across joins.
 *
 *   #include <ccc/ccc.hpp>
 *
 *   ccc::channel<std::string> lines(16);
 *   ccc::nursery n;
 *   n.go([&] { read_lines(lines); lines.close(); });
 *   for (std::string &line : lines) parse(line);      // until it is closed
 *   n.wait();                                         // rethrows what a child has thrown
 *
 * Header only. The C interface can be used on the same objects: see channel::c_handle and so on. Errors are exceptions:
 * ccc::error holds an errno value, a wait in a cancelled scope throws ccc::cancelled, and a join of a task that
 * panicked throws ccc::panicked. Let ccc::cancelled propagate: it ends the task.
 *
 * A panic (cc_panic.h) runs no destructors; C++ code throws instead.
 */
#ifndef CCC_CCC_HPP
#define CCC_CCC_HPP

#include <ccc/ccc.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex> // std::unique_lock
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ccc {

/* ---- errors ---- */

/* An errno value, code().value(), and the call that returned it. */
class error : public std::system_error {
  public:
    error(int code, const std::string &what) : std::system_error(code, std::generic_category(), what) {}
};

/* ECANCELED; what() holds the reason, if it is known. */
class cancelled : public error {
  public:
    explicit cancelled(const std::string &what) : error(ECANCELED, what) {}
};

/* ENOTRECOVERABLE; what() holds the message of the panic. */
class panicked : public error {
  public:
    explicit panicked(const std::string &what) : error(ENOTRECOVERABLE, what) {}
};

/* Throws for a nonzero result of a function of the C interface. */
[[noreturn]] inline void raise(int code, const char *call) {
    CCError reason;
    if (code == ENOTRECOVERABLE) throw panicked(call);
    if (code != ECANCELED) throw error(code, call);
    if (cc_cancel_reason(&reason) != 0 || reason.text[0] == 0) throw cancelled(call);
    throw cancelled(std::string(call) + ": " + reason.text);
}
inline void check(int code, const char *call) {
    if (code != 0) raise(code, call);
}

/* ---- time ---- */

/* The deadline this far from now; a negative duration, or one that is not a number, gives one that has passed. */
template <class Rep, class Period> CCDeadline after(std::chrono::duration<Rep, Period> time) {
    using limit = std::chrono::duration<double, std::nano>;
    if (!(limit(time).count() > 0)) return CC_PASSED;
    if (limit(time).count() >= 9.2e18) return CC_FOREVER;
    auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    return cc_after_ns(ns > 0 ? static_cast<uint64_t>(ns) : 1);
}

/* Throws ccc::cancelled. */
template <class Rep, class Period> void sleep_for(std::chrono::duration<Rep, Period> time) {
    check(cc_sleep_until(after(time)), "cc_sleep_until");
}

/* ---- for the rest of this file ---- */

namespace detail {

/* What a function has returned or thrown. */
template <class T> struct outcome {
    std::optional<T> value;
    std::exception_ptr thrown;

    template <class F> void call(F &f) noexcept {
        try {
            value.emplace(f());
        } catch (...) {
            thrown = std::current_exception();
        }
    }
    T take() {
        if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
        return std::move(*value);
    }
};
template <class T> struct outcome<T &> {
    T *value = nullptr;
    std::exception_ptr thrown;

    template <class F> void call(F &f) noexcept {
        try {
            value = std::addressof(f());
        } catch (...) {
            thrown = std::current_exception();
        }
    }
    T &take() {
        if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
        return *value;
    }
};
template <> struct outcome<void> {
    std::exception_ptr thrown;

    template <class F> void call(F &f) noexcept {
        try {
            f();
        } catch (...) {
            thrown = std::current_exception();
        }
    }
    void take() {
        if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
    }
};

/* Of a copy of the function, and of the function itself. */
template <class F> using result_of = std::invoke_result_t<std::decay_t<F> &>;
template <class F> using result_here = std::invoke_result_t<std::remove_reference_t<F> &>;

template <class T> [[noreturn]] void raise_panic(const T &id, const char *call) {
    CCPanic panic;
    bool known = cc_panic_find(id, &panic) == 0;
    throw panicked(std::string(call) + ": " + (known ? panic.message : "the task has panicked"));
}

/* Reports an exception that nobody will catch; cancellations are meant to end there. */
inline void report_dropped(const std::exception_ptr &thrown) noexcept {
    if (!thrown) return;
    try {
        std::rethrow_exception(thrown);
    } catch (const cancelled &) {
    } catch (const std::exception &e) {
        std::fprintf(stderr, "ccc: an exception of a task was dropped: %s\n", e.what());
    } catch (...) {
        std::fprintf(stderr, "ccc: an exception of a task was dropped\n");
    }
}

/* The error with which a nursery's child fails: the errno value of a std::system_error, or EIO. */
struct failure {
    int code;
    std::string text;
};
inline failure describe(const std::exception_ptr &thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const std::system_error &e) {
        int code = e.code().value();
        bool is_errno = e.code().category() == std::generic_category() || e.code().category() == std::system_category();
        return {is_errno && code > 0 && code <= CC_ERROR_MAX ? code : EIO, e.what()};
    } catch (const std::exception &e) {
        return {EIO, e.what()};
    } catch (...) {
        return {EIO, "an exception that is no std::exception"};
    }
}

/* Waits for a task's end despite cancellation; retries, because a shutdown of the runtime keeps ending the wait. */
inline int join_always(CCTask *task) {
    bool shielded = cc_shield_begin();
    int rc;
    while ((rc = cc_task_join(task, nullptr)) == ECANCELED) cc_yield();
    cc_shield_end(shielded);
    return rc;
}

} // namespace detail

/* ---- tasks ---- */

/* The handle of a task: movable, joined once. Destroying it before the join cancels the task and waits for its end, so
 * that the function's references stay valid; an exception other than ccc::cancelled is then written to stderr. To let
 * the task continue on its own: detach. Only one fiber or OS thread at a time may use a handle. */
template <class T> class task {
  public:
    task() = default;
    task(task &&other) noexcept
        : handle(std::exchange(other.handle, CCTask{0})), id_(other.id_), shared(std::exchange(other.shared, nullptr)) {
    }
    task &operator=(task &&other) noexcept {
        if (this != &other) {
            end();
            handle = std::exchange(other.handle, CCTask{0});
            id_ = other.id_;
            shared = std::exchange(other.shared, nullptr);
        }
        return *this;
    }
    ~task() {
        end();
    }

    /* Started, and neither joined, detached nor moved from. */
    explicit operator bool() const {
        return shared != nullptr;
    }
    CCFiberId id() const {
        return id_;
    }
    CCTask &c_handle() {
        return handle;
    }

    /* Waits for the end; returns the function's result, or rethrows its exception. ccc::panicked: it panicked.
     * ccc::cancelled: the caller was cancelled; ccc::error: there is no task (EINVAL), or no memory for its stack.
     * After the caller's own ccc::cancelled the task continues, and can be joined again: operator bool. */
    T join() {
        check_started();
        return taken(cc_task_join(&handle, nullptr));
    }
    /* The same; ccc::error with ETIMEDOUT: the task continues. */
    T join_until(CCDeadline deadline) {
        check_started();
        return taken(cc_task_join_until(&handle, nullptr, deadline));
    }

    /* Its waits throw ccc::cancelled from now on. */
    void cancel() {
        if (shared != nullptr) (void)cc_task_cancel(&handle);
    }
    /* The task continues; its result or exception is dropped. */
    void detach() noexcept {
        if (shared == nullptr) return;
        (void)cc_task_detach(&handle);
        shared->detached.store(true, std::memory_order_relaxed);
        drop(std::exchange(shared, nullptr));
    }

  private:
    template <class F> friend task<detail::result_of<F>> go(F &&f);
    template <class U, class F> friend class join_arm;

    /* Both the handle and the running function hold a reference. */
    struct state : detail::outcome<T> {
        std::atomic<int> references{2};
        std::atomic<bool> detached{false};
        virtual ~state() = default;
    };
    template <class F> struct job : state {
        std::optional<F> f;
        explicit job(F &&from) : f(std::move(from)) {}
        explicit job(const F &from) : f(from) {}
    };

    static void drop(state *s) {
        if (s->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        if (s->detached.load(std::memory_order_relaxed)) detail::report_dropped(s->thrown);
        delete s;
    }
    static void drop_deferred(void *s) {
        drop(static_cast<state *>(s));
    }

    template <class F> static void *entry(void *arg) {
        job<F> *j = static_cast<job<F> *>(arg);
        CC_DEFER(drop_deferred, static_cast<state *>(j)); /* after a panic, too */
        j->call(*j->f);
        j->f.reset(); /* captured objects are destroyed with the task, not with the handle */
        return nullptr;
    }

    void check_started() const {
        if (shared == nullptr) throw error(EINVAL, "ccc::task: not started, joined before, or moved from");
    }
    /* After a join that returned rc. */
    T taken(int rc) {
        if (handle.id != 0) raise(rc != 0 ? rc : EINVAL, "cc_task_join"); /* the task continues */
        std::unique_ptr<state, void (*)(state *)> last(std::exchange(shared, nullptr), drop);
        if (rc == ENOTRECOVERABLE) detail::raise_panic(id_, "ccc::task");
        if (rc == ENOMEM) drop(last.get()); /* it never ran, so it does not release its reference itself */
        if (rc != 0) raise(rc, "cc_task_join");
        return last->take();
    }
    void end() noexcept {
        if (shared == nullptr) return;
        (void)cc_task_cancel(&handle);
        int rc = detail::join_always(&handle);
        if (rc == EDEADLK) return detach(); /* the task itself has its handle */
        if (rc == ENOMEM) drop(shared);     /* as above */
        if (rc == 0) detail::report_dropped(shared->thrown);
        drop(std::exchange(shared, nullptr));
    }

    CCTask handle{0};
    CCFiberId id_ = 0;
    state *shared = nullptr;
};

/* Starts f() as a task. ccc::error: ENOMEM, ECANCELED (the runtime is shutting down), EAGAIN. */
template <class F> task<detail::result_of<F>> go(F &&f) {
    using function = std::decay_t<F>;
    using result = task<detail::result_of<F>>;
    using job = typename result::template job<function>;
    auto started = std::make_unique<job>(std::forward<F>(f));
    result handle;
    check(cc_spawn(&handle.handle, result::template entry<function>, started.get(), nullptr), "cc_spawn");
    handle.id_ = handle.handle.id;
    handle.shared = started.release();
    return handle;
}

/* Runs f() as a fiber and always waits for its end: for main. Returns its result, or rethrows its exception. */
template <class F> detail::result_here<F> run(F &&f) {
    struct call {
        std::remove_reference_t<F> *f;
        detail::outcome<detail::result_here<F>> outcome;
        CCFiberId id;
    } c{std::addressof(f), {}, 0};
    int rc = cc_run(
        [](void *arg) -> void * {
            call *inside = static_cast<call *>(arg);
            inside->id = cc_fiber_id();
            inside->outcome.call(*inside->f);
            return nullptr;
        },
        &c, nullptr);
    if (rc == ENOTRECOVERABLE) detail::raise_panic(c.id, "ccc::run");
    if (c.outcome.thrown) std::rethrow_exception(c.outcome.thrown);
    check(rc, "cc_run");
    return c.outcome.take();
}

/* Calls f() on a pool thread while the fiber is parked (cc_blocking.h). */
template <class F> detail::result_here<F> blocking(F &&f, CCPool *pool = CC_POOL_DEFAULT) {
    struct call {
        std::remove_reference_t<F> *f;
        detail::outcome<detail::result_here<F>> outcome;
    } c{std::addressof(f), {}};
    CCBlockingOptions options{};
    options.pool = pool;
    check(cc_blocking_ex(
              [](void *arg) -> void * {
                  call *inside = static_cast<call *>(arg);
                  inside->outcome.call(*inside->f);
                  return nullptr;
              },
              &c, nullptr, &options, CC_FOREVER),
          "cc_blocking");
    return c.outcome.take();
}

/* ---- nurseries ---- */

/* A scope that owns the tasks started in it; the enclosing block belongs to it too, as with CC_NURSERY. The first child
 * that throws cancels the others and the waits of the block; wait, or else the destructor, rethrows its exception. The
 * destructor waits for all children. If an exception leaves the block, the destructor cancels them first, and drops
 * what they throw then. If a child's exception cancels a wait of the block, the block gets ccc::cancelled, which holds
 * the child's text: use with_nursery to get the child's exception itself. */
class nursery {
  public:
    nursery() : nursery(CCNurseryConfig{}) {}
    explicit nursery(CCNurseryConfig config) {
        config.result = &left;
        n = cc_nursery_enter(&config);
        if (n == nullptr) raise(left, "ccc::nursery");
    }
    nursery(const nursery &) = delete;
    nursery &operator=(const nursery &) = delete;
    ~nursery() noexcept(false) {
        if (std::uncaught_exceptions() > thrown_before) {
            (void)cc_nursery_cancel_with(n, 0, "an exception leaves the block");
            leave();
            return;
        }
        leave();
        if (!told) rethrow(left);
    }

    /* Starts f() as a child. Its result is dropped; an exception fails the nursery, with the errno value of a
     * std::system_error, else EIO. In a cancelled nursery ccc::cancelled ends the child silently. */
    template <class F> void go(F &&f) {
        auto *j = new job<std::decay_t<F>>(this, std::forward<F>(f));
        insert(j);
        int rc = cc_nursery_spawn(n, entry<std::decay_t<F>>, j);
        if (rc != 0) j->end(j);
        check(rc, "cc_nursery_spawn");
    }

    /* Waits until all children have ended, and rethrows the first exception; else throws ccc::cancelled if the nursery
     * was cancelled, or ccc::error with ETIMEDOUT after its deadline. More children may be started afterwards, but a
     * failed nursery stays failed, and each wait throws the same. After a wait has thrown, the destructor does not. */
    void wait() {
        rethrow(cc_nursery_wait(n));
    }

    void cancel() {
        (void)cc_nursery_cancel(n);
    }
    void set_deadline(CCDeadline deadline) {
        check(cc_nursery_set_deadline(n, deadline), "cc_nursery_set_deadline");
    }
    CCNursery *c_handle() const {
        return n;
    }

  private:
    template <class Body> friend void with_nursery(Body &&body, CCNurseryConfig config);

    /* Kept in a list, because a child without a stack is never called. */
    struct link {
        link *previous = nullptr, *next = nullptr;
        virtual ~link() = default;
    };
    template <class F> struct job : link {
        nursery *in;
        F f;
        job(nursery *owner, F &&from) : in(owner), f(std::move(from)) {}
        job(nursery *owner, const F &from) : in(owner), f(from) {}
        static void end(void *arg) {
            job *j = static_cast<job *>(arg);
            j->in->remove(j);
            delete j;
        }
    };
    void insert(link *j) {
        (void)cc_mutex_lock_uncancellable(&lock);
        j->next = jobs;
        if (jobs != nullptr) jobs->previous = j;
        jobs = j;
        (void)cc_mutex_unlock(&lock);
    }
    void remove(link *j) {
        (void)cc_mutex_lock_uncancellable(&lock);
        (j->previous != nullptr ? j->previous->next : jobs) = j->next;
        if (j->next != nullptr) j->next->previous = j->previous;
        (void)cc_mutex_unlock(&lock);
    }
    /* All children have ended. */
    void leave() {
        cc_nursery_leave(&n);
        while (jobs != nullptr) delete std::exchange(jobs, jobs->next);
    }

    template <class F> static void *entry(void *arg) {
        job<F> *j = static_cast<job<F> *>(arg);
        CC_DEFER(job<F>::end, j); /* after a panic, too */
        try {
            (void)j->f();
            return nullptr;
        } catch (const cancelled &e) {
            return cc_fail(ECANCELED, "%s", e.what());
        } catch (...) {
            detail::failure why = j->in->keep(std::current_exception());
            return cc_fail(why.code, "%s", why.text.c_str());
        }
    }

    /* The first one is rethrown later. */
    detail::failure keep(const std::exception_ptr &thrown) {
        if (!failed.exchange(true)) first = thrown;
        return detail::describe(thrown);
    }
    /* All children have ended, and the wait returned rc. */
    void rethrow(int rc) {
        if (rc == 0) return;
        told = true;
        if (first) std::rethrow_exception(first);
        raise(rc, "ccc::nursery");
    }

    CCNursery *n = nullptr;
    CCMutex lock{}; /* of jobs */
    link *jobs = nullptr;
    int left = 0; /* what cc_nursery_leave returned */
    int thrown_before = std::uncaught_exceptions();
    bool told = false;               /* a wait has thrown */
    std::atomic<bool> failed{false}; /* the first one has been chosen; it can be read when all children have ended */
    std::exception_ptr first;
};

/* Calls body(n) with a nursery and waits for its children. Throws the first exception, of a child or of the body. */
template <class Body> void with_nursery(Body &&body, CCNurseryConfig config) {
    nursery n(config);
    std::exception_ptr own; /* the body's cancellation */
    try {
        body(n);
    } catch (const cancelled &) {
        own = std::current_exception();
        n.cancel();
    } catch (...) {
        detail::failure why = n.keep(std::current_exception());
        (void)cc_nursery_cancel_with(n.c_handle(), why.code, why.text.c_str());
    }
    try {
        n.wait();
    } catch (const cancelled &) {
        if (own) std::rethrow_exception(own);
        throw;
    }
    if (own) std::rethrow_exception(own);
}
template <class Body> void with_nursery(Body &&body) {
    with_nursery(std::forward<Body>(body), CCNurseryConfig{});
}

/* ---- channels ---- */

namespace detail {

/* The element of the C channel: the value, or a pointer to it if it is not trivially copyable. */
template <class T, bool plain = std::is_trivially_copyable_v<T>> struct slot {
    union {
        char none;
        T value;
    };
    slot() : none(0) {}
    explicit slot(T &&from) : value(std::move(from)) {}
    T take() {
        return std::move(value);
    }
    void back(T &) {}
    void drop() {}
    static constexpr bool owns = false;
};
template <class T> struct slot<T, false> {
    T *value = nullptr;
    slot() = default;
    explicit slot(T &&from) : value(new T(std::move(from))) {}
    T take() {
        std::unique_ptr<T> last(value);
        return std::move(*last);
    }
    void back(T &to) { /* it was not sent */
        std::unique_ptr<T> last(value);
        to = std::move(*last);
    }
    void drop() {
        delete value;
    }
    static constexpr bool owns = true;
    static void on_drop(void *s, void *) {
        static_cast<slot *>(s)->drop();
    }
};

} // namespace detail

/* A bounded channel of any movable type T. Copies of the object refer to the same channel, which is freed with the last
 * copy, together with unreceived values; so a const object can also send and receive. Capacity 0 is a rendezvous. */
template <class T> class channel {
  public:
    explicit channel(std::size_t capacity = 0, const char *name = nullptr, CCChanMode mode = CC_CHAN_MODE_BLOCK) {
        CCChanConfig config{};
        config.elem_size = sizeof(detail::slot<T>);
        config.capacity = capacity;
        config.mode = mode;
        config.name = name;
        if constexpr (detail::slot<T>::owns) config.on_drop = detail::slot<T>::on_drop;
        ch = cc_chan_create_ex(&config);
        if (ch == nullptr) raise(errno, "cc_chan_create");
    }
    channel(const channel &other) : ch(cc_chan_ref(other.ch)) {}
    channel(channel &&other) noexcept : ch(std::exchange(other.ch, nullptr)) {}
    channel &operator=(channel other) noexcept {
        std::swap(ch, other.ch);
        return *this;
    }
    ~channel() {
        cc_chan_free(ch);
    }

    /* True: exactly one receiver gets the value. False: the channel is closed. Throws ccc::cancelled. */
    bool send(T value) const {
        detail::slot<T> s(std::move(value));
        int rc = cc_chan_send(ch, &s, sizeof s);
        if (rc == 0) return true;
        s.drop();
        if (cc_chan_is_closed(ch) && rc != ECANCELED && rc != ENOMEM) return false;
        raise(rc, "cc_chan_send");
    }
    /* std::nullopt: the channel is closed and empty. Throws ccc::cancelled. */
    std::optional<T> recv() const {
        detail::slot<T> s;
        int rc = cc_chan_recv(ch, &s, sizeof s);
        if (rc == 0) return s.take();
        if (cc_chan_is_closed(ch) && rc != ECANCELED && rc != ENOMEM) return std::nullopt;
        raise(rc, "cc_chan_recv");
    }

    /* These return 0 or an error of the C interface (cc_channel.h); after an error the value to send is unchanged. */
    int send_try(T &value) const {
        return send_with(value, [this](auto *s) { return cc_chan_send_try(ch, s, sizeof *s); });
    }
    int send_until(T &value, CCDeadline deadline) const {
        return send_with(value, [&](auto *s) { return cc_chan_send_until(ch, s, sizeof *s, deadline); });
    }
    int recv_try(T &value) const {
        detail::slot<T> s;
        int rc = cc_chan_recv_try(ch, &s, sizeof s);
        if (rc == 0) value = s.take();
        return rc;
    }
    int recv_until(T &value, CCDeadline deadline) const {
        detail::slot<T> s;
        int rc = cc_chan_recv_until(ch, &s, sizeof s, deadline);
        if (rc == 0) value = s.take();
        return rc;
    }

    void close() const {
        (void)cc_chan_close(ch);
    }
    bool is_closed() const {
        return cc_chan_is_closed(ch);
    }
    std::size_t size() const {
        return cc_chan_len(ch);
    }
    std::size_t capacity() const {
        return cc_chan_cap(ch);
    }
    CCChan *c_handle() const {
        return ch;
    }

    /* for (T &value : channel): until it is closed and empty. */
    class iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = T *;
        using reference = T &;
        iterator() = default;
        explicit iterator(const channel *from) : of(from) {
            next();
        }
        T &operator*() const {
            return *current;
        }
        T *operator->() const {
            return std::addressof(*current);
        }
        iterator &operator++() {
            next();
            return *this;
        }
        void operator++(int) {
            next();
        }
        bool operator==(const iterator &other) const {
            return of == other.of;
        }
        bool operator!=(const iterator &other) const {
            return of != other.of;
        }

      private:
        void next() {
            current = of->recv();
            if (!current) of = nullptr;
        }
        const channel *of = nullptr;
        mutable std::optional<T> current; /* a const iterator refers to it like any other */
    };
    iterator begin() const {
        return iterator(this);
    }
    iterator end() const {
        return iterator();
    }

  private:
    template <class Send> int send_with(T &value, Send send) const {
        detail::slot<T> s(std::move(value));
        int rc = send(&s);
        if (rc != 0) s.back(value);
        return rc;
    }

    CCChan *ch;
};

/* ---- select ---- */

namespace detail {

/* A variable whose value a select offers. Arms with the same variable offer the same value, and one of them sends
 * it. */
struct offer {
    const void *from = nullptr, *type = nullptr;
    offer *before = nullptr;
    bool sent = false;
};
template <class T> inline constexpr char type_of = 0; /* its address tells types apart */
template <class T> struct offer_of : offer {
    std::optional<slot<T>> s;

    /* The existing offer of that variable, or this one. */
    offer_of *join(offer *&offers, T &variable) {
        for (offer *o = offers; o != nullptr; o = o->before)
            if (o->from == std::addressof(variable) && o->type == &type_of<T>) return static_cast<offer_of *>(o);
        s.emplace(std::move(variable));
        from = std::addressof(variable);
        type = &type_of<T>;
        sent = false;
        before = std::exchange(offers, this);
        return this;
    }
    void give_back(T &variable) {
        if (s && !sent) s->back(variable);
        s.reset();
    }
};

} // namespace detail

/* The arms of a select: each provides its case, is notified if it was executed without an error, returns an unsent
 * value, and calls its function if it was chosen. */
template <class T, class F> class recv_arm {
  public:
    recv_arm(const channel<T> &from, F function) : ch(from.c_handle()), f(std::move(function)) {}
    CCCase c_case(detail::offer *&) {
        return cc_case_of_(CC_CASE_RECV, ch, &s, sizeof s, nullptr);
    }
    void done() {}
    void give_back() {}
    void chosen(int rc) {
        if (rc == 0)
            f(std::optional<T>(s.take()));
        else
            f(std::optional<T>());
    }

  private:
    CCChan *ch;
    F f;
    detail::slot<T> s;
};
template <class T, class F> class send_arm {
  public:
    send_arm(const channel<T> &to, T &from, F function) : ch(to.c_handle()), value(from), f(std::move(function)) {}
    CCCase c_case(detail::offer *&offers) {
        shared = own.join(offers, value);
        return cc_case_of_(CC_CASE_SEND, ch, &*shared->s, sizeof *shared->s, nullptr);
    }
    void done() {
        shared->sent = true;
    }
    void give_back() {
        own.give_back(value);
    }
    void chosen(int rc) {
        f(rc == 0);
    }

  private:
    CCChan *ch;
    T &value;
    F f;
    detail::offer_of<T> own, *shared = nullptr;
};
template <class T, class F> class join_arm {
  public:
    join_arm(task<T> &joined, F function) : t(joined), f(std::move(function)) {}
    CCCase c_case(detail::offer *&) {
        t.check_started();
        return cc_case_join_(&t.handle, nullptr, nullptr);
    }
    void chosen(int rc) {
        if constexpr (std::is_void_v<T>) {
            t.taken(rc);
            f();
        } else {
            f(t.taken(rc));
        }
    }
    void done() {}
    void give_back() {}

  private:
    task<T> &t;
    F f;
};
template <class F> class plain_arm {
  public:
    plain_arm(CCCase c, F function) : arm(c), f(std::move(function)) {}
    CCCase c_case(detail::offer *&) {
        return arm;
    }
    void done() {}
    void give_back() {}
    void chosen(int) {
        f();
    }

  private:
    CCCase arm;
    F f;
};

/* f(std::optional<T>): std::nullopt if the channel is closed. */
template <class T, class F> recv_arm<T, F> on_recv(const channel<T> &from, F f) {
    return {from, std::move(f)};
}
/* f(bool): whether the value was sent; it is moved from if it was, otherwise unchanged. Several arms may offer the same
 * value: one channel gets it. */
template <class T, class F> send_arm<T, F> on_send(const channel<T> &to, T &value, F f) {
    return {to, value, std::move(f)};
}
/* f(T), or f() for a task of void; the select rethrows the task's exception. */
template <class T, class F> join_arm<T, F> on_join(task<T> &joined, F f) {
    return {joined, std::move(f)};
}
/* f() */
template <class Rep, class Period, class F> plain_arm<F> on_after(std::chrono::duration<Rep, Period> time, F f) {
    return {cc_case_at_(after(time)), std::move(f)};
}
template <class F> plain_arm<F> on_deadline(CCDeadline deadline, F f) {
    return {cc_case_at_(deadline), std::move(f)};
}
/* The event is set; a permit was taken, which the program releases. */
template <class F> plain_arm<F> on_event(CCEvent &event, F f) {
    return {cc_case_event_(&event), std::move(f)};
}
template <class F> plain_arm<F> on_acquire(CCSem &sem, F f) {
    return {cc_case_acquire_(&sem), std::move(f)};
}
/* The nursery has no child. */
template <class F> plain_arm<F> on_end(nursery &of, F f) {
    return {cc_case_nursery_end_(of.c_handle()), std::move(f)};
}
template <class F> plain_arm<F> on_cancel(F f) {
    return {cc_case_(CC_CASE_CANCEL), std::move(f)};
}

namespace detail {

template <class... Arms> bool select_from(bool wait, Arms &...arms) {
    constexpr std::size_t none = sizeof...(Arms);
    std::array<CCCase, none> cases{};
    std::size_t index = 0, chosen = none;
    offer *offers = nullptr;
    try {
        ((cases[index++] = arms.c_case(offers)), ...);
    } catch (...) {
        (arms.give_back(), ...);
        throw;
    }
    int rc = wait ? cc_select(cases.data(), none, CC_FOREVER, &chosen) : cc_select_try(cases.data(), none, &chosen);
    if (rc != 0) chosen = none;
    index = 0;
    ((index++ == chosen && cases[chosen].error == 0 ? arms.done() : void()), ...);
    (arms.give_back(), ...); /* return all values before calling a function */
    if (rc == EAGAIN && !wait) return false;
    check(rc, "cc_select");
    index = 0;
    ((index++ == chosen ? arms.chosen(cases[chosen].error) : void()), ...);
    return true;
}

} // namespace detail

/* Waits until one of the arms can proceed, executes it and calls its function:
 *
 *   ccc::select(ccc::on_recv(in, [&](std::optional<int> v) { … }),
 *               ccc::on_after(100ms, [&] { … }));
 *
 * Throws ccc::cancelled, unless there is an on_cancel; propagates exceptions of the function. */
template <class... Arms> void select(Arms &&...arms) {
    (void)detail::select_from(true, arms...);
}
/* Does not wait; false: no arm was ready. */
template <class... Arms> bool select_try(Arms &&...arms) {
    return detail::select_from(false, arms...);
}

/* ---- locks ---- */

/* For std::lock_guard, std::unique_lock and std::scoped_lock. Waiting for it cannot be cancelled. */
class mutex {
  public:
    mutex() = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    void lock() {
        (void)cc_mutex_lock_uncancellable(&m);
    }
    bool try_lock() {
        return cc_mutex_lock_try(&m) == 0;
    }
    void unlock() {
        (void)cc_mutex_unlock(&m);
    }
    CCMutex *c_handle() {
        return &m;
    }

  private:
    CCMutex m{};
};

/* With a std::unique_lock<ccc::mutex>. A std::condition_variable would block the worker. */
class condition_variable {
  public:
    condition_variable() = default;
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;
    void notify_one() {
        (void)cc_cond_signal(&c);
    }
    void notify_all() {
        (void)cc_cond_broadcast(&c);
    }
    /* Throw ccc::cancelled, with the lock held. */
    void wait(std::unique_lock<mutex> &lock) {
        check(cc_cond_wait(&c, lock.mutex()->c_handle()), "cc_cond_wait");
    }
    template <class Predicate> void wait(std::unique_lock<mutex> &lock, Predicate holds) {
        while (!holds()) wait(lock);
    }
    /* Whether the predicate holds. */
    template <class Predicate> bool wait_until(std::unique_lock<mutex> &lock, CCDeadline deadline, Predicate holds) {
        while (!holds()) {
            int rc = cc_cond_wait_until(&c, lock.mutex()->c_handle(), deadline);
            if (rc == ETIMEDOUT) return holds();
            check(rc, "cc_cond_wait_until");
        }
        return true;
    }

  private:
    CCCond c{};
};

} // namespace ccc

#endif
