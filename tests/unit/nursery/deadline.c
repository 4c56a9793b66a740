/* deadline.c - a deadline cancels its scope with ETIMEDOUT; the earliest of all scopes above counts. */
#include "scene.h"

#include "../crew.h"

static atomic_int cancelled;

static void *cancelled_by_deadline(void *arg) {
    (void)wait_for_cancel(&cancelled);
    CCError why;
    CHECK_EQ(cc_cancel_reason(&why), 0);
    CHECK_EQ(why.code, ETIMEDOUT);
    CHECK_EQ(why.who, 0);
    CHECK_EQ(strcmp(why.text, "the deadline has passed"), 0);
    CHECK(cc_now_ns() >= cc_deadline().ns);
    return arg;
}

static void expire_once(void) {
    cancelled = 0;
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.deadline = cc_after_ms(3)}), *inner = new_nursery(n);
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_nursery_spawn(i % 2 ? n : inner, cancelled_by_deadline, NULL), 0);
    CHECK_EQ(cc_nursery_wait(inner), ECANCELED); /* the deadline is not its own */
    CHECK_EQ(cc_nursery_wait(n), ETIMEDOUT);
    CHECK_EQ(cancelled, 10);
    CHECK_EQ(cc_nursery_free(inner), 0);
    check_empty(n);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(expires) {
    for (int i = 0; i < 5; i++) expire_once();
    in_fiber(expire_once);
}

static void in_the_past(void) {
    cancelled = 0;
    int rc;
    CC_NURSERY(n, .deadline = {1}, .result = &rc) {
        CHECK_EQ(cc_nursery_spawn(n, cancelled_by_deadline, NULL), 0);
        if (cc_in_fiber()) CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    }
    CHECK_EQ(rc, ETIMEDOUT);
    CHECK_EQ(cancelled, 1);
}

TEST_WORKERS(already_past) {
    in_the_past();
    in_fiber(in_the_past);
}

/* The same rule with children and without, on a thread and in a fiber, set at once or later: what has passed
 * cancels. */
static void passed_and_waited(CCNursery *n) {
    CHECK_EQ(cc_nursery_wait(n), ETIMEDOUT);
    CHECK_EQ(cc_nursery_wait(n), ETIMEDOUT);
    CHECK_EQ(cc_nursery_wait_until(n, CC_FOREVER), ETIMEDOUT);
    CHECK_EQ(cc_nursery_set_deadline(n, CC_FOREVER), ETIMEDOUT);
    CHECK_EQ(cc_nursery_free(n), 0);
}

static void nobody_in_it(void) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_set_deadline(n, CC_PASSED), 0);
    passed_and_waited(n);
    passed_and_waited(cc_nursery_create_ex(&(CCNurseryConfig){.deadline = CC_PASSED}));
    /* On one worker the timer has no turn before the wait. */
    CCDeadline deadline = cc_after_ms(1);
    n = cc_nursery_create_ex(&(CCNurseryConfig){.deadline = deadline});
    while (cc_now_ns() < deadline.ns) {
    }
    passed_and_waited(n);
    int rc = 0;
    CC_NURSERY(block, .deadline = CC_PASSED, .result = &rc) CHECK(cc_cancelled());
    CHECK_EQ(rc, ETIMEDOUT);
}

TEST_WORKERS(passed_without_children) {
    nobody_in_it();
    in_fiber(nobody_in_it);
}

/* ---- set, moved, called off ---- */

static void change(void) {
    cancelled = 0;
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, cancelled_by_deadline, NULL), 0);
    CHECK_EQ(cc_nursery_set_deadline(n, cc_after_ms(3600 * 1000)), 0);
    CHECK_EQ(cc_nursery_set_deadline(n, CC_FOREVER), 0);
    CHECK_EQ(cc_nursery_set_deadline(n, CC_FOREVER), 0);
    CHECK_EQ(cc_nursery_set_deadline(n, cc_after_ms(1800 * 1000)), 0);
    CHECK_EQ(cc_nursery_wait_until(n, cc_after_ms(2)), ETIMEDOUT);
    CHECK_EQ(cancelled, 0);
    CHECK_EQ(cc_nursery_set_deadline(n, cc_after_ms(2)), 0);
    CHECK_EQ(cc_nursery_wait(n), ETIMEDOUT);
    CHECK_EQ(cancelled, 1);
    CHECK_EQ(cc_nursery_set_deadline(n, cc_after_ms(1000)), ETIMEDOUT); /* it has passed, for ever */
    CHECK_EQ(cc_nursery_set_deadline(n, CC_FOREVER), ETIMEDOUT);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(changed) {
    change();
    in_fiber(change);
}

