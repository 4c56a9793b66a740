/* exceptions.cpp - C++ exceptions belong to the fiber: across waits, on other threads, and out of a task's function.
 *
 * variants: shared libcxx
 */
extern "C" {
#include "harness.h"
#include "where.h"
}

#include <atomic>
#include <ccc/ccc.h>

#include <errno.h>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <string.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

static long live; /* exceptions of this type that were not destroyed */

struct Counted : std::runtime_error {
    int number;
    explicit Counted(int n) : std::runtime_error("counted " + std::to_string(n)), number(n) {
        __atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
    }
    Counted(const Counted &other) : std::runtime_error(other), number(other.number) {
        __atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
    }
    ~Counted() override {
        __atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
    }
};

static bool nothing_under_way() {
    return std::uncaught_exceptions() == 0 && std::current_exception() == nullptr;
}

static void wait_some(int n) {
    for (int i = 0; i < n; i++) {
        cc_yield();
        if (i % 16 == 15) CHECK_EQ(cc_sleep_ms(1), 0);
    }
}

/* Its destructor waits, in the middle of an exception or not. */
struct Waits {
    int expected, turns;
    Waits(int e, int t) : expected(e), turns(t) {}
    ~Waits() {
        CHECK_EQ(std::uncaught_exceptions(), expected);
        wait_some(turns);
        CHECK_EQ(std::uncaught_exceptions(), expected);
    }
};

/* ---- across waits ---- */

static void catch_and_wait(int number) {
    try {
        Waits w(1, number % 5);
        throw Counted(number);
    } catch (Counted &e) {
        wait_some(number % 7);
        CHECK_EQ(e.number, number);
        try { /* one inside the other */
            throw number;
        } catch (int n) {
            wait_some(3);
            CHECK_EQ(n, number);
            try {
                throw; /* again, from inside */
            } catch (int m) {
                wait_some(2);
                CHECK_EQ(m, number);
            }
        }
        CHECK_EQ(e.number, number);
        wait_some(2);
        throw;
    }
}

static void *catches(void *arg) {
    int first = (int)(intptr_t)arg;
    for (int i = 0; i < 8; i++) {
        CHECK(nothing_under_way());
        try {
            catch_and_wait(first * 8 + i);
            CHECK(!"reached");
        } catch (const std::exception &e) {
            cc_yield();
            CHECK(std::string(e.what()) == "counted " + std::to_string(first * 8 + i));
        }
    }
    CHECK(nothing_under_way());
    return NULL;
}

