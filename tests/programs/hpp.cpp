/* hpp.cpp - ccc.hpp: tasks of lambdas, exceptions across joins, nurseries as objects, channels of any type, select.
 *
 * variants: shared libcxx
 */
extern "C" {
#include "harness.h"
}

#include <ccc/ccc.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

/* Counts objects that live. */
static std::atomic<long> live{0};
struct Counted {
    int number;
    explicit Counted(int n) : number(n) {
        ++live;
    }
    Counted(const Counted &other) : number(other.number) {
        ++live;
    }
    Counted &operator=(const Counted &) = default;
    ~Counted() {
        --live;
    }
};

template <class F> static int code_of(F f) {
    try {
        f();
        return 0;
    } catch (const ccc::error &e) {
        return e.code().value();
    }
}
template <class F> static std::string text_of(F f) {
    try {
        f();
        return "";
    } catch (const std::exception &e) {
        return e.what();
    }
}
static bool contains(const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
}

/* Waits until it is cancelled. */
static void wait_for_cancel() {
    ccc::channel<int> never;
    (void)never.recv();
}

/* ---- tasks ---- */

TEST_WORKERS(results_of_any_type) {
    CHECK_EQ(ccc::run([] { return 7; }), 7);
    std::string text = ccc::run([] {
        auto word = std::make_unique<std::string>("moved");
        ccc::task<std::string> t = ccc::go([word = std::move(word)] { return *word + " in"; });
        return t.join();
    });
    CHECK(text == "moved in");
    ccc::run([] {
        std::vector<ccc::task<std::unique_ptr<int>>> tasks;
        for (int i = 0; i < 100; i++) tasks.push_back(ccc::go([i] { return std::make_unique<int>(i); }));
        for (int i = 0; i < 100; i++) CHECK_EQ(*tasks[(size_t)i].join(), i);
    });
    ccc::task<void> t = ccc::go([] {}); /* by an OS thread */
    CHECK(t);
    t.join();
    CHECK(!t);
    CHECK_EQ(code_of([&] { t.join(); }), EINVAL);
}

TEST_WORKERS(misuse) {
    ccc::task<int> t = ccc::go([] { return 1; }), moved = std::move(t);
    CHECK(contains(text_of([&] { t.join(); }), "ccc::task: not started, joined before, or moved from"));
    CHECK_EQ(moved.join(), 1);
    CHECK(contains(text_of([&] { moved.join(); }), "ccc::task: not started, joined before, or moved from"));
    ccc::channel<int> from(1), to = std::move(from);
    CHECK_EQ(code_of([&] { from.send(1); }), EINVAL);
    CHECK_EQ(code_of([&] { (void)from.recv(); }), EINVAL);
    to.close();
    CHECK_EQ(code_of([&] { (void)ccc::channel<int>(0, nullptr, CC_CHAN_MODE_DROP_OLD); }),
             EINVAL); /* a channel that drops needs a capacity */
}

TEST_WORKERS(exceptions_cross_joins) {
    ccc::task<int> t = ccc::go([]() -> int { throw std::runtime_error("broken"); });
    CHECK(text_of([&] { t.join(); }) == "broken");
    CHECK(text_of([] { ccc::run([] { throw std::logic_error("inside"); }); }) == "inside");
    t = ccc::go([]() -> int { throw 5; });
    int caught = 0;
    try {
        t.join();
    } catch (int n) {
        caught = n;
    }
    CHECK_EQ(caught, 5);
    CHECK(text_of([] { ccc::blocking([] { throw std::runtime_error("blocked"); }); }) == "blocked");
    CHECK_EQ(ccc::run([] { return ccc::blocking([] { return 9; }); }), 9);
}

TEST_WORKERS(panics_cross_joins) {
    ccc::task<int> t = ccc::go([]() -> int { cc_panic("no way on"); });
    CHECK(contains(text_of([&] { t.join(); }), "no way on"));
    CHECK_EQ(code_of([] { ccc::run([] { cc_panic("nor here"); }); }), ENOTRECOVERABLE);
}

