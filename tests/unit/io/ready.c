/* ready.c - cc_fd_wait and cc_poll: which descriptors are ready, and nothing is read. */
#include "pair.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static struct pair make_tcp(bool adopt) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fds[2];
    CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(listener, 1), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(fds[0], (struct sockaddr *)&address, sizeof address), 0);
    fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fds[1] >= 0);
    CHECK_EQ(close(listener), 0);
    return pair_of(fds, adopt);
}

/* ---- cc_fd_wait ---- */

CC_TASK(wait_for, { int fd, events, error, ready; }) {
    int ready = -1;
    CHECK_EQ(cc_fd_wait(self->fd, self->events, &ready), self->error);
    CHECK_EQ(ready, self->ready);
    return NULL;
}

static void readable(struct pair p) {
    int ready = -1;
    CHECK_EQ(cc_fd_wait_try(p.in, CC_READABLE, &ready), EAGAIN);
    CHECK_EQ(ready, 0);
    CHECK_EQ(cc_fd_wait_until(p.in, CC_READABLE, &ready, cc_after_ms(2)), ETIMEDOUT);
    CC_NURSERY(nursery) {
        for (int i = 0; i < 3; i++) /* one event wakes all */
            CHECK_EQ(CC_GO_IN(nursery, wait_for, .fd = p.in, .events = CC_READABLE, .ready = CC_READABLE), 0);
        await_waiters(3);
        put(p.out, 3);
    }
    /* It stays ready until somebody has read all. */
    CHECK_EQ(cc_fd_wait(p.in, CC_READABLE, &ready), 0);
    CHECK_EQ(ready, CC_READABLE);
    take(p.in, 2);
    CHECK_EQ(cc_fd_wait(p.in, CC_READABLE, NULL), 0);
    take(p.in, 1);
    CHECK_EQ(cc_fd_wait_try(p.in, CC_READABLE, NULL), EAGAIN);
}

static void writable(struct pair p) {
    int ready;
    CHECK_EQ(cc_fd_wait(p.out, CC_WRITABLE, &ready), 0);
    CHECK_EQ(ready, CC_WRITABLE);
    fill(p.out);
    CHECK_EQ(cc_fd_wait_try(p.out, CC_WRITABLE, NULL), EAGAIN);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, wait_for, .fd = p.out, .events = CC_WRITABLE, .ready = CC_WRITABLE), 0);
        await_waiters(1);
        drain(p.in);
    }
}

static void *all_kinds(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair pairs[] = {make_pipe(adopt), make_sockets(adopt), make_tcp(adopt)};
        for (int i = 0; i < 3; i++) {
            readable(pairs[i]);
            if (i != 2) writable(pairs[i]); /* the buffers of TCP are large, and grow */
            close_pair(pairs[i]);
        }
    }
    CHECK_EQ(cc_io_waiters(), 0);
    return arg;
}

TEST_WORKERS(waits_until_ready) {
    CHECK_EQ(cc_run(all_kinds, NULL, NULL), 0);
}

static void *hangups(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_tcp(adopt);
        int ready;
        put(p.out, 1);
        CC_NURSERY(nursery) {
            /* There is something to read: that is not what they wait for. */
            CHECK_EQ(CC_GO_IN(nursery, wait_for, .fd = p.in, .events = CC_HANGUP, .ready = CC_HANGUP), 0);
            await_waiters(1);
            CHECK_EQ(shutdown(p.out, SHUT_WR), 0);
        }
        CHECK_EQ(cc_fd_wait(p.in, CC_READABLE | CC_WRITABLE | CC_HANGUP, &ready), 0);
        CHECK_EQ(ready, CC_READABLE | CC_WRITABLE | CC_HANGUP);
        close_pair(p);

        p = make_pipe(adopt);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, wait_for, .fd = p.in, .events = CC_READABLE, .ready = CC_READABLE | CC_HANGUP),
                     0);
            await_waiters(1);
            CHECK_EQ(cc_fd_close(p.out), 0);
        }
        CHECK_EQ(cc_fd_close(p.in), 0);
    }
    return arg;
}

