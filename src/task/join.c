/* join.c - waiting for a task's end, and what the end does.
 *
 * A joiner that finds the task not yet started, in its own worker's queue, runs it on its own stack, which is
 * blocked until the task's end anyway (sched/run.c, RUN-3). Any other joiner goes on the task's list under its
 * lock.
 *
 * JOIN-1  DONE is written under join_lock; a joiner decides under it whether to wait.
 * JOIN-2  The outcome is copied to every waiter before it is woken: it never looks at the record again.
 * JOIN-3  Whoever drops the last handle of a DONE task recycles the record; completion touches it no more after
 *         its unlock.
 */
#include "task/task.h"

#include "base/fatal.h"

#include <errno.h>

struct joiner {
    struct waiter waiter;
    void *result;
    int status;
};

/* ---- the list: circular, `joiners` is the oldest; under join_lock ---- */

static struct waiter *next_of(struct waiter *waiter) {
    return container_of(cc__get(&waiter->link.next), struct waiter, link);
}

static void link_locked(struct fiber *f, struct waiter *waiter) {
    if (f->joiners == NULL) {
        cc__list_init(&waiter->link);
        f->joiners = waiter;
    } else {
        cc__list_push_back(&f->joiners->link, &waiter->link);
    }
    waiter->linked = true;
}

static void unlink_locked(struct fiber *f, struct waiter *waiter) {
    if (f->joiners == waiter) f->joiners = next_of(waiter) == waiter ? NULL : next_of(waiter);
    cc__list_remove(&waiter->link);
    waiter->linked = false;
}

/* ---- the end of a task ---- */

/* Copies the outcome to everybody who waits and claims them. Each uses up one handle. */
static CC_NOINLINE void deliver_locked(struct fiber *f, struct wakes *wakes) {
    while (f->joiners != NULL) {
        struct joiner *j = container_of(f->joiners, struct joiner, waiter);
        unlink_locked(f, &j->waiter);
        j->result = f->outcome.result;
        j->status = f->outcome.status;
        uint32_t left = cc__get(&f->handles);
        if (cc__wakes_claim_locked(wakes, &j->waiter, WAKE_OBJECT) && left > 0) cc__set(&f->handles, left - 1);
    }
}

/* consumed: the caller joins it, with a handle. Consumes the lock. */
static void end_locked(struct worker *w, struct fiber *f, bool consumed) {
    struct wakes wakes;
    cc__set(&wakes.count, 0);
    cc__set(&wakes.threads, NULL);
    if (unlikely(f->joiners != NULL)) deliver_locked(f, &wakes);
    cc__state_done(f);
    if (!consumed)
        cc__set(&f->handles,
                cc__get(&f->handles) + 1); /* ours, so that dropping it frees the record if nobody else holds one */
    cc__task_drop_locked(w, f);
    /* Before the wakes: whoever hears of the end may count on it. Release: pairs with cc__sched_active. */
    cc__set_release(&w->core.probe.ended, cc__get(&w->core.probe.ended) + 1);
    if (unlikely(cc__get(&wakes.count) != 0 || cc__get(&wakes.threads) != NULL)) cc__wakes_flush(&wakes);
}

void cc__driver_task_ended(struct worker *w, struct fiber *f) {
    cc__lock_take(&f->join_lock);
    end_locked(w, f, false);
}

/* ---- joining ---- */

/* The task ran on our stack, to its end. */
static int join_after_running(struct worker *w, struct fiber *f, void *outcome, void **result) {
    cc__lock_take(&f->join_lock);
    f->outcome.result = outcome;
    f->outcome.status = 0;
    end_locked(w, f, true);
    if (result != NULL) *result = outcome;
    return 0;
}

/* The task has ended: takes the outcome, uses the handle up. */
static int reap_locked(struct worker *w, struct fiber *f, void **result) {
    if (result != NULL) *result = f->outcome.result;
    int status = f->outcome.status;
    cc__task_drop_locked(w, f);
    return status;
}

static int join_by_waiting(struct worker *w, struct fiber *f, void **result, uint64_t deadline, bool *consumed) {
    struct joiner j;
    int rc = cc__waiter_init(&j.waiter, w, deadline);
    if (rc != 0) {
        cc__lock_release(&f->join_lock);
        return rc;
    }
    link_locked(f, &j.waiter);
    enum wake_reason reason = cc__wait_locked(&j.waiter, &f->join_lock, PARK_JOIN);
    if (reason == WAKE_OBJECT) {
        *consumed = true;
        if (result != NULL) *result = j.result;
        return j.status;
    }
    /* The record may have another tenant by now; its lock is a lock all the same, and a waiter that is not
     * linked has nothing there. */
    cc__lock_take(&f->join_lock);
    if (j.waiter.linked) unlink_locked(f, &j.waiter);
    cc__lock_release(&f->join_lock);
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

static int join(CCTask *task, void **result, uint64_t deadline, bool wait) {
    if (unlikely(task == NULL || task->id == 0)) return EINVAL;
    struct worker *w = cc__worker();
    struct fiber *self = cc__sched_current(w);
    bool consumed = false;
    int rc;
    if (likely(self != NULL)) {
        struct fiber *f = cc__pool_find(task->id);
        if (unlikely(f == self && cc__pool_id(self) == task->id)) return EDEADLK;
        void *outcome;
        if (f != NULL && deadline == WAIT_FOREVER &&
            cc__sched_run_here(&w, self, f, (uint32_t)(task->id >> 32), &outcome)) {
            task->id = 0;
            return join_after_running(w, f, outcome, result);
        }
    }
    rc = cc__task_enter(w, false);
    if (rc != 0) return rc;
    struct fiber *f = cc__task_lock(*task);
    rc = f == NULL ? ESRCH : join_locked(w, f, result, deadline, wait, &consumed);
    if (consumed) task->id = 0;
    cc__task_leave(self != NULL ? w : cc__worker());
    return rc;
}

int cc_task_join(CCTask *task, void **result) {
    return join(task, result, WAIT_FOREVER, true);
}

int cc_task_join_try(CCTask *task, void **result) {
    return join(task, result, 0, false);
}

int cc_task_join_until(CCTask *task, void **result, CCDeadline deadline) {
    return join(task, result, deadline.ns, true);
}

void *cc_block_on(CCTask task) {
    void *result = NULL;
    return join(&task, &result, WAIT_FOREVER, true) == 0 ? result : NULL;
}
