/* arms.h - shared by the tests of select: arms built in a loop, and a check for arms that are left linked. */
#ifndef CCC_TESTS_UNIT_SELECT_ARMS_H
#define CCC_TESTS_UNIT_SELECT_ARMS_H

#include "../../battery/battery.h"

BATTERY_UNUSED static CCCase recv_arm(CCChan *ch, uint64_t *value) {
    CCCase c = CC_RECV(ch, value, NULL);
    return c;
}

BATTERY_UNUSED static CCCase send_arm(CCChan *ch, uint64_t *value) {
    CCCase c = CC_SEND(ch, value, NULL);
    return c;
}

/* One select of a party, and what it returned. */
struct choice {
    CCCase *cases;
    size_t n;
    CCDeadline deadline;
    size_t chosen;
    atomic_int returned; /* -1 until then */
};

BATTERY_UNUSED static void choice_init(struct choice *c, CCCase *cases, size_t n) {
    c->cases = cases;
    c->n = n;
    c->deadline = CC_FOREVER;
    c->chosen = SIZE_MAX;
    atomic_init(&c->returned, -1);
}

BATTERY_UNUSED static void *choose(void *arg) {
    struct choice *c = arg;
    atomic_store(&c->returned, cc_select(c->cases, c->n, c->deadline, &c->chosen));
    return NULL;
}

BATTERY_UNUSED static void both_contexts(void *(*body)(void *)) {
    body(NULL);
    CHECK_EQ(cc_run(body, NULL, NULL), 0);
}

#endif
