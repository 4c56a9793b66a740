/* idle.h - when a worker searches, when it sleeps, and who wakes it. The protocol is in README.md. */
#ifndef CC_SCHED_IDLE_H
#define CC_SCHED_IDLE_H

#include "sched/sched.h"

/* The worker has nothing to run. Searches a while, then sleeps. True: poll again; false: the runtime stops, or the
 * worker has retired. */
bool cc__idle(struct worker *w);

/* A worker that was idle has found something: it leaves the searchers, wakes the next one if there is more, and
 * leaves a watcher behind. */
void cc__idle_left(struct worker *w);

/* Wakes one sleeper to search, unless somebody searches already. w: the calling worker, or NULL. */
void cc__idle_notify(struct worker *w);

/* The same for fibers that wait in the calling worker's own queue, where it will get to them itself: deferred to the
 * watcher while there is one and wakes have not paid (policy.h). want: as read after the fibers were published. */
void cc__idle_offer(struct worker *w, uint64_t want);

/* The worker has given n fibers away: if it is idle before its own work has lasted long enough, that did not pay. */
void cc__idle_gave(struct worker *w, uint32_t n);

/* Wakes that worker if it sleeps: there is something in its inbox. False: it did not sleep. */
bool cc__idle_notify_worker(struct worker *target);

/* A thread that is no worker has begun to wait for an event of a driver: if workers sleep, one of them blocks in it. */
void cc__idle_listen(void);

/* Wakes all, to stop. */
void cc__idle_notify_all(void);

/* A fiber of the calling worker has armed a timer and goes on, perhaps for long: if nobody would wake for it, a sleeper
 * is told. Without a lock that others need soon. */
void cc__idle_armed(struct worker *w);
/* The same for timers that were not due soon then; by sysmon, at each tick while somebody sleeps. */
void cc__idle_mind_timers(uint64_t now);

/* Changes whenever a worker stops sleeping, for any reason. Any thread. */
uint64_t cc__idle_epoch(void);

/* Wakes a thread that waits for the end of all tasks, to check again. */
void cc__idle_say_drained(void);

#endif
