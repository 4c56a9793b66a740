/* driver.h - the table of drivers: sources of wakes that are neither fibers nor threads of the program. The first one
 * is the timers.
 *
 * A driver has an event source for each worker (timers: a heap), or one for all. The scheduler polls it together with
 * the inbox and the global queue, schedules a poll for the time at which the next event is due, and lets a sleeping
 * worker sleep until then.
 *
 * DRIVER-1  A driver claims fibers and returns them in a list. Only the scheduler puts them into queues.
 * DRIVER-2  A poll that finds nothing costs a load, so a driver that the program does not use is almost free.
 * DRIVER-3  Workers can block in one driver. While one of its events is pending and workers sleep, one of them (the
 *           poller) blocks there instead of on its futex. To wake the poller, interrupt the driver.
 */
#ifndef CC_SCHED_DRIVER_H
#define CC_SCHED_DRIVER_H

#include "sched/sched.h"

struct driver {
    /* At the start of the runtime, which has that many workers and islands, and sources for the alarms of islands
     * behind them (island.h). False: no memory. */
    bool (*start)(unsigned workers);
    /* When no worker is left. Also after a start that failed, or without a start. */
    void (*stop)(void);

    /* When the next event of that worker's source is due; UINT64_MAX: never, or unknown. Unless `exact`, which is
     * slower, the time may be too early: a wait that has ended may have left its event behind. Any thread. */
    uint64_t (*next_due)(unsigned worker, bool exact);

    /* Claims the fibers whose events have occurred on that worker's source, appends them to `list` in the order of the
     * events, and returns their number. Never blocks. Any thread. */
    uint32_t (*poll)(unsigned worker, uint64_t now, struct link *list);

    /* Whether an event may still end a wait. A deadlock is reported only if no driver has one (DEADLOCK-1). Any
     * thread. */
    bool (*pending)(void);

    /* Blocks the calling worker: true if a poll may find something, false at the time or after an interrupt. One thread
     * at a time. NULL: next_due suffices. At most one driver has it (DRIVER-3). */
    bool (*wait)(uint64_t until);
    /* Ends the wait, or one that is about to begin. Any thread. */
    void (*interrupt)(void);
};

/* Ends with NULL. rt/ fills it in before the scheduler starts. */
enum { DRIVERS_MAX = 4 };
extern const struct driver *cc__drivers[DRIVERS_MAX + 1];

/* For all drivers; see struct driver. */
bool cc__drivers_start(unsigned workers);
void cc__drivers_stop(void);
uint64_t cc__drivers_next_due(unsigned worker, bool exact);
bool cc__drivers_pending(void);

/* For drivers that have a source for each worker: timers. */
uint32_t cc__drivers_poll_own(unsigned worker, uint64_t now, struct link *list);
/* For the driver in which a worker can block. Fibers of other islands are sent there, and not returned. */
uint32_t cc__drivers_poll_events(unsigned worker, uint64_t now, struct link *list);

/* The driver in which a worker can block; NULL: none. */
const struct driver *cc__drivers_blocking(void);

#endif
