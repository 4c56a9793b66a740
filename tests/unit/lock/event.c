/* event.c - a set wakes all waiters, and does not access the event once a waiter may free it. */
#include "waiters.h"

/* ---- alone: the zero value, three forms, bad arguments ---- */

static void no_object(void) {
    CHECK_EQ(cc_event_set(NULL), EINVAL);
    CHECK_EQ(cc_event_reset(NULL), EINVAL);
    CHECK_EQ(cc_event_wait(NULL), EINVAL);
    CHECK_EQ(cc_event_wait_try(NULL), EINVAL);
    CHECK_EQ(cc_event_wait_until(NULL, CC_FOREVER), EINVAL);
}

static void use_alone(void) {
    CCEvent e = {0};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_event_wait_try(&e), EAGAIN);
        times_out(call_event, &e);
        CHECK_EQ(cc_event_set(&e), 0);
        CHECK_EQ(cc_event_set(&e), 0);
        CHECK_EQ(cc_event_wait(&e), 0);
        CHECK_EQ(cc_event_wait_try(&e), 0);
        CHECK_EQ(cc_event_wait_until(&e, past), 0);
        CHECK_EQ(cc_event_reset(&e), 0);
        CHECK_EQ(cc_event_reset(&e), 0);
    }
    CHECK_EQ(e.word, 0);
}

TESTS_ALONE(no_object, use_alone)

/* ---- among several ---- */

static void *set_event(void *event) {
    CHECK_EQ(cc_event_set(event), 0);
    return NULL;
}

static void gone_with(enum parties who) {
    for (long round = 0; round < test_rounds(500, 100000); round++) {
        CCEvent *event = calloc(1, sizeof *event);
        CHECK(event != NULL);
        struct party p = party_start(who, 0, set_event, event);
        CHECK_EQ(cc_event_wait(event), 0);
        free(event); /* the set may not even have returned */
        party_end(&p);
    }
}

TEST_WORKERS(gone_after_the_wait) {
    in_all_pairs(gone_with);
}

/* Waiters at the time of the set continue, although the event is reset before they run. */
TEST_WORKERS(set_and_reset) {
    CCEvent e = {0};
    struct wish wishes[6];
    struct party parties[6];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 6; i++) {
            wish_init(&wishes[i], call_event, &e, CC_FOREVER);
            parties[i] = party_start(MIXED, i, make_call, &wishes[i]);
        }
        await_queued(&e, 6);
        CHECK_EQ(cc_event_set(&e), 0);
        CHECK_EQ(cc_event_reset(&e), 0);
        CHECK_EQ(cc_event_wait_try(&e), EAGAIN);
        parties_end(parties, 6);
        for (int i = 0; i < 6; i++) CHECK_EQ(wishes[i].returned, 0);
    }
}