/* A thread removes a deadline while another one shuts down: a removed deadline does not delay the shutdown. */
TEST_WORKERS(removed_by_a_thread) {
    for (int i = 0; i < 50; i++) {
        CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.deadline = cc_after_ms(3600 * 1000)});
        CHECK(n != NULL);
        CHECK_EQ(cc_nursery_spawn(n, nothing, NULL), 0);
        CHECK_EQ(cc_nursery_wait(n), 0);
        CHECK_EQ(cc_nursery_free(n), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}

static void free_it(int index, void *n) {
    (void)index;
    CHECK_EQ(cc_nursery_free(n), 0);
}

/* The shutdown already waits when the deadline, the last thing that it waits for, is removed. */
TEST_WORKERS(removed_during_a_shutdown) {
    for (int i = 0; i < 20; i++) {
        CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.deadline = cc_after_ms(3600 * 1000)});
        CHECK(n != NULL);
        struct crew crew;
        crew_start(&crew, 1, free_it, n);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        crew_join(&crew);
    }
}

/* A block sees that its deadline has passed even if no worker could fire the timer: a fiber may hog the only worker. */
static void tells_by_the_clock(void) {
    bool late = false;
    CC_WITH_DEADLINE(cc_after_ms(1), &late) {
        while (!cc_deadline_has_passed(cc_deadline())) {
        }
    }
    CHECK(late);
    CC_WITH_DEADLINE(cc_after_ms(3600 * 1000), &late) {}
    CHECK(!late);
    CC_WITH_DEADLINE(CC_FOREVER, &late) {}
    CHECK(!late);
}

TEST_WORKERS(block_that_ends_late) {
    tells_by_the_clock();
    in_fiber(tells_by_the_clock);
}

/* ---- inheritance ---- */

static void nest_deadlines(void) {
    CHECK_EQ(cc_deadline().ns, CC_FOREVER.ns);
    CCDeadline late = cc_after_ms(3600 * 1000), early = {late.ns - 1000}, latest = {late.ns + 1000};
    CC_WITH_DEADLINE(late) {
        CHECK_EQ(cc_deadline().ns, late.ns);
        CC_NURSERY(n, .deadline = early) {
            CHECK_EQ(cc_deadline().ns, early.ns);
            CC_WITH_DEADLINE(latest) CHECK_EQ(cc_deadline().ns, early.ns); /* the earliest on the way up */
            CHECK_EQ(cc_nursery_set_deadline(n, CC_FOREVER), 0);
            CHECK_EQ(cc_deadline().ns, late.ns);
        }
        CHECK_EQ(cc_deadline().ns, late.ns);
    }
    CHECK_EQ(cc_deadline().ns, CC_FOREVER.ns);
}

TEST(earliest_on_the_way_up) {
    CHECK_EQ(cc_deadline().ns, CC_FOREVER.ns); /* on an OS thread */
    in_fiber(nest_deadlines);
}

/* An earlier one above ends what is below; a later one inside changes nothing. */
static void outer_first(void) {
    CCDeadline outer = cc_after_ms(3);
    CC_WITH_DEADLINE(outer) {
        CC_WITH_DEADLINE(cc_after_ms(3600 * 1000)) {
            CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
            CHECK(cc_now_ns() >= outer.ns);
            CCError why;
            CHECK_EQ(cc_cancel_reason(&why), 0);
            CHECK_EQ(why.code, ETIMEDOUT);
        }
        CHECK(cc_cancelled()); /* still inside */
    }
    CHECK(!cc_cancelled());
    CHECK_EQ(cc_sleep_ms(1), 0);
}

static void inner_first(void) {
    CC_WITH_DEADLINE(cc_after_ms(3600 * 1000)) {
        CC_WITH_DEADLINE(cc_after_ms(1)) CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        CHECK(!cc_cancelled());
        CHECK_EQ(cc_sleep_ms(1), 0);
    }
}

TEST_WORKERS(blocks) {
    in_fiber(outer_first);
    in_fiber(inner_first);
    outer_first(); /* on an OS thread */
    inner_first();
}

