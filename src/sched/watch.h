/* watch.h - the roles of sleepers: the watcher ticks, the timer sleeper wakes for the next timer, the poller blocks in
 * a driver. Called by idle.c; the slack is set by rt/. `_locked`: the caller holds sched.idle.lock. */
#ifndef CC_SCHED_WATCH_H
#define CC_SCHED_WATCH_H

#include "sched/sched.h"

/* --- timers --- */

/* By how much idle workers may be late for timers, from the next start of the runtime on. */
void cc__watch_set_timer_slack(uint64_t ns);

/* When idle workers have to fire timers next (IDLE-8); UINT64_MAX: never. Any thread, inside the runtime. */
uint64_t cc__watch_next_timer(void);

/* Does an idle worker have to fire timers now? If so, it is the one that does. next: as cc__watch_next_timer said. */
bool cc__watch_timers_due(uint64_t next, uint64_t now);

/* Would nobody wake for the next timer, nor tick (IDLE-5)? */
bool cc__watch_timers_forgotten(void);

/* --- the roles of w, which the calling thread is --- */

/* w has just gone on the list: takes the poller's and the watcher's role, if it is to have them. When w has to wake by
 * itself, but for timers: see cc__watch_sleep_for_timer. want: as it is under the lock, but for searchers. */
uint64_t cc__watch_take_roles_locked(struct worker *w, uint64_t want, uint64_t now);

/* The same for the timer sleeper's role, without the lock. UINT64_MAX: another one sleeps until the next timer, or
 * there is none. */
uint64_t cc__watch_sleep_for_timer(struct worker *w);

/* The watcher ticks: true if there is something to do, for victim if that is not NULL. Else it stays on the list, in
 * its role, until its next tick (`until`). */
bool cc__watch_tick(struct worker *w, uint64_t *until, struct worker **victim);

/* Whoever is the poller gives up the role when it is awake (IDLE-7). True: w was. */
bool cc__watch_stop_polling(struct worker *w);

/* --- of any worker --- */

/* Is it the watcher, or the timer sleeper? */
bool cc__watch_has_role_locked(struct worker *w);

/* It leaves the list, and with that those roles. */
void cc__watch_leave_roles_locked(struct worker *w);

#endif
