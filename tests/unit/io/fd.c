/* fd.c - calls on descriptors: bytes, waits, deadlines, cancellation, close. */
#include "pair.h"
#include "refusing_port.h"

#include "io/fd.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* In blocking mode: SPLICE_F_NONBLOCK does not keep the system from waiting for TCP. */
static struct pair make_tcp(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
        out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listening, (struct sockaddr *)&address, length) + listen(listening, 1), 0);
    CHECK_EQ(getsockname(listening, (struct sockaddr *)&address, &length), 0);
    CHECK_EQ(connect(out, (struct sockaddr *)&address, length), 0);
    int in = accept(listening, NULL, NULL);
    CHECK(in >= 0);
    close(listening);
    return (struct pair){in, out};
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

TEST_WORKERS(a_long_write_is_sent_completely) {
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
    struct iovec huge[] = {{a, SIZE_MAX}, {a, 1}}; /* not a read of 0 bytes, which would look like the end */
    CHECK_EQ(cc_fd_readv(p.in, huge, 2, &n), EINVAL);
    CHECK_EQ(cc_fd_writev(p.out, huge, 2, &n), EINVAL);
    CHECK_EQ(cc_fd_readv(p.in, NULL, 1, &n), EINVAL);
    CHECK_EQ(cc_fd_read(p.in, NULL, 1, &n), EINVAL);
    CHECK_EQ(cc_fd_read(p.in, a, 1, NULL), EINVAL);
    CHECK_EQ(cc_fd_read(-1, a, 1, &n), EBADF);
    CHECK_EQ(cc_fd_read(1 << 30, a, 1, &n), EBADF);
    /* What they give back is defined after these errors too. */
    CHECK_EQ((n = 7, cc_fd_read(p.in, NULL, 1, &n)), EINVAL);
    CHECK_EQ(n, 0);
    CHECK_EQ((n = 7, cc_fd_write(p.out, NULL, 1, &n)), EINVAL);
    CHECK_EQ(n, 0);
    CHECK_EQ((n = 7, cc_fd_recvmsg(p.in, NULL, 0, &n)), EINVAL);
    CHECK_EQ(n, 0);
    CHECK_EQ((n = 7, cc_fd_sendmsg(p.out, NULL, 0, &n)), EINVAL);
    CHECK_EQ(n, 0);
    int connection = 7;
    CHECK_EQ(cc_fd_accept(-1, &connection, NULL, NULL), EBADF);
    CHECK_EQ(connection, -1);
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

/* A read takes one of several packets that came with one edge, and less than it could: the others are still there. */
TEST_WORKERS(packets_in_a_pipe) {
    enum { PACKETS = 8 };
    int fds[2];
    char bytes[64];
    size_t n;
    if (pipe2(fds, O_CLOEXEC | O_DIRECT) != 0) SKIP("this system has no pipes of packets");
    struct pair p = pair_of(fds, true);
    CHECK_EQ(cc_fd_read_until(p.in, bytes, sizeof bytes, &n, cc_after_ms(1)), ETIMEDOUT); /* it is registered now */
    for (int i = 0; i < PACKETS; i++) put(p.out, 2);
    for (int i = 0; i < PACKETS; i++) {
        CHECK_EQ(cc_fd_read_until(p.in, bytes, sizeof bytes, &n, cc_after_ms(20000)), 0);
        CHECK_EQ(n, 2);
    }
    close_pair(p);
}

static void nothing(struct pair p) {
    char bytes[8];
    size_t n = 7;
    for (int round = 0; round < 2; round++) { /* the second time after a call that moved less than it could */
        CHECK_EQ(cc_fd_read(p.in, bytes, 0, &n), 0);
        CHECK_EQ(n, 0);
        CHECK_EQ(cc_fd_read(p.in, NULL, 0, &n) + cc_fd_read_try(p.in, NULL, 0, &n), 0);
        CHECK_EQ(cc_fd_readv(p.in, NULL, 0, &n), 0);
        CHECK_EQ(cc_fd_write(p.out, bytes, 0, &n), 0);
        CHECK_EQ(cc_fd_writev(p.out, NULL, 0, &n) + cc_fd_writev_try(p.out, NULL, 0, &n), 0);
        CHECK_EQ(cc_fd_write(p.out, "abc", 3, NULL), 0);
        CHECK_EQ(cc_fd_read(p.in, bytes, sizeof bytes, &n), 0);
        CHECK_EQ(n, 3);
    }
    close_pair(p);
    CHECK_EQ(cc_fd_read(p.in, bytes, 0, &n), EBADF);
}

static void *nothing_at_all(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        nothing(make_pipe(adopt));
        nothing(make_sockets(adopt));
    }
    return arg;
}

