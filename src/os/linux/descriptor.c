/* descriptor.c - system calls on descriptors that do not wait. */
#include "os/descriptor.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/san.h"
#include "os/linux/quiet.h"
#include "os/poller.h"
#include "os/simulated.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

/* By the C library, if it has had no other thread; else by the kernel's count, which includes threads of tools. Without
 * /proc: false. */
static bool one_thread(void) {
    enum { DIRECTORY = 2 }; /* links of an empty directory */
    struct stat status;
#if __has_include(<sys/single_threaded.h>)
    if (__libc_single_threaded) return true;
#endif
    return CALL(stat("/proc/self/task", &status)) == 0 && status.st_nlink == DIRECTORY + 1;
}

/* There is no system call for it, but the table never shrinks: so open and close a descriptor with the last number. */
void cc__os_reserve(unsigned most) {
    struct rlimit limit;
    if (!one_thread() || CALL(getrlimit(RLIMIT_NOFILE, &limit)) != 0 || limit.rlim_cur < 2) return;
    int fd = CALL(eventfd(0, EFD_CLOEXEC));
    if (fd < 0) return;
    int last = CALL(fcntl(fd, F_DUPFD_CLOEXEC, (int)(limit.rlim_cur < most ? limit.rlim_cur : most) - 1));
    if (last >= 0) (void)cc__os_close(last);
    (void)cc__os_close(fd);
}

int cc__os_above_standard(int fd) {
    if (likely(fd < 0 || fd > STDERR_FILENO)) return fd;
    int above = CALL(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (above < 0) return fd;
    (void)cc__os_close(fd);
    return above;
}

int cc__os_close(int fd) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->close(fd);
    int saved = cc__errno_get(), error = close(fd) != 0 ? cc__errno_get() : 0;
    cc__errno_set(saved);
    return error == EINTR ? 0 : error; /* Linux has closed it */
}

int cc__os_no_linger(int fd) {
    struct linger linger = {0};
    socklen_t length = sizeof linger;
    if (unlikely(cc__os_simulation_of(fd) != NULL)) return cc__os_valid(fd);
    int rc = CALL(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length));
    if (rc == 0 && unlikely(linger.l_onoff && linger.l_linger != 0)) {
        linger.l_onoff = 0;
        rc = CALL(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    }
    return rc == -EBADF ? EBADF : 0;
}

int cc__os_close_at_once(int fd) {
    (void)cc__os_no_linger(fd);
    return cc__os_close(fd);
}

int cc__os_valid(int fd) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->valid(fd);
    int rc = CALL(fcntl(fd, F_GETFD));
    return rc < 0 ? -rc : 0;
}

int cc__os_nonblocking(int fd, bool on, bool *blocked) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) {
        *blocked = false;
        return s->valid(fd);
    }
    int rc = 0, flags = CALL(fcntl(fd, F_GETFL));
    if (flags < 0) return -flags;
    *blocked = !(flags & O_NONBLOCK);
    if (*blocked == on) rc = CALL(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
    return rc < 0 ? -rc : 0;
}

bool cc__os_is_blocking(int fd) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return false;
    int flags = CALL(fcntl(fd, F_GETFL));
    return flags >= 0 && !(flags & O_NONBLOCK);
}

bool cc__os_is_stream(int fd, bool *socket) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) { /* a short read does not mean that it is empty */
        *socket = s->is_socket(fd);
        return false;
    }
    struct stat status;
    int type = 0, protocol = 0, rc = CALL(fstat(fd, &status));
    socklen_t size = sizeof type, protocol_size = sizeof protocol;
    *socket = rc == 0 && S_ISSOCK(status.st_mode);
    if (rc != 0) return false;
    if (!*socket) return false; /* a read of a pipe ends with a packet, if its writer has requested that (O_DIRECT) */
    rc = CALL(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size));
    if (rc != 0 || type != SOCK_STREAM) return false;
    /* A read of an SCTP socket ends with a message, and one of a Unix socket where descriptors were sent. */
    rc = CALL(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &protocol_size));
    return rc == 0 && protocol == IPPROTO_TCP;
}

/* For blocking mode, which must not be changed: 0 only if the call will not wait. */
static int gate(int fd, unsigned side) {
    int ready = cc__poller_look(fd, side);
    return ready < 0 ? ready : ready == 0 ? -EAGAIN : 0;
}

