/* join.c - waiting for a task's end, and completing a task.
 *
 * A joiner that finds the task not yet started, in its own worker's queue, runs it at once (sched/run.c, RUN-3); only
 * the task's end or a cancellation ends that wait, so the joiner is on no list. Any other joiner links itself to the
 * task's list under its lock.
 *
 * JOIN-1  DONE is written under join_lock; a joiner decides under it whether to wait.
 * JOIN-2  The outcome is copied to every waiter before it is woken: the waiter does not read the record again.
 * JOIN-3  The thread that drops the last handle of a DONE task recycles the record; completion does not touch it after
 *         its unlock.
 */
#include "task/task.h"

#include "wait/arm.h"

#include "base/fatal.h"
#include "sched/joined.h"
#include "sim/sim.h"
#include "trace/trace.h"

#include <errno.h>

/* ---- waiters; under join_lock ---- */

static void link_locked(struct arm *arm) {
    struct fiber *f = arm->object;
    cc__wait_queue_link(&f->joiners, &arm->link);
    arm->linked = true;
}

static void unlink_locked(struct fiber *f, struct arm *arm) {
    cc__wait_queue_unlink(&f->joiners, &arm->link);
    arm->linked = false;
}

/* The record may have been reused by now; taking its lock is still safe, and an arm that is not linked changes
 * nothing. */
static void unlink_and_release(struct arm *arm) {
    if (arm->linked) unlink_locked(arm->object, arm);
    cc__lock_release(arm->lock);
}

/* ---- the end of a task ---- */

static void deliver_one_locked(struct fiber *f, struct arm *arm) {
    if (arm->value != NULL) *(void **)arm->value = f->outcome.result;
    if (arm->handle != NULL) arm->handle->id = 0;
    uint32_t left = cc__get(&f->handles);
    if (left > 0) cc__set(&f->handles, left - 1);
}

/* Copies the outcome to all waiters and claims them. Each consumes one handle. */
static CC_NOINLINE void deliver_locked(struct fiber *f, struct wakes *wakes) {
    while (!cc__wait_queue_empty(&f->joiners)) {
        struct arm *arm = container_of(cc__get(&f->joiners.first), struct arm, link);
        unlink_locked(f, arm);
        if (cc__arm_claim_locked(wakes, arm, f->outcome.status)) deliver_one_locked(f, arm);
    }
}

/* Another fiber may already run on this worker: the events are attributed to the task that has ended. */
static CC_COLD CC_NOINLINE void deliver_traced_locked(struct fiber *f, struct wakes *wakes) {
    struct worker *w = cc__worker();
    cc__set(&w->core.behalf, f);
    cc__event(end, cc__pool_id(f));
    deliver_locked(f, wakes);
    cc__set(&w->core.behalf, NULL);
}

/* Before the wakes, so that a woken joiner sees the count. Release: pairs with cc__sched_active. */
CC_INLINE void count_end(struct worker *w) {
    cc__set_release(&w->core.counters.ended, cc__get(&w->core.counters.ended) + 1);
}

/* consumed: the caller joins it, with a handle. Consumes the lock. */
static void end_locked(struct worker *w, struct fiber *f, bool consumed) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    if (unlikely(!cc__wait_queue_empty(&f->joiners))) {
        if (cc__trace_on(TRACE_JOIN | TRACE_WAKE))
            deliver_traced_locked(f, &wakes);
        else
            deliver_locked(f, &wakes);
    }
    cc__state_done(f);
    if (!consumed)
        cc__set(&f->handles, cc__get(&f->handles) + 1); /* ours: dropping it frees the record if it is the last */
    cc__task_drop_locked(w, f);
    count_end(w);
    if (unlikely(cc__wakes_any(&wakes))) cc__wakes_flush(&wakes);
}

void cc__upcall_task_ended(struct worker *w, struct fiber *f) {
    cc__lock_take(&f->join_lock);
    end_locked(w, f, false);
}

/* ---- joining ---- */

/* The caller has run the task to its end; the outcome is in the record, which does not outlive this call. */
CC_INLINE int join_after_running(struct worker *w, struct fiber *f, void **result) {
    int status = f->outcome.status;
    if (result != NULL) *result = f->outcome.result;
    cc__lock_take(&f->join_lock);
    if (unlikely(!cc__wait_queue_empty(&f->joiners) || cc__get(&f->handles) != 1)) {
        end_locked(w, f, true);
        return status;
    }
    cc__task_end_locked(w, f);
    count_end(w);
    return status;
}

/* The task has ended: takes the outcome and consumes the handle. */
static int reap_locked(struct worker *w, struct fiber *f, void **result) {
    if (result != NULL) *result = f->outcome.result;
    int status = f->outcome.status;
    cc__task_drop_locked(w, f);
    return status;
}

