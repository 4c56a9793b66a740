/* shield.c - shielded code is not cancelled until a grace period is over. */
#include "scene.h"

static atomic_int step, finished;

/* ---- shields ---- */

static void *finish_behind_shield(void *arg) {
    CCChan *ch = arg;
    int value = 0;
    CC_SHIELD {
        atomic_fetch_add(&step, 1);
        CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), 0); /* parked while the cancellation comes */
        CHECK(!cc_cancelled());
        CHECK_EQ(cc_check_cancel(), 0);
        CHECK_EQ(cc_sleep_ms(1), 0);
        CCError why;
        CHECK_EQ(cc_cancel_reason(&why), 0); /* but the reason is there */
        CHECK_EQ(why.code, EXDEV);
    }
    CHECK_EQ(value, 7);
    CHECK(cc_cancelled());
    CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), ECANCELED);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void shielded(void) {
    step = finished = 0;
    CCChan *ch = cc_chan_create(sizeof(int), 0);
    CCNursery *n = new_nursery(NULL);
    CCFiberId id = start_child(n, finish_behind_shield, ch);
    UNTIL(step == 1 && is_parked(id));
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, NULL), 0);
    CHECK_EQ(cc_nursery_wait_until(n, cc_after_ms(2)), ETIMEDOUT);
    CHECK_EQ(finished, 0);
    int value = 7;
    CHECK_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    CHECK_EQ(cc_nursery_wait(n), EXDEV);
    CHECK_EQ(finished, 1);
    CHECK_EQ(cc_nursery_free(n), 0);
    cc_chan_free(ch);
}

TEST_WORKERS(shields_hold) {
    shielded();
    in_fiber(shielded);
}

static void *nest_shields(void *arg) {
    (void)arg;
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    bool a = cc_shield_begin(), b = cc_shield_begin();
    CHECK(a && !b);
    cc_shield_end(b);
    CHECK(!cc_cancelled()); /* the outer one still holds */
    CHECK_EQ(cc_sleep_ms(1), 0);
    cc_shield_end(a);
    CHECK(cc_cancelled());
    for (int i = 0; i < 2; i++) { /* left by break, continue and goto */
        CC_SHIELD break;
        CC_SHIELD {
            if (i == 0) continue;
            goto out;
        }
    }
out:
    CHECK(cc_cancelled());
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    return NULL;
}

static void nested(void) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, nest_shields, NULL), 0);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cc_nursery_failures(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(shields_nest) {
    nested();
    in_fiber(nested);
}

/* Against cc_task_cancel too, and in a fiber without a scope. */
static void *shield_alone(void *arg) {
    CC_SHIELD {
        atomic_store(&step, 1);
        UNTIL(atomic_load((atomic_int *)arg));
        CHECK_EQ(cc_sleep_ms(1), 0);
    }
    CHECK_EQ(cc_sleep_ms(1000), ECANCELED);
    return NULL;
}

TEST_WORKERS(against_a_task_cancel) {
    atomic_int signalled = 0;
    CCTask task = cc_fiber_spawn_task(shield_alone, &signalled);
    UNTIL(step);
    CHECK_EQ(cc_task_cancel(&task), 0);
    signalled = 1;
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK(!cc_shield_begin()); /* on an OS thread they do nothing */
    cc_shield_end(false);
    cc_shield_end(true);
    CC_SHIELD CHECK_EQ(cc_sleep_ms(1), 0);
}

/* ---- grace periods ---- */

static void *hold_out(void *arg) {
    CC_SHIELD {
        uint64_t before = cc_now_ns();
        atomic_fetch_add(&step, 1); /* from here on the cancellation may come */
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        CHECK(cc_now_ns() - before >= (uint64_t)(uintptr_t)arg * 1000000); /* not earlier */
        CHECK(cc_cancelled());
    }
    CC_SHIELD CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED); /* the shield has no effect any more */
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static CCNursery *with_grace(CCNursery *parent, uint64_t ms) {
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.parent = parent, .grace_ms = ms});
    CHECK(n != NULL);
    return n;
}

