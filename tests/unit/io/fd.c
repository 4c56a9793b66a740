/* fd.c - calls on descriptors: bytes, waits, deadlines, cancellation, close. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

struct pair {
    int in, out; /* read from, write to */
};

static struct pair make_pipe(bool adopt) {
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    if (adopt) CHECK_EQ(cc_fd_adopt(fds[0]) + cc_fd_adopt(fds[1]), 0);
    return (struct pair){fds[0], fds[1]};
}

static struct pair make_sockets(bool adopt) {
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    if (adopt) CHECK_EQ(cc_fd_adopt(fds[0]) + cc_fd_adopt(fds[1]), 0);
    return (struct pair){fds[0], fds[1]};
}

static void close_pair(struct pair p) {
    CHECK_EQ(cc_fd_close(p.in), 0);
    CHECK_EQ(cc_fd_close(p.out), 0);
}

static void await_waiters(size_t n) {
    while (cc_io_waiters() != n) cc_yield();
}

/* ---- bytes ---- */

CC_TASK(read_text, {
    int fd;
    const char *expected;
}) {
    char text[64] = "";
    size_t n = 0;
    CHECK_EQ(cc_fd_read(self->fd, text, sizeof text, &n), 0);
    CHECK_EQ(n, strlen(self->expected));
    CHECK(memcmp(text, self->expected, n) == 0);
    return NULL;
}

static void waits_for_bytes(struct pair p) {
    size_t n;
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, read_text, .fd = p.in, .expected = "hello"), 0);
        await_waiters(1);
        CHECK_EQ(cc_fd_write(p.out, "hello", 5, &n), 0);
        CHECK_EQ(n, 5);
    }
    CHECK_EQ(cc_io_waiters(), 0);
    close_pair(p);
}

static void *all_kinds(void *arg) {
    waits_for_bytes(make_pipe(true));
    waits_for_bytes(make_pipe(false));
    waits_for_bytes(make_sockets(true));
    waits_for_bytes(make_sockets(false));
    return arg;
}

TEST_WORKERS(a_read_waits_for_bytes) {
    CHECK_EQ(cc_run(all_kinds, NULL, NULL), 0);
}

static void *try_forms(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_pipe(adopt);
        char byte = 'x';
        size_t n = 7;
        CHECK_EQ(cc_fd_read_try(p.in, &byte, 1, &n), EAGAIN);
        CHECK_EQ(n, 0);
        CHECK_EQ(cc_fd_write_try(p.out, "y", 1, &n), 0);
        CHECK_EQ(cc_fd_read_try(p.in, &byte, 1, &n), 0);
        CHECK(n == 1 && byte == 'y');
        CHECK_EQ(cc_fd_read_until(p.in, &byte, 1, &n, cc_after_ms(2)), ETIMEDOUT);
        CHECK_EQ(cc_fd_close(p.out), 0);
        CHECK_EQ(cc_fd_read(p.in, &byte, 1, &n), 0);
        CHECK_EQ(n, 0);
        CHECK_EQ(cc_fd_close(p.in), 0);
        CHECK_EQ(cc_fd_close(p.in), EBADF);
        CHECK_EQ(cc_fd_read_try(p.in, &byte, 1, &n), EBADF);
    }
    return arg;
}

TEST_WORKERS(tries_deadlines_and_the_end) {
    CHECK_EQ(cc_run(try_forms, NULL, NULL), 0);
}

enum { BIG = 3 * 1000 * 1000 };

CC_TASK(write_big, {
    int fd;
    const char *bytes;
}) {
    size_t n;
    CHECK_EQ(cc_fd_write(self->fd, self->bytes, BIG, &n), 0);
    CHECK_EQ(n, BIG);
    CHECK_EQ(cc_fd_close(self->fd), 0);
    return NULL;
}

static void *moves_all(void *arg) {
    char *bytes = malloc(BIG), *got = malloc(BIG);
    CHECK(bytes != NULL && got != NULL);
    for (int i = 0; i < BIG; i++) bytes[i] = (char)(i * 31 + i / 251);
    for (int kind = 0; kind < 4; kind++) {
        struct pair p = kind & 1 ? make_pipe(kind & 2) : make_sockets(kind & 2);
        size_t sum = 0, n = 1;
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, write_big, .fd = p.out, .bytes = bytes), 0);
            while (n > 0) {
                CHECK_EQ(cc_fd_read(p.in, got + sum, sum + 1000 < BIG ? 1000 : BIG - sum + 1, &n), 0);
                sum += n;
                CHECK(sum <= BIG);
            }
        }
        CHECK_EQ(sum, BIG);
        CHECK(memcmp(bytes, got, BIG) == 0);
        CHECK_EQ(cc_fd_close(p.in), 0);
    }
    free(bytes);
    free(got);
    return arg;
}

