/* watch.h - the roles of sleepers: the watcher ticks, the timer sleeper wakes for the next timer, the poller blocks in
 * a driver. Called by idle.c; the slack is set by rt/. `_locked`: the caller holds sched.idle.lock. */
#ifndef CC_SCHED_WATCH_H
#define CC_SCHED_WATCH_H

#include "sched/sched.h"

/* --- timers --- */

/* How late idle workers may fire timers at most; from the next start of the runtime on. */
void cc__watch_set_timer_slack(uint64_t ns);

/* When idle workers have to fire timers next (IDLE-8); UINT64_MAX: never. Any thread, inside the runtime. */
uint64_t cc__watch_next_timer(void);

/* Whether an idle worker has to fire timers now: then the caller does. next: from cc__watch_next_timer. */
bool cc__watch_timers_due(uint64_t next, uint64_t now, bool slept);

/* A worker that was idle has fired n timers (IDLE-8). */
void cc__watch_timers_fired(uint32_t n);

/* Whether no worker would wake for the next timer, or tick (IDLE-5). */
bool cc__watch_timers_forgotten(void);

/* --- the roles of w, by its own thread --- */

/* w has just gone on the list: takes the roles of poller and watcher, if it should have them. Returns when w has to
 * wake by itself, except for timers: see cc__watch_sleep_for_timer. want: as it is under the lock, except for
 * searchers. */
uint64_t cc__watch_take_roles_locked(struct worker *w, uint64_t want, uint64_t now);

/* The same for the timer sleeper's role, without the lock. UINT64_MAX: another worker sleeps until the next timer, or
 * there is none. */
uint64_t cc__watch_sleep_for_timer(struct worker *w);

/* A tick of the watcher. True: there is something to do, for *victim if that is not NULL. Otherwise it stays on the
 * list, in its role, until its next tick (`until`). */
bool cc__watch_tick(struct worker *w, uint64_t *until, struct worker **victim);

/* The poller gives up its role when it is awake (IDLE-7). True: w was the poller. */
bool cc__watch_stop_polling(struct worker *w);

/* --- of any worker --- */

/* Whether it is the watcher or the timer sleeper. */
bool cc__watch_has_role_locked(struct worker *w);

/* It leaves the list, and gives up those roles. */
void cc__watch_leave_roles_locked(struct worker *w);

#endif