TEST_WORKERS(a_handle_that_is_destroyed_ends_its_task) {
    std::atomic<bool> ended{false};
    {
        auto t = ccc::go([&] {
            try {
                wait_for_cancel();
            } catch (const ccc::cancelled &) {
                ended = true;
                throw;
            }
        });
    }
    CHECK(ended);
    ccc::task<void> t = ccc::go(wait_for_cancel);
    t = ccc::go([] {}); /* cancels and waits for the one before */
    t.join();
}

TEST_WORKERS(what_a_task_holds_ends_with_it) {
    ccc::run([] {
        auto held = std::make_shared<int>(1);
        std::weak_ptr<int> weak = held;
        auto t = ccc::go([held = std::move(held)] { return *held; });
        CHECK_EQ(t.join(), 1);
        CHECK(weak.expired());
        ccc::channel<int> done(1);
        Counted counted(3);
        auto other = ccc::go([done, counted]() mutable { done.send(counted.number); });
        other.detach();
        CHECK_EQ(done.recv().value(), 3);
    });
    CHECK_EQ(cc_runtime_shutdown(60000), 0);
    CHECK_EQ(live, 0);
}

TEST_WORKERS(a_join_can_be_cancelled_and_tried_again) {
    ccc::channel<int> go_on;
    ccc::run([&] {
        auto slow = ccc::go([&] { return go_on.recv().value(); });
        CHECK_EQ(code_of([&] { slow.join_until(CC_PASSED); }), ETIMEDOUT);
        CHECK(slow);
        auto joins = ccc::go([&] { return code_of([&] { slow.join(); }); });
        joins.cancel();
        CHECK_EQ(joins.join(), ECANCELED);
        CHECK(slow);
        go_on.send(4);
        CHECK_EQ(slow.join(), 4);
    });
}

/* ---- nurseries ---- */

TEST_WORKERS(a_nursery_waits_for_its_children) {
    std::atomic<int> ran{0};
    {
        ccc::nursery n;
        for (int i = 0; i < 50; i++)
            n.go([&, counted = Counted(i)] {
                cc_yield();
                ran += counted.number >= 0;
            });
    }
    CHECK_EQ(ran, 50);
    CHECK_EQ(live, 0);
    ccc::run([&] {
        ccc::nursery n;
        n.go([&] { ran++; });
        n.wait();
        CHECK_EQ(ran, 51);
        n.go([&] { ran++; });
    });
    CHECK_EQ(ran, 52);
}

TEST_WORKERS(what_a_child_throws_is_rethrown) {
    ccc::run([] {
        std::atomic<bool> sibling{false};
        auto by_wait = [&] {
            ccc::nursery n;
            n.go([&] {
                try {
                    wait_for_cancel();
                } catch (const ccc::cancelled &) {
                    sibling = true;
                    throw;
                }
            });
            n.go([] { throw std::runtime_error("first"); });
            n.wait();
        };
        CHECK(text_of(by_wait) == "first");
        CHECK(sibling);
        CHECK(text_of([] {
                  ccc::nursery n;
                  n.go([] { throw std::runtime_error("by the destructor"); });
              }) == "by the destructor");
        /* Each wait reports the failure; then the destructor does not. */
        ccc::nursery n;
        n.go([] { throw ccc::error(EPROTO, "seen"); });
        CHECK_EQ(code_of([&] { n.wait(); }), EPROTO);
        CHECK_EQ(code_of([&] { n.wait(); }), EPROTO);
    });
}

TEST_WORKERS(a_child_that_panics_fails_its_nursery) {
    CHECK_EQ(code_of([] {
                 ccc::nursery n;
                 n.go([] { cc_panic("in a child"); });
             }),
             ENOTRECOVERABLE);
    CHECK_EQ(live, 0);
}

TEST_WORKERS(an_exception_of_the_block_cancels_the_children) {
    ccc::run([] {
        CHECK(text_of([] {
                  ccc::nursery n;
                  n.go(wait_for_cancel);
                  n.go([] {
                      try {
                          wait_for_cancel();
                      } catch (const ccc::cancelled &) {
                          throw std::runtime_error("the child's own");
                      }
                  });
                  throw std::runtime_error("the block's");
              }) == "the block's");
    });
}