/* The two calls that a server makes for each request. Those of the C library are cancellation points, which take four
 * locked instructions, and a thread that is cancelled there would keep the descriptor for ever (FD-4). Sanitizers have
 * to intercept what is read and written. The flag repeats the mode, which others may have changed. */
#if defined(CC_ASAN) || defined(CC_TSAN)
static ssize_t receive(int fd, void *to, size_t size) {
    return recv(fd, to, size, MSG_DONTWAIT);
}
static ssize_t transmit(int fd, const void *from, size_t size) {
    return send(fd, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}
#else
static ssize_t receive(int fd, void *to, size_t size) {
    return syscall(SYS_recvfrom, fd, to, size, MSG_DONTWAIT, NULL, NULL);
}
static ssize_t transmit(int fd, const void *from, size_t size) {
    return syscall(SYS_sendto, fd, from, size, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
}
#endif

/* Whether reads and writes of it wait for no other process. */
static bool is_file(int fd) {
    struct stat status;
    return CALL(fstat(fd, &status)) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

/* A check says that there is something to read, but another process may take it first. Kernels before 6.4 have no such
 * call for pipes, and none has it for terminals. */
static ssize_t read_what_is_there(int fd, const struct iovec *parts, int n) {
    ssize_t got = CALL(preadv2(fd, parts, n, -1, RWF_NOWAIT));
    if (got > 0) cc__san_written(parts, (size_t)got);
    if (got == -EOPNOTSUPP || got == -ENOSYS || (got == -EAGAIN && is_file(fd))) got = CALL(readv(fd, parts, n));
    return got;
}

/* For a descriptor that is not a socket, and whose mode is not known. 0: it is in non-blocking mode. other: the access
 * mode in which the call fails. A check would say that it may not be called yet. */
static ssize_t check_mode(int fd, int other) {
    int flags = CALL(fcntl(fd, F_GETFL));
    if (flags < 0 || (flags & O_NONBLOCK)) return flags < 0 ? flags : 0;
    return (flags & O_ACCMODE) == other ? -EBADF : OS_LOOK_FIRST;
}

ssize_t cc__os_readv(int fd, const struct iovec *parts, int n, enum os_mode mode) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->readv(fd, parts, n);
    /* A vector of one costs a twentieth more. */
    if (likely(mode == OS_OWN_SOCKET && n == 1)) return CALL(receive(fd, parts[0].iov_base, parts[0].iov_len));
    ssize_t rc = 0;
    if (mode == OS_OTHER || mode == OS_OWN_SOCKET) {
        struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)n};
        ssize_t got = CALL(recvmsg(fd, &message, MSG_DONTWAIT));
        if (got != -ENOTSOCK) return got;
        rc = check_mode(fd, O_WRONLY);
    } else if (mode == OS_LOOKED_AT) {
        rc = gate(fd, POLLER_READ);
        if (rc == 0) return read_what_is_there(fd, parts, n);
    }
    return rc != 0 ? rc : CALL(readv(fd, parts, n));
}

/* A call that has moved some bytes before the reader of a pipe left also raises SIGPIPE, and returns their number.
 * flags: of pwritev2. */
static ssize_t write_quietly(int fd, const struct iovec *parts, int n, int flags) {
    struct quiet quiet;
    quiet_begin(&quiet, false);
    ssize_t put = flags == 0 ? CALL(writev(fd, parts, n)) : CALL(pwritev2(fd, parts, n, -1, flags));
    size_t total = 0;
    for (int i = 0; i < n; i++) total += parts[i].iov_len;
    quiet_end(&quiet, put != (ssize_t)total);
    return put;
}

/* A pipe that is ready has room for PIPE_BUF bytes, unless another process is faster. Sanitizers have to intercept what
 * is written, and know no pwritev2. */
static ssize_t write_what_fits(int fd, const struct iovec *parts, int n) {
    ssize_t put = -EOPNOTSUPP;
#if !defined(CC_ASAN) && !defined(CC_TSAN)
    put = write_quietly(fd, parts, n, RWF_NOWAIT);
#endif
    if (put != -EOPNOTSUPP && put != -ENOSYS) return put;
    size_t total = 0;
    int fits = 0;
    while (fits < n && total + parts[fits].iov_len <= PIPE_BUF) total += parts[fits++].iov_len;
    if (fits > 0) return write_quietly(fd, parts, fits, 0);
    struct iovec first = {parts[0].iov_base, PIPE_BUF};
    return write_quietly(fd, &first, 1, 0);
}

