/* driver.h - the table of drivers: sources of wakes that are neither fibers nor threads of the program. Timers are the
 * first one.
 *
 * A driver has an event source for each worker (timers: a heap), or one for all. The scheduler polls it whenever a
 * worker looks beyond its own queues, plans such a look for the time at which the next event is due, and lets a
 * sleeping worker sleep until then.
 *
 * DRIVER-1  A driver claims fibers and hands them over in a list. Only the scheduler puts them into queues.
 * DRIVER-2  A poll that finds nothing costs a load: a driver that a program does not use costs no more at each look.
 * DRIVER-3  In one driver a worker can block. While one of its events is pending and workers sleep, one of them (the
 *           poller) blocks there, in place of its futex. Waking that one interrupts the driver.
 */
#ifndef CC_SCHED_DRIVER_H
#define CC_SCHED_DRIVER_H

#include "sched/sched.h"

struct driver {
    /* With the runtime, for so many workers. False: no memory. */
    bool (*start)(unsigned workers);
    /* No worker is left. Also after a start that failed, or none. */
    void (*stop)(void);

    /* When the next event of that worker's source is due; UINT64_MAX: never, or the time is not known. Unless `exact`,
     * which is slower, it may be too early: a wait that is over may have left its event behind. Any thread. */
    uint64_t (*next_due)(unsigned worker, bool exact);

    /* Claims the fibers whose event has come on that worker's source, appends them to `list`, in the order of the
     * events, and returns how many they are. Never blocks. Any thread. */
    uint32_t (*poll)(unsigned worker, uint64_t now, struct link *list);

    /* Whether an event may come that ends a wait. A deadlock is reported only if no driver says so (DEADLOCK-1). Any
     * thread. */
    bool (*pending)(void);

    /* Blocks the calling worker until a poll may find something, then true; or until the time, or until interrupt. One
     * thread at a time. NULL: next_due tells all. At most one driver has it (DRIVER-3). */
    bool (*wait)(uint64_t until);
    /* Ends the wait, also one that is about to begin. Any thread. */
    void (*interrupt)(void);
};

/* Up to the first NULL. rt/ fills it in before the scheduler starts. */
enum { DRIVERS_MAX = 4 };
extern const struct driver *cc__drivers[DRIVERS_MAX + 1];

/* All of them; see struct driver. */
bool cc__drivers_start(unsigned workers);
void cc__drivers_stop(void);
uint64_t cc__drivers_next_due(unsigned worker, bool exact);
bool cc__drivers_pending(void);

/* Only of drivers that have a source for each worker: timers. */
uint32_t cc__drivers_poll_own(unsigned worker, uint64_t now, struct link *list);
/* Only of the one in which a worker can block, without fibers of other islands. */
uint32_t cc__drivers_poll_events(unsigned worker, uint64_t now, struct link *list);

/* The one in which a worker can block; NULL: none. */
const struct driver *cc__drivers_blocking(void);

#endif
