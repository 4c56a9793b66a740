/* blocked.h - the list of OS threads that are blocked in a call of the library. The deadlock detector has to know all of them.
 *
 * BLOCKED-1  A thread is on the list from before it blocks until after it was released. While it is there and its
 *            waiter's word is 0, only a waker, a canceller or its deadline can release it.
 * BLOCKED-2  The registers of its caller are on its stack while it waits (cc__blocked_spill), so that a search for
 *            addresses finds them all.
 * BLOCKED-3  While a runtime runs, its sysmon looks for deadlocks. While none does, a thread that waits without a deadline
 *            looks by itself, at the same intervals: after 50 ms, and 100 ms later; after a look that said no, for some
 *            seconds, at growing intervals.
 */
#ifndef CC_WAIT_BLOCKED_H
#define CC_WAIT_BLOCKED_H

#include "wait/wait.h"

struct blocked_thread {
    struct link link;
    struct waiter *waiter;
    struct wait_what what;
    uint64_t since;
    int tid;
    struct outsider *outsider; /* the thread is in a block; NULL: in none */
    unsigned looks;            /* for a deadlock, by itself: BLOCKED-3 */
    uint64_t look_at, pause, epoch;
};

/* By the thread that is about to block; it leaves when it goes on. */
void cc__blocked_enter(struct blocked_thread *thread, struct waiter *waiter, struct wait_what what);
/* In between, while the waiter's word is `seen`: waits until it is not, or until its deadline; may return earlier. */
void cc__blocked_wait(struct blocked_thread *thread, uint32_t seen);
void cc__blocked_leave(struct blocked_thread *thread);

/* If that thread waits and can be cancelled: its wait ends (CANCEL-5). */
struct outsider;
void cc__blocked_cancel(struct outsider *outsider);

/* In the function that blocks, which must not be inlined. */
#define cc__blocked_spill() __builtin_unwind_init()

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

/* The runtime has stopped: from now on they look by themselves (BLOCKED-3). One that falls asleep at this very moment does
 * not notice. */
void cc__blocked_look_alone(void);

/* A forked child has none of them. */
void cc__blocked_forget(void);

#endif
