/* ready.c - waits until descriptors are ready: cc_fd_wait, cc_poll and arms of a select. Nothing is read or written.
 *
 * READY-1  The system is asked before each wait and after it: an event only says that there may be something. So a
 *          spurious wake continues the wait.
 * READY-2  A descriptor that is closed meanwhile is reported as closed, and not the one that has its number by then:
 *          the generation is that of the beginning of the call.
 * READY-3  A select checks a descriptor, and arms one that is not registered, before it takes the locks: there are no
 *          system calls under them. FD-7 and FD-8 say what it has to compare there.
 */
#include "io/call.h"

#include "base/mem.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "sim/sim.h"

#include <ccc/cc_fd.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>

/* Arms that fit into the frame. */
enum { FEW = 4 };

/* One call. An arm has the descriptor in `object`, and the index of its entry in `index`; `moment`: see below. */
struct polling {
    struct pollfd *fds;
    size_t n;
    struct arms arms; /* for all entries that are not ignored */
    uint32_t linked;  /* how many arms are linked, from the first */
    int error;
};

/* `moment` holds the generation and the number of events. */
static struct io_use use_of(const struct arm *arm) {
    return (struct io_use){arm->object, arm->moment & ~(uint64_t)UINT32_MAX};
}
static uint32_t seen_by(const struct arm *arm) {
    return (uint32_t)arm->moment;
}
static void note_seen(struct arm *arm, uint32_t seen) {
    arm->moment = (arm->moment & ~(uint64_t)UINT32_MAX) | seen;
}

/* ---- check ---- */

/* An arm for each descriptor, with its present generation. An invalid number gets none: the system reports that. */
static int find_all(struct polling *p) {
    for (size_t i = 0; i < p->n; i++) {
        struct io_use use = {0};
        if (p->fds[i].fd < 0) continue;
        int error = cc__fd_find(p->fds[i].fd, &use);
        if (error == ENOMEM) return ENOMEM;
        if (error != 0 && use.fd == NULL) continue;
        p->arms.first[p->arms.count++] = (struct arm){.index = (uint32_t)i,
                                                      .kind = ARM_POLL,
                                                      .events = (uint8_t)cc__poller_sides(p->fds[i].events),
                                                      .object = use.fd,
                                                      .moment = (uint64_t)fd_generation(use.word) << 32};
    }
    return 0;
}

/* Asks the system about all of them: *ready, or an error. */
static int look(struct polling *p, size_t *ready) {
    for (uint32_t i = 0; i < p->arms.count; i++) {
        struct arm *arm = &p->arms.first[i];
        struct io_use use = use_of(arm);
        note_seen(arm, cc__fd_events(use.fd));
        arm->error = cc__fd_enter(&use);
    }
    int n = cc__poller_look_all(p->fds, p->n);
    for (uint32_t i = 0; i < p->arms.count; i++) {
        struct arm *arm = &p->arms.first[i];
        struct io_use use = use_of(arm);
        if (arm->error == 0) {
            cc__fd_leave(&use);
            if (n > 0 && p->fds[arm->index].revents != 0) cc__fd_found(&use);
        } else if (n >= 0) {
            p->fds[arm->index].revents = POLLNVAL; /* READY-2 */
        }
    }
    *ready = 0;
    if (n < 0) return -n;
    for (size_t i = 0; i < p->n; i++) *ready += p->fds[i].revents != 0;
    return 0;
}

/* ---- wait ---- */

static int may_wait_for_all(const struct polling *p) {
    int error = 0;
    for (uint32_t i = 0; i < p->arms.count && error == 0; i++)
        error = cc__fd_may_wait(((struct io_fd *)p->arms.first[i].object)->number);
    return error;
}

static int prepare_all(struct polling *p) {
    int error = may_wait_for_all(p);
    if (p->arms.count == 0 || error != 0) return error;
    bool thread = cc__worker() == NULL;
    error = thread ? cc__upcall_enter(true) : 0;
    if (error != 0) return error;
    if (thread) error = may_wait_for_all(p); /* the entry may have started a simulation */
    for (uint32_t i = 0; i < p->arms.count && error == 0; i++) {
        struct io_use use = use_of(&p->arms.first[i]);
        error = cc__fd_prepare(&use);
    }
    if (thread) cc__upcall_leave();
    return error == EBADF ? ARM_AGAIN : error;
}

