/* steal.h - taking fibers from other workers. */
#ifndef CC_SCHED_STEAL_H
#define CC_SCHED_STEAL_H

#include "sched/runq.h"

/* Takes the fibers in other workers' inboxes, and those whose timers are overdue: their workers are busy, the caller is
 * not. False: nothing. */
bool cc__steal(struct worker *w);

/* Takes the inbox, or half of the private queue, of a worker that has not switched fibers since w->seen was written: it
 * is stuck in one fiber, and the others would wait. Costs a heavy barrier. False: nothing. */
bool cc__steal_from_stuck(struct worker *w);

/* The same from one worker, whether it is stuck or not. */
bool cc__steal_from(struct worker *w, struct worker *victim);

/* Notes every worker's number of turns, for the next cc__steal_from_stuck. */
void cc__steal_remember(struct worker *w);

#endif