static void grace(void) {
    step = finished = 0;
    CCNursery *n = with_grace(NULL, 3), *inner = new_nursery(n);
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_nursery_spawn(i < 2 ? n : inner, hold_out, (void *)3), 0);
    UNTIL(step == 4);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_wait(inner), ECANCELED);
    CHECK_EQ(cc_nursery_free(inner), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(finished, 4);
    /* A later shield has no effect either. */
    CHECK_EQ(cc_nursery_spawn(n, hold_out, (void *)0), 0);
    inner = new_nursery(n);
    CHECK_EQ(cc_nursery_spawn(inner, hold_out, (void *)0), 0);
    CHECK_EQ(cc_nursery_wait(inner), ECANCELED);
    CHECK_EQ(cc_nursery_free(inner), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(finished, 6);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(grace_period) {
    grace();
    in_fiber(grace);
}

/* A grace period below counts too when the cancellation comes from above, or was there first. */
static void grace_below(void) {
    step = finished = 0;
    CCNursery *above = new_nursery(NULL), *middle = new_nursery(above), *n = with_grace(middle, 2);
    CHECK_EQ(cc_nursery_spawn(n, hold_out, (void *)2), 0);
    UNTIL(step == 1);
    CHECK_EQ(cc_nursery_cancel(above), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(finished, 1);
    n = with_grace(middle, 2);
    CHECK_EQ(cc_nursery_spawn(n, hold_out, (void *)0), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(finished, 2);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cc_nursery_free(middle), 0);
    CHECK_EQ(cc_nursery_free(above), 0);
}

TEST_WORKERS(grace_period_below) {
    grace_below();
    in_fiber(grace_below);
}

/* Freed before the period is over: nothing fires into freed memory. */
static void freed_early(void) {
    for (int i = 0; i < 50; i++) {
        CCNursery *n = with_grace(NULL, (uint64_t)(i % 3 == 0 ? 1 : 3600 * 1000));
        CHECK_EQ(cc_nursery_spawn(n, nothing, NULL), 0);
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK_EQ(cc_nursery_wait(n), ECANCELED);
        if (i % 6 == 0) CHECK_EQ(cc_sleep_ms(1), 0); /* at the very moment */
        CHECK_EQ(cc_nursery_free(n), 0);
    }
}

TEST_WORKERS(freed_before_the_end_of_grace) {
    freed_early();
    in_fiber(freed_early);
}

/* An OS thread does not wait for a worker: the only one waits for the thread. */
static void *compute(void *arg) {
    atomic_fetch_add(&step, 1);
    while (!atomic_load(&finished)) continue;
    return arg;
}

TEST(a_thread_cancels_while_the_worker_computes) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    for (int round = 0; round < 3; round++) {
        step = finished = 0;
        CCNursery *n = with_grace(NULL, 1), *below = with_grace(n, 3600 * 1000);
        CHECK_EQ(cc_nursery_spawn(below, hold_out, (void *)(uintptr_t)1), 0);
        UNTIL(step == 1);
        CCTask task = cc_fiber_spawn_task(compute, NULL);
        UNTIL(step == 2);
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CCNursery *late = with_grace(n, 1); /* nor here */
        finished = 1;
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        if (round > 0) CHECK_EQ(cc_nursery_wait(below), ECANCELED);
        CHECK_EQ(cc_nursery_free(below), 0);
        CHECK_EQ(cc_nursery_free(late), 0);
        CHECK_EQ(cc_nursery_free(n), 0);
        CHECK_EQ(finished, 2);
    }
}

/* A cancelled waiter still waits for its children, inside the runtime: the end of a grace period does not turn this
 * wait into a spin. Parks are counted, because such a spin consists of parks. */
static atomic_int released;

static void *outlive_grace(void *arg) {
    (void)arg;
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED); /* cancelled by its waiter */
    UNTIL(released);
    return NULL;
}

static atomic_int waiting;

static void *wait_for_outsiders(void *arg) {
    CCNursery *root = arg;
    waiting = 1;
    CHECK_EQ(cc_nursery_wait(root), ECANCELED);
    return NULL;
}

static uint64_t all_parks(void) {
    CCStats stats;
    CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
    return stats.parks;
}

TEST_WORKERS(no_spin_after_grace) {
    CCNursery *n = with_grace(NULL, 1), *root = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    CHECK_EQ(cc_nursery_spawn(root, outlive_grace, NULL), 0);
    CCFiberId id = start_child(n, wait_for_outsiders, root);
    UNTIL(waiting && is_parked(id));
    CHECK_EQ(cc_nursery_cancel(n), 0);
    for (;;) {
        cc__lock_take(&n->scope.lock);
        bool over = n->scope.pierced && !n->scope.grace_armed;
        cc__lock_release(&n->scope.lock);
        if (over) break;
        sched_yield();
    }
    UNTIL(is_parked(id));
    uint64_t before = all_parks();
    uint64_t end = cc_now_ns() + 3000000;
    while (cc_now_ns() < end) sched_yield();
    CHECK(all_parks() - before < 20);
    CHECK(is_parked(id));
    released = 1;
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cc_nursery_free(root), 0);
}

