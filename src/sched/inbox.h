/* inbox.h - runnable fibers that somebody else has addressed to a worker.
 *
 * A stack that anyone may push to and anyone may take as a whole: push is a CAS on the head, take is a swap
 * with NULL. No pop of a single member, so no ABA. Taking turns the order round: first in, first out.
 *
 * INBOX-1  What is pushed is found: by the owner's next poll, or by any worker that has nothing to do.
 */
#ifndef CC_SCHED_INBOX_H
#define CC_SCHED_INBOX_H

#include "sched/sched.h"

void cc__inbox_push(struct worker *to, struct fiber *f);

/* Moves all of it to `list`, oldest first; returns how many. */
uint32_t cc__inbox_take(struct worker *from, struct link *list);

CC_INLINE bool cc__inbox_empty(struct worker *w) {
    return cc__get_seq(&w->remote.inbox) == NULL;
}

/* Does something wait in the inbox of another worker of the pool? */
bool cc__inbox_waits_elsewhere(struct worker *w);

#endif
