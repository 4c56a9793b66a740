/* join.c - waiting for a task's end, and what the end does.
 *
 * A joiner that finds the task not yet started, in its own worker's queue, runs it: it takes it out of the queue, leaves itself as the `runner`,
 * and switches to it directly; at its end the task switches back. Nobody else can end that wait, so it needs no claim. Any other joiner
 * goes on the task's list under its lock.
 *
 * JOIN-1  DONE is written under join_lock; a joiner decides under it whether to wait.
 * JOIN-2  The outcome is copied to every waiter before it is woken: it never looks at the record again.
 * JOIN-3  Whoever drops the last handle of a DONE task recycles the record; completion touches it no more after its unlock.
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

void cc__driver_task_ended(struct worker *w, struct fiber *f) {
    struct wakes wakes = {0};
    cc__lock_take(&f->join_lock);
    struct runner *runner = cc__get(&f->runner);
    struct fiber *parked_runner = NULL;
    if (runner != NULL) {
        runner->result = f->outcome.result;
        runner->status = f->outcome.status;
        if (f->handles > 0) f->handles--;
        /* Usually it has the CPU already, and this is its stack. */
        if (cc__word_state(cc__get(&runner->fiber->word)) == FIBER_PARKED) parked_runner = runner->fiber;
    }
    while (f->joiners != NULL) {
        struct joiner *j = container_of(f->joiners, struct joiner, waiter);
        unlink_locked(f, &j->waiter);
        j->result = f->outcome.result;
        j->status = f->outcome.status;
        if (cc__wakes_claim_locked(&wakes, &j->waiter, WAKE_OBJECT) && f->handles > 0) f->handles--;
    }
    cc__state_done(f);
    f->handles++; /* ours, so that dropping it frees the record if nobody else holds one */
    cc__task_drop_locked(w, f);
    /* Before the wakes: whoever hears of the end may count on it. Release: pairs with cc__sched_active. */
    cc__set_release(&w->core.probe.ended, cc__get(&w->core.probe.ended) + 1);
    if (parked_runner != NULL) {
        cc__state_wake_sole(parked_runner, WAKE_OBJECT);
        cc__sched_ready(parked_runner);
    }
    cc__wakes_flush(&wakes);
}

/* ---- joining ---- */

static void after_run(struct worker *w, void *arg) {
    (void)w;
    cc__state_park(arg, PARK_RUN);
}

/* Runs the task here and now. The handle is consumed at its end. */
static int join_by_running(struct worker *w, struct fiber *self, struct fiber *f, void **result) {
    struct runner runner = {.fiber = self};
    cc__set(&f->runner, &runner);
    cc__san_release(&f->word);
    (void)cc__sched_run_fresh(w, self, f, after_run, self);
    (void)cc__get_acquire(&self->word); /* pairs with the end of the task */
    cc__san_acquire(&f->join_lock.word);
    if (result != NULL) *result = runner.result;
    return runner.status;
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
    /* The record may have another tenant by now; its lock is a lock all the same, and a waiter that is not linked has nothing there. */
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
        if (f != NULL && deadline == WAIT_FOREVER && wait && cc__sched_take_fresh(w, f, (uint32_t)(task->id >> 32))) {
            task->id = 0;
            return join_by_running(w, self, f, result);
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