TEST_WORKERS(a_long_write_goes_out_whole) {
    CHECK_EQ(cc_run(moves_all, NULL, NULL), 0);
}

static void *vectors(void *arg) {
    struct pair p = make_sockets(true);
    char a[3], b[5];
    struct iovec out[] = {{(char[]){"abc"}, 3}, {NULL, 0}, {(char[]){"defg"}, 4}}, in[] = {{a, 3}, {b, 5}};
    size_t n;
    CHECK_EQ(cc_fd_writev(p.out, out, 3, &n), 0);
    CHECK_EQ(n, 7);
    CHECK_EQ(cc_fd_readv(p.in, in, 2, &n), 0);
    CHECK_EQ(n, 7);
    CHECK(memcmp(a, "abc", 3) == 0 && memcmp(b, "defg", 4) == 0);
    CHECK_EQ(cc_fd_readv_try(p.in, in, 2, &n), EAGAIN);
    CHECK_EQ(cc_fd_readv(p.in, in, -1, &n), EINVAL);
    CHECK_EQ(cc_fd_readv(p.in, NULL, 1, &n), EINVAL);
    CHECK_EQ(cc_fd_read(p.in, NULL, 1, &n), EINVAL);
    CHECK_EQ(cc_fd_read(p.in, a, 1, NULL), EINVAL);
    CHECK_EQ(cc_fd_read(-1, a, 1, &n), EBADF);
    CHECK_EQ(cc_fd_read(1 << 30, a, 1, &n), EBADF);
    CHECK_EQ(cc_fd_adopt(-1), EBADF);
    CHECK_EQ(cc_fd_adopt(9999), EBADF);
    CHECK_EQ(cc_fd_close(9999), EBADF);
    CHECK_EQ(cc_fd_release(9999), EBADF);
    close_pair(p);
    return arg;
}

TEST_WORKERS(vectors_and_bad_arguments) {
    CHECK_EQ(cc_run(vectors, NULL, NULL), 0);
}

/* ---- ends of waits ---- */

CC_TASK(read_fails, {
    int fd;
    int error;
}) {
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read(self->fd, &byte, 1, &n), self->error);
    return NULL;
}

static void *cancels(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_pipe(adopt);
        char byte = 0;
        size_t n;
        CC_NURSERY(nursery) {
            for (int i = 0; i < 3; i++) CHECK_EQ(CC_GO_IN(nursery, read_fails, .fd = p.in, .error = ECANCELED), 0);
            await_waiters(3);
            CHECK_EQ(cc_nursery_cancel(nursery), 0);
        }
        CHECK_EQ(cc_io_waiters(), 0);
        /* Nothing was eaten. */
        CHECK_EQ(cc_fd_write(p.out, "z", 1, NULL), 0);
        CHECK_EQ(cc_fd_read(p.in, &byte, 1, &n), 0);
        CHECK_EQ(byte, 'z');
        close_pair(p);
    }
    return arg;
}

TEST_WORKERS(a_cancelled_read_eats_nothing) {
    CHECK_EQ(cc_run(cancels, NULL, NULL), 0);
}

static void *closes(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        CC_NURSERY(nursery) {
            for (int i = 0; i < 5; i++) CHECK_EQ(CC_GO_IN(nursery, read_fails, .fd = p.in, .error = EBADF), 0);
            await_waiters(5);
            CHECK_EQ(cc_fd_close(p.in), 0);
        }
        /* The number is free for another one, which knows nothing of the last. */
        int again = eventfd(0, EFD_CLOEXEC);
        CHECK_EQ(again, p.in);
        CHECK_EQ(cc_fd_adopt(again), 0);
        uint64_t value = 3;
        size_t n;
        CHECK_EQ(cc_fd_read_try(again, &value, sizeof value, &n), EAGAIN);
        CHECK_EQ(cc_fd_write(again, &value, sizeof value, NULL), 0);
        value = 0;
        CHECK_EQ(cc_fd_read(again, &value, sizeof value, &n), 0);
        CHECK(n == sizeof value && value == 3);
        CHECK_EQ(cc_fd_close(again), 0);
        CHECK_EQ(cc_fd_close(p.out), 0);
    }
    return arg;
}

TEST_WORKERS(close_wakes_everybody) {
    CHECK_EQ(cc_run(closes, NULL, NULL), 0);
}

/* ---- several at one descriptor ---- */

CC_TASK(read_one_byte, {
    int fd;
    _Atomic int *sum;
}) {
    char byte = 0;
    size_t n;
    CHECK_EQ(cc_fd_read(self->fd, &byte, 1, &n), 0);
    CHECK_EQ(n, 1);
    atomic_fetch_add(self->sum, byte);
    return NULL;
}

