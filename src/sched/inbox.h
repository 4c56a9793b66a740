/* inbox.h - runnable fibers that another thread has sent to a worker.
 *
 * A stack to which any thread may push, and which any thread may take as a whole: push is a CAS on the head, take is a
 * swap with NULL. There is no pop of a single fiber, so no ABA. Taking reverses the order: first in, first out.
 *
 * INBOX-1  A fiber that was pushed is found by the owner's next poll, or by any worker that has nothing to do.
 */
#ifndef CC_SCHED_INBOX_H
#define CC_SCHED_INBOX_H

#include "sched/sched.h"

void cc__inbox_push(struct worker *to, struct fiber *f);

/* Moves all fibers to `list`, oldest first; returns how many. */
uint32_t cc__inbox_take(struct worker *from, struct link *list);

CC_INLINE bool cc__inbox_empty(struct worker *w) {
    return cc__get_seq(&w->remote.inbox) == NULL;
}

/* Whether the inbox of another worker of the pool holds fibers. */
bool cc__inbox_waits_elsewhere(struct worker *w);

#endif