TEST_WORKERS(with_nursery_throws_what_came_first) {
    ccc::run([] {
        auto child_fails = [] {
            ccc::with_nursery([](ccc::nursery &n) {
                n.go([] { throw std::runtime_error("the child's"); });
                wait_for_cancel();
            });
        };
        CHECK(text_of(child_fails) == "the child's");
        auto body_fails = [] {
            ccc::with_nursery([](ccc::nursery &n) {
                n.go(wait_for_cancel);
                throw std::runtime_error("the body's");
            });
        };
        CHECK(text_of(body_fails) == "the body's");
        /* An outer nursery is not affected. */
        ccc::nursery outer;
        outer.go([&] {
            CHECK(text_of(body_fails) == "the body's");
            CHECK(text_of(child_fails) == "the child's");
            CHECK(!cc_cancelled());
        });
        outer.wait();
        CHECK(text_of([&] { ccc::with_nursery([&](ccc::nursery &) { throw ccc::cancelled("own"); }); }).find("own") ==
              0);
    });
}

TEST_WORKERS(deadlines_and_cancellations_of_a_nursery) {
    ccc::run([] {
        CCNurseryConfig config{};
        config.deadline = ccc::after(1ms);
        CHECK_EQ(code_of([&] {
                     ccc::nursery n(config);
                     n.go(wait_for_cancel);
                 }),
                 ETIMEDOUT);
        CHECK_EQ(code_of([] {
                     ccc::nursery n;
                     n.go(wait_for_cancel);
                     n.cancel();
                 }),
                 ECANCELED);
        CHECK(contains(text_of([] {
                           ccc::nursery n;
                           n.go([] { throw std::runtime_error("the reason"); });
                           wait_for_cancel();
                       }),
                       "the reason"));
    });
}

/* ---- channels ---- */

TEST_WORKERS(values_of_any_type_go_through) {
    ccc::run([] {
        ccc::channel<std::unique_ptr<Counted>> numbers(3);
        ccc::nursery n;
        n.go([&] {
            for (int i = 0; i < 200; i++) CHECK(numbers.send(std::make_unique<Counted>(i)));
            numbers.close();
        });
        int expected = 0;
        for (std::unique_ptr<Counted> &p : numbers) CHECK_EQ(p->number, expected++);
        CHECK_EQ(expected, 200);
        CHECK(!numbers.send(std::make_unique<Counted>(0)));
        CHECK(!numbers.recv().has_value());
        struct Point {
            double x, y;
        };
        ccc::channel<Point> points;
        n.go([points]() mutable { points.send({1, 2}); });
        CHECK(points.recv().value().y == 2);
    });
    CHECK_EQ(live, 0);
}

TEST_WORKERS(values_that_nobody_receives_are_destroyed) {
    {
        ccc::channel<std::vector<Counted>> many(4);
        for (int i = 0; i < 4; i++) CHECK(many.send(std::vector<Counted>(3, Counted(i))));
        std::vector<Counted> fifth(2, Counted(9));
        CHECK_EQ(many.send_try(fifth), EAGAIN);
        CHECK_EQ(fifth.size(), 2); /* unchanged */
        CHECK_EQ(many.send_until(fifth, ccc::after(1ms)), ETIMEDOUT);
        CHECK_EQ(fifth.size(), 2);
        std::vector<Counted> first;
        CHECK_EQ(many.recv_try(first), 0);
        CHECK_EQ(first.size(), 3);
        CHECK_EQ(many.size(), 3);
        ccc::channel<std::string> latest(1, "latest", CC_CHAN_MODE_DROP_OLD);
        CHECK(latest.send("an old text that is too long for a short string"));
        CHECK(latest.send("a new text that is too long for a short string, too"));
        CHECK(latest.recv().value() == "a new text that is too long for a short string, too");
        CHECK_EQ(latest.recv_try(*std::make_unique<std::string>()), EAGAIN);
    }
    CHECK_EQ(live, 0);
}