static void *shares(void *arg) {
    enum { READERS = 20 };
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_pipe(adopt);
        _Atomic int sum = 0;
        char bytes[READERS];
        int expected = 0;
        for (int i = 0; i < READERS; i++) expected += bytes[i] = (char)(i + 1);
        CC_NURSERY(nursery) {
            for (int i = 0; i < READERS; i++) CHECK_EQ(CC_GO_IN(nursery, read_one_byte, .fd = p.in, .sum = &sum), 0);
            await_waiters(READERS);
            CHECK_EQ(cc_fd_write(p.out, bytes, READERS, NULL), 0); /* one edge */
        }
        CHECK_EQ(sum, expected);
        close_pair(p);
    }
    return arg;
}

TEST_WORKERS(one_edge_serves_all_readers) {
    CHECK_EQ(cc_run(shares, NULL, NULL), 0);
}

/* ---- sockets ---- */

static int listener_at(struct sockaddr_in *address) {
    socklen_t length = sizeof *address;
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)address, sizeof *address), 0);
    CHECK_EQ(listen(fd, 64), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

CC_TASK(echo, { int fd; }) {
    char bytes[512];
    size_t n = 1;
    while (n > 0) {
        CHECK_EQ(cc_fd_read(self->fd, bytes, sizeof bytes, &n), 0);
        if (n > 0) CHECK_EQ(cc_fd_write(self->fd, bytes, n, NULL), 0);
    }
    CHECK_EQ(cc_fd_close(self->fd), 0);
    return NULL;
}

CC_TASK(serve, {
    int listener;
    int count;
}) {
    CC_NURSERY(nursery)
    for (int i = 0; i < self->count; i++) {
        int connection = -1;
        CHECK_EQ(cc_fd_accept(self->listener, &connection, NULL, NULL), 0);
        CHECK_EQ(CC_GO_IN(nursery, echo, .fd = connection), 0);
    }
    return NULL;
}

CC_TASK(talk, {
    struct sockaddr_in address;
    int rounds;
    bool adopt;
}) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (self->adopt) CHECK_EQ(cc_fd_adopt(fd), 0);
    CHECK_EQ(cc_fd_connect(fd, (struct sockaddr *)&self->address, sizeof self->address), 0);
    for (int i = 0; i < self->rounds; i++) {
        uint64_t sent[4] = {(uint64_t)i, (uint64_t)i * 3, 5, 7}, got[4] = {0};
        size_t at = 0, n = 0;
        CHECK_EQ(cc_fd_write(fd, sent, sizeof sent, NULL), 0);
        for (; at < sizeof got; at += n) CHECK_EQ(cc_fd_read(fd, (char *)got + at, sizeof got - at, &n), 0);
        CHECK(memcmp(sent, got, sizeof got) == 0);
    }
    CHECK_EQ(cc_fd_close(fd), 0);
    return NULL;
}

static void *echoes(void *arg) {
    enum { CLIENTS = 40 };
    struct sockaddr_in address;
    int listener = listener_at(&address);
    CHECK_EQ(cc_fd_adopt(listener), 0);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, serve, .listener = listener, .count = CLIENTS / 2), 0);
        CHECK_EQ(CC_GO_IN(nursery, serve, .listener = listener, .count = CLIENTS / 2), 0); /* two accept */
        for (int i = 0; i < CLIENTS; i++)
            CHECK_EQ(CC_GO_IN(nursery, talk, .address = address, .rounds = (int)test_scale(100), .adopt = i % 2), 0);
    }
    CHECK_EQ(cc_fd_close(listener), 0);
    CHECK_EQ(cc_io_waiters(), 0);
    return arg;
}

TEST_WORKERS(echo_over_tcp) {
    CHECK_EQ(cc_run(echoes, NULL, NULL), 0);
}