TEST_WORKERS(no_bytes_are_not_waited_for) {
    CHECK_EQ(cc_run(nothing_at_all, NULL, NULL), 0);
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
        /* No data was consumed. */
        CHECK_EQ(cc_fd_write(p.out, "z", 1, NULL), 0);
        CHECK_EQ(cc_fd_read(p.in, &byte, 1, &n), 0);
        CHECK_EQ(byte, 'z');
        close_pair(p);
    }
    return arg;
}

TEST_WORKERS(a_cancelled_read_consumes_nothing) {
    CHECK_EQ(cc_run(cancels, NULL, NULL), 0);
}

/* The system has the data; the library has not polled it yet. */
static void put_there(struct pair p, size_t n) {
    struct pollfd one = {.fd = p.in, .events = POLLIN};
    put(p.out, n);
    CHECK_EQ(poll(&one, 1, -1), 1);
}

/* After a short read the library assumes that the socket is empty until an event says otherwise. Calls that may not
 * wait read new data nevertheless. */
static void *reads_at_once(void *arg) {
    struct pair p = make_tcp();
    char bytes[64];
    size_t n;
    int result;
    CHECK_EQ(cc_fd_adopt(p.in), 0);
    put(p.out, 3);
    CHECK_EQ(cc_fd_read(p.in, bytes, sizeof bytes, &n), 0);
    put_there(p, 4);
    CHECK_EQ(cc_fd_read_until(p.in, bytes, sizeof bytes, &n, CC_PASSED), 0);
    CHECK_EQ(n, 4);
    put_there(p, 5);
    CC_NURSERY(nursery, .result = &result) {
        CHECK_EQ(cc_nursery_cancel(nursery), 0);
        CHECK_EQ(cc_fd_read(p.in, bytes, sizeof bytes, &n), 0);
        CHECK_EQ(n, 5);
        CHECK_EQ(cc_fd_read(p.in, bytes, sizeof bytes, &n), ECANCELED);
    }
    CHECK_EQ(cc_fd_read_until(p.in, bytes, sizeof bytes, &n, CC_PASSED), ETIMEDOUT);
    close_pair(p);
    return arg;
}

TEST_WORKERS(what_is_there_is_read_at_once) {
    CHECK_EQ(cc_run(reads_at_once, NULL, NULL), 0);
}

static void *closes(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        CC_NURSERY(nursery) {
            for (int i = 0; i < 5; i++) CHECK_EQ(CC_GO_IN(nursery, read_fails, .fd = p.in, .error = EBADF), 0);
            await_waiters(5);
            CHECK_EQ(cc_fd_close(p.in), 0);
        }
        /* The number is reused by another descriptor, which inherits no state. */
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

TEST_WORKERS(close_wakes_all) {
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
    int bound = refusing_port(&address), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(cc_fd_connect(fd, (struct sockaddr *)&address, sizeof address), ECONNREFUSED);
    CHECK_EQ(cc_fd_close(fd) + close(bound), 0);
    return arg;
}

TEST_WORKERS(a_refused_connection_returns_the_error) {
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
        struct pair full = make_pipe(adopt); /* a splice is a write, too */
        int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        size_t n;
        CHECK(file >= 0);
        CHECK_EQ(cc_fd_write(full.out, "x", 1, NULL), 0);
        CHECK_EQ(cc_fd_splice(full.in, s.out, 1, &n), EPIPE);
        CHECK_EQ(cc_fd_sendfile(s.out, file, NULL, 1, &n), EPIPE);
        close_pair(full);
        CHECK_EQ(close(file), 0);
        CHECK_EQ(cc_fd_close(p.out) + cc_fd_close(s.out), 0);
    }
    return arg;
}