static int publish(void *object, struct waiter *waiter, void *io) {
    (void)object;
    struct polling *p = io;
    int error = 0;
    while (p->linked < p->arms.count && error == 0) {
        struct arm *arm = &p->arms.first[p->linked];
        struct io_use use = use_of(arm);
        arm->waiter = waiter;
        error = cc__fd_link(&use, arm, seen_by(arm));
        if (error == 0) p->linked++;
    }
    if (error != 0) {
        p->error = error == EBADF ? ARM_AGAIN : error;
        (void)cc__waiter_wake(waiter, WAKE_OBJECT);
    } else if (p->linked != 0) {
        cc__fd_listen(waiter);
    }
    return 0;
}

static void unpublish(void *object, struct waiter *waiter) {
    (void)waiter;
    struct polling *p = container_of((struct arms *)object, struct polling, arms);
    for (uint32_t i = 0; i < p->linked; i++) cc__fd_unlink(&p->arms.first[i]);
}

static const struct waitable_ops ops = {publish, unpublish};

/* In a hosted call: the caller panics after it has freed its memory. */
enum { REFUSED = -3 };

/* 0 or ARM_AGAIN: check again. */
static int wait_for_any(struct polling *p, uint64_t deadline) {
    if (p->arms.count != 0 && cc__upcall_hosted_id() != 0) return REFUSED;
    int error = prepare_all(p);
    if (error != 0) return error;
    p->linked = 0;
    p->error = 0;
    error = cc__fiber_wait(&p->arms, p, &ops, deadline, p->arms.count != 0 ? PARK_IO : PARK_SLEEP);
    return error != 0 ? error : p->error;
}

/* READY-1. deadline 0: does not wait. */
static int poll_all(struct polling *p, uint64_t deadline, size_t *ready) {
    *ready = 0;
    int error = deadline != 0 ? cc__call_check_cancel() : 0; /* CALL-4 */
    if (error == 0) error = find_all(p);
    while (error == 0) {
        error = look(p, ready);
        if (error != 0 || *ready != 0) break;
        if (deadline != WAIT_FOREVER && cc__clock_now() >= deadline) return ETIMEDOUT;
        error = wait_for_any(p, deadline);
        if (error == ARM_AGAIN) error = 0;
    }
    if (error == 0) cc__fd_maybe_yield();
    return error;
}

/* ---- the calls ---- */

int cc_poll(struct pollfd *fds, size_t n, CCDeadline deadline, size_t *ready) {
    size_t ignored;
    struct arm few[FEW], *many = NULL;
    if (ready == NULL) ready = &ignored;
    *ready = 0;
    if ((fds == NULL && n > 0) || n > INT_MAX) return EINVAL;
    struct polling p = {.fds = fds, .n = n, .arms = {.first = few}};
    if (n > FEW) {
        many = p.arms.first = cc__mem_alloc_small(n * sizeof *many);
        if (many == NULL) return ENOMEM;
    }
    int error = poll_all(&p, cc__wait_deadline(deadline), ready);
    if (many != NULL) cc__mem_free(many);
    return error == REFUSED ? cc__fd_may_wait(-1) : error;
}

static int wait_forms(int fd, int events, int *ready, uint64_t deadline) {
    if (ready != NULL) *ready = 0;
    if (events == 0 || (events & ~(CC_READABLE | CC_WRITABLE | CC_HANGUP)) != 0) return EINVAL;
    if (fd < 0) return EBADF;
    struct pollfd one = {
        .fd = fd,
        .events = (short)((events & CC_READABLE ? POLLIN : 0) | (events & CC_WRITABLE ? POLLOUT : 0) |
                          (events & CC_HANGUP ? POLLRDHUP : 0)),
    };
    struct arm arm;
    struct polling p = {.fds = &one, .n = 1, .arms = {.first = &arm}};
    size_t n;
    int error = poll_all(&p, deadline, &n), seen = one.revents;
    if (error != 0) return error == REFUSED ? cc__fd_may_wait(fd) : error;
    if (seen & POLLNVAL) return EBADF;
    if (ready == NULL) return 0;
    bool gone = (seen & (POLLHUP | POLLERR)) != 0;
    *ready = ((seen & POLLIN) != 0 || gone ? events & CC_READABLE : 0) |
             ((seen & POLLOUT) != 0 || gone ? events & CC_WRITABLE : 0) |
             ((seen & POLLRDHUP) != 0 || gone ? CC_HANGUP : 0);
    return 0;
}

