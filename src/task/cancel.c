/* cancel.c - cancelling one task by its handle. */
#include "wait/cancel.h"

#include "sim/sim.h"
#include "sync/backoff.h"
#include "task/task.h"

#include <ccc/cc_nursery.h>
#include <errno.h>

/* The record, locked, if the task has not ended; otherwise NULL, and *rc is the result. */
static struct fiber *lock_live(const CCTask *task, int *rc) {
    struct fiber *f = cc__task_lock(*task);
    *rc = f == NULL ? ESRCH : 0;
    if (f != NULL && cc__word_state(cc__get(&f->word)) == FIBER_DONE) {
        cc__lock_release(&f->join_lock);
        return NULL;
    }
    return f;
}

int cc_task_cancel(const CCTask *task) {
    if (task == NULL || task->id == 0) return EINVAL;
    struct worker *w = cc__worker();
    int rc = cc__task_enter(w, false);
    if (rc != 0) return rc;
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__cancel_begin();
    struct fiber *f = lock_live(task, &rc);
    if (f != NULL) {
        cc__cancel_mark(f, CANCEL_TASK);
        cc__lock_release(&f->join_lock);
        cc__cancel_barrier();
        if ((f = lock_live(task, &rc)) != NULL) {
            cc__cancel_claim(f, &wakes);
            cc__lock_release(&f->join_lock);
        }
        cc__cancel_end(&wakes);
        rc = 0; /* it had not ended when the call was made */
    }
    cc__task_leave(w);
    cc__sim_point(); /* so that a fiber that does not wait sees it too */
    return rc;
}

/* A shutdown ends this wait repeatedly, despite the hold: retry. An OS thread that the end of the runtime keeps out
 * gets ESRCH once that is complete; the task ended before. */
int cc__cancel_join_owned(CCTask *task, void **result) {
    int rc = cc_task_join(task, result);
    if (rc != ECANCELED) return rc;
    (void)cc_task_cancel(task);
    bool held = cc__cancel_hold();
    for (struct backoff backoff = {0}; (rc = cc_task_join(task, result)) == ECANCELED; cc__backoff(&backoff)) {
    }
    cc__cancel_unhold(held);
    return rc == 0 || rc == ESRCH ? ECANCELED : rc;
}
