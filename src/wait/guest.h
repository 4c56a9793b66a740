/* guest.h - the OS threads that block in a wait of ours: whoever looks for a deadlock has to know them all.
 *
 * GUEST-1  A guest is on the list from before it blocks until after it was released. While it is there and its
 *          waiter's word is 0, nobody but a waker or canceller of ours, or its deadline, lets it
 *          go on.
 * GUEST-2  Its caller's registers are in its stack while it waits (cc__guest_spill), so whoever looks for addresses
 *          there finds them all.
 * GUEST-3  While a runtime runs, its sysmon looks for deadlocks. While none does, a thread that waits without a deadline
 *          looks by itself, at the same intervals: 50 ms, 100 ms later; after a look that said no, for some seconds,
 *          ever more rarely.
 */
#ifndef CC_WAIT_GUEST_H
#define CC_WAIT_GUEST_H

#include "wait/wait.h"

struct guest {
    struct link link;
    struct waiter *waiter;
    struct wait_what what;
    uint64_t since;
    int tid;
    struct outsider *outsider; /* the thread is in a block; NULL: in none */
    unsigned looks;            /* for a deadlock, by itself: GUEST-3 */
    uint64_t look_at, pause, epoch;
};

/* By the thread that is about to block; it leaves when it goes on. */
void cc__guest_enter(struct guest *guest, struct waiter *waiter, struct wait_what what);
/* In between, while the waiter's word is `seen`: waits until it is not, or until its deadline; may return earlier. */
void cc__guest_wait(struct guest *guest, uint32_t seen);
void cc__guest_leave(struct guest *guest);

/* If that thread waits and can be cancelled: its wait ends (CANCEL-5). */
struct outsider;
void cc__guest_cancel(struct outsider *outsider);

/* In the function that blocks, which must not be inlined. */
#define cc__guest_spill() __builtin_unwind_init()

/* Copies up to `max` of those that are there at present, with their waiters' deadlines and whether they still wait;
 * returns how many there are. */
struct guest_seen {
    struct wait_what what;
    uint64_t since, deadline;
    int tid;
    bool waits;
};
unsigned cc__guest_list(struct guest_seen *seen, unsigned max);

/* Whether one of them waits without a deadline. */
bool cc__guest_waits_forever(void);

/* Grows whenever one comes or goes. */
uint64_t cc__guest_epoch(void);

/* The runtime has stopped: from now on they look by themselves (GUEST-3). One that falls asleep at this very moment does
 * not notice. */
void cc__guest_look_alone(void);

/* A forked child has none of them. */
void cc__guest_forget(void);

#endif
