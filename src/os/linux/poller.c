/* poller.c - the set of descriptors by epoll, and an eventfd to interrupt a wait. */
#include "os/poller.h"

#include "base/attr.h"
#include "base/error.h"
#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define INTERRUPT UINT64_MAX /* the data of the eventfd */

static _Atomic int set = -1, interrupt = -1;
static _Atomic unsigned interrupted; /* fetched by one who did not wait: it is for one who does */
static _Atomic unsigned coarse;      /* the kernel has no epoll_pwait2: whole milliseconds */

static int control(int op, int fd, uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data.u64 = data};
    int saved = cc__errno_get(), error = 0;
    if (epoll_ctl(atomic_load(&set), op, fd, &event) != 0) error = cc__errno_get();
    cc__errno_set(saved);
    return error;
}

int cc__poller_open(void) {
    if (atomic_load(&set) >= 0) return 0;
    int saved = cc__errno_get(), error = 0;
    int poller = epoll_create1(EPOLL_CLOEXEC);
    int event = poller >= 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    if (event < 0) {
        error = cc__errno_get();
        if (poller >= 0) close(poller);
        cc__errno_set(saved);
        return error;
    }
    atomic_store(&interrupt, event);
    atomic_store(&set, poller);
    /* Edge-triggered: every write to it is an edge, and nobody has to read. */
    error = control(EPOLL_CTL_ADD, event, EPOLLIN | EPOLLET, INTERRUPT);
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
    uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;
    int error = control(EPOLL_CTL_ADD, fd, events, data);
    return error == EEXIST ? control(EPOLL_CTL_MOD, fd, events, data) : error;
}

int cc__poller_arm(int fd, uint64_t data, unsigned sides) {
    uint32_t events =
        EPOLLONESHOT | (sides & POLLER_READ ? EPOLLIN | EPOLLRDHUP : 0) | (sides & POLLER_WRITE ? EPOLLOUT : 0);
    int error = control(EPOLL_CTL_MOD, fd, events, data);
    return error == ENOENT ? control(EPOLL_CTL_ADD, fd, events, data) : error;
}

void cc__poller_remove(int fd) {
    (void)control(EPOLL_CTL_DEL, fd, 0, 0);
}

static unsigned translate(uint32_t events) {
    return (events & EPOLLIN ? POLLER_READ : 0u) | (events & EPOLLOUT ? POLLER_WRITE : 0u) |
           (events & EPOLLPRI ? POLLER_READ | POLLER_URGENT : 0u) |
           (events & (EPOLLHUP | EPOLLERR) ? POLLER_READ | POLLER_WRITE | POLLER_HANGUP : 0u) |
           (events & EPOLLRDHUP ? POLLER_READ | POLLER_HANGUP : 0u);
}

static int wait_coarsely(struct epoll_event *events, uint64_t until) {
    int ms = -1;
    if (until != UINT64_MAX) {
        uint64_t now = until == 0 ? 0 : cc__clock_real(), left = until > now ? (until - now + 999999) / 1000000 : 0;
        ms = left < 60 * 1000 ? (int)left : 60 * 1000;
    }
    return epoll_wait(atomic_load(&set), events, POLLER_BATCH, ms);
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
    int saved = cc__errno_get();
    uint64_t one = 1;
    while (write(atomic_load(&interrupt), &one, sizeof one) < 0 && cc__errno_get() == EAGAIN) {
        uint64_t count; /* it is full, after 2^64 - 2 interrupts */
        if (read(atomic_load(&interrupt), &count, sizeof count) < 0) break;
    }
    cc__errno_set(saved);
}

int cc__poller_look(int fd, unsigned sides) {
    struct pollfd one = {.fd = fd,
                         .events = (short)((sides & POLLER_READ ? POLLIN : 0) | (sides & POLLER_WRITE ? POLLOUT : 0))};
    int saved = cc__errno_get(), n;
    do n = poll(&one, 1, 0);
    while (n < 0 && cc__errno_get() == EINTR);
    int error = n < 0 ? cc__errno_get() : 0;
    cc__errno_set(saved);
    if (error != 0) return -error;
    if (one.revents & POLLNVAL) return -EBADF;
    unsigned ready = (one.revents & POLLIN ? POLLER_READ : 0u) | (one.revents & POLLOUT ? POLLER_WRITE : 0u);
    if (one.revents & (POLLHUP | POLLERR)) ready |= (sides & (POLLER_READ | POLLER_WRITE)) | POLLER_HANGUP;
    return (int)ready;
}