/* A shield around a block has effect again after it, although the block's grace period is over. */
static void *shield_around(void *arg) {
    CCNursery *outer = arg;
    CC_SHIELD {
        CC_NURSERY(n, .grace_ms = 1) {
            CHECK_EQ(cc_nursery_cancel(n), 0);
            CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        }
        CHECK_EQ(cc_nursery_cancel(outer), 0); /* which has no grace period */
        CHECK(!cc_cancelled());
        CHECK_EQ(cc_sleep_ms(1), 0);
    }
    CHECK_EQ(cc_sleep_ms(1000), ECANCELED);
    return NULL;
}

static void restored(void) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, shield_around, n), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(shield_around_a_block) {
    restored();
    in_fiber(restored);
}

/* A shield has no effect in a scope whose grace period is over. */
static void *bring_a_shield(void *arg) {
    (void)arg;
    CC_NURSERY(n, .grace_ms = 1) {
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CC_SHIELD CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED); /* until the grace period is over */
        CC_SHIELD CC_WITH_DEADLINE(CC_FOREVER) CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    }
    return NULL;
}

TEST_WORKERS(shield_from_outside) {
    CHECK_EQ(cc_run(bring_a_shield, NULL, NULL), 0);
}

/* ---- scopes inside a shield ---- */

/* Bounded clean-up: the shield masks the scopes around it, and not the deadline inside. */
static void *clean_up(void *arg) {
    CCNursery *n = arg;
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, NULL), 0);
    CCError why;
    CC_SHIELD {
        CC_WITH_DEADLINE(cc_after_ms(1)) {
            CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
            CHECK(cc_cancelled());
            CHECK_EQ(cc_cancel_reason(&why), 0);
            CHECK_EQ(why.code, ETIMEDOUT);
            CC_SHIELD CHECK_EQ(cc_sleep_ms(1), 0);
            CHECK_EQ(cc_sleep_ms(1000), ECANCELED);
        }
        CHECK(!cc_cancelled());
        CHECK_EQ(cc_sleep_ms(1), 0);
        CC_WITH_DEADLINE(CC_FOREVER) {
            CHECK(!cc_cancelled());
            CHECK_EQ(cc_sleep_ms(1), 0);
            CHECK_EQ(cc_cancel_reason(&why), 0); /* masked, but the reason is there */
            CHECK_EQ(why.code, EXDEV);
        }
        CC_WITH_DEADLINE(cc_after_ms(1)) { /* one for what is below it */
            CC_WITH_DEADLINE(CC_FOREVER) CC_WITH_DEADLINE(CC_FOREVER) CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        }
        CC_WITH_DEADLINE(CC_FOREVER) {
            CC_WITH_DEADLINE(cc_after_ms(1)) UNTIL(cc_cancelled()); /* it checks the clock */
            CHECK(!cc_cancelled());
            CHECK_EQ(cc_sleep_ms(1), 0);
        }
        int rc = -1;
        CC_NURSERY(inner, .result = &rc) { /* a failure inside, too */
            CHECK_EQ(cc_nursery_spawn(inner, fail_with, CC_ERROR(EIO)), 0);
            CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        }
        CHECK_EQ(rc, EIO);
        CHECK(!cc_cancelled());
        CHECK_EQ(cc_sleep_ms(1), 0);
    }
    CHECK(cc_cancelled());
    CHECK_EQ(cc_sleep_ms(1000), ECANCELED);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void bounded(void) {
    finished = 0;
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, clean_up, n), 0);
    CHECK_EQ(cc_nursery_wait(n), EXDEV);
    CHECK_EQ(finished, 1);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(deadlines_inside_a_shield) {
    bounded();
    in_fiber(bounded);
}

