/* descriptor.c - system calls on descriptors that do not wait. */
#include "os/descriptor.h"

#include "base/attr.h"
#include "base/error.h"
#include "os/poller.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Evaluates a system call again while a signal interrupts it, and leaves errno as it was. */
#define CALL(result, expression)                          \
    do {                                                  \
        int saved_ = cc__errno_get();                     \
        do (result) = (expression);                       \
        while ((result) < 0 && cc__errno_get() == EINTR); \
        if ((result) < 0) (result) = -cc__errno_get();    \
        cc__errno_set(saved_);                            \
    } while (0)

int cc__os_close(int fd) {
    int saved = cc__errno_get(), error = close(fd) != 0 ? cc__errno_get() : 0;
    cc__errno_set(saved);
    return error == EINTR ? 0 : error; /* it is closed on this system */
}

int cc__os_valid(int fd) {
    int rc;
    CALL(rc, fcntl(fd, F_GETFD));
    return rc < 0 ? -rc : 0;
}

int cc__os_nonblocking(int fd, bool on, bool *blocked) {
    int flags, rc = 0;
    CALL(flags, fcntl(fd, F_GETFL));
    if (flags < 0) return -flags;
    *blocked = !(flags & O_NONBLOCK);
    if (*blocked == on) CALL(rc, fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
    return rc < 0 ? -rc : 0;
}

bool cc__os_is_blocking(int fd) {
    int flags;
    CALL(flags, fcntl(fd, F_GETFL));
    return flags >= 0 && !(flags & O_NONBLOCK);
}

bool cc__os_is_stream(int fd, bool *socket) {
    struct stat status;
    int rc, type = 0, domain = 0;
    socklen_t size = sizeof type, domain_size = sizeof domain;
    CALL(rc, fstat(fd, &status));
    *socket = rc == 0 && S_ISSOCK(status.st_mode);
    if (rc != 0) return false;
    if (S_ISFIFO(status.st_mode)) return true;
    CALL(rc, getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size));
    if (rc != 0 || type != SOCK_STREAM) return false;
    CALL(rc, getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size));
    /* A read of a Unix socket also ends where descriptors were sent along. */
    return rc == 0 && (domain == AF_INET || domain == AF_INET6);
}

/* In blocking mode, and nobody may change that: goes on only if the call will not wait. */
static int gate(int fd, unsigned side) {
    if (!cc__os_is_blocking(fd)) return 0;
    int ready = cc__poller_look(fd, side);
    return ready < 0 ? ready : ready == 0 ? -EAGAIN : 0;
}

ssize_t cc__os_readv(int fd, const struct iovec *parts, int n, enum os_mode mode) {
    ssize_t got;
    if (likely(mode == OS_OWN_SOCKET && n == 1)) { /* a vector of one costs a twentieth more */
        CALL(got, recv(fd, parts[0].iov_base, parts[0].iov_len, 0));
        return got;
    }
    if (mode == OS_OTHER) {
        struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)n};
        CALL(got, recvmsg(fd, &message, MSG_DONTWAIT));
        if (got != -ENOTSOCK) return got;
        int rc = gate(fd, POLLER_READ);
        if (rc != 0) return rc;
    }
    CALL(got, readv(fd, parts, n));
    return got;
}

/* A write to a pipe that nobody reads raises SIGPIPE: it is blocked meanwhile and, if this write was the reason,
 * taken back. */
static ssize_t write_quietly(int fd, const struct iovec *parts, int n) {
    sigset_t pipe_signal, before, pending;
    ssize_t put;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    CALL(put, writev(fd, parts, n));
    if (put == -EPIPE && !sigismember(&pending, SIGPIPE)) {
        struct timespec now = {0, 0};
        int signal;
        CALL(signal, sigtimedwait(&pipe_signal, NULL, &now));
        (void)signal;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return put;
}

ssize_t cc__os_writev(int fd, const struct iovec *parts, int n, enum os_mode mode) {
    ssize_t put;
    if (likely(mode == OS_OWN_SOCKET && n == 1)) {
        CALL(put, send(fd, parts[0].iov_base, parts[0].iov_len, MSG_NOSIGNAL));
        return put;
    }
    if (mode == OS_OWN) return write_quietly(fd, parts, n);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)n};
    CALL(put, sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
    if (put != -ENOTSOCK) return put;
    if (!cc__os_is_blocking(fd)) return write_quietly(fd, parts, n);
    int rc = gate(fd, POLLER_WRITE);
    if (rc != 0) return rc;
    /* A pipe that is ready has room for so much. */
    struct iovec first = parts[0];
    if (first.iov_len > PIPE_BUF) first.iov_len = PIPE_BUF;
    return write_quietly(fd, &first, 1);
}

ssize_t cc__os_recvmsg(int fd, struct msghdr *message, int flags) {
    ssize_t got;
    CALL(got, recvmsg(fd, message, flags | MSG_DONTWAIT));
    return got;
}

ssize_t cc__os_sendmsg(int fd, const struct msghdr *message, int flags) {
    ssize_t put;
    CALL(put, sendmsg(fd, message, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
    return put;
}

int cc__os_accept(int fd, struct sockaddr *address, socklen_t *length, bool own) {
    int rc = own ? 0 : gate(fd, POLLER_READ);
    if (rc == 0) CALL(rc, accept4(fd, address, length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    return rc;
}

/* For the length of one call. */
static bool borrow_mode(int fd, bool own) {
    bool blocked = false;
    return !own && cc__os_nonblocking(fd, true, &blocked) == 0 && blocked;
}

static void return_mode(int fd, bool borrowed) {
    bool before;
    if (borrowed) (void)cc__os_nonblocking(fd, false, &before);
}

int cc__os_connect(int fd, const struct sockaddr *address, socklen_t length, bool own) {
    bool borrowed = borrow_mode(fd, own);
    int saved = cc__errno_get(), rc = connect(fd, address, length) == 0 ? 0 : -cc__errno_get();
    cc__errno_set(saved);
    return_mode(fd, borrowed);
    return rc == -EINTR ? -EINPROGRESS : rc;
}

int cc__os_connected(int fd) {
    int rc, error = 0;
    socklen_t size = sizeof error;
    CALL(rc, getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
    return rc < 0 ? rc : -error;
}

ssize_t cc__os_sendfile(int to, int from, off_t *offset, size_t count, bool own) {
    bool borrowed = borrow_mode(to, own);
    ssize_t put;
    CALL(put, sendfile(to, from, offset, count));
    return_mode(to, borrowed);
    return put;
}

ssize_t cc__os_splice(int from, int to, size_t count, bool own) {
    bool borrowed = borrow_mode(to, own);
    ssize_t moved;
    CALL(moved, splice(from, NULL, to, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK));
    return_mode(to, borrowed);
    return moved;
}
