/* io.c - the explorer's own descriptors, poller and rings, in place of src/os/linux/{descriptor,poller,uring}.c.
 *
 * A descriptor holds any number of bytes that were written and not yet read. A system call is one step: it begins with
 * a read-modify-write of one shared location, as the kernel's locks order them, and no other thread runs during the
 * rest.
 */
#include "stubs/io.h"

#include "explore.h"
#include "os/descriptor.h"
#include "os/futex.h"
#include "os/poller.h"
#include "os/uring.h"
#include "sync/atomic.h"

#include <errno.h>
#include <poll.h>

enum { FDS = 16, RINGS = 2, RING_CALLS = 4 };

static struct {
    struct {
        bool open, once, armed, blocking;
        unsigned bytes, sides, pending;
        uint64_t data;
    } fd[FDS];
    bool set_open, interrupted;
    struct {
        void *asked[RING_CALLS], *done[RING_CALLS];
        unsigned asked_count, done_count;
    } ring[RINGS]; /* descriptors FDS - 1, FDS - 2 */
    unsigned rings, answers;
} kernel;

static _Atomic uint32_t calls; /* system calls so far */
static _Atomic uint32_t news;  /* futex: a poller may have to check the set again */

static void enter(void) {
    (void)cc__add_seq(&calls, 1);
    ex_touch(&kernel, sizeof kernel);
}

static void tell(void) {
    (void)cc__add_seq(&news, 1);
    cc__futex_wake(&news, 4);
}

/* What the set reports of it; true: there are new events. */
static bool edge(int fd, unsigned sides) {
    sides &= kernel.fd[fd].sides;
    if (!kernel.fd[fd].armed || sides == 0) return false;
    kernel.fd[fd].pending |= sides;
    if (kernel.fd[fd].once) kernel.fd[fd].armed = false;
    return true;
}

static unsigned ready(int fd) {
    return POLLER_WRITE | (kernel.fd[fd].bytes != 0 ? POLLER_READ : 0u);
}

/* ---- for scenarios ---- */

void stub_open(int fd) {
    enter();
    kernel.fd[fd].open = true;
    kernel.fd[fd].blocking = false;
    kernel.fd[fd].bytes = 0;
}

void stub_open_blocking(int fd) {
    stub_open(fd);
    kernel.fd[fd].blocking = true;
}

bool stub_blocks(int fd) {
    return kernel.fd[fd].blocking;
}

void stub_put(int fd, unsigned bytes) {
    enter();
    kernel.fd[fd].bytes += bytes;
    if (edge(fd, POLLER_READ)) tell();
}

unsigned stub_bytes(int fd) {
    return kernel.fd[fd].bytes;
}

/* ---- os/poller.h ---- */

int cc__poller_open(void) {
    enter();
    kernel.set_open = true;
    return 0;
}
void cc__poller_close(void) {
    enter();
    kernel.set_open = false;
}
void cc__poller_forget(void) {}

static int add(int fd, uint64_t data, unsigned sides, bool once) {
    enter();
    if (!kernel.fd[fd].open) return EBADF;
    kernel.fd[fd].data = data;
    kernel.fd[fd].sides = sides;
    kernel.fd[fd].once = once;
    kernel.fd[fd].armed = true;
    if (edge(fd, ready(fd))) tell();
    return 0;
}
int cc__poller_register(int fd, uint64_t data) {
    return add(fd, data, POLLER_READ | POLLER_WRITE, false);
}
int cc__poller_watch(int fd, uint64_t data) {
    return add(fd, data, POLLER_READ, false);
}
int cc__poller_register_again(int fd, uint64_t data) {
    return kernel.fd[fd].armed ? cc__poller_register(fd, data) : ENOENT;
}
int cc__poller_arm(int fd, uint64_t data, unsigned sides) {
    return add(fd, data, sides, true);
}
void cc__poller_remove(int fd) {
    enter();
    kernel.fd[fd].armed = false;
    kernel.fd[fd].pending = 0;
}

unsigned cc__poller_wait(struct poller_event *events, uint64_t until) {
    for (;;) {
        uint32_t seen = cc__get_seq(&news);
        unsigned n = 0;
        enter();
        for (int fd = 0; fd < FDS; fd++) {
            if (kernel.fd[fd].pending == 0) continue;
            events[n++] = (struct poller_event){kernel.fd[fd].data, kernel.fd[fd].pending};
            kernel.fd[fd].pending = 0;
        }
        bool interrupted = kernel.interrupted;
        if (until != 0) kernel.interrupted = false;
        if (n != 0 || until == 0 || interrupted || ex_clock() >= until) return n;
        cc__futex_wait(&news, seen, until);
    }
}
void cc__poller_interrupt(void) {
    enter();
    kernel.interrupted = true;
    tell();
}
int cc__poller_look(int fd, unsigned sides) {
    enter();
    return kernel.fd[fd].open ? (int)(ready(fd) & sides) : -EBADF;
}

int cc__poller_look_all(struct pollfd *fds, size_t n) {
    int count = 0;
    enter();
    for (size_t i = 0; i < n; i++) {
        unsigned seen = kernel.fd[fds[i].fd].open ? ready(fds[i].fd) & cc__poller_sides(fds[i].events) : 0;
        fds[i].revents = (short)((seen & POLLER_READ ? POLLIN : 0) | (seen & POLLER_WRITE ? POLLOUT : 0));
        if (!kernel.fd[fds[i].fd].open) fds[i].revents = POLLNVAL;
        count += fds[i].revents != 0;
    }
    return count;
}
unsigned cc__poller_sides(int events) {
    return (events & POLLIN ? POLLER_READ : 0u) | (events & POLLOUT ? POLLER_WRITE : 0u);
}