TEST_WORKERS(select_does_exactly_one_arm) {
    ccc::run([] {
        ccc::channel<std::string> in(1), out;
        std::string value = "not sent, and a long text at that", got;
        CHECK(in.send("received, and a long text at that"));
        ccc::select(ccc::on_recv(in, [&](std::optional<std::string> v) { got = v.value(); }),
                    ccc::on_send(out, value, [&](bool) { CHECK(false); }));
        CHECK(got == "received, and a long text at that");
        CHECK(value == "not sent, and a long text at that");
        int which = 0;
        CHECK(!ccc::select_try(ccc::on_recv(in, [&](auto) { which = 1; }),
                               ccc::on_send(out, value, [&](bool) { which = 2; })));
        CHECK_EQ(which, 0);
        CHECK(value == "not sent, and a long text at that");
        ccc::select(ccc::on_send(out, value, [&](bool) { which = 2; }), ccc::on_after(1ms, [&] { which = 3; }));
        CHECK_EQ(which, 3);
        CCSem sem = CC_SEM_INIT(1);
        CCEvent event{};
        for (int i = 0; i < 2; i++) {
            ccc::select(ccc::on_acquire(sem, [&] { which = 10; }), ccc::on_event(event, [&] { which = 11; }));
            CHECK_EQ(which, 10 + i);
            CHECK_EQ(cc_event_set(&event), 0);
        }
        ccc::nursery children;
        children.go([] { cc_yield(); });
        ccc::select(ccc::on_acquire(sem, [&] { which = 12; }), ccc::on_end(children, [&] { which = 13; }));
        CHECK_EQ(which, 13);
        auto reader = ccc::go([&] { return out.recv().value(); });
        ccc::select(ccc::on_send(out, value, [&](bool sent) { which = sent ? 4 : 5; }));
        CHECK_EQ(which, 4);
        std::string read;
        ccc::select(ccc::on_join(reader, [&](std::string s) { read = s; }));
        CHECK(read == "not sent, and a long text at that");
        out.close();
        value = "kept";
        ccc::select(ccc::on_send(out, value, [&](bool sent) { which = sent ? 6 : 7; }));
        CHECK_EQ(which, 7);
        CHECK(value == "kept");
        ccc::select(ccc::on_recv(out, [&](std::optional<std::string> v) { which = v ? 8 : 9; }));
        CHECK_EQ(which, 9);
        auto fails = ccc::go([] { throw std::runtime_error("by the task"); });
        CHECK(text_of([&] { ccc::select(ccc::on_join(fails, [] {})); }) == "by the task");
        auto waits = ccc::go([&] {
            bool cancelled = false;
            ccc::select(ccc::on_recv(in, [](auto) {}), ccc::on_cancel([&] { cancelled = true; }));
            return cancelled && code_of([&] { ccc::select(ccc::on_recv(in, [](auto) {})); }) == ECANCELED;
        });
        waits.cancel();
        CHECK(waits.join());
    });
}

/* Several arms may offer the same value: the chosen channel gets it, and otherwise it is unchanged. */
TEST_WORKERS(arms_with_one_value_send_it_once) {
    const std::string text = "a text that is too long to be kept inside of the string";
    ccc::run([&] {
        ccc::channel<std::string> full, free(1);
        std::string value = text;
        int which = 0;
        auto offer = [&] {
            return ccc::select_try(ccc::on_send(full, value, [&](bool) { which = 1; }),
                                   ccc::on_send(free, value, [&](bool) { which = 2; }));
        };
        CHECK(offer());
        CHECK_EQ(which, 2);
        CHECK(free.recv() == text);
        value = text;
        CHECK(free.send("full"));
        CHECK(!offer());
        CHECK(value == text);
        ccc::task<int> none;
        CHECK_EQ(code_of([&] {
                     ccc::select(ccc::on_send(full, value, [](bool) {}), ccc::on_join(none, [](int) {}),
                                 ccc::on_send(free, value, [](bool) {}));
                 }),
                 EINVAL);
        CHECK(value == text);
    });
}

/* ---- what must compile ---- */