/* The deadline passes between the two steps of a block's beginning: it is armed, and the block is entered. */
static void *enter_late(void *arg) {
    CCNursery *n = arg;
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, NULL), 0);
    CCError why;
    CC_SHIELD {
        struct scope *s = cc__scope_alloc(sizeof *s);
        CHECK(s != NULL);
        cc__scope_init(s, cc__scope_current(), UINT64_MAX);
        cc__set(&s->deadline, 1);
        cc__scope_expire(s, cc_now_ns());
        cc__scope_enter(s);
        CHECK(cc_cancelled());
        CHECK_EQ(cc_cancel_reason(&why), 0);
        CHECK_EQ(why.code, ETIMEDOUT);
        cc__scope_leave(s);
        cc__scope_destroy(s);
        cc__scope_free(s);
    }
    return NULL;
}

TEST(a_deadline_before_the_entry) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, enter_late, n), 0);
    CHECK_EQ(cc_nursery_wait(n), EXDEV);
    CHECK_EQ(cc_nursery_free(n), 0);
}

/* A block inside a shield whose parent is not the scope around it: what is cancelled outside of the shield is hidden,
 * what is cancelled inside of it is not. */
static void enter_across(CCNursery *outer) {
    int rc = -1;
    CC_SHIELD CC_NURSERY(inner, .parent = outer, .result = &rc) {
        CC_WITH_DEADLINE(CC_FOREVER) {
            CC_NURSERY(across, .parent = outer, .result = &rc) {
                CHECK(!cc_cancelled());
                CHECK_EQ(cc_sleep_ms(1), 0);
                CHECK_EQ(cc_nursery_cancel(outer), 0); /* again */
                CHECK(!cc_cancelled());
            }
            CHECK_EQ(rc, ECANCELED);
            CC_NURSERY(below, .parent = inner, .result = &rc) {
                CHECK(!cc_cancelled());
                CHECK_EQ(cc_nursery_cancel(inner), 0);
                CHECK_EQ(cc_sleep_ms(1000), ECANCELED);
            }
            CC_NURSERY(across, .parent = outer, .result = &rc) CHECK(!cc_cancelled());
            CHECK(cc_cancelled());
        }
    }
    CHECK(cc_cancelled());
}

static void *child_across(void *outer) {
    CHECK_EQ(cc_sleep_ms(1000), ECANCELED);
    enter_across(outer);
    return NULL;
}

static void across(void) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_spawn(n, child_across, n), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cc_nursery_free(n), 0);
    int rc = -1;
    CC_NURSERY(own, .result = &rc) {
        CHECK_EQ(cc_nursery_cancel(own), 0);
        enter_across(own);
    }
    CHECK_EQ(rc, ECANCELED);
}

TEST_WORKERS(a_parent_outside_the_shield) {
    across();
    in_fiber(across);
}

/* The cancellation comes while it waits inside: two scopes deep, hidden; then that of the first, which is not. */
static CCNursery *_Atomic first;

