/* steal.h - a worker with nothing to do takes fibers from others. */
#ifndef CC_SCHED_STEAL_H
#define CC_SCHED_STEAL_H

#include "sched/runq.h"

/* Takes what lies in other workers' inboxes and overdue on their timers: they are busy, we are not. False:
 * nothing. */
bool cc__steal(struct worker *w);

/* Takes the inbox, or half of the private queue, of a worker that has not given anyone the CPU since w->seen
 * was written: it is stuck in one fiber, and what it holds would wait. Costs a heavy barrier. False: nothing. */
bool cc__steal_from_stuck(struct worker *w);

/* The same from one worker, whatever its progress. */
bool cc__steal_from(struct worker *w, struct worker *victim);

/* Remembers everybody's progress, for the next cc__steal_from_stuck. */
void cc__steal_remember(struct worker *w);

#endif
