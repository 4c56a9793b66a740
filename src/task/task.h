/* task.h - a handle on a fiber and its outcome. */
#ifndef CC_TASK_TASK_H
#define CC_TASK_TASK_H

#include "wait/wait.h"

#include <ccc/cc_task.h>

/* One handle is used up; the last one of a task that has ended frees its record. Consumes the lock. w may be NULL. */
void cc__task_drop_locked(struct worker *w, struct fiber *f);

/* A task that ran on its only joiner's stack, to its end, and that nobody else holds: its record is free. Consumes the
 * lock. */
void cc__task_end_locked(struct worker *w, struct fiber *f);

/* A thread that is no worker brackets its use of the runtime; fibers keep it alive by being there. */
CC_INLINE int cc__task_enter(struct worker *w, bool start) {
    return likely(w != NULL) ? 0 : cc__upcall_enter(start);
}
CC_INLINE void cc__task_leave(struct worker *w) {
    if (unlikely(w == NULL)) cc__upcall_leave();
}

/* The record that a handle names, locked; NULL: the handle was consumed. */
struct fiber *cc__task_lock(CCTask task);

/* In a forked child: whoever held the locks of these is gone. */
void cc__join_forget(void);
void cc__local_forget(void);

#endif
