/* timer.h - deadlines: arm, disarm, fire. One heap a worker.
 *
 * An entry names a fiber and the ticket of its wait, and nothing on anybody's stack (README.md). Arm is O(log n),
 * disarm O(1), fire O(log n).
 *
 * TIMER-1  A wait is never ended early: an entry fires at or after its time.
 * TIMER-2  Only a worker arms on its own heap; anyone fires.
 * TIMER-3  An arm finds room: between cc__timer_prepare and the arm nothing switches, in a simulation neither.
 */
#ifndef CC_TIMER_TIMER_H
#define CC_TIMER_TIMER_H

#include "sched/driver.h"

extern const struct driver cc__timer_driver;

/* Makes sure that the next arm on w finds room. False: no memory. Before the park, because an arm cannot fail. */
bool cc__timer_prepare(struct worker *w);

/* After the switch: the fiber is PARKED, or PARKING. */
void cc__timer_arm(struct worker *w, uint64_t when, struct fiber *f, uint64_t ticket);

/* The wait was ended by somebody else; home: the worker that armed. Any thread. */
void cc__timer_disarm(struct worker *home);

/* Calls fn for each timer that is armed for a wait that lasts, under locks: fn waits for nobody. Any thread. */
void cc__timer_each(void (*fn)(void *arg, struct fiber *f, uint64_t ticket), void *arg);

/* How many entries worker w holds, stale ones included. */
uint32_t cc__timer_count(struct worker *w);

/* For who looks from outside (inspect/layout.def): the workers' heaps, and where in one the number of entries is. */
struct timer_map {
    struct heap **heaps;
    size_t size, count;
};
extern const struct timer_map cc__timer_map;

#endif