TEST_WORKERS(a_hangup_is_reported) {
    CHECK_EQ(cc_run(hangups, NULL, NULL), 0);
}

CC_CHILD(poll_same, {
    int fd;
    size_t entries;
}) {
    struct pollfd fds[2] = {{.fd = self->fd, .events = POLLIN | POLLPRI}, {.fd = self->fd, .events = POLLIN}};
    CHECK_EQ(cc_poll(fds, self->entries, CC_FOREVER, &(size_t){0}), ECANCELED);
    return 0;
}

CC_CHILD(select_same, { int fd; }) {
    size_t chosen;
    CCCase cases[] = {{.kind = CC_CASE_READABLE, .fd = self->fd}, {.kind = CC_CASE_READABLE, .fd = self->fd}};
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), ECANCELED);
    return 0;
}

/* An entry of a poll and an arm of a select each count as a waiter. */
static void *waiters_are_counted(void *arg) {
    struct pair p = make_sockets(true);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, wait_for, .fd = p.in, .events = CC_READABLE, .error = ECANCELED), 0);
        await_waiters(1);
        CHECK_EQ(CC_GO_IN(nursery, poll_same, .fd = p.in, .entries = 1), 0);
        await_waiters(2);
        CHECK_EQ(CC_GO_IN(nursery, poll_same, .fd = p.in, .entries = 2), 0);
        await_waiters(4);
        CHECK_EQ(CC_GO_IN(nursery, select_same, .fd = p.in), 0);
        await_waiters(6);
        CHECK_EQ(cc_nursery_cancel(nursery), 0);
    }
    CHECK_EQ(cc_io_waiters(), 0);
    CHECK_EQ(cc_fd_close(p.in), 0);
    CHECK_EQ(cc_fd_close(p.out), 0);
    return arg;
}

TEST_WORKERS(waiters_are_counted) {
    CHECK_EQ(cc_run(waiters_are_counted, NULL, NULL), 0);
}

static void *wait_ends(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, wait_for, .fd = p.in, .events = CC_READABLE, .error = ECANCELED), 0);
            await_waiters(1);
            CHECK_EQ(cc_nursery_cancel(nursery), 0);
        }
        CC_NURSERY(nursery) {
            for (int i = 0; i < 3; i++)
                CHECK_EQ(CC_GO_IN(nursery, wait_for, .fd = p.in, .events = CC_READABLE, .error = EBADF), 0);
            await_waiters(3);
            CHECK_EQ(cc_fd_close(p.in), 0);
        }
        CHECK_EQ(cc_fd_wait(p.in, CC_READABLE, NULL), EBADF);
        CHECK_EQ(cc_fd_wait_try(p.in, CC_READABLE, NULL), EBADF);
        CHECK_EQ(cc_fd_close(p.out), 0);
    }
    CHECK_EQ(cc_fd_wait(-1, CC_READABLE, NULL), EBADF);
    CHECK_EQ(cc_fd_wait(1 << 30, CC_READABLE, NULL), EBADF);
    CHECK_EQ(cc_fd_wait(0, 0, NULL), EINVAL);
    CHECK_EQ(cc_fd_wait(0, 8, NULL), EINVAL);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), ready = 0;
    CHECK_EQ(cc_fd_wait(file, CC_READABLE | CC_WRITABLE, &ready), 0); /* files are always ready */
    CHECK_EQ(ready, CC_READABLE | CC_WRITABLE);
    CHECK_EQ(close(file), 0);
    CHECK_EQ(cc_io_waiters(), 0);
    return arg;
}

TEST_WORKERS(other_ends_of_a_wait) {
    CHECK_EQ(cc_run(wait_ends, NULL, NULL), 0);
}

/* An observer consumes nothing that a reader needs, nor the other way round, in any order. */
CC_TASK(read_byte, { int fd; }) {
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read(self->fd, &byte, 1, &n), 0);
    CHECK_EQ(n, 1);
    return NULL;
}