static void *refused(void *arg) {
    struct sockaddr_in address;
    CHECK_EQ(close(listener_at(&address)), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(cc_fd_connect(fd, (struct sockaddr *)&address, sizeof address), ECONNREFUSED);
    CHECK_EQ(cc_fd_close(fd), 0);
    return arg;
}

TEST_WORKERS(a_refused_connection_says_so) {
    CHECK_EQ(cc_run(refused, NULL, NULL), 0);
}

/* Data and the end in one edge: the end is seen although the read before it was short. */
static void *end_with_data(void *arg) {
    struct sockaddr_in address;
    int listener = listener_at(&address), there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), here = -1;
    CHECK_EQ(connect(there, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(cc_fd_accept(listener, &here, NULL, NULL), 0);
    char bytes[64];
    size_t n;
    CHECK_EQ(cc_fd_read_until(here, bytes, sizeof bytes, &n, cc_after_ms(1)), ETIMEDOUT); /* it is registered */
    CHECK_EQ(send(there, "last", 4, 0), 4);
    CHECK_EQ(close(there), 0);
    CHECK_EQ(cc_fd_read(here, bytes, sizeof bytes, &n), 0);
    CHECK_EQ(n, 4);
    CHECK_EQ(cc_fd_read(here, bytes, sizeof bytes, &n), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_fd_close(here), 0);
    CHECK_EQ(cc_fd_close(listener), 0);
    return arg;
}

TEST_WORKERS(the_end_comes_with_the_data) {
    CHECK_EQ(cc_run(end_with_data, NULL, NULL), 0);
}

static void *broken_pipe(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_pipe(adopt), s = make_sockets(adopt);
        CHECK_EQ(cc_fd_close(p.in) + cc_fd_close(s.in), 0);
        CHECK_EQ(cc_fd_write(p.out, "x", 1, NULL), EPIPE); /* and no signal, which would end this process */
        CHECK_EQ(cc_fd_write(s.out, "x", 1, NULL), EPIPE);
        CHECK_EQ(cc_fd_close(p.out) + cc_fd_close(s.out), 0);
    }
    return arg;
}

TEST_WORKERS(no_signal_for_a_broken_pipe) {
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    CHECK_EQ(cc_run(broken_pipe, NULL, NULL), 0);
}

/* ---- OS threads ---- */

static void *write_later(void *arg) {
    struct pair *p = arg;
    while (cc_io_waiters() == 0) {
        struct timespec ms = {0, 1000000};
        nanosleep(&ms, NULL);
    }
    CHECK_EQ(cc_fd_write(p->out, "thread", 6, NULL), 0);
    return NULL;
}

TEST_WORKERS(an_os_thread_waits) {
    struct pair p = make_pipe(true);
    pthread_t thread;
    char bytes[16];
    size_t n;
    CHECK_EQ(cc_fd_read_until(p.in, bytes, sizeof bytes, &n, cc_after_ms(2)), ETIMEDOUT);
    CHECK_EQ(pthread_create(&thread, NULL, write_later, &p), 0);
    CHECK_EQ(cc_fd_read(p.in, bytes, sizeof bytes, &n), 0);
    CHECK(n == 6 && memcmp(bytes, "thread", 6) == 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close_pair(p);
}

static void *read_for_ever(void *arg) {
    char byte;
    size_t n;
    return (void *)(intptr_t)cc_fd_read(*(int *)arg, &byte, 1, &n);
}

/* A thread that waits does not keep a runtime from its end. */
TEST_WORKERS(a_shutdown_ends_an_os_threads_wait) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        pthread_t thread;
        void *error;
        CHECK_EQ(fcntl(p.in, F_SETFL, O_NONBLOCK), 0);
        CHECK_EQ(pthread_create(&thread, NULL, read_for_ever, &p.in), 0);
        while (cc_io_waiters() == 0) {
            struct timespec ms = {0, 1000000};
            nanosleep(&ms, NULL);
        }
        CHECK_EQ(cc_runtime_shutdown(10000), 0);
        CHECK_EQ(pthread_join(thread, &error), 0);
        CHECK_EQ((intptr_t)error, ECANCELED);
        CHECK_EQ(cc_io_waiters(), 0);
        close_pair(p);
    }
}

/* ---- turns ---- */

static _Atomic bool over;

static void *set_over(void *arg) {
    atomic_store(&over, true);
    return arg;
}

static void *never_waits(void *arg) {
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    CCTask other;
    size_t n;
    char byte;
    CHECK(zero >= 0);
    atomic_store(&over, false);
    CHECK_EQ(cc_spawn(&other, set_over, NULL, NULL), 0);
    while (!atomic_load(&over)) CHECK_EQ(cc_fd_read(zero, &byte, 1, &n), 0);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    CHECK_EQ(cc_fd_close(zero), 0);
    return arg;
}

TEST_WORKERS(a_busy_reader_gives_way) {
    CHECK_EQ(cc_run(never_waits, NULL, NULL), 0);
}

/* ---- release ---- */

static void *releases(void *arg) {
    struct pair p = make_pipe(true);
    CHECK((fcntl(p.in, F_GETFL) & O_NONBLOCK) != 0);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, read_text, .fd = p.in, .expected = "bye"), 0);
        await_waiters(1);
        CHECK_EQ(cc_fd_release(p.in), EBUSY);
        CHECK_EQ(cc_fd_write(p.out, "bye", 3, NULL), 0);
    }
    CHECK_EQ(cc_fd_release(p.in), 0);
    CHECK((fcntl(p.in, F_GETFL) & O_NONBLOCK) == 0);
    CHECK_EQ(close(p.in), 0);
    CHECK_EQ(cc_fd_close(p.out), 0);
    return arg;
}

TEST_WORKERS(a_released_descriptor_is_as_before) {
    CHECK_EQ(cc_run(releases, NULL, NULL), 0);
}