static bool is_terminal(int fd) {
    struct termios settings;
    return CALL(tcgetattr(fd, &settings)) == 0;
}

ssize_t cc__os_writev(int fd, const struct iovec *parts, int n, enum os_mode mode) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->writev(fd, parts, n);
    if (likely(mode == OS_OWN_SOCKET && n == 1)) return CALL(transmit(fd, parts[0].iov_base, parts[0].iov_len));
    if (mode == OS_OWN) return write_quietly(fd, parts, n, 0);
    if (mode != OS_LOOKED_AT) {
        struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)n};
        ssize_t put = CALL(sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
        if (put != -ENOTSOCK) return put;
        ssize_t rc = n == 0 || is_file(fd) ? 0 : check_mode(fd, O_RDONLY);
        return rc != 0 ? rc : write_quietly(fd, parts, n, 0);
    }
    int rc = gate(fd, POLLER_WRITE);
    if (rc != 0) return rc;
    return is_terminal(fd) ? OS_BORROW : write_what_fits(fd, parts, n); /* it is ready if it has room for a byte */
}

ssize_t cc__os_recvmsg(int fd, struct msghdr *message, int flags) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->recvmsg(fd, message, flags);
    return CALL(recvmsg(fd, message, flags | MSG_DONTWAIT));
}

ssize_t cc__os_sendmsg(int fd, const struct msghdr *message, int flags) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->sendmsg(fd, message, flags);
    return CALL(sendmsg(fd, message, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

int cc__os_accept(int fd, struct sockaddr *address, socklen_t *length, enum os_mode mode) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->accept(fd, address, length);
    if (mode == OS_OTHER && cc__os_is_blocking(fd)) {
        int listens = 0;
        socklen_t size = sizeof listens;
        int rc = CALL(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size));
        if (rc != 0 || listens) return rc != 0 ? rc : OS_LOOK_FIRST; /* if it does not listen, the call fails */
    }
    int rc = mode == OS_LOOKED_AT ? gate(fd, POLLER_READ) : 0;
    if (rc == 0) rc = CALL(accept4(fd, address, length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    return rc;
}

int cc__os_connect(int fd, const struct sockaddr *address, socklen_t length) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->connect(fd, address, length);
    int saved = cc__errno_get(), rc = connect(fd, address, length) == 0 ? 0 : -cc__errno_get();
    cc__errno_set(saved);
    return rc == -EINTR ? -EINPROGRESS : rc;
}

int cc__os_connected(int fd) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->connected(fd);
    int error = 0;
    socklen_t size = sizeof error;
    int rc = CALL(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
    return rc < 0 ? rc : -error;
}

/* What the kernel sends at most. It rejects a count that together with the offset exceeds a signed number. */
enum { SEND_MAX = 0x7ffff000 };

ssize_t cc__os_sendfile(int to, int from, off_t *offset, size_t count) {
    if (unlikely(cc__os_simulation_of(to) != NULL || cc__os_simulation_of(from) != NULL)) return -EINVAL;
    struct quiet quiet;
    quiet_begin(&quiet, false);
    ssize_t put = CALL(sendfile(to, from, offset, count < SEND_MAX ? count : SEND_MAX));
    quiet_end(&quiet, true);
    return put;
}

ssize_t cc__os_splice(int from, bool own, int to, size_t count) {
    if (unlikely(cc__os_simulation_of(to) != NULL || cc__os_simulation_of(from) != NULL)) return -EINVAL;
    /* SPLICE_F_NONBLOCK is for pipes: a TCP socket can wait in spite of it. */
    int rc = own || !cc__os_is_blocking(from) ? 0 : gate(from, POLLER_READ);
    if (rc != 0) return rc;
    struct quiet quiet;
    quiet_begin(&quiet, false);
    count = count < SEND_MAX ? count : SEND_MAX;
    ssize_t moved = CALL(splice(from, NULL, to, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK));
    quiet_end(&quiet, true);
    return moved;
}