static void *beside(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_pipe(adopt);
        for (int i = 0; i < 10; i++) {
            CC_NURSERY(nursery) {
                if (i % 2) CHECK_EQ(CC_GO_IN(nursery, read_byte, .fd = p.in), 0);
                for (int k = 0; k < 2; k++)
                    CHECK_EQ(CC_GO_IN(nursery, wait_for, .fd = p.in, .events = CC_READABLE, .ready = CC_READABLE), 0);
                if (i % 2 == 0) CHECK_EQ(CC_GO_IN(nursery, read_byte, .fd = p.in), 0);
                await_waiters(3);
                put(p.out, 2); /* one edge */
            }
            take(p.in, 1);
        }
        close_pair(p);
    }
    return arg;
}

/* ---- cc_poll ---- */

static void *poll_forms(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair a = make_pipe(adopt), b = make_sockets(adopt);
        size_t ready = 9;
        struct pollfd fds[] = {
            {.fd = a.in, .events = POLLIN},   {.fd = -1, .events = POLLIN, .revents = 7},
            {.fd = b.in, .events = POLLIN},   {.fd = b.in, .events = POLLIN | POLLRDHUP},
            {.fd = a.out, .events = POLLOUT}, {.fd = 99999, .events = POLLIN},
        };
        CHECK_EQ(cc_poll(fds, 4, CC_PASSED, &ready), ETIMEDOUT);
        CHECK_EQ(ready, 0);
        CHECK_EQ(fds[1].revents, 0);
        CHECK_EQ(cc_poll(fds, 4, cc_after_ms(2), NULL), ETIMEDOUT);
        CHECK_EQ(cc_poll(fds, 6, CC_FOREVER, &ready), 0);
        CHECK_EQ(ready, 2);
        CHECK(fds[4].revents == POLLOUT && fds[5].revents == POLLNVAL);
        put(b.out, 1);
        CHECK_EQ(cc_poll(fds, 4, CC_FOREVER, &ready), 0);
        CHECK_EQ(ready, 2); /* the same descriptor twice */
        CHECK(fds[2].revents == POLLIN && fds[3].revents == POLLIN);
        take(b.in, 1);
        CHECK_EQ(cc_fd_close(b.out), 0);
        CHECK_EQ(cc_poll(fds, 4, CC_FOREVER, &ready), 0);
        CHECK_EQ(fds[2].revents, POLLIN | POLLHUP);
        CHECK_EQ(fds[3].revents, POLLIN | POLLRDHUP | POLLHUP);
        CHECK_EQ(cc_poll(NULL, 0, cc_after_ms(1), &ready), ETIMEDOUT);
        CHECK_EQ(cc_poll(&fds[1], 1, cc_after_ms(1), &ready), ETIMEDOUT); /* none that counts */
        CHECK_EQ(cc_poll(NULL, 1, cc_after_ms(1), &ready), EINVAL);
        CHECK_EQ(cc_poll(fds, (size_t)1 << 40, CC_PASSED, &ready), EINVAL);
        close_pair(a);
        CHECK_EQ(cc_fd_close(b.in), 0);
    }
    CHECK_EQ(cc_io_waiters(), 0);
    return arg;
}

TEST_WORKERS(polls_as_the_system_does) {
    CHECK_EQ(cc_run(poll_forms, NULL, NULL), 0);
}

CC_TASK(poll_two, {
    struct pair a, b;
    short expected_a, expected_b;
}) {
    struct pollfd fds[] = {{.fd = self->a.in, .events = POLLIN}, {.fd = self->b.in, .events = POLLIN | POLLPRI}};
    size_t ready = 0;
    CHECK_EQ(cc_poll(fds, 2, CC_FOREVER, &ready), 0);
    CHECK_EQ(fds[0].revents, self->expected_a);
    CHECK_EQ(fds[1].revents, self->expected_b);
    CHECK_EQ(ready, (size_t)(self->expected_a != 0) + (self->expected_b != 0));
    return NULL;
}