/* ---- os/uring.h ---- */

static void take_first(void **list, unsigned *count) {
    --*count;
    for (unsigned i = 0; i < *count; i++) list[i] = list[i + 1];
}

/* Answers pending requests, the first one of the first ring first; true: there are new events. */
static bool answer(void) {
    bool any = false;
    for (unsigned i = 0; i < kernel.rings; i++) {
        for (; kernel.answers > 0 && kernel.ring[i].asked_count > 0; kernel.answers--) {
            kernel.ring[i].done[kernel.ring[i].done_count++] = kernel.ring[i].asked[0];
            take_first(kernel.ring[i].asked, &kernel.ring[i].asked_count);
            any |= edge(FDS - 1 - (int)i, POLLER_READ);
        }
    }
    return any;
}

void stub_answer(unsigned requests) {
    enter();
    kernel.answers += requests;
    if (answer()) tell();
}

int cc__os_uring_open(struct os_uring *u, unsigned completions) {
    (void)completions;
    enter();
    if (kernel.rings == RINGS) return -EMFILE;
    *u = (struct os_uring){.fd = FDS - 1 - (int)kernel.rings++};
    kernel.fd[u->fd].open = true;
    return 0;
}
void cc__os_uring_close(struct os_uring *u) {
    enter();
    kernel.fd[u->fd].open = kernel.fd[u->fd].armed = false;
    kernel.rings--;
}
int cc__os_uring_submit(struct os_uring *u, const struct uring_call *call, void *data) {
    (void)call;
    unsigned i = FDS - 1 - (unsigned)u->fd;
    enter();
    if (kernel.ring[i].asked_count + kernel.ring[i].done_count == RING_CALLS) return -EAGAIN;
    kernel.ring[i].asked[kernel.ring[i].asked_count++] = data;
    if (answer()) tell();
    return 0;
}
bool cc__os_uring_any(const struct os_uring *u) {
    enter();
    return kernel.ring[FDS - 1 - u->fd].done_count > 0;
}
bool cc__os_uring_take(struct os_uring *u, struct uring_done *done) {
    unsigned i = FDS - 1 - (unsigned)u->fd;
    enter();
    if (kernel.ring[i].done_count == 0) return false;
    *done = (struct uring_done){kernel.ring[i].done[0], 7};
    take_first(kernel.ring[i].done, &kernel.ring[i].done_count);
    return true;
}

/* ---- os/descriptor.h ---- */

void cc__os_reserve(unsigned most) {
    (void)most;
}
int cc__os_above_standard(int fd) {
    return fd;
}
int cc__os_close(int fd) {
    enter();
    if (!kernel.fd[fd].open) return EBADF;
    kernel.fd[fd].open = kernel.fd[fd].armed = false;
    kernel.fd[fd].pending = 0;
    return 0;
}
int cc__os_close_at_once(int fd) {
    return cc__os_close(fd);
}
int cc__os_no_linger(int fd) {
    return kernel.fd[fd].open ? 0 : EBADF;
}
int cc__os_valid(int fd) {
    return kernel.fd[fd].open ? 0 : EBADF;
}
int cc__os_nonblocking(int fd, bool on, bool *blocked) {
    enter();
    *blocked = kernel.fd[fd].blocking;
    if (*blocked == on) {
        enter();
        kernel.fd[fd].blocking = !on;
    }
    return cc__os_valid(fd);
}
bool cc__os_is_stream(int fd, bool *socket) {
    *socket = false;
    (void)fd;
    return true;
}
bool cc__os_is_blocking(int fd) {
    enter();
    return kernel.fd[fd].blocking;
}
ssize_t cc__os_readv(int fd, const struct iovec *parts, int n, enum os_mode mode) {
    (void)n, (void)mode;
    enter();
    if (!kernel.fd[fd].open) return -EBADF;
    unsigned got = kernel.fd[fd].bytes < parts[0].iov_len ? kernel.fd[fd].bytes : (unsigned)parts[0].iov_len;
    kernel.fd[fd].bytes -= got;
    return got != 0 ? (ssize_t)got : -EAGAIN;
}
ssize_t cc__os_writev(int fd, const struct iovec *parts, int n, enum os_mode mode) {
    (void)n, (void)mode;
    stub_put(fd, (unsigned)parts[0].iov_len);
    return (ssize_t)parts[0].iov_len;
}
ssize_t cc__os_recvmsg(int fd, struct msghdr *message, int flags) {
    (void)fd, (void)message, (void)flags;
    return -ENOTSUP;
}
ssize_t cc__os_sendmsg(int fd, const struct msghdr *message, int flags) {
    (void)fd, (void)message, (void)flags;
    return -ENOTSUP;
}
int cc__os_accept(int fd, struct sockaddr *address, socklen_t *length, enum os_mode mode) {
    (void)fd, (void)address, (void)length, (void)mode;
    return -ENOTSUP;
}
int cc__os_connect(int fd, const struct sockaddr *address, socklen_t length) {
    (void)fd, (void)address, (void)length;
    return -ENOTSUP;
}
int cc__os_connected(int fd) {
    (void)fd;
    return -ENOTSUP;
}
ssize_t cc__os_sendfile(int to, int from, off_t *offset, size_t count) {
    (void)from, (void)offset;
    enter();
    if (kernel.fd[to].blocking) ex_fail("a call that may wait in the system");
    kernel.fd[to].bytes += (unsigned)count;
    if (edge(to, POLLER_READ)) tell();
    return (ssize_t)count;
}
ssize_t cc__os_splice(int from, bool own, int to, size_t count) {
    (void)from, (void)own, (void)to, (void)count;
    return -ENOTSUP;
}
