/* call.c - cc_blocking: hand a call over to a pool, and wait for it. */
#include "blocking/pool.h"

#include "base/mem.h"
#include "os/clock.h"
#include "sim/sim.h"
#include "wait/cancel.h"

#include <ccc/cc_nursery.h>
#include <errno.h>
#include <string.h>

/* The offset of a copied argument. */
enum { CALL_SIZE = (sizeof(struct blocking_call) + 15) & ~15u };

/* A queued call, and how to wait for it. */
struct wait {
    CCPool *pool;
    struct blocking_call *call;
    uint64_t deadline;
    bool may_abandon;
    uint64_t again_ns; /* BLOCK-1: no thread could be started, and the next attempt is after this time; 0: one was */
};

/* Guesses: hardly noticed, and cheap if many callers lack a thread for long. */
enum { AGAIN_MIN_NS = 50 * 1000 * 1000, AGAIN_MAX_NS = 1000 * 1000 * 1000 };

/* Whether the caller may leave now. The lock is held. */
static bool may_leave_locked(const struct wait *wait) {
    return wait->may_abandon || wait->call->state == CALL_QUEUED;
}

/* The caller leaves: the call is withdrawn, or the thread owns it from now on (BLOCK-2), and *left is true. The lock is
 * held. */
static void leave_locked(const struct wait *wait, bool *left) {
    if (wait->call->state == CALL_QUEUED)
        cc__pool_withdraw_locked(wait->pool, wait->call);
    else
        wait->call->abandoned = *left = true;
}

/* Parks or blocks once. Releases the lock, and takes it again unless the call is DONE. Returns the errno value with
 * which the caller leaves, if it may; 0: check again; -1: the call is DONE, and the lock is not held. */
static int wait_once_locked(const struct wait *wait) {
    struct waiter waiter;
    bool leaves = may_leave_locked(wait), held = !leaves && cc__cancel_hold();
    bool again = wait->again_ns != 0 && wait->call->state == CALL_QUEUED;
    uint64_t until = leaves ? wait->deadline : WAIT_FOREVER, soon = again ? cc__clock_now() + wait->again_ns : until;
    again = again && soon < until && cc__waiter_init(&waiter, cc__worker(), soon) == 0;
    int rc = again ? 0 : cc__waiter_init(&waiter, cc__worker(), until);
    if (rc != 0 && wait->call->state == CALL_QUEUED) return rc;
    if (rc != 0) (void)cc__waiter_init(&waiter, cc__worker(), WAIT_FOREVER);
    wait->call->waiter = &waiter;
    enum wake_reason reason =
        cc__wait_locked(&waiter, &wait->pool->lock, (struct wait_what){PARK_BLOCKING, wait->call});
    cc__cancel_unhold(held);
    if (reason == WAKE_OBJECT) return -1;
    cc__lock_take(&wait->pool->lock);
    wait->call->waiter = NULL;
    if (wait->call->state == CALL_DONE || !may_leave_locked(wait)) return 0;
    if (again && reason == WAKE_TIMER) return 0;
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}

/* BLOCK-1. Releases the lock, and takes it again. */
static CC_COLD void submit_again_locked(struct wait *wait) {
    cc__lock_release(&wait->pool->lock);
    if (cc__pool_submit_again(wait->pool))
        wait->again_ns = 0;
    else if (wait->again_ns < AGAIN_MAX_NS)
        wait->again_ns *= 2;
    cc__lock_take(&wait->pool->lock);
}

/* 0: the call is DONE. *left: the thread that makes the call owns it. */
static int wait_for(struct wait *wait, bool *left) {
    int rc = 0;
    cc__lock_take(&wait->pool->lock);
    while (rc == 0 && wait->call->state != CALL_DONE) {
        rc = wait_once_locked(wait);
        if (rc == 0 && wait->again_ns != 0 && wait->call->state == CALL_QUEUED) submit_again_locked(wait);
    }
    if (rc < 0) return 0;
    if (rc > 0) leave_locked(wait, left);
    cc__lock_release(&wait->pool->lock);
    return rc;
}