/* All that there is: in a fiber, on an OS thread, and in every form. */
static void *send_all_there_is(void *arg) {
    struct pair p = make_pipe(false), s = make_sockets(false);
    int file = memfd_create("all", MFD_CLOEXEC);
    CHECK_EQ(write(file, "1234567890", 10), 10);
    for (int form = 0; form < 3; form++) {
        int64_t offset = 3;
        size_t n = 0;
        CHECK_EQ(form == 0   ? cc_fd_sendfile(s.out, file, &offset, SIZE_MAX, &n)
                 : form == 1 ? cc_fd_sendfile_try(s.out, file, &offset, SIZE_MAX, &n)
                             : cc_fd_sendfile_until(s.out, file, &offset, SIZE_MAX / 2, &n, cc_after_ms(10000)),
                 0);
        CHECK(n == 7 && offset == 10);
        CHECK_EQ(cc_fd_write(p.out, "abc", 3, NULL), 0);
        CHECK_EQ(form == 1 ? cc_fd_splice_try(p.in, s.out, SIZE_MAX, &n) : cc_fd_splice(p.in, s.out, SIZE_MAX, &n), 0);
        CHECK_EQ(n, 3);
    }
    close_pair(p);
    close_pair(s);
    CHECK_EQ(close(file), 0);
    return arg;
}

TEST_WORKERS(a_count_may_be_more_than_there_can_be) {
    CHECK_EQ(cc_run(send_all_there_is, NULL, NULL), 0);
    (void)send_all_there_is(NULL);
}

static void *splices(void *arg) {
    struct pair from = make_tcp(), to = make_pipe(false);
    size_t n;
    CHECK_EQ(cc_fd_splice_try(from.in, to.out, 8, &n), EAGAIN);
    CHECK_EQ(cc_fd_splice_until(from.in, to.out, 8, &n, cc_after_ms(2)), ETIMEDOUT);
    put(from.out, 3);
    CHECK_EQ(cc_fd_splice(from.in, to.out, 8, &n), 0);
    CHECK_EQ(n, 3);
    CHECK_EQ(cc_fd_close(from.in), 0);
    CHECK_EQ(cc_fd_splice(from.in, to.out, 8, &n), EBADF);
    CHECK_EQ(cc_fd_close(from.out), 0);
    close_pair(to);
    return arg;
}

TEST_WORKERS(a_splice_parks_for_a_blocking_socket) {
    CHECK_EQ(cc_run(splices, NULL, NULL), 0);
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

/* A waiting thread does not block a shutdown. */
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

TEST_WORKERS(a_busy_reader_yields) {
    CHECK_EQ(cc_run(never_waits, NULL, NULL), 0);
}

/* ---- close ---- */

/* The system waits in close(2) for what has not gone out, also in non-blocking mode: an hour, or until a signal comes,
 * with which sysmon looks at a thread that is stuck. How long the close takes. */
static uint64_t close_with_linger(bool adopt) {
    struct pair p = make_tcp();
    struct linger hour = {.l_onoff = 1, .l_linger = 3600};
    static char bytes[65536];
    size_t n, sent = 0, got = 0;
    int error;
    if (adopt) CHECK_EQ(cc_fd_adopt(p.out), 0);
    CHECK_EQ(setsockopt(p.out, SOL_SOCKET, SO_LINGER, &hour, sizeof hour), 0);
    while ((error = cc_fd_write_try(p.out, bytes, sizeof bytes, &n)) == 0) sent += n;
    CHECK_EQ(error, EAGAIN);
    uint64_t start = cc_now_ns();
    CHECK_EQ(cc_fd_close(p.out), 0);
    uint64_t took = cc_now_ns() - start;
    while ((error = cc_fd_read(p.in, bytes, sizeof bytes, &n)) == 0 && n > 0) got += n;
    CHECK_EQ(error, 0); /* no data is lost by that */
    CHECK_EQ(got, sent);
    CHECK_EQ(cc_fd_close(p.in), 0);
    return took;
}

static void *closes_with_linger(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        uint64_t least = UINT64_MAX;
        for (int i = 0; i < 5 && least > 200000000; i++) { /* a busy machine may delay some, but not all */
            uint64_t took = close_with_linger(adopt);
            if (took < least) least = took;
        }
        CHECK(least <= 200000000);
    }
    return arg;
}

TEST_WORKERS(a_close_does_not_linger) {
    CHECK_EQ(cc_run(closes_with_linger, NULL, NULL), 0);
}

/* ---- release ---- */

