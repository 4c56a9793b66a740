/* fd.h - the state of a descriptor: its waiters, and the edges that no operation has used yet. See README.md.
 *
 * FD-1  An edge belongs to the descriptor, not to a wait: it is counted, and wakes a waiting operation. So a wait that
 *       ends by its deadline or a cancellation loses nothing.
 * FD-2  `lock` guards `edges`, the lists and the registration. An operation notes the number of edges, tries, then
 *       takes the lock, and links itself only if the number is still the same; an edge takes the same lock. It does not
 *       matter which operation the edge has woken meanwhile: that one may leave something behind and not try again.
 * FD-3  An edge wakes one of the operations that wait for its side. One that has not found the side empty wakes the
 *       next.
 * FD-4  The system's close comes after the last system call of a user: until then the number is not reused. A later
 *       call finds another generation.
 * FD-5  An OS thread waits outside of the runtime, which may stop meanwhile: then its wait ends with ECANCELED. It
 *       links itself only while the poller of its registration is open, and a runtime that stops closes that, then
 *       wakes all that are linked. Under the same condition it removes a descriptor from the poller's set: each `lock`
 *       is taken once between the end of an instance and the system's close of the poller.
 * FD-6  A hint that a side is empty contains the number of edges that were seen before the call that found it so: a
 *       later edge invalidates it, in whatever order the two are written. It is written before that call leaves: so it
 *       does not outlive the descriptor.
 * FD-7  A wait for readiness (an observer: cc_fd_wait, cc_poll, an arm of a select) consumes no edge: every event that
 *       concerns it wakes it, in addition to the operation that the edge is for. It notes the number of events, asks
 *       the system, and links itself under `lock` only if the number is still the same.
 * FD-8  A descriptor that is not registered is armed for one report (`armed`) by every waiter that links itself to it,
 *       and again after each report for those that remain. Arming reports what is ready at that moment.
 * FD-9  The system reports to one call that a connection is broken, and lets all later reads see an orderly end. So
 *       that call writes the error to `broken` before it leaves, where a read that finds the end can see it.
 * FD-10  Some calls would block in blocking mode, and have no flag against that. On a descriptor that is not adopted
 *       such a call borrows the mode: under `lock` the first borrower turns blocking mode off, and the last one turns
 *       it on again. An adoption meanwhile takes that over: blocking mode stays off until the descriptor is released.
 * FD-11  Other calls on a descriptor in blocking mode are made when the system says that they need not wait. Between
 *       that check and the call no other thread may take what was seen: so both are done by the holder of the `turn` of
 *       that side. A thread that finds it taken waits only while the side is ready. Against other processes reads and
 *       writes of pipes have a flag; a write to a terminal, which is ready if it has room for a byte, borrows the mode.
 * FD-12  A close removes the descriptor from the poller's set first, also one that was only armed. While epoll_wait(2)
 *       reads its state, the kernel holds a reference to the file. If the close drops the other one meanwhile, the file
 *       is closed when that thread returns to user mode: perhaps never, if it goes to sleep instead.
 * FD-13  The same for a descriptor that is not adopted, which the program may close without the library's knowledge.
 *       The thread goes to sleep only if it finds nothing: if the descriptor stayed armed after a wait (which ended by
 *       its deadline, say), and others take what has arrived before the thread looks. So a call that finds something
 *       without a wait removes the descriptor from the set, unless there are waiters.
 */
#ifndef CC_IO_FD_H
#define CC_IO_FD_H

#include "os/poller.h"
#include "wait/arm.h"

enum io_side { IO_READ, IO_WRITE, IO_SIDES };

