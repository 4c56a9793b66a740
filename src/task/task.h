/* task.h - handles to a fiber and its outcome. */
#ifndef CC_TASK_TASK_H
#define CC_TASK_TASK_H

#include "wait/wait.h"

#include <ccc/cc_task.h>

/* Drops one handle; the last one of a task that has ended frees its record. Consumes the lock. w may be NULL. */
void cc__task_drop_locked(struct worker *w, struct fiber *f);

/* Frees the record of a task that its only joiner has run to its end, and that has no other handle. Consumes the
 * lock. */
void cc__task_end_locked(struct worker *w, struct fiber *f);

/* An OS thread that is not a worker brackets its use of the runtime; a live fiber keeps the runtime alive anyway. */
CC_INLINE int cc__task_enter(struct worker *w, bool start) {
    return likely(w != NULL) ? 0 : cc__upcall_enter(start);
}
CC_INLINE void cc__task_leave(struct worker *w) {
    if (unlikely(w == NULL)) cc__upcall_leave();
}

/* The record that a handle names, locked; NULL: the handle was consumed. */
struct fiber *cc__task_lock(CCTask task);

/* In a forked child: resets the locks, whose holders no longer exist. */
void cc__join_forget(void);
void cc__local_forget(void);

#endif
