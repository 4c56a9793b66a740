/* fd.h - what is known about a descriptor: who waits for it, and which edges nobody has used yet. See README.md.
 *
 * FD-1  An edge belongs to the descriptor, not to a wait: it wakes an operation that waits, or stays in `ready` until
 *       the next one is about to wait. So a wait that ends by its deadline or a cancellation loses nothing.
 * FD-2  `ready`, the lists and the registration are guarded by `lock`. An operation tries, then takes the lock, looks
 *       at `ready`, and links itself before it releases the lock; an edge takes the same lock.
 * FD-3  An edge wakes one of the operations that wait for its side. One that has not found the side empty wakes the
 *       next.
 * FD-4  The system's close comes after the last system call of a user: until then the number is not used again.
 *       Whoever comes later finds another generation.
 * FD-5  An OS thread waits outside of the runtime, which may stop meanwhile: then its wait ends with ECANCELED. It
 *       links itself only while the poller of its registration is open, and a runtime that stops closes that, then
 *       wakes all that are linked.
 * FD-6  A hint that a side is empty names the number of edges that were seen before the call that found it so: a later
 *       edge makes it void, in whatever order the two are noted.
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
        bool ready;
    } side[IO_SIDES];
    _Atomic bool no_skip; /* the peer has hung up, or such a hint is not reliable here */
};

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

int cc__fd_adopt(int number, bool fresh);
int cc__fd_release(int number);
int cc__fd_close(int number);

/* Whether a call would find nothing: the last one moved less than it could, and no edge has come since (FD-6). */
CC_INLINE bool cc__fd_drained(struct io_fd *fd, enum io_side side) {
    return cc__get(&fd->side[side].drained) == cc__get(&fd->side[side].edges) + 1;
}

/* An operation found the side empty: waits until it may not be. 0: try again. EBADF, ETIMEDOUT, ECANCELED, ENOMEM,
 * or an error of the poller. Any context. */
int cc__fd_wait(struct io_use *use, enum io_side side, uint64_t deadline);
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

#endif
