/* sleep.c - points in time, and sleeping until one. */
#include <ccc/cc_time.h>

#include "os/clock.h"
#include "wait/arm.h"

#include <errno.h>

uint64_t cc_now_ns(void) {
    return cc__clock_look();
}

CCDeadline cc_after_ns(uint64_t ns) {
    uint64_t now = cc__clock_look();
    CCDeadline deadline = {ns < UINT64_MAX - now ? now + ns : UINT64_MAX};
    if (deadline.ns == 0) return CC_PASSED; /* at the start of simulated time */
    return deadline;
}

CCDeadline cc_after_ms(uint64_t ms) {
    return cc_after_ns(ms < UINT64_MAX / 1000000 ? ms * 1000000 : UINT64_MAX);
}

int cc_sleep_until(CCDeadline deadline) {
    uint64_t until = cc__wait_deadline(deadline);
    if (cc__clock_look() >= until) return 0;
    struct waiter waiter;
    int rc = cc__waiter_init(&waiter, cc__worker(), until);
    if (rc != 0) return rc;
    return cc__wait_sleep(&waiter) == WAKE_CANCEL ? ECANCELED : 0;
}

int cc_sleep_ms(uint64_t ms) {
    return cc_sleep_until(cc_after_ms(ms));
}

/* ---- a point in time, as an arm of a select ---- */

static int look(struct worker *w, const CCCase *c) {
    (void)w; /* a wait with a timer takes the locks (SELECT-6) */
    return cc__clock_now() >= cc__wait_deadline(c->deadline) ? LOOK_READY : LOOK_NOT_READY;
}

static int pass(const CCCase *c) {
    (void)c;
    return 0;
}

static unsigned prepare(struct arm *arm, const CCCase *c) {
    arm->moment = cc__wait_deadline(c->deadline);
    return WAKE_TIMER;
}

const struct arm_ops cc__arm_at = {.look = look, .try = pass, .prepare = prepare};
