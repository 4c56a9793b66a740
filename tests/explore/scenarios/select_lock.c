/* select_lock.c - selects that wait for events and permits, against givers, other arms, deadlines and cancellations. */
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCSem sem, other;
static CCEvent event;
static CCChan *ch;
static int rc, plain, before, happened;
static size_t chosen[2];

static void one_slot(void) {
    ch = cc_chan_create(sizeof(int), 1);
    rc = plain = -1;
}
static void sends(void) {
    int v = 1;
    EX_EQ(cc_chan_send_try(ch, &v, sizeof v), 0);
}
static int permits(CCSem *s) {
    int left = 0;
    while (cc_sem_acquire_try(s) == 0) left++;
    return left;
}

/* ---- a permit ---- */

/* The permit goes to the select, or past it; either way the next waiter gets it in the end. */
static void acquires_or_receives(void) {
    int v;
    CCCase cases[] = {CC_ACQUIRE_CASE(&sem), CC_RECV(ch, &v, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen[0]), 0);
    if (chosen[0] == 0) EX_EQ(cc_sem_release(&sem, 1), 0);
}
static void acquires(void) {
    EX_EQ(cc_sem_acquire(&sem), 0);
    EX_EQ(before, 1);
}
static void releases(void) {
    before = 1;
    EX_EQ(cc_sem_release(&sem, 1), 0);
}
static void none_left(void) {
    EX_EQ(permits(&sem), 0);
    EX_CHECK(sem.first == NULL);
}
SCENARIO(select_sem_passes, "WAITQ-2: a permit for a select that another arm has ended goes to the next waiter",
         .setup = one_slot, .threads = {acquires_or_receives, acquires, releases, sends}, .check = none_left);

static void acquires_soon(void) {
    CCCase cases[] = {CC_ACQUIRE_CASE(&sem), CC_RECV(NULL, &before, NULL)};
    rc = cc_select(cases, 2, cc_after_ns(5000), &chosen[0]);
    EX_CHECK(rc == 0 ? chosen[0] == 0 : rc == ETIMEDOUT);
}
static void releases_two(void) {
    EX_EQ(cc_sem_release(&sem, 2), 0);
}
static void acquires_plainly(void) {
    plain = cc_sem_acquire(&sem);
}
static void two_in_all(void) {
    EX_EQ(permits(&sem) + (rc == 0) + (plain == 0), 2);
    EX_CHECK(sem.first == NULL);
}
SCENARIO(select_sem_deadline, "a select that times out takes no permit", .setup = one_slot,
         .threads = {acquires_soon, acquires_plainly, releases_two}, .check = two_in_all);

/* Both selects have arms for both semaphores, in opposite orders; one of them twice. */
static void acquires_either(void) {
    CCCase cases[] = {CC_ACQUIRE_CASE(&sem), CC_ACQUIRE_CASE(&other)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen[0]), 0);
}
static void acquires_either_back(void) {
    CCCase cases[] = {CC_ACQUIRE_CASE(&other), CC_ACQUIRE_CASE(&sem), CC_ACQUIRE_CASE(&other)};
    EX_EQ(cc_select(cases, 3, CC_FOREVER, &chosen[1]), 0);
}
static void releases_other_two(void) {
    EX_EQ(cc_sem_release(&other, 2), 0);
}
static void one_of_three_left(void) {
    EX_EQ(permits(&sem) + permits(&other), 1);
    EX_CHECK(sem.first == NULL && other.first == NULL);
}
SCENARIO(select_sem_cross, "two selects on two semaphores, in opposite order", .setup = one_slot,
         .threads = {acquires_either, acquires_either_back, releases, releases_other_two}, .check = one_of_three_left);

/* ---- an event ---- */

static void waits_for_event_or_receives(void) {
    int v;
    CCCase cases[] = {CC_RECV(ch, &v, NULL), CC_EVENT_CASE(&event)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen[0]), 0);
    if (chosen[0] == 1) EX_EQ(happened, 1);
}
static void waits_for_event(void) {
    CCCase cases[] = {CC_EVENT_CASE(&event)};
    EX_EQ(cc_select(cases, 1, CC_FOREVER, &chosen[1]), 0);
    EX_EQ(happened, 1);
}
static void sets(void) {
    happened = 1;
    EX_EQ(cc_event_set(&event), 0);
}
static void event_is_set(void) {
    EX_EQ(cc_event_wait_try(&event), 0);
    EX_CHECK(event.first == NULL);
}
SCENARIO(select_event, "selects wait for an event, one of them also for a value", .setup = one_slot,
         .threads = {waits_for_event_or_receives, waits_for_event, sets, sends}, .check = event_is_set);

static void waits_for_event_soon(void) {
    CCCase cases[] = {CC_EVENT_CASE(&event), CC_AT(cc_after_ns(5000))};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen[0]), 0);
}
static void waits_plainly(void) {
    EX_EQ(cc_event_wait(&event), 0);
}
SCENARIO(select_event_deadline, "a select times out while an event is set; a plain wait does not", .setup = one_slot,
         .threads = {waits_for_event_soon, waits_plainly, sets}, .check = event_is_set);

/* ---- a fiber ---- */

static CCTask fiber;
static void *fiber_acquires(void *arg) {
    CCCase cases[] = {CC_ACQUIRE_CASE(&sem), CC_EVENT_CASE(&event)};
    rc = cc_select(cases, 2, CC_FOREVER, &chosen[0]);
    return arg;
}
static void fiber_waits(void) {
    rc = -1;
    fiber = cc_fiber_spawn_task(fiber_acquires, NULL);
    ex_settle();
}
static void joins(void) {
    CCTask own = fiber;
    EX_EQ(cc_task_join(&own, NULL), 0);
}
static void cancels(void) {
    int error = cc_task_cancel(&fiber);
    EX_CHECK(error == 0 || error == ESRCH); /* it was joined by then */
}
static void fiber_took(void) {
    EX_CHECK(rc == 0 || rc == ECANCELED);
    EX_EQ(permits(&sem) + (rc == 0 && chosen[0] == 0), 1);
    EX_CHECK(sem.first == NULL && event.first == NULL);
}
SCENARIO(select_fiber_cancel, "a release meets a cancellation", .workers = 1, .setup = fiber_waits,
         .threads = {releases, cancels, joins}, .check = fiber_took);
SCENARIO(select_fiber_either, "a release meets the event of another arm", .workers = 1, .no_timer = true,
         .setup = fiber_waits, .threads = {releases, sets, joins}, .check = fiber_took);
