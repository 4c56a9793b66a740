/* timer.h - deadlines: arm, disarm, fire. One heap per worker.
 *
 * An entry holds a fiber and the ticket of its wait, and no pointer into a stack (README.md). Arm is O(log n), disarm
 * O(1), fire O(log n).
 *
 * TIMER-1  A wait is never ended early: an entry fires at or after its time.
 * TIMER-2  Only its worker arms timers on a heap; any thread may fire them. An island's worker has a second heap, for
 *          its alarms (sched/island.h).
 * TIMER-3  An arm finds room: there is no switch between cc__timer_prepare and the arm, not even in a simulation.
 */
#ifndef CC_TIMER_TIMER_H
#define CC_TIMER_TIMER_H

#include "sched/driver.h"

extern const struct driver cc__timer_driver;

/* Reserves room for the next arm on w. False: no memory. Called before the park, because an arm cannot fail. */
bool cc__timer_prepare(struct worker *w);

/* After the switch, when the fiber is PARKED or PARKING. */
void cc__timer_arm(struct worker *w, uint64_t when, struct fiber *f, uint64_t ticket);

/* The wait was ended by something else; w: the worker that armed. Any thread. */
void cc__timer_disarm(struct worker *w);

/* The same for a fiber that any worker may run: a timed spawn. On an island it goes to the heap of the alarms. */
bool cc__timer_prepare_alarm(struct worker *w);
void cc__timer_arm_alarm(struct worker *w, uint64_t when, struct fiber *f, uint64_t ticket);
void cc__timer_disarm_alarm(struct worker *w);

/* Calls fn for each timer whose wait is still pending, under locks: fn must not wait. Any thread. */
void cc__timer_each(void (*fn)(void *arg, struct fiber *f, uint64_t ticket), void *arg);

/* How many entries worker w holds, stale ones and the alarms of an island included. */
uint32_t cc__timer_count(struct worker *w);

/* For external inspectors (inspect/layout.def): the workers' heaps, the offset of the number of entries, and how many
 * heaps further the alarms of an island's worker are. */
struct timer_map {
    struct heap **heaps;
    size_t size, count, alarms;
};
extern const struct timer_map cc__timer_map;

#endif
