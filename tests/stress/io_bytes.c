/* io_bytes.c - streams under deadlines, cancellation and several readers: every byte arrives once, in order. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STREAMS = 12 };

static uint64_t random_of(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static unsigned char byte_at(uint64_t position, int stream) {
    return (unsigned char)(position * 7 + position / 256 + (uint64_t)stream * 13);
}

/* Writes with deadlines that often pass: what went out counts, the rest is sent again. */
CC_TASK(produce, {
    int fd, stream;
    uint64_t length;
}) {
    uint64_t seed = test_seed() + (uint64_t)self->stream, at = 0;
    unsigned char bytes[5000];
    while (at < self->length) {
        size_t size = random_of(&seed) % sizeof bytes + 1, n = 0;
        if (size > self->length - at) size = self->length - at;
        for (size_t i = 0; i < size; i++) bytes[i] = byte_at(at + i, self->stream);
        int error = ETIMEDOUT;
        if (random_of(&seed) % 2 == 0) {
            error = cc_fd_write_until(self->fd, bytes, size, &n, cc_after_ns(random_of(&seed) % 100000));
        } else {
            CC_WITH_DEADLINE(cc_after_ns(random_of(&seed) % 100000)) error = cc_fd_write(self->fd, bytes, size, &n);
        }
        CHECK(error == 0 || error == ETIMEDOUT || error == ECANCELED);
        CHECK(error == 0 ? n == size : n < size);
        at += n;
    }
    CHECK_EQ(cc_fd_close(self->fd), 0);
    return NULL;
}

CC_TASK(consume, {
    int fd, stream;
    uint64_t length;
}) {
    uint64_t seed = ~test_seed() + (uint64_t)self->stream, at = 0;
    unsigned char bytes[3000];
    for (;;) {
        size_t n = 0, size = random_of(&seed) % sizeof bytes + 1;
        int error = 0;
        switch (random_of(&seed) % 4) {
        case 0:
            error = cc_fd_read_until(self->fd, bytes, size, &n, cc_after_ns(random_of(&seed) % 50000));
            break;
        case 1:
            CC_WITH_DEADLINE(cc_after_ns(random_of(&seed) % 50000)) error = cc_fd_read(self->fd, bytes, size, &n);
            break;
        case 2:
            error = cc_fd_read_try(self->fd, bytes, size, &n);
            if (error == EAGAIN) cc_yield();
            break;
        default:
            error = cc_fd_read(self->fd, bytes, size, &n);
        }
        CHECK(error == 0 || error == ETIMEDOUT || error == ECANCELED || error == EAGAIN);
        CHECK(error == 0 || n == 0);
        for (size_t i = 0; i < n; i++) CHECK_EQ(bytes[i], byte_at(at + i, self->stream));
        at += n;
        if (error == 0 && n == 0) break;
    }
    CHECK_EQ(at, self->length);
    CHECK_EQ(cc_fd_close(self->fd), 0);
    return NULL;
}

static void *run_streams(void *arg) {
    uint64_t length = test_scale(2000000);
    CC_NURSERY(nursery)
    for (int i = 0; i < STREAMS; i++) {
        int fds[2];
        if (i % 3 == 0)
            CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
        else
            CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        if (i % 2 == 0) CHECK_EQ(cc_fd_adopt(fds[0]) + cc_fd_adopt(fds[1]), 0);
        CHECK_EQ(CC_GO_IN(nursery, produce, .fd = fds[1], .stream = i, .length = length), 0);
        CHECK_EQ(CC_GO_IN(nursery, consume, .fd = fds[0], .stream = i, .length = length), 0);
    }
    CHECK_EQ(cc_io_waiters(), 0);
    return arg;
}

TEST_WORKERS(every_byte_once_and_in_order, .timeout = 120) {
    CHECK_EQ(cc_run(run_streams, NULL, NULL), 0);
}

/* ---- close against everything ---- */

enum { SLOTS = 8, LIFE = 64 };

static struct {
    _Atomic int fd[SLOTS]; /* the reading end of a pipe, or -1 */
    _Atomic uint64_t reads, bad, timeouts;
    _Atomic bool over;
} world;

/* Reads from the descriptor in a slot. The number may be closed and reused at any time, for another pipe, which is
 * fine; but there must never be a wait that nobody ends, or a byte that nobody wrote. */
CC_TASK(read_anything, { int place; }) {
    uint64_t seed = test_seed() * 31 + (uint64_t)self->place;
    while (!atomic_load(&world.over)) {
        unsigned char byte = 0;
        size_t n = 0;
        int fd = atomic_load(&world.fd[random_of(&seed) % SLOTS]);
        int error = fd < 0 ? EAGAIN : cc_fd_read_until(fd, &byte, 1, &n, cc_after_ms(1 + random_of(&seed) % 3));
        if (error == 0 && n == 1) CHECK_EQ(byte, 'w');
        CHECK(error == 0 || error == EBADF || error == ETIMEDOUT || error == EAGAIN);
        atomic_fetch_add(error == 0 ? &world.reads : error == EBADF ? &world.bad : &world.timeouts, 1);
        if (error == EAGAIN || error == EBADF) cc_yield();
    }
    return NULL;
}

CC_TASK(open_and_close, {
    int slot;
    uint64_t lives;
}) {
    uint64_t seed = test_seed() * 17 + (uint64_t)self->slot;
    for (uint64_t life = 0; life < self->lives; life++) {
        int fds[2];
        CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
        CHECK_EQ(cc_fd_adopt(fds[0]) + cc_fd_adopt(fds[1]), 0);
        atomic_store(&world.fd[self->slot], fds[0]);
        for (uint64_t i = random_of(&seed) % LIFE; i > 0; i--) {
            CHECK_EQ(cc_fd_write(fds[1], "w", 1, NULL), 0);
            if (random_of(&seed) % 4 == 0) cc_yield();
        }
        atomic_store(&world.fd[self->slot], -1);
        CHECK_EQ(cc_fd_close(fds[0]), 0);
        CHECK_EQ(cc_fd_close(fds[1]), 0);
    }
    return NULL;
}

static void *run_world(void *arg) {
    for (int i = 0; i < SLOTS; i++) atomic_store(&world.fd[i], -1);
    atomic_store(&world.over, false);
    CC_NURSERY(readers) {
        for (int i = 0; i < 24; i++) CHECK_EQ(CC_GO_IN(readers, read_anything, .place = i), 0);
        CC_NURSERY(owners)
        for (int i = 0; i < SLOTS; i++)
            CHECK_EQ(CC_GO_IN(owners, open_and_close, .slot = i, .lives = test_scale(1000)), 0);
        atomic_store(&world.over, true);
    }
    CHECK_EQ(cc_io_waiters(), 0);
    CHECK(atomic_load(&world.reads) > 0);
    return arg;
}

TEST_WORKERS(close_and_reuse_against_reads, .timeout = 120) {
    CHECK_EQ(cc_run(run_world, NULL, NULL), 0);
}
