/* driver.c - the poller as a driver of the scheduler.
 *
 * IO-1  One thread at a time calls the poller: the one that holds `polling`. Workers that find it taken continue.
 *       Events that were fetched and not yet handled stay in `fetched`, and the next thread that takes `polling`
 *       handles them first.
 * IO-2  A worker that sleeps in the poller has fetched events when it returns, and polls before it sleeps again or
 *       retires (IDLE-7).
 */
#include "io/io.h"

#include "base/fatal.h"
#include "io/fd.h"
#include "io/uring.h"
#include "os/descriptor.h"
#include "os/simulated.h"
#include "sched/idle.h"
#include "sync/backoff.h"

#include <errno.h>

enum { RESERVE = 16384 }; /* descriptors: 132 KiB of kernel memory, if the process may have so many */

static struct {
    _Alignas(CC_LINE) struct lock polling;
    struct lock opening;
    _Atomic uint32_t instance;  /* of the poller; 0: not open */
    _Atomic uint32_t instances; /* how many there have been */
    bool refusal_said;          /* under `opening` */
    _Atomic unsigned fetched;
    struct poller_event events[POLLER_BATCH];
} io;

int cc__io_open(uint32_t *instance) {
    *instance = cc__get_acquire(&io.instance); /* pairs with the set below */
    if (likely(*instance != 0)) return 0;
    cc__lock_take(&io.opening);
    int error = cc__get(&io.instance) == 0 ? cc__poller_open() : 0;
    if (unlikely((error == EPERM || error == EACCES || error == ENOSYS) && !io.refusal_said)) {
        io.refusal_said = true;
        cc__warn("the system refuses epoll (error %d): a call that would wait for a descriptor fails with that", error);
    }
    if (error == 0 && cc__get(&io.instance) == 0) {
        cc__set(&io.instances, cc__get(&io.instances) + 1);
        cc__set_release(&io.instance, cc__get(&io.instances));
    }
    *instance = cc__get(&io.instance);
    cc__lock_release(&io.opening);
    return error;
}

void cc__io_listen(void) {
    cc__idle_listen();
}

void cc__io_forget(void) {
    io.polling = io.opening = (struct lock){0};
    cc__set(&io.instance, 0);
    cc__set(&io.fetched, 0);
    cc__uring_forget();
    cc__poller_forget();
    cc__fd_forget();
}

/* No worker has a thread yet. */
static bool start(unsigned workers) {
    (void)workers;
    if (cc__os_simulation() == NULL) cc__os_reserve(RESERVE);
    return true;
}

uint32_t cc__io_instance(void) {
    return cc__get_acquire(&io.instance);
}

static void stop(void) {
    cc__set_seq(&io.instance, 0);
    cc__fd_cancel_threads(); /* FD-5: after the poller has ended */
    cc__set(&io.fetched, 0);
    cc__uring_stop();
    cc__poller_close();
}

/* Known only in a simulation. */
static uint64_t next_due(unsigned worker, bool exact) {
    (void)worker, (void)exact;
    const struct os_simulated *s = cc__os_simulation();
    return likely(s == NULL) || cc__fd_waiting() == 0 || cc__get(&io.instance) == 0 ? UINT64_MAX : s->next_due();
}

/* Handles events that were fetched, or fetches some. True: a ring has completions. */
static bool handle_events(bool fetch, struct wakes *wakes) {
    bool files = false;
    if (!cc__lock_try(&io.polling)) return false;
    uint32_t n = cc__get(&io.fetched);
    if (n == 0 && fetch) n = cc__poller_wait(io.events, 0);
    for (uint32_t i = 0; i < n; i++) {
        if (io.events[i].data == URING_EVENT)
            files = true;
        else
            cc__fd_event(&io.events[i], wakes);
    }
    cc__set(&io.fetched, 0);
    cc__lock_release(&io.polling);
    return files;
}

static uint32_t poll(unsigned worker, uint64_t now, struct link *list) {
    (void)worker, (void)now;
    bool descriptors = cc__fd_waiting() != 0, files = cc__get(&cc__uring_waiting) != 0;
    if (likely(!descriptors && !files) || cc__get_acquire(&io.instance) == 0) return 0;
    struct wakes wakes;
    cc__wakes_init(&wakes);
    if (descriptors || cc__get(&io.fetched) != 0) files |= handle_events(descriptors, &wakes);
    if (files) cc__uring_reap(&wakes); /* URING-4 */
    uint32_t count = cc__get(&wakes.count);
    for (uint32_t i = 0; i < count; i++) {
        struct link *l = cc__list_pop_front(&wakes.fibers);
        cc__san_release(&cc__fiber_of(l)->word); /* as cc__wakes_flush */
        cc__list_push_back(list, l);
    }
    cc__set(&wakes.count, 0);
    cc__wakes_flush(&wakes); /* OS threads */
    return count;
}

static bool pending(void) {
    return (cc__fd_waiting() != 0 || cc__get(&cc__uring_waiting) != 0) && cc__get_acquire(&io.instance) != 0 &&
           (likely(cc__os_simulation() == NULL) || next_due(0, true) != UINT64_MAX);
}

/* IO-2. */
static bool wait_for_events(uint64_t until) {
    for (struct backoff backoff = {0}; !cc__lock_try(&io.polling);)
        cc__backoff(&backoff); /* another thread polls, briefly */
    if (cc__get(&io.fetched) == 0) cc__set(&io.fetched, cc__poller_wait(io.events, until));
    bool any = cc__get(&io.fetched) != 0;
    cc__lock_release(&io.polling);
    return any || cc__uring_ready(); /* the system interrupts the wait to complete a read */
}

static void interrupt(void) {
    cc__poller_interrupt();
}

const struct driver cc__io_driver = {start, stop, next_due, poll, pending, wait_for_events, interrupt};