static int by_return(void) {
    CC_WITH_DEADLINE(cc_after_ms(3600 * 1000)) return 1;
    return 0;
}

static void ways_out(void) {
    CHECK_EQ(by_return(), 1);
    CC_WITH_DEADLINE(cc_after_ms(1000)) break;
    CC_WITH_DEADLINE(cc_after_ms(1000)) goto out;
    CHECK(false);
out:
    CHECK(cc__scope_current() == NULL);
    CC_WITH_DEADLINE(cc_after_ms(1)) CC_SHIELD CHECK_EQ(cc_sleep_ms(3), 0);
}

TEST_WORKERS(every_way_out_of_a_block) {
    in_fiber(ways_out);
}

/* A whole tree below a block. */
static void tree_below(void) {
    cancelled = 0;
    CC_WITH_DEADLINE(cc_after_ms(3)) {
        int rc;
        CC_NURSERY(n, .result = &rc) {
            for (int i = 0; i < 5; i++) CHECK_EQ(cc_nursery_spawn(n, cancelled_by_deadline, NULL), 0);
        }
        CHECK_EQ(rc, ECANCELED);
        CHECK_EQ(cancelled, 5);
    }
}

TEST_WORKERS(a_tree_below_a_block) {
    in_fiber(tree_below);
}

/* ---- loops that do not wait ---- */

/* On one worker no timer can fire while a fiber hogs the worker: the fiber checks the clock itself. */
static void busy_loop(void) {
    CCDeadline deadline = cc_after_ms(2);
    CC_WITH_DEADLINE(deadline) {
        CC_WITH_DEADLINE(CC_FOREVER) {
            while (!cc_cancelled()) {
            }
            CHECK(cc_now_ns() >= deadline.ns);
        }
        CCError why;
        CHECK_EQ(cc_cancel_reason(&why), 0);
        CHECK_EQ(why.code, ETIMEDOUT);
        CHECK_EQ(cc_check_cancel(), ECANCELED);
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    }
    CHECK(!cc_cancelled());
}

TEST_WORKERS(a_loop_that_does_not_wait) {
    in_fiber(busy_loop);
}

/* ---- blocks by the thousand: what they leave behind is bounded ---- */

static void many_blocks(void) {
    for (long i = 0, rounds = test_scale(20000); i < rounds; i++) {
        CC_WITH_DEADLINE(cc_after_ms(3600 * 1000)) {
            if (i % 1000 == 0) cc_yield();
        }
    }
    for (unsigned i = 0; i < cc__sched.count; i++) CHECK(cc__timer_count(&cc__sched.workers[i]) <= 200);
}

TEST_WORKERS(timers_do_not_pile_up) {
    in_fiber(many_blocks);
}

/* The deadline passes at the very moment at which the block is left, or the deadline is moved. */
static void at_the_edge(void) {
    for (long i = 0, rounds = test_rounds(2000, 100000); i < rounds; i++) {
        CCDeadline deadline = cc_after_ns((uint64_t)(i % 50) * 1000);
        if (i % 2 == 0) {
            CC_WITH_DEADLINE(deadline) {
                while (cc_now_ns() < deadline.ns) cc_yield();
            }
        } else {
            CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.deadline = deadline});
            while (cc_now_ns() < deadline.ns) cc_yield();
            int rc = cc_nursery_set_deadline(n, CC_FOREVER);
            CHECK(rc == 0 || rc == ETIMEDOUT);
            int wait = cc_nursery_wait(n);
            CHECK(wait == 0 || rc == ETIMEDOUT);
            CHECK_EQ(cc_nursery_free(n), 0);
        }
    }
}

TEST_WORKERS(at_the_edge_of_a_block) {
    in_fiber(at_the_edge);
}

/* A loop that saw the deadline pass, a moment before it was put off, cancels nothing. */
TEST(postponed_at_the_last_moment) {
    CCNursery *n = new_nursery(NULL);
    uint64_t seen = cc_now_ns();
    CHECK_EQ(cc_nursery_set_deadline(n, cc_after_ms(60 * 1000)), 0);
    cc__scope_expire(&n->scope, seen);
    CHECK_EQ(cc__get(&n->scope.cancelled), 0);
    CHECK_EQ(cc_nursery_set_deadline(n, CC_FOREVER), 0);
    cc__scope_expire(&n->scope, cc_now_ns());
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}
