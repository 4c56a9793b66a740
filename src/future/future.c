/* future.c - a task whose arguments and value are stored in the block that awaits it (cc_future.h).
 *
 * Owns:    nothing: a future belongs to the caller, and one fiber or OS thread uses it.
 *
 * FUTURE-1  While a future is RUNNING and `task` names a task, that task may write into the block: control does not
 *           leave the block before a join has returned the task's end.
 * FUTURE-2  RUNNING with an empty `task`: the task has ended or never started, and `ended` says how. An arm of a select
 *           that joins it leaves the future in this state.
 */
#include "wait/cancel.h"

#include <ccc/cc_future.h>
#include <errno.h>
#include <string.h>

/* ---- misuse ---- */

void cc_future_misused(const CCFuture *f) {
    if (f->state == CC_FUTURE_RUNNING)
        cc_panic("CC_START: %s already runs in this future; await it first, or use another future", f->name);
    if (f->state == CC_FUTURE_AWAITED)
        cc_panic("CC_AWAIT: this future of %s was awaited before; what it returned is in its .value", f->name);
    cc_panic("CC_AWAIT: this future of %s was not started; CC_START starts it", f->name);
}

void cc_future_failed(const char *name, int error) {
    if (error == ECANCELED) return;
    cc_panic("%s: %s (%d), and the caller takes only a value; cc_await returns errors", name, cc_error_text(error),
             error);
}

/* ---- the end ---- */

static CC_COLD CC_NORETURN void panic_again(const CCFuture *f) {
    CCPanic panic;
    bool known = cc_panic_find(f->id, &panic) == 0;
    cc_panic("CC_AWAIT: %s has panicked: %s", f->name, known ? panic.message : "the message is not known any more");
}

/* Handles the task's end, with the result of its join. */
static int awaited(CCFuture *f, int rc) {
    f->state = CC_FUTURE_AWAITED;
    return rc != 0 ? rc : f->error;
}

static void check_running(const CCFuture *f) {
    if (unlikely(f->state != CC_FUTURE_RUNNING)) cc_future_misused(f);
}

int cc_future_await_until(CCFuture *f, CCDeadline deadline) {
    check_running(f);
    if (unlikely(f->task.id == 0)) return awaited(f, f->ended); /* FUTURE-2 */
    int rc = cc_task_join_until(&f->task, NULL, deadline);
    return unlikely(f->task.id != 0) ? rc : awaited(f, rc); /* the handle is not consumed: the task is still running */
}

/* Waits for its end, even if the caller is cancelled. 0, or how the task has ended. */
static int join(CCFuture *f) {
    int rc = cc__cancel_join_owned(&f->task, NULL);
    if (unlikely(rc == EDEADLK)) cc_panic("CC_AWAIT: %s awaits itself", f->name);
    f->task.id = 0;
    return rc == ECANCELED ? 0 : rc;
}

/* A join that fails may consume the handle. */
static int end_of(CCFuture *f, int joined) {
    if (f->task.id != 0) return join(f);
    return joined == -1 ? f->ended : joined; /* FUTURE-2 */
}

void *cc_future_await(CCFuture *f, int joined) {
    check_running(f);
    int rc = end_of(f, joined);
    f->state = CC_FUTURE_AWAITED;
    if (rc == ENOTRECOVERABLE) panic_again(f);
    if (rc != 0) memset(f->value, 0, f->size); /* it never ran */
    if (rc != 0 || f->error != 0) cc_future_failed(f->name, rc != 0 ? rc : f->error);
    return f->value;
}

/* ---- the block ---- */

void cc_future_end(void *future) { /* FUTURE-1 */
    CCFuture *f = future;
    if (likely(f->state != CC_FUTURE_RUNNING)) return;
    if (!f->left && f->task.id != 0) (void)cc_task_cancel(&f->task); /* a panic or an exception leaves the block */
    if (f->task.id != 0) (void)join(f);
}
