/* later.h - a fiber that starts at a given time, unless it is called off. Until then it is a record and a timer's
 * entry, and has no stack.
 *
 * LATER-1  The claim decides between its time and the one who calls it off.
 */
#ifndef CC_TIMER_LATER_H
#define CC_TIMER_LATER_H

#include "timer/timer.h"

struct later {
    struct fiber *fiber;
    uint64_t ticket;
    struct worker *home;
};

/* fn(arg), at `when` or soon after, in a fiber of its own that has `scope` in its record. w: the calling worker.
 * ENOMEM. */
int cc__later_arm(struct worker *w, struct later *later, uint64_t when, CCTaskFn fn, void *arg, uintptr_t scope);

/* True: it will never run. False: it does, or has. Any thread, while the runtime is up. */
bool cc__later_disarm(struct later *later);

#endif
