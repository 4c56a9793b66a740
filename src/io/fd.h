/* fd.h - what is known about a descriptor: who waits for it, and which edges nobody has used yet. See README.md.
 *
 * FD-1  An edge belongs to the descriptor, not to a wait: it is counted, and wakes an operation that waits. So a wait
 *       that ends by its deadline or a cancellation loses nothing.
 * FD-2  `edges`, the lists and the registration are guarded by `lock`. An operation notes the number of edges, tries,
 *       then takes the lock, and links itself only if the number is still the same; an edge takes the same lock. It
 *       does not matter whom the edge has woken meanwhile: that one may leave something behind and not come back.
 * FD-3  An edge wakes one of the operations that wait for its side. One that has not found the side empty wakes the
 *       next.
 * FD-4  The system's close comes after the last system call of a user: until then the number is not used again.
 *       Whoever comes later finds another generation.
 * FD-5  An OS thread waits outside of the runtime, which may stop meanwhile: then its wait ends with ECANCELED. It
 *       links itself only while the poller of its registration is open, and a runtime that stops closes that, then
 *       wakes all that are linked.
 * FD-6  A hint that a side is empty names the number of edges that were seen before the call that found it so: a later
 *       edge makes it void, in whatever order the two are noted.
 * FD-7  A wait for readiness (an observer: cc_fd_wait, cc_poll, an arm of a select) uses up no edge: every event that
 *       concerns it wakes it, beside the operation that the edge is for. It notes the number of events, asks the
 *       system, and links itself under `lock` only if the number is still the same.
 * FD-8  A descriptor that is not registered is armed for one report (`armed`) by everyone who links himself to it, and
 *       again after each report for those who are left. Arming reports what is ready at that moment.
 * FD-9  The system tells one call that a connection is broken, and lets all later reads see an orderly end. So who is
 *       told writes it to `broken`, before it leaves: whoever then reads an end can find out.
 * FD-10  Some calls would wait in blocking mode, and have no flag against that. Who makes one of a descriptor that is
 *       not adopted borrows its mode: under `lock` the first borrower turns blocking mode off, and the last one turns
 *       it on again. Who adopts it meanwhile takes that over: it stays off until the descriptor is released.
 * FD-11  Other calls of a descriptor that is in blocking mode are made when the system says that they need not wait.
 *       Between that look and the call nobody else may take what was seen: so both are made by whoever has the `turn`
 *       of that side. Who finds it taken waits only while the side is ready.
 * FD-12  A close removes the descriptor from the poller's set first, also one that was only armed. While epoll_wait(2)
 *       reads its state, the kernel holds a reference to the file. If the close drops the other one meanwhile, the file
 *       is closed when that thread returns to user mode: perhaps never, if it goes to sleep instead.
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
    _Atomic uint32_t registered; /* adopted: with the poller of that life of the runtime; 0: not */
    struct {
        struct link waiters; /* of arm.link */
        _Atomic uint32_t count;
        _Atomic uint32_t edges;   /* how many there were */
        _Atomic uint32_t drained; /* `edges` plus 1 when a call moved less than it could; else the hint is void */
        struct lock turn;         /* FD-11 */
    } side[IO_SIDES];
    _Atomic bool no_skip;       /* the peer has hung up, or such a hint is not reliable here */
    bool borrowed_blocking;     /* borrowed, and was in blocking mode before */
    _Atomic uint16_t broken;    /* an errno value that a call was told; FD-9 */
    uint32_t borrowers : 31;    /* of its mode: FD-10 */
    uint32_t in_set : 1;        /* it was armed, so the poller's set has it; FD-12 */
    struct link observers;      /* of arm.link: FD-7 */
    _Atomic uint32_t observing; /* how many they are */
    _Atomic uint32_t events;    /* how many the poller has reported, and changes of what it reports */
    uint32_t armed;             /* not registered: what it reports next, once; FD-8 */
    uint32_t suspect;           /* cc__fd_find_lost: SUSPECT_*, with `events` at that look; 0: none */
};

_Static_assert(sizeof(struct io_fd) == 2 * CC_LINE, "the table has one for every number");

#define FD_USERS UINT64_C(0xffffff)
#define FD_ADOPTED (UINT64_C(1) << 24)
#define FD_CLOSING (UINT64_C(1) << 25)
#define FD_FINISHING (UINT64_C(1) << 27) /* the system closes it at this moment: whoever comes waits until it has */
#define FD_BLOCKS (UINT64_C(1) << 26)    /* adopted, and was in blocking mode before */
#define fd_generation(word) ((uint32_t)((word) >> 32))

#define FD_SOCKET (UINT64_C(1) << 28) /* adopted, and a socket */

/* One that is in use: its state, and its word when it was entered. 0, EBADF or ENOMEM. */
struct io_use {
    struct io_fd *fd;
    uint64_t word;
};
int cc__fd_find(int number, struct io_use *use);
/* For the length of one system call that does not wait. EBADF: it was closed since it was found. */
int cc__fd_enter(struct io_use *use);
void cc__fd_leave(struct io_use *use);

/* Between the two calls it is in non-blocking mode (FD-10). The caller has entered it. */
void cc__fd_borrow_mode(struct io_fd *fd);
void cc__fd_return_mode(struct io_fd *fd);

