/* io_echo.c - echoes over connections that end in every way, while waits are cancelled and time out: no byte is lost or
 * duplicated. Each byte encodes its position in the stream, so that this is detected. */
#include "harness.h"

#include "io/fd.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 24, SIZE = 512, LIFE = 100 };

static struct {
    _Atomic int64_t left; /* echoes to be made */
    _Atomic uint64_t echoes, bytes, cancelled, timed_out, connections;
} all;

/* One connection. The bytes of its two streams so far; at its end they are compared. */
struct line {
    int client, server;
    uint64_t id;
    _Atomic uint64_t sent, taken, given, back; /* client, server, server, client */
};

static unsigned char byte_at(uint64_t id, uint64_t place) {
    return (unsigned char)(id * 31 + place * 7 + place / 256 * 3);
}

static void check_bytes(const unsigned char *bytes, size_t n, uint64_t id, uint64_t place) {
    for (size_t i = 0; i < n; i++) CHECK_EQ(bytes[i], byte_at(id, place + i));
}

/* ---- one attempt, which may end before anything has moved ---- */

struct attempt {
    int fd;
    unsigned char *bytes;
    size_t size, n;
    bool writes;
    int error;
};

static void move(struct attempt *a) {
    a->error = a->writes ? cc_fd_write(a->fd, a->bytes, a->size, &a->n) : cc_fd_read(a->fd, a->bytes, a->size, &a->n);
}

CC_TASK(move_apart, { struct attempt *attempt; }) {
    move(self->attempt);
    return NULL;
}

static void move_cancelled(struct attempt *a, uint64_t patience) {
    a->error = ECANCELED; /* if it does not even begin */
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, move_apart, .attempt = a), 0);
        for (uint64_t i = 0; i < patience; i++) cc_yield();
        CHECK_EQ(cc_nursery_cancel(nursery), 0);
    }
}

static int try_to_move(int fd, bool writes, unsigned char *bytes, size_t size, size_t *n, uint64_t *rng) {
    struct attempt a = {.fd = fd, .bytes = bytes, .size = size, .writes = writes};
    uint64_t how = test_random(rng) % 64;
    CCDeadline soon = cc_after_ns(test_random(rng) % 40000);
    if (how < 4)
        a.error =
            writes ? cc_fd_write_until(fd, bytes, size, &a.n, soon) : cc_fd_read_until(fd, bytes, size, &a.n, soon);
    else if (how < 6)
        CC_WITH_DEADLINE(soon) move(&a);
    else if (how < 7)
        move_cancelled(&a, test_random(rng) % 4);
    else if (how < 10)
        a.error = writes ? cc_fd_write_try(fd, bytes, size, &a.n) : cc_fd_read_try(fd, bytes, size, &a.n);
    else
        move(&a);
    if (a.error == ETIMEDOUT) atomic_fetch_add(&all.timed_out, 1);
    if (a.error == ECANCELED) atomic_fetch_add(&all.cancelled, 1);
    if (a.error == EAGAIN) cc_yield();
    if (!writes) CHECK(a.error == 0 || a.n == 0);
    CHECK(a.n <= size);
    *n = a.n;
    return a.error == ETIMEDOUT || a.error == ECANCELED || a.error == EAGAIN ? EAGAIN : a.error;
}

/* Writes all of it. */
static int write_whole(int fd, unsigned char *bytes, size_t size, _Atomic uint64_t *count, uint64_t *rng) {
    while (size > 0) {
        size_t n = 0;
        int error = try_to_move(fd, true, bytes, size, &n, rng);
        atomic_fetch_add(count, n);
        if (error != 0 && error != EAGAIN) return error;
        bytes += n;
        size -= n;
    }
    return 0;
}

/* ---- the two sides ---- */

/* Until the end of the stream, or until the other side is gone. */
CC_TASK(serve, { struct line *line; }) {
    struct line *line = self->line;
    uint64_t rng = test_seed() + line->id * 2;
    for (;;) {
        unsigned char bytes[SIZE];
        size_t n = 0;
        int error = try_to_move(line->server, false, bytes, sizeof bytes, &n, &rng);
        if (error == EAGAIN) continue;
        if (error != 0 || n == 0) {
            CHECK(error == 0 || error == ECONNRESET);
            break;
        }
        check_bytes(bytes, n, line->id, atomic_load(&line->taken));
        atomic_fetch_add(&line->taken, n);
        error = write_whole(line->server, bytes, n, &line->given, &rng);
        CHECK(error == 0 || error == EPIPE || error == ECONNRESET);
        if (error != 0) break;
    }
    CHECK_EQ(cc_fd_close(line->server), 0);
    return NULL;
}

