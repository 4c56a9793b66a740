/* poller.c - the set of descriptors by epoll, and an eventfd to interrupt a wait. */
#include "os/poller.h"

#include "base/attr.h"
#include "base/error.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/simulated.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define INTERRUPT UINT64_MAX /* the data of the eventfd */
#define EVERY_EDGE (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET)

static _Atomic int set = -1, interrupt = -1;
static _Atomic unsigned interrupted; /* fetched by a call that did not wait: ends the next wait */
static _Atomic unsigned coarse;      /* the kernel has no epoll_pwait2: whole milliseconds */

static int control(int op, int fd, uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data.u64 = data};
    int saved = cc__errno_get(), error = 0;
    if (epoll_ctl(atomic_load(&set), op, fd, &event) != 0) error = cc__errno_get();
    cc__errno_set(saved);
    return error;
}

static int wait_coarsely(struct epoll_event *events, uint64_t until) {
    int ms = -1;
    if (until != UINT64_MAX) {
        uint64_t now = until == 0 ? 0 : cc__clock_real(), left = until > now ? (until - now + 999999) / 1000000 : 0;
        ms = left < 60 * 1000 ? (int)left : 60 * 1000;
    }
    /* As epoll_wait, which is a cancellation point. */
    return (int)syscall(SYS_epoll_pwait, atomic_load(&set), events, POLLER_BATCH, ms, NULL, 0);
}

int cc__poller_open(void) {
    if (atomic_load(&set) >= 0 || cc__os_simulation() != NULL) return 0;
    int saved = cc__errno_get(), error = 0;
    int poller = cc__os_above_standard(epoll_create1(EPOLL_CLOEXEC));
    int event = poller >= 0 ? cc__os_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) : -1;
    if (event < 0) {
        error = cc__errno_get();
        if (poller >= 0) close(poller);
        cc__errno_set(saved);
        return error;
    }
    atomic_store(&interrupt, event);
    atomic_store(&set, poller);
    /* Edge-triggered: every write to it is an edge, and it need not be read. */
    error = control(EPOLL_CTL_ADD, event, EPOLLIN | EPOLLET, INTERRUPT);
    struct epoll_event none[POLLER_BATCH];
    if (error == 0 && wait_coarsely(none, 0) < 0 && cc__errno_get() != EINTR) error = cc__errno_get(); /* a sandbox */
    if (error != 0) cc__poller_close();
    cc__errno_set(saved);
    return error;
}

void cc__poller_close(void) {
    int saved = cc__errno_get();
    if (atomic_load(&set) >= 0) {
        close(atomic_load(&set));
        close(atomic_load(&interrupt));
        atomic_store(&set, -1);
        atomic_store(&interrupt, -1);
        atomic_store(&interrupted, 0);
    }
    cc__errno_set(saved);
}

void cc__poller_forget(void) {
    cc__poller_close();
}

int cc__poller_register(int fd, uint64_t data) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->watch(fd, data, 0);
    int error = control(EPOLL_CTL_ADD, fd, EVERY_EDGE, data);
    return error == EEXIST ? cc__poller_register_again(fd, data) : error;
}

int cc__poller_watch(int fd, uint64_t data) {
    return control(EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, data);
}

int cc__poller_register_again(int fd, uint64_t data) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->watch_again(fd, data);
    return control(EPOLL_CTL_MOD, fd, EVERY_EDGE, data);
}

int cc__poller_arm(int fd, uint64_t data, unsigned sides) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->watch(fd, data, sides);
    uint32_t events = EPOLLONESHOT | (sides & POLLER_READ ? EPOLLIN | EPOLLRDHUP : 0) |
                      (sides & POLLER_WRITE ? EPOLLOUT : 0) | (sides & POLLER_HANGUP ? EPOLLRDHUP : 0) |
                      (sides & POLLER_URGENT ? EPOLLPRI : 0);
    int error = control(EPOLL_CTL_MOD, fd, events, data);
    return error == ENOENT ? control(EPOLL_CTL_ADD, fd, events, data) : error;
}

void cc__poller_remove(int fd) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) {
        s->unwatch(fd);
        return;
    }
    (void)control(EPOLL_CTL_DEL, fd, 0, 0);
}

static unsigned translate(uint32_t events) {
    return (events & EPOLLIN ? POLLER_READ : 0u) | (events & EPOLLOUT ? POLLER_WRITE : 0u) |
           (events & EPOLLPRI ? POLLER_READ | POLLER_URGENT : 0u) |
           (events & (EPOLLHUP | EPOLLERR) ? POLLER_READ | POLLER_WRITE | POLLER_HANGUP : 0u) |
           (events & EPOLLRDHUP ? POLLER_READ | POLLER_HANGUP : 0u);
}

