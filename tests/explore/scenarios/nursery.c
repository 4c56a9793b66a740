/* nursery.c - scopes: the end of the last child, cancellation against waits, spawns and ends. */
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCNursery *n;
static CCEvent go;
static int ran[3], child_rc = -1;
static CCChan *ch;

static void *child_waits(void *arg) {
    ran[0]++;
    child_rc = cc_event_wait(&go);
    return arg;
}
static void one_child(void) {
    n = cc_nursery_create(NULL);
    EX_CHECK(n != NULL);
    EX_EQ(cc_nursery_spawn(n, child_waits, NULL), 0);
    ex_settle();
}
static void lets_child_end(void) {
    EX_EQ(cc_event_set(&go), 0);
}
static void waits_and_frees(void) {
    EX_EQ(cc_nursery_wait(n), 0);
    EX_EQ(child_rc, 0);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_last_child, "the last child ends; its owner waits and frees", .workers = 1, .setup = one_child,
         .threads = {lets_child_end, waits_and_frees}, .no_timer = true);

/* A second child is spawned while the first one runs: it is counted before it can run, or its end would be the
 * nursery's. */
static void *child_ends(void *arg) {
    ran[1]++;
    return arg;
}
static void spawns_one_more(void) {
    EX_EQ(cc_nursery_spawn(n, child_ends, NULL), 0);
    EX_EQ(cc_event_set(&go), 0);
}
static void waits_for_both(void) {
    EX_EQ(cc_nursery_wait(n), 0);
    EX_EQ(ran[0] + ran[1], 2);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_one_more, "CHILD-1: a child is started while another one is about to be the last", .workers = 1,
         .setup = one_child, .threads = {spawns_one_more, waits_for_both}, .no_timer = true);

static void cancels(void) {
    EX_EQ(cc_nursery_cancel(n), 0);
}
static void waits_cancelled(void) {
    EX_EQ(cc_nursery_wait(n), ECANCELED);
    EX_EQ(child_rc, ECANCELED);
}
SCENARIO(nursery_cancel_wait, "a cancel and a wait; the child sleeps", .workers = 1, .setup = one_child,
         .threads = {cancels, waits_cancelled}, .no_timer = true);
static void waits_either(void) {
    int rc = cc_nursery_wait(n);
    EX_CHECK(rc == 0 || rc == ECANCELED);
    EX_CHECK(child_rc == 0 || child_rc == ECANCELED);
}
SCENARIO(nursery_cancel_end, "a cancel and the child's own end", .workers = 1, .setup = one_child,
         .threads = {cancels, lets_child_end, waits_either}, .no_timer = true);

/* ---- cancel and spawn ---- */

static void empty(void) {
    n = cc_nursery_create(NULL);
    EX_CHECK(n != NULL);
}
static void spawns(void) {
    EX_EQ(cc_nursery_spawn(n, child_waits, NULL), 0);
    EX_EQ(cc_nursery_wait(n), ECANCELED);
    EX_EQ(ran[0], 1);
    EX_EQ(child_rc, ECANCELED); /* cancelled for ever: it must not wait */
}
SCENARIO(nursery_cancel_spawn, "SCOPE-2: a child that is spawned while its nursery is cancelled", .workers = 1,
         .setup = empty, .threads = {spawns, cancels}, .no_timer = true);

/* ---- failure ---- */

static void *child_fails(void *arg) {
    (void)arg;
    EX_EQ(cc_event_wait(&go), 0);
    return cc_fail(EIO, "no");
}
static void *sibling(void *arg) {
    uint64_t value;
    child_rc = cc_chan_recv(ch, &value, sizeof value);
    return arg;
}
static void two_children(void) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    n = cc_nursery_create(NULL);
    EX_EQ(cc_nursery_spawn(n, child_fails, NULL), 0);
    EX_EQ(cc_nursery_spawn(n, sibling, NULL), 0);
    ex_settle();
}
static void waits_failed(void) {
    EX_EQ(cc_nursery_wait(n), EIO);
    EX_CHECK(child_rc == ECANCELED || child_rc == 0);
    EX_EQ(cc_nursery_free(n), 0);
}
static void sends_meanwhile(void) {
    uint64_t value = 1;
    (void)cc_chan_send_try(ch, &value, sizeof value);
}
SCENARIO(nursery_failure, "a child fails, its sibling is cancelled or served", .workers = 1, .setup = two_children,
         .threads = {lets_child_end, waits_failed, sends_meanwhile}, .no_timer = true);