static void *poll_waits(void *arg) {
    for (int adopt = 0; adopt < 4; adopt++) {
        struct pair a = make_sockets(adopt & 1), b = make_tcp(adopt & 2);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, poll_two, .a = a, .b = b, .expected_a = POLLIN), 0);
            await_waiters(2);
            put(a.out, 1);
        }
        take(a.in, 1);
        CC_NURSERY(nursery) { /* out-of-band data, which is no data */
            CHECK_EQ(CC_GO_IN(nursery, poll_two, .a = a, .b = b, .expected_b = POLLPRI), 0);
            await_waiters(2);
            CHECK_EQ(send(b.out, "!", 1, MSG_OOB), 1);
        }
        CC_NURSERY(nursery) { /* closed meanwhile; the system knows nothing of it */
            struct pair c = make_sockets(adopt & 1);
            CHECK_EQ(CC_GO_IN(nursery, poll_two, .a = a, .b = c, .expected_b = POLLNVAL), 0);
            await_waiters(2);
            CHECK_EQ(cc_fd_close(c.in), 0);
            int again = open("/proc/self/exe", O_RDONLY | O_CLOEXEC); /* the number is another's, which is ready */
            cc_yield();
            CHECK_EQ(close(again), 0);
            CHECK_EQ(cc_fd_close(c.out), 0);
        }
        close_pair(a);
        close_pair(b);
    }
    CHECK_EQ(cc_io_waiters(), 0);
    return arg;
}

TEST_WORKERS(a_poll_waits) {
    CHECK_EQ(cc_run(poll_waits, NULL, NULL), 0);
}

TEST_WORKERS(an_observer_consumes_nothing) {
    CHECK_EQ(cc_run(beside, NULL, NULL), 0);
}

enum { MANY = 600 };

CC_TASK(poll_many, {
    struct pollfd *fds;
    size_t expected;
}) {
    size_t ready = 0;
    CHECK_EQ(cc_poll(self->fds, MANY, CC_FOREVER, &ready), 0);
    CHECK_EQ(ready, 1);
    CHECK(self->fds[self->expected].revents == POLLIN);
    return NULL;
}

static void *many(void *arg) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < MANY + 64) {
        limit.rlim_cur = MANY + 64;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) SKIP("too few descriptors");
    }
    struct pollfd *fds = calloc(MANY, sizeof *fds);
    CHECK(fds != NULL);
    for (int i = 0; i < MANY; i++) {
        fds[i] = (struct pollfd){.fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN};
        CHECK(fds[i].fd >= 0);
        if (i % 2) CHECK_EQ(cc_fd_adopt(fds[i].fd), 0);
    }
    for (size_t i = 0; i < 4; i++) CC_NURSERY(nursery) {
            size_t which = i * (MANY - 1) / 3;
            uint64_t one = 1;
            size_t n;
            CHECK_EQ(CC_GO_IN(nursery, poll_many, .fds = fds, .expected = which), 0);
            await_waiters(MANY);
            CHECK_EQ(cc_fd_write(fds[which].fd, &one, sizeof one, NULL), 0);
            CHECK_EQ(cc_nursery_wait(nursery), 0);
            CHECK_EQ(cc_fd_read(fds[which].fd, &one, sizeof one, &n), 0);
        }
    for (int i = 0; i < MANY; i++) CHECK_EQ(cc_fd_close(fds[i].fd), 0);
    free(fds);
    CHECK_EQ(cc_io_waiters(), 0);
    return arg;
}

TEST_WORKERS(polls_many) {
    CHECK_EQ(cc_run(many, NULL, NULL), 0);
}

/* It is adopted while another fiber waits for it. */
static void *adopts_later(void *arg) {
    struct pair p = make_sockets(false);
    fill(p.in);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, wait_for, .fd = p.in, .events = CC_READABLE, .ready = CC_READABLE), 0);
        CHECK_EQ(CC_GO_IN(nursery, wait_for, .fd = p.in, .events = CC_WRITABLE, .ready = CC_WRITABLE), 0);
        await_waiters(2);
        CHECK_EQ(cc_fd_adopt(p.in), 0);
        put(p.out, 1); /* the one report that it was armed for */
        await_waiters(1);
        drain(p.out);
    }
    close_pair(p);
    return arg;
}

