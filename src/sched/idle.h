/* idle.h - when a worker searches, when it sleeps, and what wakes it. The protocol is in README.md. */
#ifndef CC_SCHED_IDLE_H
#define CC_SCHED_IDLE_H

#include "sched/sched.h"

/* The worker has nothing to run. Searches a while, then sleeps. True: poll again; false: the runtime stops, or the
 * worker has retired. */
bool cc__idle(struct worker *w);

/* A worker that was idle has found something: it stops searching, wakes the next worker if there is more, and appoints
 * a watcher if one is needed. */
void cc__idle_left(struct worker *w);

/* Wakes one sleeper to search, unless a worker searches already. w: the calling worker, or NULL. */
void cc__idle_notify(struct worker *w);

/* The same for fibers in the calling worker's own queue, which it will run itself before long: deferred to the watcher
 * while there is one and wakes have not paid (policy.h). want: as loaded after the fibers were published. */
void cc__idle_offer(struct worker *w, uint64_t want);

/* The worker has shared n fibers: if it is idle before its own work has lasted long enough, that did not pay. */
void cc__idle_gave(struct worker *w, uint32_t n);

/* Wakes that worker if it sleeps: there is something in its inbox. False: it was not asleep. */
bool cc__idle_notify_worker(struct worker *target);

/* A thread that is not a worker of the pool begins to wait for an event of a driver: if workers sleep, one of them
 * blocks in the driver. */
void cc__idle_listen(void);

/* Wakes all workers, to stop. */
void cc__idle_notify_all(void);

/* A fiber of the calling worker has armed a timer and continues, perhaps for long: wakes a sleeper if no worker would
 * wake for the timer. May make a system call: the caller holds no lock that others need soon. */
void cc__idle_armed(void);
/* The same for timers that were not due soon when they were armed; by sysmon, at each tick while a worker sleeps. */
void cc__idle_check_timers(uint64_t now);
/* The same for timers that the calling worker, an island's, will not fire any more because it ends. */
void cc__idle_leave_timers(void);

/* Changes whenever a worker stops sleeping, for any reason. Any thread. */
uint64_t cc__idle_epoch(void);

/* Wakes a thread that waits for the end of all tasks, to check again. */
void cc__idle_say_drained(void);

#endif