SCENARIO(nursery_failure_2, "the same, two workers", .workers = 2, .setup = two_children,
         .threads = {lets_child_end, waits_failed}, .no_timer = true);

static void waits_soon(void) {
    int rc = cc_nursery_wait_until(n, cc_after_ns(3000));
    EX_CHECK(rc == 0 || rc == ETIMEDOUT);
    EX_EQ(cc_nursery_wait(n), 0);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_wait_deadline, "a wait that times out, and waits again", .workers = 1, .setup = one_child,
         .threads = {lets_child_end, waits_soon});

/* ---- deadlines ---- */

/* TIMED-1: the block is left while its deadline passes; either way nothing fires afterwards. */
static CCTask task;
static void *in_deadline(void *arg) {
    CC_WITH_DEADLINE(cc_after_ms(1)) {
        child_rc = cc_event_wait(&go);
        EX_CHECK(child_rc == 0 || child_rc == ECANCELED);
    }
    EX_EQ(cc_check_cancel(), 0);
    return arg;
}
static void block_waits(void) {
    EX_EQ(cc_spawn(&task, in_deadline, NULL, NULL), 0);
    ex_settle();
}
static void ends_the_wait(void) {
    EX_EQ(cc_event_set(&go), 0);
    EX_EQ(cc_task_join(&task, NULL), 0);
}
SCENARIO(deadline_block, "TIMED-1: a block ends as its deadline passes", .workers = 1, .setup = block_waits,
         .threads = {ends_the_wait});
SCENARIO(deadline_block_2, "the same, two workers", .workers = 2, .setup = block_waits, .threads = {ends_the_wait});

/* A nursery's deadline passes while its child ends by itself. */
static void timed(void) {
    CCNurseryConfig config = {.deadline = cc_after_ms(1)};
    n = cc_nursery_create_ex(&config);
    EX_CHECK(n != NULL);
    EX_EQ(cc_nursery_spawn(n, child_waits, NULL), 0);
    ex_settle();
}
static void waits_timed(void) {
    int rc = cc_nursery_wait(n);
    EX_CHECK(rc == 0 || rc == ETIMEDOUT);
    EX_CHECK(child_rc == 0 || (child_rc == ECANCELED && rc == ETIMEDOUT));
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_deadline, "a nursery's deadline passes as its child ends, and it is freed", .workers = 1,
         .setup = timed, .threads = {lets_child_end, waits_timed});

/* ---- a scope below ---- */

static CCNursery *below;
static void two_levels(void) {
    n = cc_nursery_create(NULL);
    below = cc_nursery_create(n);
    EX_CHECK(n != NULL && below != NULL);
    EX_EQ(cc_nursery_spawn(below, child_waits, NULL), 0);
    ex_settle();
}
static void waits_below(void) {
    EX_EQ(cc_nursery_wait(below), ECANCELED);
    EX_EQ(child_rc, ECANCELED);
    EX_EQ(cc_nursery_free(below), 0);
}
SCENARIO(nursery_below, "SCOPE-1: a cancel from above, and the scope below ends", .workers = 1, .setup = two_levels,
         .threads = {cancels, waits_below}, .no_timer = true);

/* With its own code: the wait below returns ECANCELED, whichever is reached first, and a child that passes it on does
 * not fail. */
static int below_rc = -1;
static void *passes_on(void *arg) {
    (void)arg;
    return CC_ERROR(below_rc = cc_nursery_wait(below));
}
static void a_child_waits_below(void) {
    two_levels();
    EX_EQ(cc_nursery_spawn(n, passes_on, NULL), 0);
}
static void cancels_with_code(void) {
    EX_EQ(cc_nursery_cancel_with(n, EINTR, NULL), 0);
}
static void waits_above(void) {
    EX_EQ(cc_nursery_wait(n), EINTR);
    EX_EQ(cc_nursery_failures(n), 0);
    EX_EQ(below_rc, ECANCELED);
    EX_EQ(child_rc, ECANCELED);
}
SCENARIO(nursery_cancel_above, "a cancellation from above ends the wait for a nursery below", .workers = 1,
         .setup = a_child_waits_below, .threads = {cancels_with_code, waits_above}, .no_timer = true);
SCENARIO(nursery_cancel_above_2, "the same, two workers", .workers = 2, .setup = a_child_waits_below,
         .threads = {cancels_with_code, waits_above}, .no_timer = true);