static int seven() {
    return 7;
}
struct MovedLikeMemory { /* trivially copyable, and cannot be copied */
    int number;
    explicit MovedLikeMemory(int n) : number(n) {}
    MovedLikeMemory(MovedLikeMemory &&) = default;
    MovedLikeMemory(const MovedLikeMemory &) = delete;
    MovedLikeMemory &operator=(MovedLikeMemory &&) = default;
};
struct NeverAssigned {
    const std::string text;
};
struct NeverAssignedLikeMemory {
    const int number;
};

TEST_WORKERS(functions_constants_and_references) {
    const auto eight = [] { return 8; };
    CHECK_EQ(ccc::run(seven), 7);
    CHECK_EQ(ccc::run(eight), 8);
    int number = 0;
    auto itself = [&]() -> int & { return number; };
    CHECK(&ccc::run(itself) == &number);
    ccc::run([&] {
        CHECK_EQ(ccc::blocking(seven), 7);
        CHECK_EQ(ccc::blocking(eight), 8);
        CHECK_EQ(ccc::go(seven).join(), 7);
        auto t = ccc::go(itself);
        CHECK(&t.join() == &number);
        try {
            ccc::blocking([] { cc_panic("in a blocking call"); });
            CHECK(false);
        } catch (const ccc::panicked &) {
        }
    });
}

TEST_WORKERS(channels_of_types_that_cannot_be_assigned) {
    ccc::channel<MovedLikeMemory> moved(1);
    CHECK(moved.send(MovedLikeMemory(3)));
    CHECK_EQ(moved.recv()->number, 3);
    ccc::channel<NeverAssigned> texts(1);
    CHECK(texts.send(NeverAssigned{"a"}));
    CHECK(texts.recv()->text == "a");
    texts.close();
    CHECK(!texts.send(NeverAssigned{"b"}));
    ccc::channel<NeverAssignedLikeMemory> numbers(1);
    NeverAssignedLikeMemory four{4};
    ccc::select(ccc::on_send(numbers, four, [](bool sent) { CHECK(sent); }));
    CHECK_EQ(numbers.recv()->number, 4);
}

TEST_WORKERS(a_const_channel_is_one) {
    ccc::channel<std::string> words(2);
    auto t = ccc::go([words] { /* a copy, which is const */
                               CHECK(words.send("one"));
                               CHECK(words.send("two"));
                               words.close();
    });
    std::string all;
    const ccc::channel<std::string> &same = words;
    for (const auto i = same.begin(); i != same.end();) {
        all += *i; /* a const iterator refers to its value, too */
        break;
    }
    for (std::string &word : same) all += word;
    CHECK(all == "onetwo");
    t.join();
}

/* ---- locks, time ---- */

TEST_WORKERS(locks_are_those_of_the_standard_library) {
    ccc::run([] {
        ccc::mutex m;
        ccc::condition_variable changed;
        long sum = 0;
        ccc::nursery n;
        for (int i = 0; i < 8; i++)
            n.go([&] {
                for (int k = 0; k < 100; k++) {
                    std::lock_guard<ccc::mutex> guard(m);
                    sum++;
                    changed.notify_all();
                }
            });
        {
            std::unique_lock<ccc::mutex> lock(m);
            changed.wait(lock, [&] { return sum == 800; });
            CHECK(!changed.wait_until(lock, ccc::after(1ms), [] { return false; }));
        }
        auto waits = ccc::go([&] {
            std::unique_lock<ccc::mutex> lock(m);
            return code_of([&] { changed.wait(lock, [] { return false; }); });
        });
        waits.cancel();
        CHECK_EQ(waits.join(), ECANCELED);
    });
}

TEST(durations_become_deadlines) {
    CHECK_EQ(ccc::after(-1s).ns, CC_PASSED.ns);
    CHECK_EQ(ccc::after(std::chrono::hours(24L * 365 * 1000)).ns, CC_FOREVER.ns);
    uint64_t begin = cc_now_ns();
    ccc::sleep_for(2ms);
    CHECK(cc_now_ns() - begin >= 2000000);
    CHECK(ccc::after(std::chrono::duration<double>(1e-12)).ns > begin);
}
