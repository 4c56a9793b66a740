/* uring.c - rings: open, submit, take completions, wait. */
#include "io/uring.h"

#include "base/san.h"
#include "io/fd.h"
#include "io/io.h"
#include "os/poller.h"
#include "sim/sim.h"
#include "sync/lock.h"
#include "trace/trace.h"
#include "wait/cancel.h"

#include <errno.h>

enum { ROOM = 256 }; /* calls in flight in one ring. Guess: more than a disk works on at a time */

struct ring {
    _Alignas(CC_LINE) struct lock lock; /* guards the completions, and struct uring_wait */
    _Atomic bool open;
    _Atomic uint32_t under_way; /* URING-3 */
    struct os_uring os;
};

static struct ring rings[CC_WORKERS_MAX + ISLANDS_MAX];

static struct {
    _Atomic uint32_t end; /* one past the last ring that was opened */
    _Atomic bool off;     /* this run has no rings: by configuration, or because one could not be opened */
    _Atomic uint32_t said;
} uring;

_Atomic uint32_t cc__uring_waiting;

/* ---- open, close ---- */

/* From now on the pool makes all calls. */
static CC_COLD void give_up(int error) {
    cc__set(&uring.off, true);
    if (cc__swap_seq(&uring.said, 1) == 0) cc__event(file_no_ring, error);
}

static void raise_end(uint32_t end) {
    uint32_t now = cc__get(&uring.end);
    while (now < end && !cc__cas(&uring.end, &now, end)) continue;
}

static int open_and_watch(struct ring *ring) {
    uint32_t instance;
    int error = cc__io_open(&instance);
    if (error == 0) error = -cc__os_uring_open(&ring->os, ROOM);
    if (error != 0) return error;
    error = cc__poller_watch(ring->os.fd, URING_EVENT);
    if (error != 0) cc__os_uring_close(&ring->os);
    return error;
}

static CC_COLD bool open_ring(struct ring *ring) {
    int error = open_and_watch(ring);
    if (error != 0) {
        if (error != EMFILE && error != ENFILE) give_up(error); /* descriptors may become free */
        return false;
    }
    cc__set_release(&ring->open, true); /* pairs with is_open */
    raise_end((uint32_t)(ring - rings) + 1);
    return true;
}

static bool is_open(const struct ring *ring) {
    return cc__get_acquire(&ring->open); /* pairs with open_ring */
}

static void close_all(void) {
    for (uint32_t i = 0; i < cc__get(&uring.end); i++) {
        if (!is_open(&rings[i])) continue;
        cc__os_uring_close(&rings[i].os);
        cc__set(&rings[i].open, false);
    }
    cc__set(&uring.end, 0);
}

void cc__uring_configure(bool use) {
    cc__set(&uring.off, !use);
}

void cc__uring_stop(void) {
    close_all();
}

void cc__uring_forget(void) {
    for (uint32_t i = 0; i < cc__get(&uring.end); i++) {
        rings[i].lock = (struct lock){0};
        cc__set(&rings[i].under_way, 0);
    }
    cc__set(&cc__uring_waiting, 0);
    close_all();
}

/* ---- completions ---- */

static void take_locked(struct ring *ring, struct wakes *wakes) {
    struct uring_done done;
    while (cc__os_uring_take(&ring->os, &done)) {
        struct uring_wait *wait = done.data;
        cc__sub(&ring->under_way, 1); /* pairs with submit: *wait is as it was submitted */
        wait->result = done.result;
        wait->done = true;
        if (wait->waiter == NULL) continue;
        cc__sub(&cc__uring_waiting, 1);
        (void)cc__wakes_claim_locked(wakes, wait->waiter, WAKE_OBJECT);
    }
}

static bool has_some(const struct ring *ring) {
    return cc__get(&ring->under_way) != 0 && is_open(ring) && cc__os_uring_any(&ring->os);
}

static void take(struct ring *ring, struct wakes *wakes) {
    cc__lock_take(&ring->lock);
    take_locked(ring, wakes);
    cc__lock_release(&ring->lock);
}