static void above_only(void) {
    n = cc_nursery_create(NULL);
    EX_CHECK(n != NULL);
}
static void opens_below(void) {
    below = cc_nursery_create(n);
    EX_CHECK(below != NULL);
    EX_EQ(cc_nursery_spawn(below, child_waits, NULL), 0);
    waits_below();
}
SCENARIO(nursery_opens_below, "SCOPE-2: a scope that is made while the one above is cancelled", .workers = 1,
         .setup = above_only, .threads = {opens_below, cancels}, .no_timer = true);

/* A child enters a block, and waits there, while its nursery is cancelled. */
static CCEvent never;
static void *enters_block(void *arg) {
    (void)!cc_event_wait(&go);
    CC_WITH_DEADLINE(cc_after_ms(100000)) child_rc = cc_event_wait(&never);
    return arg;
}
static void about_to_enter(void) {
    n = cc_nursery_create(NULL);
    EX_EQ(cc_nursery_spawn(n, enters_block, NULL), 0);
    ex_settle();
}
static void lets_enter(void) {
    EX_EQ(cc_event_set(&go), 0);
    EX_EQ(cc_nursery_wait(n), ECANCELED);
    EX_EQ(child_rc, ECANCELED);
}
SCENARIO(nursery_enters_block, "SCOPE-2: a fiber enters a block while the scope above is cancelled", .workers = 1,
         .setup = about_to_enter, .threads = {lets_enter, cancels}, .no_timer = true);

/* An OS thread is in a block, and waits there, while the scope above is cancelled. */
static void thread_in_block(void) {
    int rc = -1;
    CC_NURSERY(inner, .parent = n, .result = &rc) child_rc = cc_event_wait(&never);
    EX_EQ(child_rc, ECANCELED);
    EX_EQ(rc, ECANCELED);
    EX_CHECK(!cc_cancelled());
}
SCENARIO(nursery_thread, "CANCEL-5: an OS thread waits in a block while the scope above is cancelled", .workers = 1,
         .setup = empty, .threads = {thread_in_block, cancels}, .no_timer = true);

/* ---- a shield ---- */

static void *shielded(void *arg) {
    bool begun = cc_shield_begin();
    child_rc = cc_event_wait(&go);
    cc_shield_end(begun);
    ran[1] = cc_check_cancel();
    return arg;
}
static void one_shielded(void) {
    n = cc_nursery_create(NULL);
    EX_EQ(cc_nursery_spawn(n, shielded, NULL), 0);
    ex_settle();
}
static void cancels_then_lets(void) {
    EX_EQ(cc_nursery_cancel(n), 0);
    EX_EQ(cc_event_set(&go), 0);
}
static void waits_shielded(void) {
    EX_EQ(cc_nursery_wait(n), ECANCELED);
    EX_EQ(child_rc, 0);
    EX_EQ(ran[1], ECANCELED);
}
SCENARIO(nursery_shield, "CANCEL-2: a cancellation does not pass a shield", .workers = 1, .setup = one_shielded,
         .threads = {cancels_then_lets, waits_shielded}, .no_timer = true);

/* A shielded fiber opens a scope while the one around the shield is cancelled: that stays hidden, and the cancellation
 * of the scope inside, which its child makes, does not. */
static CCEvent late;
static void *cancels_inner(void *inner) {
    EX_EQ(cc_nursery_cancel(inner), 0);
    return NULL;
}
static void *opens_shielded(void *arg) {
    (void)cc_event_wait(&go);
    bool begun = cc_shield_begin();
    int rc = -1;
    CC_NURSERY(inner, .result = &rc) {
        EX_EQ(cc_event_wait(&late), 0);
        EX_EQ(cc_nursery_spawn(inner, cancels_inner, inner), 0);
        child_rc = cc_event_wait(&never);
    }
    EX_EQ(child_rc, ECANCELED);
    EX_EQ(rc, ECANCELED);
    EX_EQ(cc_check_cancel(), 0);
    cc_shield_end(begun);
    ran[1] = cc_check_cancel();
    return arg;
}
static void about_to_open(void) {
    n = cc_nursery_create(NULL);
    EX_EQ(cc_nursery_spawn(n, opens_shielded, NULL), 0);
    ex_settle();
}
static void lets_open(void) {
    EX_EQ(cc_event_set(&go), 0);
    EX_EQ(cc_nursery_wait(n), ECANCELED);
    EX_EQ(ran[1], ECANCELED);
}
static void cancels_then_lets_on(void) {
    EX_EQ(cc_nursery_cancel(n), 0);
    EX_EQ(cc_event_set(&late), 0);
}
SCENARIO(nursery_shield_inside, "SCOPE-5: a scope inside a shield, and a cancellation around it", .workers = 1,
         .setup = about_to_open, .threads = {lets_open, cancels_then_lets_on}, .no_timer = true);