static void *two_deep(void *arg) {
    CCChan *ch = arg;
    int value = 0, rc = -1;
    CC_SHIELD CC_NURSERY(n, .result = &rc) {
        first = n;
        CC_WITH_DEADLINE(CC_FOREVER) {
            atomic_fetch_add(&step, 1);
            CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), 0);
            CHECK_EQ(value, 7);
            CHECK(!cc_cancelled());
            atomic_fetch_add(&step, 1);
            CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), ECANCELED);
        }
        CHECK_EQ(cc_sleep_ms(1000), ECANCELED);
    }
    CHECK_EQ(rc, ENOSPC);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void masked_then_cancelled(void) {
    step = finished = 0;
    CCChan *ch = cc_chan_create(sizeof(int), 0);
    CCNursery *n = new_nursery(NULL);
    CCTask task;
    CHECK_EQ(cc_nursery_spawn_ex(n, &task, two_deep, ch, NULL), 0);
    UNTIL(step == 1 && is_parked(task.id));
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, NULL), 0);
    CHECK_EQ(cc_task_cancel(&task), 0);
    CHECK(is_parked(task.id)); /* masked: nobody has claimed it */
    int value = 7;
    CHECK_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    UNTIL(step == 2 && is_parked(task.id));
    CHECK_EQ(cc_nursery_cancel_with(first, ENOSPC, NULL), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(finished, 1);
    CHECK_EQ(cc_nursery_wait(n), EXDEV);
    CHECK_EQ(cc_nursery_free(n), 0);
    cc_chan_free(ch);
}

TEST_WORKERS(hidden_and_then_felt) {
    masked_then_cancelled();
    in_fiber(masked_then_cancelled);
}

/* Children of a nursery inside a shield are not shielded; the end of a grace period reaches all fibers inside. */
static void *grace_inside(void *arg) {
    (void)arg;
    CC_SHIELD {
        CC_WITH_DEADLINE(CC_FOREVER) {
            CC_NURSERY(n) {
                CHECK_EQ(cc_nursery_spawn(n, wait_for_cancel, &finished), 0);
                atomic_fetch_add(&step, 1);
                UNTIL(finished == 1);
                atomic_fetch_add(&step, 1);
                CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
            }
            CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        }
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    }
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void pierced_inside(void) {
    step = finished = 0;
    CCNursery *n = with_grace(NULL, 3);
    CCFiberId id = start_child(n, grace_inside, NULL);
    UNTIL(step == 1);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK(!is_parked(id));
    CHECK_EQ(step, 2);
    CHECK_EQ(finished, 2);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(grace_inside_a_shield) {
    pierced_inside();
    in_fiber(pierced_inside);
}

/* Cancelled before there is a runtime: the grace period begins when there is one. */
static void *enter_below(void *arg) {
    CC_NURSERY(inner, .parent = arg) CC_SHIELD CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void *hold_shield(void *arg) {
    (void)arg;
    CC_SHIELD CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

TEST_WORKERS(grace_without_a_runtime) {
    for (int i = 0; i < 4; i++) {
        finished = 0;
        CCNursery *n = with_grace(NULL, 1), *below = new_nursery(n);
        CHECK_EQ(cc_nursery_cancel(n), 0); /* nobody runs */
        CCNursery *later = new_nursery(below);
        if (i == 0) CHECK_EQ(cc_nursery_spawn(n, hold_shield, NULL), 0);
        if (i == 1) CHECK_EQ(cc_nursery_spawn(below, hold_shield, NULL), 0);
        if (i == 2) CHECK_EQ(cc_nursery_spawn(later, hold_shield, NULL), 0);
        if (i == 3) CHECK_EQ(cc_run(enter_below, below, NULL), 0);
        CHECK_EQ(cc_nursery_wait(later), ECANCELED);
        CHECK_EQ(cc_nursery_wait(below), ECANCELED);
        CHECK_EQ(cc_nursery_wait(n), ECANCELED);
        CHECK_EQ(finished, 1);
        CHECK_EQ(cc_nursery_free(later), 0);
        CHECK_EQ(cc_nursery_free(below), 0);
        CHECK_EQ(cc_nursery_free(n), 0);
        CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0);
    }
}

/* The compiler knows that these blocks are executed: it does not warn of what they set; unless it is asked to check
 * what it knows. */
static void set_inside(void) {
#ifdef CC_ASAN
    int shielded = -1, timed = -1;
#else
    int shielded, timed;
#endif
    CC_SHIELD shielded = cc_check_cancel();
    CC_WITH_DEADLINE(CC_FOREVER) timed = cc_check_cancel();
    CHECK_EQ(shielded, 0);
    CHECK_EQ(timed, 0);
}

TEST(blocks_are_executed) {
    set_inside();
    in_fiber(set_inside);
}
