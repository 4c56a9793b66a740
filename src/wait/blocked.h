/* blocked.h - the list of OS threads that are blocked in a call of the library. The deadlock detector has to know all
 * of them.
 *
 * BLOCKED-1  A thread is on the list from before it blocks until after it was released. While it is there and its
 *            waiter's word is 0, only a waker, a canceller or its deadline can release it.
 * BLOCKED-2  The registers of its caller are on its stack while it waits (__builtin_unwind_init), so that a search for
 *            addresses finds them all.
 * BLOCKED-3  While a runtime runs, its sysmon looks for deadlocks. While none does, a thread that waits without a
 *            deadline looks by itself, at the same intervals: after 50 ms, and 100 ms later; after a look that said no,
 *            for some seconds, at growing intervals.
 */
#ifndef CC_WAIT_BLOCKED_H
#define CC_WAIT_BLOCKED_H

#include "wait/wait.h"

/* Blocks the calling OS thread until its waiter, which others can find, was claimed and released, or its deadline has
 * come. Returns the wake_reason. */
enum wake_reason cc__blocked_block(struct waiter *waiter, struct wait_what what);

/* If that thread waits and can be cancelled: its wait ends (CANCEL-5). */
struct outsider;
void cc__blocked_cancel(struct outsider *outsider);

/* Copies up to `max` of those that are there at present, with their waiters' deadlines and whether they still wait;
 * returns how many there are. */
struct blocked_seen {
    struct wait_what what;
    uint64_t since, deadline;
    int tid;
    bool waits;
};
unsigned cc__blocked_list(struct blocked_seen *seen, unsigned max);

/* Whether one of them waits without a deadline. */
bool cc__blocked_waits_forever(void);

/* Grows whenever one comes or goes. */
uint64_t cc__blocked_epoch(void);

/* For who looks from outside (inspect/layout.def): the list, and where an entry's members are, from its link on. */
struct blocked_map {
    struct link *list;
    size_t reason, object, since, tid;
};
extern const struct blocked_map cc__blocked_map;

/* The runtime has stopped: from now on they look by themselves (BLOCKED-3). One that falls asleep at this very moment
 * does not notice. */
void cc__blocked_look_alone(void);

/* A forked child has none of them. */
void cc__blocked_forget(void);

#endif