/* Whether the call is cancelled or past its deadline before it begins. */
static int refuse(uint64_t deadline) {
    if (cc_cancelled()) return ECANCELED;
    return deadline != WAIT_FOREVER && cc__clock_now() >= deadline ? ETIMEDOUT : 0;
}

static int call_here(struct blocking_call *call) {
    cc__sim_point();
    call->status = cc__pool_call(call->fn, call->arg, &call->result);
    cc__sim_point();
    return 0;
}

static int hand_over(struct wait *wait, bool *left) {
    struct worker *w = cc__worker();
    int rc = w == NULL ? cc__upcall_enter(true) : 0;
    if (rc != 0) return rc;
    if (unlikely(cc__sim_on())) { /* a thread, not a fiber, has just started the runtime, and CC_SIM_SEED is set */
        cc__upcall_leave();       /* a shutdown does not wait for such a call, which may make it */
        return call_here(wait->call);
    }
    wait->again_ns = cc__pool_submit(wait->pool, wait->call) ? 0 : AGAIN_MIN_NS;
    rc = wait_for(wait, left);
    if (w == NULL) cc__upcall_leave();
    return rc;
}

static int run(struct wait *wait, void **result) {
    struct blocking_call *call = wait->call;
    bool left = false;
    bool here = cc__sim_on() || cc__pool_is_own() || (cc__sched_current(cc__worker()) == NULL && !wait->may_abandon);
    int rc = refuse(wait->deadline);
    if (rc == 0) rc = here ? call_here(call) : hand_over(wait, &left);
    if ((rc == ECANCELED || rc == ETIMEDOUT) && !left && call->cleanup != NULL) call->cleanup(call->arg, NULL);
    if (rc == 0 && result != NULL) *result = call->result;
    if (rc == 0) rc = call->status;
    return left ? -rc : rc;
}

/* In allocated memory that the caller can abandon, with a copy of the argument if there is one. */
static int run_allocated(struct wait *wait, void **result, size_t arg_size) {
    struct blocking_call *call = cc__mem_alloc(CALL_SIZE + arg_size);
    if (call == NULL) return ENOMEM;
    *call = *wait->call;
    if (arg_size > 0) call->arg = memcpy((char *)call + CALL_SIZE, call->arg, arg_size);
    wait->call = call;
    int rc = run(wait, result);
    if (rc < 0) return -rc;
    cc__mem_free(call);
    return rc;
}

static bool valid(CCTaskFn fn, const void *arg, const CCBlockingOptions *o) {
    if (fn == NULL || o->arg_size > CC_BLOCKING_ARG_MAX || (o->arg_size > 0 && arg == NULL)) return false;
    return (o->cleanup == NULL || o->may_abandon) && !cc__reserved_used(o);
}

int cc_blocking_ex(CCTaskFn fn, void *arg, void **result, const CCBlockingOptions *options, CCDeadline deadline) {
    static const CCBlockingOptions defaults;
    const CCBlockingOptions *o = options != NULL ? options : &defaults;
    if (!valid(fn, arg, o)) return EINVAL;
    if (result != NULL) *result = NULL;
    struct blocking_call call = {.fn = fn, .arg = arg, .cleanup = o->cleanup};
    struct wait wait = {cc__pool_resolve(o->pool), &call, cc__wait_deadline(deadline), o->may_abandon, 0};
    return o->may_abandon || o->arg_size > 0 ? run_allocated(&wait, result, o->arg_size) : run(&wait, result);
}

int cc_blocking(CCTaskFn fn, void *arg, void **result) {
    return cc_blocking_ex(fn, arg, result, NULL, CC_FOREVER);
}

int cc_blocking_until(CCTaskFn fn, void *arg, void **result, CCDeadline deadline) {
    return cc_blocking_ex(fn, arg, result, NULL, deadline);
}