int cc_fd_wait(int fd, int events, int *ready) {
    return wait_forms(fd, events, ready, WAIT_FOREVER);
}
int cc_fd_wait_try(int fd, int events, int *ready) {
    int error = wait_forms(fd, events, ready, 0);
    return error == ETIMEDOUT ? EAGAIN : error;
}
int cc_fd_wait_until(int fd, int events, int *ready, CCDeadline deadline) {
    return wait_forms(fd, events, ready, cc__wait_deadline(deadline));
}

/* ---- arms of a select ---- */

static unsigned sides_of(const CCCase *c) {
    return c->kind == CC_CASE_READABLE ? POLLER_READ : POLLER_WRITE;
}

static int look_now(const CCCase *c) {
    struct io_use use;
    int error = cc__fd_find(c->fd, &use);
    return error != 0 ? error : cc__fd_look(&use, sides_of(c));
}

static int look_at_case(struct worker *w, const CCCase *c) {
    if (w != NULL) return LOOK_OUTSIDE;
    return look_now(c) == ARM_WAIT ? LOOK_NOT_READY : LOOK_READY;
}

static int try_case(const CCCase *c) {
    int error = look_now(c);
    if (error == 0) cc__fd_maybe_yield();
    return error;
}

static struct io_fd nobody; /* for a number that has no state */

/* For look_locked: 0, ARM_AGAIN or an error. */
static int prepare_to_wait(struct arm *arm, struct io_use *use) {
    int error = cc__fd_may_wait(use->fd->number);
    if (error != 0) return error;
    bool thread = cc__worker() == NULL;
    error = thread ? cc__upcall_enter(true) : 0;
    if (error != 0) return error;
    if (thread) error = cc__fd_may_wait(use->fd->number); /* the entry may have started a simulation */
    if (error == 0) error = cc__fd_prepare(use);
    uint32_t seen = cc__fd_events(use->fd);
    bool reports = (use->word & FD_ADOPTED) == 0; /* arming reports what is ready */
    if (error == 0 && !reports && cc__fd_look(use, arm->events) != ARM_WAIT) error = ARM_AGAIN;
    if (error == 0) error = cc__fd_arm(use, arm->events, &seen);
    note_seen(arm, seen);
    if (thread) cc__upcall_leave();
    return error;
}

static unsigned prepare_case(struct arm *arm, const CCCase *c) {
    struct io_use use = {&nobody, 0};
    int error = cc__fd_find(c->fd, &use);
    if (error != 0) use.fd = &nobody;
    arm->object = use.fd;
    arm->lock = &use.fd->lock;
    arm->events = (uint8_t)sides_of(c);
    arm->moment = (uint64_t)fd_generation(use.word) << 32;
    arm->error = error != 0 ? error : prepare_to_wait(arm, &use);
    return WAKE_OBJECT;
}

static int look_locked(struct arm *arm) {
    struct io_use use = use_of(arm);
    return arm->error != 0 ? arm->error : cc__fd_look_locked(&use, seen_by(arm));
}

static void thread_waits(struct arm *arm) {
    cc__fd_listen(arm->waiter);
}

void cc__arm_may_wait_fd(void) {
    (void)cc__fd_may_wait(-1);
}

const struct arm_ops cc__arm_fd = {
    .look = look_at_case,
    .try = try_case,
    .prepare = prepare_case,
    .link = cc__fd_link_locked,
    .unlink = cc__fd_unlink,
    .look_locked = look_locked,
    .thread_waits = thread_waits,
};