/* A descriptor that was never adopted, too, is busy while others wait for it. */
static void *releases_the_programs_own(void *arg) {
    struct pair p = make_pipe(false);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, read_text, .fd = p.in, .expected = "bye"), 0);
        await_waiters(1);
        CHECK_EQ(cc_fd_release(p.in), EBUSY);
        CHECK_EQ(cc_fd_write(p.out, "bye", 3, NULL), 0);
    }
    CHECK_EQ(cc_fd_release(p.in) + cc_fd_release(p.in), 0);
    CHECK((fcntl(p.in, F_GETFL) & O_NONBLOCK) == 0);
    CHECK_EQ(close(p.in) + close(p.out), 0);
    CHECK_EQ(cc_fd_release(p.in), EBADF);
    return arg;
}

TEST_WORKERS(a_release_of_the_programs_own) {
    CHECK_EQ(cc_run(releases_the_programs_own, NULL, NULL), 0);
}

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

/* A short read leaves the hint that there is nothing more. It must not apply to the next file with that number. */
static void *released_and_reused(void *arg) {
    struct pair p = make_tcp();
    char bytes[64];
    size_t n;
    CHECK_EQ(cc_fd_adopt(p.in), 0);
    put(p.out, 3);
    CHECK_EQ(cc_fd_read(p.in, bytes, sizeof bytes, &n), 0);
    CHECK_EQ(n, 3);
    CHECK_EQ(cc_fd_release(p.in), 0);
    CHECK_EQ(close(p.in), 0);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC); /* by that number if the runtime has a lower one */
    CHECK_EQ(dup2(file, p.in), p.in);
    if (file != p.in) CHECK_EQ(close(file), 0);
    CHECK_EQ(cc_fd_read(p.in, bytes, sizeof bytes, &n), 0);
    CHECK_EQ(n, sizeof bytes);
    CHECK_EQ(close(p.in), 0);
    CHECK_EQ(cc_fd_close(p.out), 0);
    return arg;
}

TEST_WORKERS(a_released_number_is_a_file_next) {
    CHECK_EQ(cc_run(released_and_reused, NULL, NULL), 0);
}

/* ---- FD-13: what the poller's set keeps of a descriptor that the program may close ---- */

/* Whether that epoll set waits for it. One that was reported stays in the set, with flags only. */
static bool waits_for(int set, int fd) {
    const unsigned bits = 0x0fffffff; /* the others are flags */
    char path[64], line[256];
    int member;
    unsigned events;
    bool found = false;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", set);
    FILE *f = fopen(path, "re");
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
        found = sscanf(line, "tfd: %d events: %x", &member, &events) == 2 && member == fd && (events & bits) != 0;
    if (f != NULL) fclose(f);
    return found;
}

/* The only set of this process is the poller's. */
static bool is_armed(int fd) {
    char path[64], name[64];
    for (int set = 0; set < 256; set++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", set);
        ssize_t n = readlink(path, name, sizeof name - 1);
        if (n < 0) continue;
        name[n] = 0;
        if (strcmp(name, "anon_inode:[eventpoll]") == 0 && waits_for(set, fd)) return true;
    }
    return false;
}

