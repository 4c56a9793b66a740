/* wrap.c - calls of libc that park the fiber: `ld --wrap=read` sends every call of read here.
 *
 * Outside of fibers, and for descriptors in non-blocking mode, each call does what libc's does. Otherwise it tries
 * without waiting and then parks until the descriptor is ready. It uses the public interface of libccc only.
 */
#include <ccc/ccc.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Declares libc's function and the one that takes its place. */
#define WRAP(type, name, ...)        \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

/* ---- the context of the call ---- */

/* The linker redirects the calls of libccc.a, too, which would then call itself for ever. */
__attribute__((constructor)) static void refuse_static_library(void) {
    Dl_info library, program;
    if (dladdr((void *)cc_fd_read, &library) == 0 || dladdr((void *)refuse_static_library, &program) == 0) return;
    if (library.dli_fbase != program.dli_fbase) return;
    fputs("ccc: libccc_posix is linked with libccc.a, whose own calls it would redirect: link libccc.so instead\n",
          stderr);
    abort();
}

/* errno belongs to the thread, and a call that parks may return on another one. Compilers assume that its address is
 * constant, and would keep it across the call: so it is used here only, and these are not inlined. */
__attribute__((noinline)) static int errno_here(void) {
    return errno;
}
__attribute__((noinline)) static void set_errno(int error) {
    errno = error;
}

static bool blocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && !(flags & O_NONBLOCK);
}

