/* guest.h - the OS threads that block in a wait of ours: whoever looks for a deadlock has to know them all.
 *
 * GUEST-1  A guest is on the list from before it blocks until after it was released. While it is there and its
 *          waiter's word is 0, nobody but a waker of ours, or its deadline, lets it go on.
 * GUEST-2  Its caller's registers are in its stack while it waits (cc__guest_spill), so whoever looks for addresses
 *          there finds them all.
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
};

/* By the thread that is about to block; it leaves when it goes on. */
void cc__guest_enter(struct guest *guest, struct waiter *waiter, struct wait_what what);
void cc__guest_leave(struct guest *guest);

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

/* A forked child has none of them. */
void cc__guest_forget(void);

#endif