/* A wait that ends by its deadline leaves the descriptor armed. */
static void leave_armed(int fd) {
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read_until(fd, &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
}

static int read_now(int fd) {
    char byte;
    size_t n;
    return cc_fd_read(fd, &byte, 1, &n);
}

static int poll_and_read(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    int error = cc_poll(&one, 1, CC_FOREVER, NULL);
    char byte;
    return error != 0 ? error : read(fd, &byte, 1) == 1 ? 0 : errno;
}

static int select_and_read(int fd) {
    CCCase cases[] = {CC_READABLE_CASE(fd, NULL)};
    size_t chosen;
    int error = cc_select(cases, 1, CC_FOREVER, &chosen);
    char byte;
    return error != 0 ? error : read(fd, &byte, 1) == 1 ? 0 : errno;
}

static int splice_away(int fd) {
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    size_t n;
    int error = cc_fd_splice(fd, null, 1, &n);
    CHECK_EQ(close(null), 0);
    return error;
}

static void *disarms_what_is_found(void *arg) {
    static int (*const finds[])(int fd) = {read_now, poll_and_read, select_and_read, splice_away};
    struct pair p = make_pipe(false), both = make_sockets(false);
    for (size_t i = 0; i < sizeof finds / sizeof *finds; i++) {
        leave_armed(p.in);
        CHECK(is_armed(p.in));
        put(p.out, 1);
        CHECK_EQ(finds[i](p.in), 0);
        CHECK(!is_armed(p.in));
    }
    CC_NURSERY(nursery) { /* it stays armed while there is a waiter, whatever is written meanwhile */
        CHECK_EQ(CC_GO_IN(nursery, read_text, .fd = both.in, .expected = "bye"), 0);
        await_waiters(1);
        put(both.in, 1);
        CHECK(is_armed(both.in));
        CHECK_EQ(cc_fd_write(both.out, "bye", 3, NULL), 0);
    }
    leave_armed(p.in);
    CHECK_EQ(cc_fd_adopt(p.in) + cc_fd_release(p.in), 0); /* disarmed */
    CHECK(!is_armed(p.in));
    CHECK_EQ(close(p.in) + close(p.out), 0);
    close_pair(both);
    return arg;
}

TEST_WORKERS(what_is_found_at_once_is_not_armed) {
    CHECK_EQ(cc_run(disarms_what_is_found, NULL, NULL), 0);
}

/* ---- named interleavings ---- */

/* An edge between the attempt and the wait: there was one more than the operation had seen. */
static void *edge_in_between(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_pipe(adopt);
        struct io_use use;
        CHECK_EQ(cc__fd_find(p.in, &use), 0);
        uint32_t seen = cc__fd_edges(use.fd, IO_READ) - 1;
        CHECK_EQ(cc__fd_wait(&use, IO_READ, seen, cc_after_ms(20000).ns), 0);
        CHECK_EQ(cc_io_waiters(), 0);
        close_pair(p);
    }
    return arg;
}

TEST_WORKERS(an_edge_between_the_attempt_and_the_wait) {
    CHECK_EQ(cc_run(edge_in_between, NULL, NULL), 0);
}

/* Closed by close(2), which the library does not see; the number is reused at once. */
static void *behind_our_back(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_pipe(adopt);
        char byte;
        size_t n;
        CHECK_EQ(cc_fd_read_until(p.in, &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT); /* it is registered, or was armed */
        CHECK_EQ(close(p.in) + close(p.out), 0);
        struct pair q = make_pipe(adopt);
        CHECK_EQ(q.in, p.in);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, read_text, .fd = q.in, .expected = "new"), 0);
            await_waiters(1);
            CHECK_EQ(cc_fd_write(q.out, "new", 3, NULL), 0);
        }
        close_pair(q);
    }
    return arg;
}

TEST_WORKERS(closed_behind_our_back_and_reused) {
    CHECK_EQ(cc_run(behind_our_back, NULL, NULL), 0);
}

/* Adopted a second time, whether anybody has waited for it or not: its users continue. */
static void *adopts_twice(void *arg) {
    CCConn *here, *there;
    char byte;
    size_t n;
    CHECK_EQ(cc_socketpair(&here, &there), 0);
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(cc_fd_adopt(cc_conn_fd(here)), 0);
        CHECK_EQ(cc_write(there, "x", 1, NULL), 0);
        CHECK_EQ(cc_read(here, &byte, 1, &n), 0);
        CHECK_EQ(cc_read_until(here, &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT); /* now it is registered */
    }
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, read_text, .fd = cc_conn_fd(here), .expected = "y"), 0);
        await_waiters(1);
        CHECK_EQ(cc_fd_adopt(cc_conn_fd(here)), 0);
        CHECK_EQ(cc_write(there, "y", 1, NULL), 0);
    }
    cc_close(here);
    cc_close(there);
    return arg;
}

TEST_WORKERS(adopted_twice_is_as_once) {
    CHECK_EQ(cc_run(adopts_twice, NULL, NULL), 0);
}