static int join_by_waiting(struct worker *w, struct fiber *f, void **result, uint64_t deadline, bool *consumed) {
    struct waiter waiter;
    int rc = cc__waiter_init(&waiter, w, deadline);
    if (rc != 0) {
        cc__lock_release(&f->join_lock);
        return rc;
    }
    struct arm arm = {.waiter = &waiter, .value = result, .object = f, .lock = &f->join_lock};
    link_locked(&arm);
    cc__event(join_wait, cc__pool_id(f));
    enum wake_reason reason = cc__wait_locked(&waiter, &f->join_lock, (struct wait_what){PARK_JOIN, f});
    cc__event(join_woken, f->slot, reason);
    if (reason == WAKE_OBJECT) {
        *consumed = true;
        return arm.error;
    }
    cc__lock_take(arm.lock);
    unlink_and_release(&arm);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}

static int join_locked(struct worker *w, struct fiber *f, void **result, uint64_t deadline, bool wait, bool *consumed) {
    if (cc__word_state(cc__get(&f->word)) == FIBER_DONE) {
        *consumed = true;
        return reap_locked(w, f, result);
    }
    if (!wait) {
        cc__lock_release(&f->join_lock);
        return EAGAIN;
    }
    return join_by_waiting(w, f, result, deadline, consumed);
}

/* Joins by waiting, if `wait` allows it; the caller may have changed workers. */
static CC_NOINLINE int join_slow(CCTask *task, void **result, uint64_t deadline, bool wait) {
    if (unlikely(task == NULL || task->id == 0)) return EINVAL;
    struct worker *w = cc__worker();
    struct fiber *self = cc__sched_current(w);
    bool consumed = false;
    if (self != NULL && unlikely(cc__pool_id(self) == task->id)) return EDEADLK;
    int rc = cc__task_enter(w, false);
    if (rc != 0) return rc;
    struct fiber *f = cc__task_lock(*task);
    rc = f == NULL ? ESRCH : join_locked(w, f, result, deadline, wait, &consumed);
    if (consumed) task->id = 0;
    cc__task_leave(self != NULL ? w : cc__worker());
    return rc;
}

/* Joins by running the task, if it has not started. */
CC_INLINE int join(CCTask *task, void **result) {
    struct worker *w = cc__worker();
    if (likely(task != NULL && w != NULL)) {
        CCFiberId id = task->id;
        struct fiber *self = cc__get(&w->core.current), *f = cc__pool_find(id);
        if (likely(self != NULL && f != NULL && (w = cc__run_here(w, self, f, (uint32_t)(id >> 32))) != NULL)) {
            if (unlikely(w == RUN_CANCELLED)) return ECANCELED; /* the handle is still valid */
            task->id = 0;
            return join_after_running(w, f, result);
        }
    }
    return join_slow(task, result, WAIT_FOREVER, true);
}

int cc_task_join(CCTask *task, void **result) {
    return join(task, result);
}

int cc_task_join_try(CCTask *task, void **result) {
    cc__sim_point();
    return join_slow(task, result, 0, false);
}

int cc_task_join_until(CCTask *task, void **result, CCDeadline deadline) {
    cc__sim_point();
    return cc__wait_deadline(deadline) == WAIT_FOREVER ? join(task, result)
                                                       : join_slow(task, result, cc__wait_deadline(deadline), true);
}

void *cc_block_on(CCTask task) {
    void *result = NULL;
    return join(&task, &result) == 0 ? result : NULL;
}

/* ---- as an arm of a select ---- */

static int look(struct worker *w, const CCCase *c) {
    (void)w;
    if (c->task == NULL || c->task->id == 0) return EINVAL;
    struct fiber *f = cc__pool_find(c->task->id);
    if (f == NULL || f == cc__sched_current(cc__worker()) || cc__pool_id(f) != c->task->id || cc__get(&f->handles) == 0)
        return LOOK_READY;
    return cc__word_state(cc__get(&f->word)) == FIBER_DONE ? LOOK_READY : LOOK_NOT_READY;
}

static int try(const CCCase *c) {
    int rc = join_slow(c->task, c->value, 0, false);
    return rc == EAGAIN ? ARM_WAIT : rc;
}

/* For handles whose slot never existed: the case is ready, with ESRCH. */
static struct lock nobody;

void cc__join_forget(void) {
    nobody = (struct lock){0};
}

static unsigned prepare(struct arm *arm, const CCCase *c) {
    struct fiber *f = cc__pool_find(c->task->id);
    arm->object = f;
    arm->lock = f != NULL ? &f->join_lock : &nobody;
    arm->handle = c->task;
    return WAKE_OBJECT;
}

static void unlink_select(struct arm *arm) {
    cc__lock_take(arm->lock);
    unlink_and_release(arm);
}

const struct arm_ops cc__arm_join = {
    .look = look, .try = try, .prepare = prepare, .link = link_locked, .unlink = unlink_select, .enters = true};
