/* pair.h - two descriptors that are connected, for the tests of descriptors. */
#ifndef CCC_TESTS_IO_PAIR_H
#define CCC_TESTS_IO_PAIR_H

#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

struct pair {
    int in, out; /* read from, write to */
};

static inline struct pair pair_of(const int *fds, bool adopt) {
    if (adopt) CHECK_EQ(cc_fd_adopt(fds[0]) + cc_fd_adopt(fds[1]), 0);
    return (struct pair){fds[0], fds[1]};
}

static inline struct pair make_pipe(bool adopt) {
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    return pair_of(fds, adopt);
}

static inline struct pair make_sockets(bool adopt) {
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return pair_of(fds, adopt);
}

static inline void close_pair(struct pair p) {
    CHECK_EQ(cc_fd_close(p.in), 0);
    CHECK_EQ(cc_fd_close(p.out), 0);
}

static inline void put(int fd, size_t n) {
    char bytes[64] = "";
    CHECK_EQ(cc_fd_write(fd, bytes, n, NULL), 0);
}

static inline void take(int fd, size_t n) {
    char bytes[64];
    size_t got;
    CHECK_EQ(cc_fd_read_try(fd, bytes, n, &got), 0);
    CHECK_EQ(got, n);
}

static inline void fill(int fd) {
    char bytes[4096] = "";
    size_t n;
    int error;
    do error = cc_fd_write_try(fd, bytes, sizeof bytes, &n);
    while (error == 0);
    CHECK_EQ(error, EAGAIN);
}

static inline void drain(int fd) {
    char bytes[4096];
    size_t n;
    while (cc_fd_read_try(fd, bytes, sizeof bytes, &n) == 0) {
    }
}

static inline void await_waiters(size_t n) {
    while (cc_io_waiters() != n) cc_yield();
}

#endif