/* The mode is shared by all holders of the socket, for example another process. */
static void *mode_changed(void *arg) {
    struct pair p = make_sockets(true);
    char a, b;
    struct iovec parts[] = {{&a, 1}, {&b, 1}};
    size_t n;
    CHECK_EQ(fcntl(p.in, F_SETFL, fcntl(p.in, F_GETFL) & ~O_NONBLOCK), 0);
    CHECK_EQ(fcntl(p.out, F_SETFL, fcntl(p.out, F_GETFL) & ~O_NONBLOCK), 0);
    CHECK_EQ(cc_fd_read_try(p.in, &a, 1, &n), EAGAIN);
    CHECK_EQ(cc_fd_readv_try(p.in, parts, 2, &n), EAGAIN);
    CHECK_EQ(cc_fd_read_until(p.in, &a, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    fill(p.out);
    CHECK_EQ(cc_fd_write_until(p.out, &a, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    close_pair(p);
    return arg;
}

TEST_WORKERS(an_adopted_socket_in_blocking_mode) {
    CHECK_EQ(cc_run(mode_changed, NULL, NULL), 0);
}

/* A fiber that waits for the other direction of the same socket closes it. */
CC_TASK(write_then_close, { int fd; }) {
    char bytes[4096] = "";
    int error = 0;
    while (error == 0) error = cc_fd_write_until(self->fd, bytes, sizeof bytes, NULL, cc_after_ms(2));
    CHECK_EQ(error, ETIMEDOUT);
    CHECK_EQ(cc_fd_close(self->fd), 0);
    return NULL;
}

static void *other_side_closes(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, read_fails, .fd = p.in, .error = EBADF), 0);
            CHECK_EQ(CC_GO_IN(nursery, write_then_close, .fd = p.in), 0);
        }
        CHECK_EQ(cc_io_waiters(), 0);
        CHECK_EQ(cc_fd_close(p.out), 0);
    }
    return arg;
}

TEST_WORKERS(closed_by_a_waiter_of_the_other_side) {
    CHECK_EQ(cc_run(other_side_closes, NULL, NULL), 0);
}

/* Many wait for one descriptor, in every kind of wait, when the runtime stops. */
static void *wait_somehow(void *arg) {
    struct pair *p = arg;
    static _Atomic unsigned turn;
    unsigned way = atomic_fetch_add(&turn, 1) % 3;
    struct pollfd one = {.fd = p->in, .events = POLLIN};
    CCCase readable = {.kind = CC_CASE_READABLE, .fd = p->in};
    size_t n;
    char byte;
    int error = way == 0   ? cc_fd_read(p->in, &byte, 1, &n)
                : way == 1 ? cc_poll(&one, 1, CC_FOREVER, NULL)
                           : cc_select(&readable, 1, CC_FOREVER, &n);
    CHECK_EQ(error, ECANCELED);
    return NULL;
}

TEST(a_shutdown_with_many_waiters) {
    struct pair p = make_sockets(true);
    size_t count = (size_t)test_scale(10000);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    for (size_t i = 0; i < count; i++) CHECK_EQ(cc_spawn(NULL, wait_somehow, &p, NULL), 0);
    while (cc_io_waiters() != count) {
        struct timespec ms = {0, 1000000};
        nanosleep(&ms, NULL);
    }
    int error;
    do error = cc_runtime_shutdown(100); /* a busy machine may need longer */
    while (error == ETIMEDOUT);
    CHECK_EQ(error, 0);
    CHECK_EQ(cc_io_waiters(), 0);
    close_pair(p);
}

/* ---- a Unix listener whose backlog is full ---- */

static struct sockaddr_un unix_name(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "ccc-backlog-%d", (int)getpid()); /* abstract */
    return name;
}

CC_TASK(connect_later, {
    int *fd;
    CCEvent *full;
}) {
    struct sockaddr_un name = unix_name();
    *self->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(cc_fd_adopt(*self->fd), 0);
    CHECK_EQ(cc_fd_connect_try(*self->fd, (struct sockaddr *)&name, sizeof name), EAGAIN);
    CHECK_EQ(cc_fd_connect_until(*self->fd, (struct sockaddr *)&name, sizeof name, cc_after_ms(3)), ETIMEDOUT);
    cc_event_set(self->full);
    CHECK_EQ(cc_fd_connect(*self->fd, (struct sockaddr *)&name, sizeof name), 0);
    CHECK_EQ(cc_fd_write(*self->fd, "x", 1, NULL), 0);
    return NULL;
}

