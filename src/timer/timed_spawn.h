/* timed_spawn.h - a fiber that starts at a given time, unless it is cancelled first. Until then it is a record and an
 * entry in a timer heap, without a stack.
 *
 * TIMED-1  The claim decides between the timer and a thread that disarms it.
 */
#ifndef CC_TIMER_TIMED_SPAWN_H
#define CC_TIMER_TIMED_SPAWN_H

#include "timer/timer.h"

struct timed_spawn {
    struct fiber *fiber;
    uint64_t ticket;
    struct worker *worker;
};

/* Reserves memory for the timer of the next arm on w. False: there is none. */
CC_INLINE bool cc__timed_spawn_prepare(struct worker *w) {
    return cc__timer_prepare_alarm(w);
}

/* Runs fn(arg) at `when` or soon after, in its own fiber, with `scope` in its record. w: the calling worker. ENOMEM. */
int cc__timed_spawn_arm(struct worker *w, struct timed_spawn *timed, uint64_t when, CCTaskFn fn, void *arg,
                        uintptr_t scope);

/* True: it will never run. False: it is running or has run. Any thread, while the runtime is up. */
bool cc__timed_spawn_disarm(struct timed_spawn *timed);

#endif