TEST_WORKERS(adopted_while_observed) {
    CHECK_EQ(cc_run(adopts_later, NULL, NULL), 0);
}

/* ---- OS threads ---- */

static void *put_later(void *arg) {
    while (cc_io_waiters() == 0) {
        struct timespec ms = {0, 1000000};
        nanosleep(&ms, NULL);
    }
    put(*(int *)arg, 1);
    return NULL;
}

TEST_WORKERS(an_os_thread_polls) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair a = make_sockets(adopt), b = make_pipe(adopt);
        struct pollfd fds[] = {{.fd = a.in, .events = POLLIN}, {.fd = b.in, .events = POLLIN}};
        pthread_t thread;
        size_t ready = 0;
        CHECK_EQ(cc_poll(fds, 2, cc_after_ms(2), &ready), ETIMEDOUT);
        CHECK_EQ(cc_poll(NULL, 0, cc_after_ms(2), &ready), ETIMEDOUT);
        CHECK_EQ(pthread_create(&thread, NULL, put_later, &b.out), 0);
        CHECK_EQ(cc_poll(fds, 2, CC_FOREVER, &ready), 0);
        CHECK(ready == 1 && fds[1].revents == POLLIN);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(cc_io_waiters(), 0);
        close_pair(a);
        close_pair(b);
    }
}

static void *poll_for_ever(void *arg) {
    struct pair *pairs = arg;
    struct pollfd fds[] = {{.fd = pairs[0].in, .events = POLLIN}, {.fd = pairs[1].in, .events = POLLIN}};
    return (void *)(intptr_t)cc_poll(fds, 2, CC_FOREVER, NULL);
}

TEST_WORKERS(a_shutdown_ends_an_os_threads_poll) {
    struct pair pairs[] = {make_sockets(true), make_sockets(false)};
    for (int round = 0; round < 2; round++) {
        pthread_t thread;
        void *error;
        CHECK_EQ(pthread_create(&thread, NULL, poll_for_ever, pairs), 0);
        while (cc_io_waiters() != 2) {
            struct timespec ms = {0, 1000000};
            nanosleep(&ms, NULL);
        }
        CHECK_EQ(cc_runtime_shutdown(10000), 0);
        CHECK_EQ(pthread_join(thread, &error), 0);
        CHECK_EQ((intptr_t)error, ECANCELED);
        CHECK_EQ(cc_io_waiters(), 0);
    }
    close_pair(pairs[0]);
    close_pair(pairs[1]);
}

/* ---- what else can be waited for ---- */

static void *timers(void *arg) {
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec soon = {.it_value = {.tv_nsec = 2000000}};
    CHECK(timer >= 0);
    CHECK_EQ(timerfd_settime(timer, 0, &soon, NULL), 0);
    CHECK_EQ(cc_fd_wait(timer, CC_READABLE, NULL), 0);
    CHECK_EQ(close(timer), 0);
    return arg;
}

TEST_WORKERS(a_timerfd_becomes_readable) {
    CHECK_EQ(cc_run(timers, NULL, NULL), 0);
}

/* A loop over a descriptor that is always ready does not hog the worker. */
static _Atomic bool over;

static void *set_over(void *arg) {
    atomic_store(&over, true);
    return arg;
}

static void *never_waits(void *arg) {
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    CCTask other;
    CHECK(zero >= 0);
    CHECK_EQ(cc_spawn(&other, set_over, NULL, NULL), 0);
    while (!atomic_load(&over)) CHECK_EQ(cc_fd_wait(zero, CC_READABLE, NULL), 0);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    CHECK_EQ(close(zero), 0);
    return arg;
}

TEST_WORKERS(a_busy_poller_yields) {
    CHECK_EQ(cc_run(never_waits, NULL, NULL), 0);
}