TEST_WORKERS(a_full_backlog_is_waited_for) {
    enum { MANY = 64 };
    struct sockaddr_un name = unix_name();
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), others[MANY], count = 0, late = -1, accepted;
    CHECK_EQ(bind(listener, (struct sockaddr *)&name, sizeof name) + listen(listener, 1), 0);
    for (bool room = true; room && count < MANY; count += room) {
        others[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        room = connect(others[count], (struct sockaddr *)&name, sizeof name) == 0;
        if (!room) close(others[count]);
    }
    CHECK(count < MANY);
    CCEvent full = {0};
    CCTask task = CC_GO(connect_later, .fd = &late, .full = &full);
    CHECK_EQ(cc_event_wait(&full), 0);
    char byte = 0;
    size_t n = 0;
    for (int i = 0; i <= count; i++) { /* the one that connected last is accepted last */
        CHECK_EQ(cc_fd_accept(listener, &accepted, NULL, NULL), 0);
        if (i == count) CHECK_EQ(cc_fd_read(accepted, &byte, 1, &n), 0);
        CHECK_EQ(cc_fd_close(accepted), 0);
    }
    CHECK_EQ(byte, 'x');
    cc_block_on(task);
    CHECK_EQ(cc_fd_close(late) + close(listener), 0);
    for (int i = 0; i < count; i++) close(others[i]);
}

CC_TASK(connect_own, {
    int fd;
    atomic_bool *begun;
}) {
    struct sockaddr_un name = unix_name();
    atomic_store(self->begun, true);
    return (void *)(intptr_t)cc_fd_connect(self->fd, (struct sockaddr *)&name, sizeof name);
}

/* The caller sleeps between its attempts. Its socket is closed meanwhile, and the number reused. */
static void *connects_no_other(void *arg) {
    enum { MANY = 64 };
    struct sockaddr_un name = unix_name();
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), others[MANY], count = 0;
    CHECK_EQ(bind(listener, (struct sockaddr *)&name, sizeof name) + listen(listener, 1), 0);
    for (bool room = true; room && count < MANY; count += room) {
        others[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        room = connect(others[count], (struct sockaddr *)&name, sizeof name) == 0;
        if (!room) close(others[count]);
    }
    atomic_bool begun = false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), next = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(cc_fd_adopt(fd), 0);
    CCTask task = CC_GO(connect_own, .fd = fd, .begun = &begun);
    while (!atomic_load(&begun)) cc_yield(); /* there is one worker: it sleeps by now */
    CHECK_EQ(cc_fd_close(fd), 0);
    CHECK_EQ(dup3(next, fd, O_CLOEXEC), fd);
    for (int i = 0; i < count; i++) { /* now there is room */
        int accepted;
        CHECK_EQ(cc_fd_accept(listener, &accepted, NULL, NULL), 0);
        CHECK_EQ(cc_fd_close(accepted), 0);
    }
    void *error = NULL;
    CHECK_EQ(cc_task_join(&task, &error), 0);
    CHECK_EQ((intptr_t)error, EBADF);
    struct sockaddr_un peer;
    CHECK_EQ(getpeername(fd, (struct sockaddr *)&peer, &(socklen_t){sizeof peer}), -1);
    CHECK_EQ(errno, ENOTCONN);
    CHECK_EQ(close(fd) + close(next) + close(listener), 0);
    for (int i = 0; i < count; i++) close(others[i]);
    return arg;
}

TEST(a_socket_that_is_closed_while_the_backlog_is_full) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(connects_no_other, NULL, NULL), 0);
}

/* ---- the table of descriptors ---- */

static unsigned long table_size(void) {
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long size = 0;
    while (f != NULL && size == 0 && fgets(line, sizeof line, f) != NULL) (void)sscanf(line, "FDSize: %lu", &size);
    if (f != NULL) fclose(f);
    return size;
}

/* Growing later would take milliseconds of an accept. */
TEST(the_table_has_room_from_the_start) {
    enum { MOST = 16384 };
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    unsigned long wanted = limit.rlim_cur < MOST ? (unsigned long)limit.rlim_cur : MOST, before = table_size();
    if (before == 0 || before >= wanted) SKIP("the table cannot be seen to grow");
    struct stat threads;
    if (stat("/proc/self/task", &threads) != 0 || threads.st_nlink != 3)
        SKIP("there are threads already: it would take as long now");
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK(table_size() >= wanted);
    CHECK(fcntl((int)wanted - 1, F_GETFD) < 0); /* for a moment only */
    CHECK_EQ(cc_runtime_shutdown(60000), 0);
}