void cc__uring_reap(struct wakes *wakes) {
    for (uint32_t i = 0; i < cc__get(&uring.end); i++)
        if (has_some(&rings[i])) take(&rings[i], wakes);
}

bool cc__uring_ready(void) {
    for (uint32_t i = 0; i < cc__get(&uring.end); i++)
        if (has_some(&rings[i])) return true;
    return false;
}

/* ---- calls ---- */

/* The worker's ring, opened if need be; NULL: there is none, or it is full. */
static struct ring *ring_of(struct worker *w) {
    struct ring *ring = &rings[w->core.owner - 1];
    if (unlikely(cc__get(&uring.off)) || cc__sim_on()) return NULL;
    if (unlikely(!is_open(ring)) && !open_ring(ring)) return NULL;
    return cc__get(&ring->under_way) < ROOM ? ring : NULL;
}

/* False: the system did not accept it. */
static bool submit(struct ring *ring, struct uring_wait *wait) {
    cc__add(&ring->under_way, 1); /* pairs with take_locked */
    int rc = cc__os_uring_submit(&ring->os, &wait->call, wait);
    if (likely(rc == 0)) return true;
    cc__sub(&ring->under_way, 1);
    if (rc != -EAGAIN && rc != -EBUSY && rc != -ENOMEM) give_up(-rc);
    return false;
}

/* Parks until the call is done. The caller holds the lock, which is released. */
static void wait_locked(struct ring *ring, struct uring_wait *wait) {
    while (!wait->done) {
        struct waiter waiter;
        (void)cc__waiter_init(&waiter, cc__worker(), WAIT_FOREVER);
        wait->waiter = &waiter;
        cc__add(&cc__uring_waiting, 1);
        if (cc__wait_locked(&waiter, &ring->lock, (struct wait_what){PARK_FILE, wait}) == WAKE_OBJECT) return;
        cc__lock_take(&ring->lock);
        if (!wait->done) cc__sub(&cc__uring_waiting, 1);
        wait->waiter = NULL;
    }
    cc__lock_release(&ring->lock);
}

static void wait_for(struct ring *ring, struct uring_wait *wait) { /* URING-2 */
    struct wakes wakes;
    cc__wakes_init(&wakes);
    if (has_some(ring)) take(ring, &wakes); /* it may be done already */
    cc__wakes_flush(&wakes);
    bool held = cc__cancel_hold();
    cc__lock_take(&ring->lock);
    wait_locked(ring, wait);
    cc__cancel_unhold(held);
}

/* A read can be repeated after any of these errors. A sync that was executed has reported an error of the disk, which
 * may be any of them, and a second one would not report it. */
bool cc__uring_is_refusal(enum uring_kind kind, long result) {
    enum { KEPT = 512 }; /* ERESTARTSYS and other codes that are usually kernel-internal: it was interrupted */
    if (result == -ECANCELED || result == -EINTR || result == -EFAULT || result <= -KEPT) return true;
    bool perhaps = result == -EAGAIN || result == -EINVAL || result == -EOPNOTSUPP || result == -ENOSYS;
    return kind == URING_READ && perhaps;
}

long cc__uring_call(const struct uring_call *call) {
    struct worker *w = cc__worker();
    if (cc__sched_current(w) == NULL) return -EAGAIN;
    struct ring *ring = ring_of(w);
    struct uring_wait wait = {.call = *call};
    if (ring == NULL || !submit(ring, &wait)) return -EAGAIN; /* URING-1 */
    cc__event(file_ring, call->kind == URING_READ ? "read" : "sync", call->fd);
    wait_for(ring, &wait);
    if (call->kind == URING_READ && wait.result > 0) cc__san_written(call->parts, (size_t)wait.result);
    cc__fd_maybe_yield(); /* the call may not have waited */
    return cc__uring_is_refusal(call->kind, wait.result) ? -EAGAIN : wait.result;
}