/* The end of a grace period ends a shielded wait. */
static void *shielded_for_ever(void *arg) {
    bool begun = cc_shield_begin();
    child_rc = cc_event_wait(&go);
    cc_shield_end(begun);
    return arg;
}
static void with_grace(void) {
    CCNurseryConfig config = {.grace_ms = 1};
    n = cc_nursery_create_ex(&config);
    EX_CHECK(n != NULL);
    EX_EQ(cc_nursery_spawn(n, shielded_for_ever, NULL), 0);
    ex_settle();
}
static void waits_out(void) {
    EX_EQ(cc_nursery_wait(n), ECANCELED);
    EX_CHECK(child_rc == ECANCELED);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_grace, "a grace period ends a shielded wait", .workers = 1, .setup = with_grace,
         .threads = {cancels, waits_out});
static void waits_out_or_not(void) {
    EX_EQ(cc_nursery_wait(n), ECANCELED);
    EX_CHECK(child_rc == ECANCELED || child_rc == 0);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_grace_end, "and the child ends by itself meanwhile", .workers = 1, .setup = with_grace,
         .threads = {cancels_then_lets, waits_out_or_not});

/* ---- the end, as an arm of a select ---- */

static size_t chosen;
static int select_rc;
static void selects_end_and_frees(void) {
    CCCase cases[] = {CC_NURSERY_END_CASE(n), CC_RECV(NULL, &select_rc, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    EX_EQ(child_rc, 0);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_select_end, "END-2: the last child ends; a select waits for that, and its owner frees", .workers = 1,
         .setup = one_child, .threads = {lets_child_end, selects_end_and_frees}, .no_timer = true);

static void selects_end_of_both(void) {
    CCCase cases[] = {CC_NURSERY_END_CASE(n)};
    EX_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
    EX_EQ(ran[0] + ran[1], 2);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_select_one_more, "END-1: a child is started while a select waits for the last one", .workers = 1,
         .setup = one_child, .threads = {spawns_one_more, selects_end_of_both}, .no_timer = true);

/* It was empty at the first poll of a select: the next select must see the child that was spawned since. */
static void selects_twice(void) {
    CCCase cases[] = {CC_NURSERY_END_CASE(n), CC_RECV(ch, &select_rc, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    EX_EQ(cc_nursery_spawn(n, child_waits, NULL), 0);
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    EX_EQ(child_rc, 0);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_select_again, "END-1: children are spawned again after the end", .workers = 1, .setup = one_child,
         .threads = {lets_child_end, selects_twice}, .no_timer = true);

static void selects_end_soon(void) {
    CCCase cases[] = {CC_NURSERY_END_CASE(n), CC_NURSERY_END_CASE(n)};
    select_rc = cc_select(cases, 2, cc_after_ns(3000), &chosen);
    EX_CHECK(select_rc == 0 || select_rc == ETIMEDOUT);
    EX_EQ(cc_nursery_wait(n), 0);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_select_deadline, "a select times out while the last child ends; its owner waits and frees",
         .workers = 1, .setup = one_child, .threads = {lets_child_end, selects_end_soon});

/* A cancellation takes the scopes' locks downwards; the select takes those of both ends in any order. */
static CCNursery *inner;
static void nested(void) {
    n = cc_nursery_create(NULL);
    inner = cc_nursery_create(n);
    EX_CHECK(n != NULL && inner != NULL);
    EX_EQ(cc_nursery_spawn(inner, child_waits, NULL), 0);
    EX_EQ(cc_nursery_spawn(n, child_ends, NULL), 0);
    ex_settle();
    EX_EQ(cc_nursery_spawn(n, child_waits, NULL), 0);
    ex_settle();
}
static void selects_both_ends(void) {
    CCCase cases[] = {CC_NURSERY_END_CASE(n), CC_NURSERY_END_CASE(inner)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    EX_EQ(cc_nursery_wait(inner), ECANCELED);
    EX_EQ(cc_nursery_wait(n), ECANCELED);
}
SCENARIO(nursery_select_nested, "a select of two ends, one below the other, and a cancellation from above",
         .workers = 1, .setup = nested, .threads = {cancels, selects_both_ends}, .no_timer = true);