TEST_WORKERS(waits_in_catch_blocks) {
    CCTask tasks[64];
    int n = (int)test_scale(64);
    for (int i = 0; i < n; i++) CHECK_EQ(cc_spawn(&tasks[i], catches, (void *)(intptr_t)i, NULL), 0);
    for (int i = 0; i < n; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(live, 0);
}

/* ---- on another thread ---- */

struct Move {
    CCEvent go;
    volatile bool arrived;
    long from, hog, to;
};

static long thread_id() {
    return syscall(SYS_gettid);
}

/* Wakes the other one and hogs the worker, until the other one runs elsewhere. */
static void *hogs_the_worker(void *arg) {
    Move *m = (Move *)arg;
    m->hog = thread_id();
    cc_event_set(&m->go);
    while (!__atomic_load_n(&m->arrived, __ATOMIC_ACQUIRE)) usleep(100);
    return NULL;
}

static void *moves(void *arg) {
    Move *m = (Move *)arg;
    CCTask hog;
    try {
        throw Counted(7);
    } catch (Counted &e) {
        m->from = thread_id();
        CHECK_EQ(cc_spawn(&hog, hogs_the_worker, m, NULL), 0);
        CHECK_EQ(cc_event_wait(&m->go), 0);
        m->to = thread_id();
        __atomic_store_n(&m->arrived, true, __ATOMIC_RELEASE);
        CHECK_EQ(e.number, 7);
        CHECK(std::current_exception() != nullptr);
        try {
            throw;
        } catch (std::exception &again) {
            CHECK(strcmp(again.what(), "counted 7") == 0);
        }
    }
    CHECK(nothing_under_way());
    CHECK_EQ(cc_task_join(&hog, NULL), 0);
    return NULL;
}

TEST(moves_to_another_thread) {
    CCRuntimeConfig config = {};
    config.workers = 2;
    CHECK_EQ(cc_runtime_init(&config), 0);
    for (bool moved = false; !moved;) {
        Move m = {};
        CCTask task;
        CHECK_EQ(cc_spawn(&task, moves, &m, NULL), 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        CHECK(m.to != m.hog);
        moved = m.from == m.hog; /* the usual case; else it was woken from another worker */
        CHECK_EQ(live, 0);
    }
}

/* ---- a joiner in a catch block ---- */

static void *throws_and_catches(void *arg) {
    CHECK(nothing_under_way());
    try {
        throw Counted(2);
    } catch (Counted &) {
        cc_yield();
    }
    return arg;
}

static void *joins_in_a_catch_block(void *) {
    for (int i = 0; i < 50; i++) {
        try {
            throw Counted(1);
        } catch (Counted &e) {
            CCTask task;
            CHECK_EQ(cc_spawn(&task, throws_and_catches, NULL, NULL), 0);
            CHECK_EQ(cc_task_join(&task, NULL), 0); /* has not begun: might run on this stack */
            CHECK_EQ(e.number, 1);
            CHECK(std::current_exception() != nullptr);
            CHECK_EQ(std::uncaught_exceptions(), 0);
        }
    }
    return NULL;
}

TEST_WORKERS(joins_in_catch_blocks) {
    CHECK_EQ(cc_run(joins_in_a_catch_block, NULL, NULL), 0);
    CHECK_EQ(live, 0);
}

/* ---- out of a task's function ---- */

struct Left {};
struct Base {
    virtual ~Base() {}
    int weight = 3;
};
struct Twisted : Base, virtual Counted {
    Twisted() : Counted(9) {}
};

static int destroyed, deferred;

struct Destroyed {
    ~Destroyed() {
        cc_yield();
        __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
    }
};

static void count_deferred(void *) {
    __atomic_add_fetch(&deferred, 1, __ATOMIC_RELAXED);
}

static void throw_one(int kind) {
    switch (kind) {
    case 0:
        throw std::runtime_error("disk full");
    case 1:
        throw 42;
    case 2:
        throw Left();
    case 3:
        throw Twisted();
    case 4:
        std::rethrow_exception(std::make_exception_ptr(std::out_of_range("too far")));
    default:
        throw "text";
    }
}

static const char *const said[] = {"uncaught exception std::runtime_error: disk full",
                                   "uncaught exception int",
                                   "uncaught exception Left",
                                   "uncaught exception Twisted: counted 9",
                                   "uncaught exception std::out_of_range: too far",
                                   "uncaught exception char const*"};

static void *leaves(void *arg) {
    Destroyed on_the_way;
    CC_DEFER(count_deferred, NULL);
    CHECK_EQ(cc_defer(count_deferred, NULL), 0);
    if ((intptr_t)arg % 2) cc_yield();
    throw_one((int)(intptr_t)arg);
    return NULL;
}

static void check_left(CCFiberId id, int kind) {
    CCPanic why;
    CHECK_EQ(cc_panic_find(id, &why), 0);
    if (strcmp(why.message, said[kind]) != 0) test_fail(__FILE__, __LINE__, "'%s' was said", why.message);
}

static void *leave_and_join(void *) {
    for (int kind = 0; kind < 6; kind++) {
        CCTask task;
        void *result = &task;
        CHECK_EQ(cc_spawn(&task, leaves, (void *)(intptr_t)kind, NULL), 0);
        CCFiberId id = task.id;
        CHECK_EQ(cc_task_join(&task, &result), ENOTRECOVERABLE);
        CHECK(result == NULL);
        check_left(id, kind);
        CHECK(nothing_under_way());
    }
    return NULL;
}

TEST_WORKERS(leaves_a_task) {
    leave_and_join(NULL);                            /* on stacks of their own */
    CHECK_EQ(cc_run(leave_and_join, NULL, NULL), 0); /* on the joiner's */
    CHECK_EQ(destroyed, 12);
    CHECK_EQ(deferred, 24);
    CHECK_EQ(live, 0);
}

static void *fails_in_a_nursery(void *) {
    throw std::logic_error("a child's");
}

TEST_WORKERS(leaves_a_child) {
    CCNursery *n = cc_nursery_create(NULL);
    CCError error;
    CHECK_EQ(cc_nursery_spawn(n, fails_in_a_nursery, NULL), 0);
    CHECK_EQ(cc_nursery_wait(n), ENOTRECOVERABLE);
    CHECK_EQ(cc_nursery_failure(n, 0, &error), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

/* ---- scopes ---- */

static void throws(void *arg) {
    Destroyed on_the_way;
    throw_one((int)(intptr_t)arg);
}

static void panics(void *) {
    cc_panic("the next one");
}

static void *throws_hosted(void *arg) {
    throws(arg);
    return arg;
}

static void *try_them(void *) {
    CCPanic why;
    for (int kind = 0; kind < 6; kind++) {
        CHECK_EQ(cc_try(throws, (void *)(intptr_t)kind, &why), ENOTRECOVERABLE);
        CHECK(strcmp(why.message, said[kind]) == 0);
        CHECK_EQ(cc_try(panics, NULL, &why), ENOTRECOVERABLE);
        CHECK(strcmp(why.message, "the next one") == 0);
        CHECK_EQ(cc_hosted_call(throws_hosted, (void *)(intptr_t)kind, NULL, &why), ENOTRECOVERABLE);
        CHECK(strcmp(why.message, said[kind]) == 0);
        CHECK(nothing_under_way());
    }
    return NULL;
}

TEST_WORKERS(leaves_a_scope) {
    try_them(NULL);
    CHECK_EQ(cc_run(try_them, NULL, NULL), 0);
    CHECK_EQ(destroyed, 24);
    CHECK_EQ(live, 0);
}

static void panic_in_a_catch_block(void *arg) {
    try {
        throw Counted(1);
    } catch (...) {
        try {
            throw Counted(2);
        } catch (...) {
            if (arg != NULL) cc_yield();
            cc_panic("from a catch block");
        }
    }
}

static void *outer_catch(void *arg) {
    CCPanic why;
    try {
        throw Counted(3);
    } catch (Counted &e) {
        CHECK_EQ(cc_try(panic_in_a_catch_block, arg, &why), ENOTRECOVERABLE);
        CHECK(strcmp(why.message, "from a catch block") == 0);
        CHECK_EQ(live, 1); /* those of the scope are gone */
        CHECK_EQ(e.number, 3);
        CHECK(std::current_exception() != nullptr);
    }
    CHECK(nothing_under_way());
    panic_in_a_catch_block(arg);
    return NULL;
}

TEST(panics_in_catch_blocks) {
    for (int i = 0; i < 4; i++) {
        CCTask task;
        CHECK_EQ(cc_spawn(&task, outer_catch, i % 2 ? &task : NULL, NULL), 0);
        CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
        CHECK_EQ(live, 0);
        CHECK_EQ(cc_spawn(&task, throws_and_catches, NULL, NULL), 0); /* finds nothing of it */
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
}

static void throws_when_deferred(void *) {
    throw Counted(5);
}

static void panics_and_throws(void *) {
    try {
        CC_DEFER(count_deferred, NULL);
        CHECK_EQ(cc_defer(throws_when_deferred, NULL), 0);
        cc_panic("first");
    } catch (...) {
        CHECK(!"an exception of a deferred function got past the panic");
    }
}

TEST(throws_in_a_deferred_function) {
    CCPanic why;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_try(panics_and_throws, NULL, &why), ENOTRECOVERABLE);
        CHECK(strcmp(why.message, "uncaught exception Counted: counted 5") == 0);
    }
    CHECK_EQ(deferred, 3);
    CHECK_EQ(live, 0);
}

static void stop_it(void *info) {
    CHECK(cc_recover((CCPanic *)info));
}

static void *recovers(void *info) {
    CHECK_EQ(cc_defer(stop_it, info), 0);
    throw Counted(6);
}

TEST(an_exception_is_recovered) {
    CCTask task;
    CCPanic why;
    CHECK_EQ(cc_spawn(&task, recovers, &why, NULL), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK(strcmp(why.message, "uncaught exception Counted: counted 6") == 0);
    CHECK_EQ(live, 0);
}

/* ---- through calls that call a function of the program ---- */

static int calls;

static void throws_the_first_time(void *) {
    if (calls++ == 0) throw Counted(1);
}

static int creates_the_second_time(void *item, void *) {
    *(long *)item = 7;
    throws_the_first_time(NULL);
    return 0;
}

static void use_the_stack() {
    volatile char space[4096];
    for (volatile char &c : space) c = 0x55;
}

/* Catches what the call throws. Then the call has left nothing in the frames that were unwound: a deferred function
 * that was still registered there would be called here, or at the end of the block. */
template <class Call> static void catch_what_passes(Call call) {
    bool caught = false;
    CC_DEFER(count_deferred, NULL);
    CHECK_EQ(cc_defer(count_deferred, NULL), 0);
    try {
        call();
    } catch (Counted &) {
        caught = true;
    }
    CHECK(caught);
    use_the_stack();
    CHECK(!cc_recover(NULL));
}

static void throw_through_once(void *) {
    CCOnce once = {};
    calls = 0;
    catch_what_passes([&] { CHECK_EQ(cc_once(&once, throws_the_first_time, NULL), 0); });
    CHECK_EQ(cc_once(&once, throws_the_first_time, NULL), 0); /* it did not count as run */
    CHECK_EQ(calls, 2);
}

static void throw_through_a_pool(void *) {
    CCChanConfig config = {};
    config.elem_size = sizeof(long);
    config.capacity = 1;
    config.on_create = creates_the_second_time;
    CCChan *pool = cc_chan_create_ex(&config);
    long item = 0;
    calls = 0;
    CHECK(pool != NULL);
    catch_what_passes([&] { (void)cc_chan_recv(pool, &item, sizeof item); });
    CHECK_EQ(cc_chan_recv(pool, &item, sizeof item), 0); /* there is room for it */
    CHECK_EQ(item, 7);
    cc_chan_free(pool);
}

static void throw_through_an_exit(void *) {
    CCNursery *n = cc_nursery_create(NULL);
    calls = 0;
    CHECK_EQ(cc_nursery_at_exit(n, throws_the_first_time, NULL), 0);
    catch_what_passes([&] { (void)cc_nursery_wait(n); });
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

static std::atomic<int> other_pieces;

/* The caller's piece is at most halved at each step: it reaches the third whatever other workers take. */
static int throws_in_the_callers_piece(size_t, size_t end, void *caller) {
    if (cc_fiber_id() != *(CCFiberId *)caller) {
        other_pieces++;
        (void)cc_sleep_ms(3600 * 1000); /* until the rest is cancelled */
    } else if (end > 2) {
        for (int i = 0; i < 1000 && other_pieces == 0; i++) cc_yield();
        throw Counted(2);
    }
    return 0;
}

enum { RANGES = 200 }; /* in some of them no worker is idle at the first steps, and so there is no other piece */

static void throw_through_a_range(void *) {
    CCFiberId caller = cc_fiber_id();
    for (int i = 0; i < RANGES; i++) {
        other_pieces = 0;
        catch_what_passes([&] { (void)cc_parallel_for(0, 60, throws_in_the_callers_piece, &caller); });
    }
    CHECK_EQ(cc_cancelled(), false); /* it is in no scope of the range any more */
}

static void *throw_through_all(void *) {
    void (*const all[])(void *) = {throw_through_once, throw_through_a_pool, throw_through_an_exit};
    for (auto one : all) CHECK_EQ(cc_try(one, NULL, NULL), 0);
    if (cc_in_fiber()) CHECK_EQ(cc_try(throw_through_a_range, NULL, NULL), 0); /* else it runs in its own fiber */
    CHECK(nothing_under_way());
    return NULL;
}

TEST_WORKERS(through_calls) {
    throw_through_all(NULL);
    CHECK_EQ(cc_run(throw_through_all, NULL, NULL), 0);
    CHECK_EQ(deferred, 2 * (3 + 3 + RANGES));
    CHECK_EQ(live, 0);
}

/* ---- the end of a worker ---- */

/* glibc unwinds by libgcc, whose state the personality of libc++abi gives to another unwinder: there pthread_exit
 * crashes in any thread that has a destructor or a handler below it. */
#ifdef _LIBCPP_VERSION
static void *ends_its_thread(void *arg) {
    pthread_exit(arg);
}
#else
static void *ends_its_thread(void *arg) {
    try {
        Waits w(0, 2); /* the destructor runs first */
        pthread_exit(arg);
    } catch (...) {
        throw;
    }
    return arg;
}
#endif

/* The race detector checks in pthread_exit that its caller is a thread of its own, and ends the program. */
TEST_DIES(pthread_exit_in_a_fiber,
          UNDER_TSAN ? "pthread_exit" : "has ended its OS thread, which belongs to the runtime",
          .signal = UNDER_TSAN ? 0 : SIGABRT) {
    (void)cc_run(ends_its_thread, NULL, NULL);
    abort();
}

/* ---- names in reports ---- */

namespace spaces {
struct Widget {
    static void *poke(void *arg);
};

__attribute__((noinline)) void *Widget::poke(void *arg) {
    cc_panic("poked");
    return arg;
}
} // namespace spaces

TEST_DIES(names_are_readable, "spaces::Widget::poke(", .signal = SIGABRT) {
    (void)cc_run(spaces::Widget::poke, NULL, NULL);
    abort();
}
