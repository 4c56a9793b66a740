/* ordered.c - a channel of tasks: results are received in the order in which the tasks were sent, whenever the tasks
 * end. */
#include "chan/chan.h"
#include "wait/cancel.h"

#include <ccc/cc_nursery.h>
#include <errno.h>

/* A cancelled receiver does not wait, but still consumes the handle; otherwise the record would never be freed. */
static int join_or_let_go(CCTask *task, void **result) {
    int rc = cc_task_join(task, result);
    if (rc != 0) (void)cc_task_detach(task); /* {0} if the join consumed it */
    return rc;
}

int cc_chan_send_task(CCChan *ch, CCTask *task) {
    if (task == NULL || task->id == 0) return EINVAL;
    int rc = ch != NULL && ch->ordered ? cc_chan_send(ch, task, sizeof *task) : EINVAL;
    /* No receiver will get the task: join it here, so that it neither leaks nor outlives its owner. */
    if (rc != 0) (void)cc__cancel_join_owned(task, NULL);
    task->id = 0;
    return rc;
}

int cc_chan_recv_task(CCChan *ch, void **result) {
    if (ch == NULL || !ch->ordered) return EINVAL;
    CCTask task;
    int rc = cc_chan_recv(ch, &task, sizeof task);
    return rc != 0 ? rc : join_or_let_go(&task, result);
}