/* SO_RCVTIMEO, SO_SNDTIMEO. */
static CCDeadline socket_deadline(int fd, int option) {
    struct timeval t = {0, 0};
    socklen_t size = sizeof t;
    int saved = errno_here();
    bool is_set = getsockopt(fd, SOL_SOCKET, option, &t, &size) == 0 && (t.tv_sec != 0 || t.tv_usec != 0);
    set_errno(saved);
    return is_set ? cc_after_ns((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000) : CC_FOREVER;
}

/* A result as libc has it. `moved` bytes went through before the error. ETIMEDOUT may come from the connection, whose
 * peer does not answer; if the deadline has passed, it is taken for the timeout of the socket. */
static ssize_t answer(int error, size_t moved, CCDeadline deadline) {
    if (error == 0 || moved > 0) return (ssize_t)moved;
    set_errno(error == ETIMEDOUT && deadline.ns <= cc_now_ns() ? EAGAIN : error);
    return -1;
}

/* ---- bytes ---- */

WRAP(ssize_t, readv, int fd, const struct iovec *parts, int count) {
    if (!cc_in_fiber()) return __real_readv(fd, parts, count);
    CCDeadline deadline = CC_FOREVER;
    size_t n = 0;
    int error = cc_fd_readv_try(fd, parts, count, &n);
    if (error == EAGAIN && blocking(fd)) {
        deadline = socket_deadline(fd, SO_RCVTIMEO);
        error = cc_fd_readv_until(fd, parts, count, &n, deadline);
    }
    return error == ENOTSUP ? __real_readv(fd, parts, count) : answer(error, n, deadline);
}

WRAP(ssize_t, writev, int fd, const struct iovec *parts, int count) {
    if (!cc_in_fiber()) return __real_writev(fd, parts, count);
    bool waits = blocking(fd);
    CCDeadline deadline = waits ? socket_deadline(fd, SO_SNDTIMEO) : CC_FOREVER;
    size_t n = 0;
    int error = waits ? cc_fd_writev_until(fd, parts, count, &n, deadline) : cc_fd_writev_try(fd, parts, count, &n);
    return error == ENOTSUP ? __real_writev(fd, parts, count) : answer(error, n, deadline);
}

WRAP(ssize_t, read, int fd, void *buffer, size_t size) {
    if (!cc_in_fiber()) return __real_read(fd, buffer, size);
    struct iovec one = {buffer, size};
    return __wrap_readv(fd, &one, 1);
}

WRAP(ssize_t, write, int fd, const void *bytes, size_t size) {
    if (!cc_in_fiber()) return __real_write(fd, bytes, size);
    struct iovec one = {(void *)(uintptr_t)bytes, size};
    return __wrap_writev(fd, &one, 1);
}

/* ---- messages ---- */

/* Calls that do not wait, or that concern something other than the stream. */
static bool plain_call(int flags) {
    return !cc_in_fiber() || (flags & (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE)) != 0;
}

/* With MSG_WAITALL a stream is read until there is as much as was asked for; messages are not joined. A peek cannot
 * continue where it ended, nor can a message with descriptors. */
static bool wants_all(int fd, const struct msghdr *message, int flags) {
    int type = 0, saved = errno_here();
    socklen_t size = sizeof type;
    if ((flags & (MSG_WAITALL | MSG_PEEK)) != MSG_WAITALL || message->msg_control != NULL || !blocking(fd))
        return false;
    bool stream = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
    set_errno(saved);
    return stream;
}

/* Until all is there, the stream ends, or something fails: how much there is. */
static ssize_t receive_rest(int fd, const struct iovec *parts, size_t count, size_t done, int flags,
                            CCDeadline deadline) {
    size_t skip = done;
    for (size_t i = 0; i < count; i++) {
        if (skip >= parts[i].iov_len) {
            skip -= parts[i].iov_len;
            continue;
        }
        struct iovec rest = {(char *)parts[i].iov_base + skip, parts[i].iov_len - skip};
        skip = 0;
        while (rest.iov_len > 0) {
            struct msghdr message = {.msg_iov = &rest, .msg_iovlen = 1};
            size_t n = 0;
            if (cc_fd_recvmsg_until(fd, &message, flags, &n, deadline) != 0 || n == 0) return (ssize_t)done;
            done += n;
            rest.iov_base = (char *)rest.iov_base + n;
            rest.iov_len -= n;
        }
    }
    return (ssize_t)done;
}

WRAP(ssize_t, recvmsg, int fd, struct msghdr *message, int flags) {
    if (plain_call(flags) || message == NULL) return __real_recvmsg(fd, message, flags);
    CCDeadline deadline = CC_FOREVER;
    size_t n = 0;
    bool all = wants_all(fd, message, flags);
    int error = cc_fd_recvmsg_try(fd, message, flags, &n);
    if ((error == EAGAIN && blocking(fd)) || all) deadline = socket_deadline(fd, SO_RCVTIMEO);
    if (error == EAGAIN && blocking(fd)) error = cc_fd_recvmsg_until(fd, message, flags, &n, deadline);
    if (error == 0 && n > 0 && all)
        return receive_rest(fd, message->msg_iov, message->msg_iovlen, n, flags & ~MSG_WAITALL, deadline);
    return error == ENOTSUP ? __real_recvmsg(fd, message, flags) : answer(error, n, deadline);
}

WRAP(ssize_t, recvfrom, int fd, void *buffer, size_t size, int flags, struct sockaddr *from, socklen_t *length) {
    if (plain_call(flags)) return __real_recvfrom(fd, buffer, size, flags, from, length);
    struct iovec one = {buffer, size};
    struct msghdr message = {.msg_name = from,
                             .msg_namelen = from != NULL && length != NULL ? *length : 0,
                             .msg_iov = &one,
                             .msg_iovlen = 1};
    ssize_t n = __wrap_recvmsg(fd, &message, flags);
    if (n >= 0 && from != NULL && length != NULL) *length = message.msg_namelen;
    return n;
}

WRAP(ssize_t, recv, int fd, void *buffer, size_t size, int flags) {
    if (plain_call(flags)) return __real_recv(fd, buffer, size, flags);
    return __wrap_recvfrom(fd, buffer, size, flags, NULL, NULL);
}

/* A blocking socket takes all of it: what a stream had no room for follows. */
static ssize_t send_rest(int fd, const struct iovec *parts, size_t count, size_t done, int flags, CCDeadline deadline) {
    size_t skip = done;
    for (size_t i = 0; i < count; i++) {
        if (skip >= parts[i].iov_len) {
            skip -= parts[i].iov_len;
            continue;
        }
        struct iovec rest = {(char *)parts[i].iov_base + skip, parts[i].iov_len - skip};
        skip = 0;
        while (rest.iov_len > 0) {
            struct msghdr message = {.msg_iov = &rest, .msg_iovlen = 1};
            size_t n = 0;
            if (cc_fd_sendmsg_until(fd, &message, flags, &n, deadline) != 0) return (ssize_t)done;
            done += n;
            rest.iov_base = (char *)rest.iov_base + n;
            rest.iov_len -= n;
        }
    }
    return (ssize_t)done;
}

WRAP(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags) {
    if (plain_call(flags) || message == NULL) return __real_sendmsg(fd, message, flags);
    size_t n = 0;
    int error = cc_fd_sendmsg_try(fd, message, flags, &n);
    if ((error != 0 && error != EAGAIN) || !blocking(fd)) return answer(error, n, CC_FOREVER);
    CCDeadline deadline = socket_deadline(fd, SO_SNDTIMEO);
    if (error == EAGAIN) error = cc_fd_sendmsg_until(fd, message, flags, &n, deadline);
    if (error == ENOTSUP) return __real_sendmsg(fd, message, flags);
    if (error != 0) return answer(error, 0, deadline);
    return send_rest(fd, message->msg_iov, message->msg_iovlen, n, flags, deadline);
}

WRAP(ssize_t, sendto, int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    if (plain_call(flags)) return __real_sendto(fd, bytes, size, flags, to, length);
    struct iovec one = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {
        .msg_name = (void *)(uintptr_t)to, .msg_namelen = length, .msg_iov = &one, .msg_iovlen = 1};
    return __wrap_sendmsg(fd, &message, flags);
}

WRAP(ssize_t, send, int fd, const void *bytes, size_t size, int flags) {
    if (plain_call(flags)) return __real_send(fd, bytes, size, flags);
    return __wrap_sendto(fd, bytes, size, flags, NULL, 0);
}

/* ---- connections ---- */

/* cc_fd_accept returns an adopted descriptor, non-blocking and close-on-exec. */
static int as_asked_for(int connection, int flags) {
    (void)cc_fd_release(connection);
    int saved = errno_here(), status = fcntl(connection, F_GETFL);
    status = flags & SOCK_NONBLOCK ? status | O_NONBLOCK : status & ~O_NONBLOCK;
    (void)fcntl(connection, F_SETFL, status);
    (void)fcntl(connection, F_SETFD, flags & SOCK_CLOEXEC ? FD_CLOEXEC : 0);
    set_errno(saved);
    return connection;
}

WRAP(int, accept4, int fd, struct sockaddr *address, socklen_t *length, int flags) {
    if (!cc_in_fiber() || (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != 0 || !blocking(fd))
        return __real_accept4(fd, address, length, flags);
    int connection = -1;
    CCDeadline deadline = socket_deadline(fd, SO_RCVTIMEO);
    int error = cc_fd_accept_until(fd, &connection, address, length, deadline);
    if (error == ENOTSUP) return __real_accept4(fd, address, length, flags);
    return error != 0 ? (int)answer(error, 0, deadline) : as_asked_for(connection, flags);
}

WRAP(int, accept, int fd, struct sockaddr *address, socklen_t *length) {
    return cc_in_fiber() ? __wrap_accept4(fd, address, length, 0) : __real_accept(fd, address, length);
}

WRAP(int, connect, int fd, const struct sockaddr *address, socklen_t length) {
    if (!cc_in_fiber() || !blocking(fd)) return __real_connect(fd, address, length);
    CCDeadline deadline = socket_deadline(fd, SO_SNDTIMEO);
    int error = cc_fd_connect_until(fd, address, length, deadline);
    if (error == ENOTSUP) return __real_connect(fd, address, length);
    if (error == 0) return 0;
    set_errno(error == ETIMEDOUT && deadline.ns <= cc_now_ns() ? EINPROGRESS : error);
    return -1;
}

WRAP(int, poll, struct pollfd *fds, nfds_t count, int timeout_ms) {
    if (!cc_in_fiber() || timeout_ms == 0) return __real_poll(fds, count, timeout_ms);
    size_t ready = 0;
    int error = cc_poll(fds, count, timeout_ms < 0 ? CC_FOREVER : cc_after_ms((uint64_t)timeout_ms), &ready);
    if (error == ENOTSUP) return __real_poll(fds, count, timeout_ms);
    if (error == 0 || error == ETIMEDOUT) return error == 0 ? (int)ready : 0;
    set_errno(error);
    return -1;
}

/* ---- time ---- */

static uint64_t nanoseconds(const struct timespec *t) {
    uint64_t seconds = (uint64_t)t->tv_sec < UINT64_MAX / 2000000000 ? (uint64_t)t->tv_sec : UINT64_MAX / 2000000000;
    return seconds * 1000000000 + (uint64_t)t->tv_nsec;
}

static bool valid(const struct timespec *t) {
    return t != NULL && t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

/* 0, or ECANCELED with the time that is left. */
static int sleep_for(uint64_t ns, struct timespec *left) {
    uint64_t end = cc_now_ns() + ns;
    int error = cc_sleep_until(cc_after_ns(ns));
    if (error != 0 && left != NULL) {
        uint64_t now = cc_now_ns(), rest = end > now ? end - now : 0;
        *left = (struct timespec){(time_t)(rest / 1000000000), (long)(rest % 1000000000)};
    }
    return error;
}

WRAP(int, clock_nanosleep, clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    struct timespec now = {0, 0};
    bool known = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
    if (!cc_in_fiber() || !known || !valid(time)) return __real_clock_nanosleep(clock, flags, time, left);
    if (!(flags & TIMER_ABSTIME)) return sleep_for(nanoseconds(time), left);
    clock_gettime(clock, &now);
    uint64_t from = nanoseconds(&now), to = nanoseconds(time);
    return to > from ? sleep_for(to - from, NULL) : 0;
}

WRAP(int, nanosleep, const struct timespec *time, struct timespec *left) {
    if (!cc_in_fiber() || !valid(time)) return __real_nanosleep(time, left);
    int error = sleep_for(nanoseconds(time), left);
    if (error != 0) set_errno(error);
    return error != 0 ? -1 : 0;
}

WRAP(int, usleep, useconds_t us) {
    struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    return cc_in_fiber() ? __wrap_nanosleep(&time, NULL) : __real_usleep(us);
}

WRAP(unsigned, sleep, unsigned seconds) {
    struct timespec left = {0, 0};
    if (!cc_in_fiber()) return __real_sleep(seconds);
    int error = sleep_for((uint64_t)seconds * 1000000000, &left);
    return error == 0 ? 0 : (unsigned)left.tv_sec + (left.tv_nsec > 0);
}

/* ---- names ---- */

/* One block of memory: the lookup, then its two strings. */
struct lookup {
    const char *host, *service;
    const struct addrinfo *hints;
    struct addrinfo hints_copy;
    struct addrinfo *found;
    int result, error;
};

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found);

static void *look_up(void *arg) {
    struct lookup *l = arg;
    l->result = __real_getaddrinfo(l->host, l->service, l->hints, &l->found);
    l->error = errno_here();
    return NULL;
}

static void drop_lookup(void *arg, void *result) {
    struct lookup *l = arg;
    (void)result;
    if (l->found != NULL) freeaddrinfo(l->found);
    free(l);
}

static struct lookup *new_lookup(const char *host, const char *service, const struct addrinfo *hints) {
    size_t host_size = host != NULL ? strlen(host) + 1 : 0, service_size = service != NULL ? strlen(service) + 1 : 0;
    struct lookup *l = calloc(1, sizeof *l + host_size + service_size);
    if (l == NULL) return NULL;
    char *strings = (char *)(l + 1);
    if (host != NULL) l->host = memcpy(strings, host, host_size);
    if (service != NULL) l->service = memcpy(strings + host_size, service, service_size);
    if (hints != NULL) {
        l->hints_copy = *hints;
        l->hints = &l->hints_copy;
    }
    return l;
}

/* In the pool for slow calls. A cancelled caller abandons the lookup. */
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    bool numeric = hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0;
    if (!cc_in_fiber() || host == NULL || numeric) return __real_getaddrinfo(host, service, hints, found);
    struct lookup *l = new_lookup(host, service, hints);
    if (l == NULL) return EAI_MEMORY;
    CCBlockingOptions options = {.pool = CC_POOL_SLOW, .may_abandon = true, .cleanup = drop_lookup};
    int error = cc_blocking_ex(look_up, l, NULL, &options, CC_FOREVER);
    if (error == ECANCELED || error == ETIMEDOUT) { /* the pool owns l */
        set_errno(error);
        return EAI_SYSTEM;
    }
    int result = error == 0 ? l->result : error == ENOMEM ? EAI_MEMORY : EAI_SYSTEM;
    if (error != 0) set_errno(error);
    if (error == 0 && result == EAI_SYSTEM) set_errno(l->error);
    if (result == 0) *found = l->found;
    free(l);
    return result;
}

/* ---- what -D_FORTIFY_SOURCE makes of them: `room` is the size of the buffer ---- */

WRAP(ssize_t, __read_chk, int fd, void *buffer, size_t size, size_t room) {
    return size > room ? __real___read_chk(fd, buffer, size, room) : __wrap_read(fd, buffer, size);
}
WRAP(ssize_t, __recv_chk, int fd, void *buffer, size_t size, size_t room, int flags) {
    return size > room ? __real___recv_chk(fd, buffer, size, room, flags) : __wrap_recv(fd, buffer, size, flags);
}
WRAP(ssize_t, __recvfrom_chk, int fd, void *buffer, size_t size, size_t room, int flags, struct sockaddr *from,
     socklen_t *length) {
    return size > room ? __real___recvfrom_chk(fd, buffer, size, room, flags, from, length)
                       : __wrap_recvfrom(fd, buffer, size, flags, from, length);
}
WRAP(int, __poll_chk, struct pollfd *fds, nfds_t count, int timeout_ms, size_t room) {
    return count > room / sizeof *fds ? __real___poll_chk(fds, count, timeout_ms, room)
                                      : __wrap_poll(fds, count, timeout_ms);
}