static int wait_finely(struct epoll_event *events, uint64_t until) {
    struct timespec ts = {0, 0};
    if (until == 0 || atomic_load(&coarse)) return wait_coarsely(events, until);
    if (until != UINT64_MAX) {
        uint64_t now = cc__clock_real(), left = until > now ? until - now : 0;
        ts = (struct timespec){(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    }
    int n = (int)syscall(SYS_epoll_pwait2, atomic_load(&set), events, POLLER_BATCH, until != UINT64_MAX ? &ts : NULL,
                         NULL, 0);
    if (n >= 0 || (cc__errno_get() != ENOSYS && cc__errno_get() != EPERM)) return n;
    atomic_store(&coarse, 1);
    return wait_coarsely(events, until);
}

unsigned cc__poller_wait(struct poller_event *events, uint64_t until) {
    const struct os_simulated *s = cc__os_simulation();
    if (unlikely(s != NULL)) return s->wait(events);
    struct epoll_event found[POLLER_BATCH];
    int saved = cc__errno_get();
    if (until != 0 && atomic_exchange(&interrupted, 0)) until = 0;
    int n = wait_finely(found, until);
    unsigned count = 0;
    for (int i = 0; i < n; i++) {
        if (found[i].data.u64 != INTERRUPT)
            events[count++] = (struct poller_event){found[i].data.u64, translate(found[i].events)};
        else if (until == 0)
            atomic_store(&interrupted, 1);
    }
    cc__errno_set(saved);
    return count;
}

void cc__poller_interrupt(void) {
    if (unlikely(cc__os_simulation() != NULL)) return;
    int saved = cc__errno_get();
    static const uint64_t one = 1; /* not on the stack, which may be a worker's, at the end of a fiber (HACKING.md) */
    while (write(atomic_load(&interrupt), &one, sizeof one) < 0 && cc__errno_get() == EAGAIN) {
        uint64_t count; /* it overflows after 2^64 - 2 interrupts */
        if (read(atomic_load(&interrupt), &count, sizeof count) < 0) break;
    }
    cc__errno_set(saved);
}

static int look_at_all(struct pollfd *fds, size_t n) {
    int saved = cc__errno_get(), ready;
    do ready = poll(fds, n, 0);
    while (ready < 0 && cc__errno_get() == EINTR);
    if (ready < 0) ready = -cc__errno_get();
    cc__errno_set(saved);
    return ready;
}

/* Simulated descriptors, and here also the others, one by one. */
static int look_simulated(const struct os_simulated *s, struct pollfd *fds, size_t n) {
    int ready = 0;
    for (size_t i = 0; i < n; i++) {
        struct pollfd *p = &fds[i];
        p->revents = 0;
        if (p->fd < OS_SIMULATED) {
            int rc = look_at_all(p, 1);
            if (rc < 0) return rc;
        } else {
            p->revents = s->poll(p->fd, p->events);
        }
        ready += p->revents != 0;
    }
    return ready;
}

int cc__poller_look_all(struct pollfd *fds, size_t n) {
    const struct os_simulated *s = cc__os_simulation();
    return likely(s == NULL) ? look_at_all(fds, n) : look_simulated(s, fds, n);
}

unsigned cc__poller_sides(int events) {
    return (events & (POLLIN | POLLRDNORM) ? POLLER_READ : 0u) |
           (events & (POLLOUT | POLLWRNORM | POLLWRBAND) ? POLLER_WRITE : 0u) |
           (events & (POLLPRI | POLLRDBAND) ? POLLER_URGENT : 0u) | (events & POLLRDHUP ? POLLER_HANGUP : 0u);
}

int cc__poller_look(int fd, unsigned sides) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->look(fd, sides);
    struct pollfd one = {.fd = fd,
                         .events = (short)((sides & POLLER_READ ? POLLIN : 0) | (sides & POLLER_WRITE ? POLLOUT : 0) |
                                           (sides & POLLER_HANGUP ? POLLRDHUP : 0))};
    int n = cc__poller_look_all(&one, 1);
    if (n < 0) return n;
    if (one.revents & POLLNVAL) return -EBADF;
    unsigned ready = (one.revents & POLLIN ? POLLER_READ : 0u) | (one.revents & POLLOUT ? POLLER_WRITE : 0u);
    if (one.revents & (POLLHUP | POLLERR)) ready |= (sides & (POLLER_READ | POLLER_WRITE)) | POLLER_HANGUP;
    if (one.revents & POLLRDHUP) ready |= POLLER_HANGUP;
    return (int)ready;
}