static void send_bytes(struct line *line, size_t size, uint64_t *rng) {
    unsigned char bytes[SIZE];
    for (size_t i = 0; i < size; i++) bytes[i] = byte_at(line->id, atomic_load(&line->sent) + i);
    CHECK_EQ(write_whole(line->client, bytes, size, &line->sent, rng), 0);
}

static void one_echo(struct line *line, uint64_t *rng) {
    unsigned char bytes[SIZE];
    size_t size = test_random(rng) % (test_random(rng) % 8 == 0 ? SIZE : 32) + 1, got = 0;
    send_bytes(line, size, rng);
    while (got < size) {
        size_t n = 0;
        int error = try_to_move(line->client, false, bytes, size - got, &n, rng);
        if (error == EAGAIN) continue;
        CHECK_EQ(error, 0);
        CHECK(n > 0);
        check_bytes(bytes, n, line->id, atomic_load(&line->back));
        atomic_fetch_add(&line->back, n);
        got += n;
    }
    atomic_fetch_add(&all.echoes, 1);
    atomic_fetch_add(&all.bytes, size);
}

/* When somebody waits there. */
CC_TASK(close_under_reader, { int fd; }) {
    struct io_use use;
    CHECK_EQ(cc__fd_find(self->fd, &use), 0);
    while (cc__get(&use.fd->side[IO_READ].count) == 0) cc_yield();
    CHECK_EQ(cc_fd_close(self->fd), 0);
    return NULL;
}

static void end_line(struct line *line, uint64_t *rng) {
    unsigned char byte;
    size_t n = 0;
    switch (test_random(rng) % 3) {
    case 0: /* in good order */
        CHECK_EQ(shutdown(line->client, SHUT_WR), 0);
        CHECK_EQ(cc_fd_read(line->client, &byte, 1, &n), 0);
        CHECK_EQ(n, 0);
        CHECK_EQ(cc_fd_close(line->client), 0);
        break;
    case 1: /* with an echo in flight */
        send_bytes(line, test_random(rng) % SIZE + 1, rng);
        CHECK_EQ(cc_fd_close(line->client), 0);
        break;
    default: /* under a reader */
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, close_under_reader, .fd = line->client), 0);
            CHECK_EQ(cc_fd_read(line->client, &byte, 1, &n), EBADF);
        }
    }
}

/* ---- connections ---- */

static void open_tcp(int *fds) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof address) + listen(listener, 1), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(fds[0], (struct sockaddr *)&address, sizeof address), 0);
    fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fds[1] >= 0);
    close(listener);
}

static void one_connection(uint64_t id, uint64_t *rng) {
    int fds[2];
    if (test_random(rng) % 4 == 0)
        open_tcp(fds);
    else
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    if (test_random(rng) % 4 != 0) CHECK_EQ(cc_fd_adopt(fds[0]) + cc_fd_adopt(fds[1]), 0);
    struct line line = {.client = fds[0], .server = fds[1], .id = id};
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, serve, .line = &line), 0);
        for (uint64_t i = test_random(rng) % LIFE; i > 0 && atomic_fetch_sub(&all.left, 1) > 0; i--)
            one_echo(&line, rng);
        end_line(&line, rng);
    }
    uint64_t sent = atomic_load(&line.sent), taken = atomic_load(&line.taken), given = atomic_load(&line.given),
             back = atomic_load(&line.back);
    CHECK(taken <= sent && given <= taken && back <= given);
    CHECK(sent - back <= SIZE); /* all but what was in flight when it was closed */
    atomic_fetch_add(&all.connections, 1);
}

CC_TASK(be_client, { uint64_t number; }) {
    uint64_t rng = test_seed() * 3 + self->number;
    for (uint64_t i = 0; atomic_load(&all.left) > 0; i++) one_connection(self->number << 32 | i, &rng);
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(nursery)
    for (uint64_t i = 0; i < CLIENTS; i++) CHECK_EQ(CC_GO_IN(nursery, be_client, .number = i), 0);
    return arg;
}

TEST_WORKERS(echoes_with_closes_cancellations_and_deadlines, .timeout = 3600) {
    int64_t echoes = test_rounds(4000, 10000000);
    atomic_store(&all.left, echoes);
    CHECK_EQ(cc_run(run, NULL, NULL), 0);
    CHECK_EQ(atomic_load(&all.echoes), echoes);
    CHECK_EQ(cc_io_waiters(), 0);
    test_count("echoes", atomic_load(&all.echoes));
    test_count("bytes echoed", atomic_load(&all.bytes));
    test_count("connections", atomic_load(&all.connections));
    test_count("attempts that were cancelled", atomic_load(&all.cancelled));
    test_count("attempts that passed a deadline", atomic_load(&all.timed_out));
}