struct io_fd {
    _Alignas(CC_LINE) struct lock lock;
    int number;
    _Atomic uint64_t word;       /* generation, flags, users */
    _Atomic uint32_t registered; /* adopted: the instance of the poller that it is registered with; 0: none */
    struct {
        struct link waiters; /* of arm.link */
        _Atomic uint32_t count;
        _Atomic uint32_t edges;   /* how many there have been */
        _Atomic uint32_t drained; /* `edges` plus 1 when a call moved less than it could; else the hint is invalid */
        struct lock turn;         /* FD-11 */
    } side[IO_SIDES];
    _Atomic bool no_skip;       /* the peer has hung up, or the hint is not reliable for this kind */
    bool borrowed_blocking;     /* borrowed, and in blocking mode before */
    _Atomic uint16_t broken;    /* an errno value that a call got; FD-9 */
    uint32_t borrowers : 31;    /* of its mode: FD-10 */
    uint32_t in_set : 1;        /* it was armed, so the poller's set has it; FD-12 */
    struct link observers;      /* of arm.link: FD-7 */
    _Atomic uint32_t observing; /* how many there are */
    _Atomic uint32_t events;    /* how many the poller has reported, and changes of what it reports */
    _Atomic uint32_t armed;     /* not registered: what it reports next, once; FD-8 */
    uint32_t suspect;           /* cc__fd_find_lost: SUSPECT_*, with `events` at that check; 0: none */
};

_Static_assert(sizeof(struct io_fd) == 2 * CC_LINE, "the table has one for every number");

#define FD_USERS UINT64_C(0xffffff)
#define FD_ADOPTED (UINT64_C(1) << 24)
#define FD_CLOSING (UINT64_C(1) << 25)
#define FD_FINISHING (UINT64_C(1) << 27) /* the system is closing it: a new call waits until that is done */
#define FD_BLOCKS (UINT64_C(1) << 26)    /* adopted, and in blocking mode before */
#define fd_generation(word) ((uint32_t)((word) >> 32))

#define FD_SOCKET (UINT64_C(1) << 28) /* adopted, and a socket */
#define FD_STREAM (UINT64_C(1) << 29) /* adopted, and a short read means that it is empty */

/* A descriptor in use: its state, and its word when it was entered. 0, EBADF or ENOMEM. */
struct io_use {
    struct io_fd *fd;
    uint64_t word;
};
int cc__fd_find(int number, struct io_use *use);
/* For the duration of one system call that does not wait. EBADF: it was closed since it was found. */
int cc__fd_enter(struct io_use *use);
void cc__fd_leave(struct io_use *use);

/* Between the two calls it is in non-blocking mode (FD-10). The caller has entered it. */
void cc__fd_borrow_mode(struct io_fd *fd);
void cc__fd_return_mode(struct io_fd *fd);

/* Between the two calls no other thread checks that side and then takes what is there (FD-11). The caller has entered
 * it. 0; -EAGAIN: another thread has the turn, and the side is not ready; -EBADF. */
int cc__fd_take_turn(struct io_fd *fd, enum io_side side);
void cc__fd_give_turn(struct io_fd *fd, enum io_side side);

/* After a read of a stream that found the end: the error that another call got, or is getting; 0: none, it is an
 * orderly end (FD-9). Any context; does not switch. */
int cc__fd_broken(const struct io_use *use);

/* fresh: the system has just returned the number. Otherwise it may have been adopted before: then nothing changes. */
int cc__fd_adopt(int number, bool fresh);
/* A number that an accept has just returned, in non-blocking mode. listener: its word during the accept; a connection
 * is of the same kind, so the system is not asked if that was adopted. */
int cc__fd_adopt_accepted(int number, uint64_t listener);
int cc__fd_release(int number);
int cc__fd_close(int number);
/* For a caller that keeps it: EBADF also if it was closed without the library's knowledge and its number was reused. */
int cc__fd_close_used(const struct io_use *use);

/* These sides were shut down by a call of the caller, who has entered it: an edge, because the system reports none to
 * the writer of a Unix socket. */
void cc__fd_shut(struct io_use *use, unsigned sides);

/* The number of edges, before an attempt. */
CC_INLINE uint32_t cc__fd_edges(const struct io_fd *fd, enum io_side side) {
    return cc__get_acquire(&fd->side[side].edges); /* pairs with edge_locked: the attempt comes after it */
}

/* Whether a call would find nothing: the last one moved less than it could, with `edges` before it, and there was none
 * since (FD-6). If the descriptor was closed meanwhile, the wait that follows notices that. */
