/* blocked.h - the list of OS threads that are blocked in a call of the library. The deadlock detector needs all of
 * them.
 *
 * BLOCKED-1  A thread is on the list from before it blocks until after it was released. While it is there and its
 *            waiter's word is 0, only a waker, a canceller or its deadline can release it.
 * BLOCKED-2  The registers of its caller are on its stack while it waits (__builtin_unwind_init), so that a search for
 *            addresses finds them all.
 * BLOCKED-3  While a runtime runs, its sysmon checks for deadlocks. Otherwise each thread that waits without a deadline
 *            checks by itself, at the same intervals: after 50 ms, and 100 ms later; after a negative check, for some
 *            seconds, at growing intervals.
 */
#ifndef CC_WAIT_BLOCKED_H
#define CC_WAIT_BLOCKED_H

#include "wait/wait.h"

/* Blocks the calling OS thread until its waiter, which is published, was claimed and released, or its deadline has
 * passed. Returns the wake_reason. */
enum wake_reason cc__blocked_block(struct waiter *waiter, struct wait_what what);

/* Ends the wait of that thread, if it waits and can be cancelled (CANCEL-5). */
struct outsider;
void cc__blocked_cancel(struct outsider *outsider);

/* Copies up to `max` of the blocked threads, with their deadlines and whether they still wait; returns how many there
 * are. */
struct blocked_seen {
    struct wait_what what;
    uint64_t since, deadline;
    int tid;
    bool waits;
};
unsigned cc__blocked_list(struct blocked_seen *seen, unsigned max);

/* Whether one of them waits without a deadline. */
bool cc__blocked_waits_forever(void);

/* Increases whenever a thread is added or removed. */
uint64_t cc__blocked_epoch(void);

/* For external inspectors (inspect/layout.def): the list, and the offsets of an entry's members from its link. */
struct blocked_map {
    struct link *list;
    size_t reason, object, since, tid;
};
extern const struct blocked_map cc__blocked_map;

/* The runtime has stopped: wakes the threads, which from now on check by themselves (BLOCKED-3). A thread that is just
 * about to sleep may miss it. */
void cc__blocked_check_alone(void);

/* Empties the list in a forked child. */
void cc__blocked_forget(void);

#endif