/* Between the two calls nobody else looks at that side and then takes what is there (FD-11). The caller has entered it.
 * 0; -EAGAIN: somebody does, and the side is not ready; -EBADF. */
int cc__fd_take_turn(struct io_fd *fd, enum io_side side);
void cc__fd_give_turn(struct io_fd *fd, enum io_side side);

/* After a read of a stream that found the end: the error that another call was told, or is being told; 0: none, it is
 * an orderly end (FD-9). Any context; does not switch. */
int cc__fd_broken(const struct io_use *use);

/* fresh: the system has just given the number out. Otherwise it may have been adopted before: then nothing changes. */
int cc__fd_adopt(int number, bool fresh);
int cc__fd_release(int number);
int cc__fd_close(int number);
/* For one who holds it: EBADF also when it was closed behind the library's back, and another has its number. */
int cc__fd_close_used(const struct io_use *use);

/* How many edges there were, before an attempt. */
CC_INLINE uint32_t cc__fd_edges(const struct io_fd *fd, enum io_side side) {
    return cc__get_acquire(&fd->side[side].edges); /* pairs with edge_locked: the attempt comes after it */
}

/* Whether a call would find nothing: the last one moved less than it could, and there were `edges` before it and are as
 * many now (FD-6). Of a descriptor that was closed meanwhile it says nothing: the wait that follows will. */
CC_INLINE bool cc__fd_drained(const struct io_fd *fd, enum io_side side, uint32_t edges) {
    return cc__get(&fd->side[side].drained) == edges + 1;
}

/* An operation found the side empty, and had `seen` so many edges before: waits until it may not be. 0: try again.
 * EBADF, ETIMEDOUT, ECANCELED, ENOMEM, or an error of the poller. Any context. */
int cc__fd_wait(struct io_use *use, enum io_side side, uint32_t seen, uint64_t deadline);
/* What the system says at this moment. 0: one of the sides is ready; ARM_WAIT: none is; or an error. */
int cc__fd_look(struct io_use *use, unsigned sides);

/* ---- observers ---- */

/* The poller is open, and an adopted descriptor is registered. 0, EBADF or an error of the poller. An OS thread is
 * inside the runtime. */
int cc__fd_prepare(struct io_use *use);
/* How many events there were, before a look at the system. */
CC_INLINE uint32_t cc__fd_events(const struct io_fd *fd) {
    return cc__get_acquire(&fd->events); /* pairs with count_event_locked */
}
/* The arm, whose `kind`, `waiter` and `events` are set, is on the list when this returns 0. ARM_AGAIN: there was an
 * event since `seen`, look again. EBADF: it was closed. ECANCELED: the runtime has stopped, and the caller is an OS
 * thread. Or an error of the poller. */
int cc__fd_link(struct io_use *use, struct arm *arm, uint32_t seen);
/* The same in two steps, for one who needs further locks for the second. First one that is not registered is armed, and
 * *seen is counted then: FD-8. */
int cc__fd_arm(struct io_use *use, unsigned sides, uint32_t *seen);
int cc__fd_look_locked(struct io_use *use, uint32_t seen);
void cc__fd_link_locked(struct arm *arm);
/* Off the list, if it is still on it; whoever has claimed its waiter has finished with the arm when this returns. */
void cc__fd_unlink(struct arm *arm);
/* The waiter is linked, and no lock is held: if it is an OS thread's, somebody has to ask the poller. */
void cc__fd_listen(const struct waiter *waiter);

/* It did not, and others wait: the next one tries. */
void cc__fd_pass_on(struct io_fd *fd, enum io_side side);

/* In a forked child (cc__io_forget). The descriptors stay adopted. */
void cc__fd_forget(void);

/* The runtime stops, no fiber is left: the OS threads that wait are told (FD-5). */
void cc__fd_cancel_threads(void);

/* How many waits there are at present. */
uint32_t cc__fd_waiting(void);

/* An event of the poller; claims go to `wakes`. */
void cc__fd_event(const struct poller_event *event, struct wakes *wakes);

/* ---- the watchdog of debug builds ---- */

/* A wait that should be over. */
struct io_lost {
    int number;
    bool closed;         /* behind our back; else it is ready, and no event has told */
    bool reads;          /* it is the reading side that is ready */
    struct fiber *fiber; /* the first that waits; NULL: an OS thread */
};

extern _Atomic uint64_t cc__fd_lost_after; /* ns; a second, unless a test changes it */

/* Looks at all descriptors that are waited for, unless the last look was within cc__fd_lost_after. True: one was ready
 * or closed at the last look, is so still, and there was no event of it; one a look, and each once. For the sysmon
 * thread, while all workers sleep: else somebody who was woken may be on his way. */
bool cc__fd_find_lost(uint64_t now, struct io_lost *lost);

/* What would end a wait before it begins: ENOTSUP in a simulation. Panics in a hosted call: its thread is none that
 * the runtime could let wait for a descriptor, and the call is no fiber. */
int cc__fd_may_wait(int number);

/* ops.c: a fiber that never has to wait lets others run now and then (CALL-2). */
void cc__fd_give_way(void);

#endif