CC_INLINE bool cc__fd_drained(const struct io_fd *fd, enum io_side side, uint32_t edges) {
    return cc__get(&fd->side[side].drained) == edges + 1;
}

/* For an operation that found the side empty, with `seen` edges before that: waits until the side may not be empty. 0:
 * try again. EBADF, ETIMEDOUT, ECANCELED, ENOMEM, or an error of the poller. Any context. */
int cc__fd_wait(struct io_use *use, enum io_side side, uint32_t seen, uint64_t deadline);
/* Asks the system. 0: one of the sides is ready; ARM_WAIT: none is; or an error. */
int cc__fd_look(struct io_use *use, unsigned sides);

/* ---- observers ---- */

/* Opens the poller, and registers an adopted descriptor. 0, EBADF or an error of the poller. An OS thread is inside the
 * runtime. */
int cc__fd_prepare(struct io_use *use);
/* The number of events, before the system is asked. */
CC_INLINE uint32_t cc__fd_events(const struct io_fd *fd) {
    return cc__get_acquire(&fd->events); /* pairs with count_event_locked */
}
/* Links the arm, whose `kind`, `waiter` and `events` are set: 0. ARM_AGAIN: there was an event since `seen`, check
 * again. EBADF: it was closed. ECANCELED: the runtime has stopped, and the caller is an OS thread. Or an error of the
 * poller. */
int cc__fd_link(struct io_use *use, struct arm *arm, uint32_t seen);
/* The same in two steps, for a caller that needs further locks for the second. The first arms a descriptor that is not
 * registered, and then sets *seen: FD-8. */
int cc__fd_arm(struct io_use *use, unsigned sides, uint32_t *seen);
int cc__fd_look_locked(struct io_use *use, uint32_t seen);
void cc__fd_link_locked(struct arm *arm);
/* Unlinks the arm if it is linked; a claimant of its waiter has finished with the arm when this returns. */
void cc__fd_unlink(struct arm *arm);
/* The waiter is linked, and no lock is held: if it is an OS thread's, a worker has to call the poller. */
void cc__fd_listen(const struct waiter *waiter);

/* FD-13, for a call that did not have to wait. */
void cc__fd_disarm(struct io_fd *fd);
CC_INLINE void cc__fd_found(const struct io_use *use) {
    if (unlikely(cc__get(&use->fd->armed) != 0)) cc__fd_disarm(use->fd);
}

/* After an operation that did not find the side empty: wakes the next one that waits (FD-3). */
void cc__fd_pass_on(struct io_fd *fd, enum io_side side);

/* In a forked child (cc__io_forget). Descriptors stay adopted. */
void cc__fd_forget(void);

/* The runtime stops, and no fiber is left: ends the waits of OS threads (FD-5). */
void cc__fd_cancel_threads(void);

/* How many waits there are now. */
uint32_t cc__fd_waiting(void);

/* Handles an event of the poller; claims go to `wakes`. */
void cc__fd_event(const struct poller_event *event, struct wakes *wakes);

/* ---- the watchdog of debug builds ---- */

/* A wait that should have ended. */
struct io_lost {
    int number;
    bool closed;         /* without the library's knowledge; otherwise it is ready, and no event was reported */
    bool reads;          /* the reading side is ready */
    struct fiber *fiber; /* of the first waiter; NULL: an OS thread */
};

extern _Atomic uint64_t cc__fd_lost_after; /* ns; a second, unless a test changes it */

/* Checks all descriptors that are waited for, unless the last check was within cc__fd_lost_after. True: one was ready
 * or closed at the last check, still is, and had no event since; one at each check, and each once. For the sysmon
 * thread, while all workers sleep: otherwise a fiber may have been woken and not run yet. */
bool cc__fd_find_lost(uint64_t now, struct io_lost *lost);

/* What would end a wait before it begins: ENOTSUP in a simulation. Panics in a hosted call, which is not a fiber, and
 * whose thread must not wait for a descriptor. */
int cc__fd_may_wait(int number);

/* ops.c: a fiber that never has to wait yields at intervals (CALL-2). */
void cc__fd_maybe_yield(void);

#endif
