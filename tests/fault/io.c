/* io.c - descriptors while the system fails: every call of os/linux/poller.c, descriptor.c and descriptor_name.c,
 * interrupted, and with its errors. The caller gets the error, once; nothing is lost and nothing leaks. */
#include "fail.h"
#include "harness.h"

#include "os/descriptor.h"

#include <ccc/ccc.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

/* The calls of one kind fail `times` times. */
enum kind {
    NONE,
    RECV,
    SEND,
    READV,
    WRITEV,
    RECVMSG,
    SENDMSG,
    ACCEPT,
    CONNECT,
    SENDFILE,
    SPLICE,
    FCNTL,
    POLL,
    SET,
    EVENT,
    CONTROL,
    WAIT,
    OWN_NAME,
    PEER_NAME,
    OPTION,
    LINK,
};

static struct { _Atomic int kind, error, times, failed; } next;

static void arm(enum kind kind, int error, int times) {
    atomic_store(&next.error, error);
    atomic_store(&next.times, times);
    atomic_store(&next.failed, 0);
    atomic_store(&next.kind, kind);
}

static int disarm(void) {
    atomic_store(&next.kind, NONE);
    return atomic_load(&next.failed);
}

static bool fails(enum kind kind) {
    if (atomic_load(&next.kind) != (int)kind || atomic_fetch_sub(&next.times, 1) <= 0) return false;
    atomic_fetch_add(&next.failed, 1);
    cc__errno_set(atomic_load(&next.error));
    return true;
}

#define WRAP(type, name, kind, parameters, arguments)      \
    type __real_##name parameters;                         \
    type __wrap_##name parameters;                         \
    type __wrap_##name parameters {                        \
        return fails(kind) ? -1 : __real_##name arguments; \
    }
WRAP(ssize_t, recv, RECV, (int fd, void *b, size_t n, int f), (fd, b, n, f))
WRAP(ssize_t, send, SEND, (int fd, const void *b, size_t n, int f), (fd, b, n, f))
WRAP(ssize_t, readv, READV, (int fd, const struct iovec *v, int n), (fd, v, n))
WRAP(ssize_t, writev, WRITEV, (int fd, const struct iovec *v, int n), (fd, v, n))
WRAP(ssize_t, recvmsg, RECVMSG, (int fd, struct msghdr *m, int f), (fd, m, f))
WRAP(ssize_t, sendmsg, SENDMSG, (int fd, const struct msghdr *m, int f), (fd, m, f))
WRAP(int, accept4, ACCEPT, (int fd, struct sockaddr *a, socklen_t *n, int f), (fd, a, n, f))
WRAP(int, connect, CONNECT, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(ssize_t, sendfile, SENDFILE, (int to, int from, off_t *o, size_t n), (to, from, o, n))
WRAP(ssize_t, splice, SPLICE, (int from, off_t *fo, int to, off_t *too, size_t n, unsigned f),
     (from, fo, to, too, n, f))
WRAP(int, poll, POLL, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
WRAP(int, epoll_create1, SET, (int flags), (flags))
WRAP(int, eventfd, EVENT, (unsigned value, int flags), (value, flags))
WRAP(int, epoll_ctl, CONTROL, (int set, int op, int fd, struct epoll_event *e), (set, op, fd, e))
WRAP(int, getsockname, OWN_NAME, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
WRAP(int, getpeername, PEER_NAME, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
WRAP(int, getsockopt, OPTION, (int fd, int l, int o, void *v, socklen_t *n), (fd, l, o, v, n))
WRAP(ssize_t, readlink, LINK, (const char *path, char *to, size_t n), (path, to, n))

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
    va_list args;
    va_start(args, command);
    long value = va_arg(args, long);
    va_end(args);
    return fails(FCNTL) ? -1 : __real_fcntl(fd, command, value);
}

/* Without sanitizers these are called without the C library. */
static int at_call(long number) {
    enum kind kind = number == SYS_recvfrom                                    ? RECV
                     : number == SYS_sendto                                    ? SEND
                     : number == SYS_epoll_pwait || number == SYS_epoll_pwait2 ? WAIT
                                                                               : NONE;
    return kind != NONE && fails(kind) ? atomic_load(&next.error) : 0;
}

/* ---- what the calls work with ---- */

static struct sockaddr_in address;
static int listener, sockets[2], ends[2], others[2], file;

static void begin(void) {
    socklen_t length = sizeof address;
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof address) + listen(listener, 8), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, others), 0);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK_EQ(cc_fd_adopt(listener) + cc_fd_adopt(sockets[0]) + cc_fd_adopt(sockets[1]), 0);
    CHECK_EQ(cc_fd_adopt(ends[0]) + cc_fd_adopt(ends[1]), 0);
    atomic_store(&fail.at_call, at_call);
}

static void end(void) {
    CHECK_EQ(cc_fd_close(listener) + cc_fd_close(sockets[0]) + cc_fd_close(sockets[1]), 0);
    CHECK_EQ(cc_fd_close(ends[0]) + cc_fd_close(ends[1]), 0);
    CHECK_EQ(close(others[0]) + close(others[1]) + close(file), 0);
    CHECK_EQ(cc_io_waiters(), 0);
}

/* How many are open, without files in /proc: sysmon reads some of them, at any time, and closes them at once. */
static long descriptors(void) {
    DIR *dir = opendir("/proc/self/fd");
    long n = 0;
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char target[64] = "";
        if (readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1) < 0) continue; /* closed meanwhile */
        if (strncmp(target, "/proc/", 6) != 0) n++;
    }
    closedir(dir);
    return n;
}

static ssize_t take(int fd, void *to, size_t size) {
    struct iovec one = {to, size};
    return __real_readv(fd, &one, 1);
}

/* ---- the calls; what one has not moved is there for the next ---- */

static int reads_from(int from, int to) {
    char byte = 0;
    size_t n = 7;
    CHECK_EQ(write(to, "x", 1), 1);
    int rc = cc_fd_read(from, &byte, 1, &n);
    CHECK_EQ(n, rc == 0 ? 1 : 0);
    if (rc != 0) CHECK_EQ(take(from, &byte, 1), 1);
    CHECK_EQ(byte, 'x');
    return rc;
}
static int writes_to(int to, int from) {
    char byte = 0;
    size_t n = 7;
    int rc = cc_fd_write(to, "x", 1, &n);
    CHECK_EQ(n, rc == 0 ? 1 : 0);
    if (rc == 0) CHECK_EQ(take(from, &byte, 1), 1);
    return rc;
}
static int reads_socket(void) {
    return reads_from(sockets[0], sockets[1]);
}
static int writes_socket(void) {
    return writes_to(sockets[1], sockets[0]);
}
static int reads_pipe(void) {
    return reads_from(ends[0], ends[1]);
}
static int writes_pipe(void) {
    return writes_to(ends[1], ends[0]);
}
static int reads_other(void) {
    return reads_from(others[0], others[1]);
}
static int writes_other(void) {
    return writes_to(others[1], others[0]);
}

static int accepts(void) {
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), connection = -1;
    CHECK_EQ(connect(peer, (struct sockaddr *)&address, sizeof address), 0);
    int rc = cc_fd_accept(listener, &connection, NULL, NULL);
    CHECK((connection >= 0) == (rc == 0));
    if (rc != 0 && atomic_load(&next.kind) == ACCEPT) CHECK_EQ(cc_fd_accept(listener, &connection, NULL, NULL), 0);
    if (connection >= 0) CHECK_EQ(cc_fd_close(connection), 0);
    close(peer);
    return rc;
}

static int connects(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), connection;
    CHECK_EQ(cc_fd_adopt(fd), 0);
    int rc = cc_fd_connect(fd, (struct sockaddr *)&address, sizeof address);
    if (rc == 0) {
        CHECK_EQ(cc_fd_accept(listener, &connection, NULL, NULL), 0);
        CHECK_EQ(cc_fd_close(connection), 0);
    }
    CHECK_EQ(cc_fd_close(fd), 0);
    return rc;
}

static int sends_file(void) {
    char byte;
    size_t n = 7;
    int64_t offset = 0;
    int rc = cc_fd_sendfile(sockets[1], file, &offset, 1, &n);
    CHECK_EQ(n, rc == 0 ? 1 : 0);
    CHECK_EQ(offset, (int64_t)n);
    if (rc == 0) CHECK_EQ(take(sockets[0], &byte, 1), 1);
    return rc;
}

static int splices(void) {
    char byte;
    size_t n = 7;
    CHECK_EQ(write(ends[1], "x", 1), 1);
    int rc = cc_fd_splice(ends[0], sockets[1], 1, &n);
    CHECK_EQ(n, rc == 0 ? 1 : 0);
    CHECK_EQ(take(rc == 0 ? sockets[0] : ends[0], &byte, 1), 1);
    return rc;
}

static int adopts(void) {
    int fd = dup(ends[0]), rc = cc_fd_adopt(fd);
    CHECK_EQ(cc_fd_close(fd), 0);
    return rc;
}

static int waits(void) {
    int ready = 0, rc = cc_fd_wait(ends[1], CC_WRITABLE, &ready);
    CHECK_EQ(ready, rc == 0 ? CC_WRITABLE : 0);
    return rc;
}

static int polls(void) {
    struct pollfd one = {.fd = ends[1], .events = POLLOUT};
    size_t n = 7;
    int rc = cc_poll(&one, 1, CC_FOREVER, &n);
    CHECK_EQ(n, rc == 0 ? 1 : 0);
    return rc;
}

/* A wait that has to be registered, or armed; nothing comes. */
static int waits_in_vain(int fd) {
    char byte;
    size_t n;
    int rc = cc_fd_read_until(fd, &byte, 1, &n, cc_after_ms(1));
    return rc == ETIMEDOUT ? 0 : rc;
}
static int registers(void) {
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    CHECK_EQ(cc_fd_adopt(fds[0]), 0);
    int rc = waits_in_vain(fds[0]);
    CHECK_EQ(waits_in_vain(fds[0]), 0); /* the next one is not affected */
    CHECK_EQ(cc_fd_close(fds[0]) + close(fds[1]), 0);
    return rc;
}
static int arms(void) {
    int rc = waits_in_vain(others[0]);
    CHECK_EQ(waits_in_vain(others[0]), 0);
    return rc;
}

static const struct row {
    enum kind kind;
    int (*call)(void);
    int errors[6];
    bool never_interrupted;
} rows[] = {
    {RECV, reads_socket, {ECONNRESET, ENOMEM, ENOBUFS, EIO}, false},
    {SEND, writes_socket, {EPIPE, ECONNRESET, ENOBUFS, ENOMEM}, false},
    {READV, reads_pipe, {EIO, ENOMEM}, false},
    {WRITEV, writes_pipe, {EPIPE, ENOSPC, EIO, EDQUOT}, false},
    {RECVMSG, reads_other, {ECONNRESET, ENOMEM, ENOBUFS}, false},
    {SENDMSG, writes_other, {EPIPE, ECONNRESET, ENOBUFS, ENOMEM}, false},
    {ACCEPT, accepts, {EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED}, false},
    {CONNECT, connects, {ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL, ENOBUFS}, true},
    {SENDFILE, sends_file, {EPIPE, EIO, ENOMEM}, false},
    {SPLICE, splices, {EPIPE, EIO, ENOMEM}, false},
    {FCNTL, adopts, {EPERM}, false},
    {POLL, waits, {ENOMEM}, false},
    {POLL, polls, {ENOMEM}, false},
    {CONTROL, registers, {ENOSPC, ENOMEM}, true},
    {CONTROL, arms, {ENOSPC, ENOMEM}, true},
};

static void *every_row(void *arg) {
    CHECK_EQ(waits_in_vain(ends[0]) + waits_in_vain(others[0]), 0); /* the poller is open */
    long open_before = descriptors();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        int rc, failed;
        if (!row->never_interrupted) {
            arm(row->kind, EINTR, 3); /* which is retried */
            rc = row->call();
            failed = disarm();
            CHECK_EQ(rc, 0);
            CHECK_EQ(failed, 3);
        }
        for (int k = 0; row->errors[k] != 0; k++) {
            arm(row->kind, row->errors[k], 1);
            rc = row->call();
            failed = disarm();
            CHECK_EQ(rc, row->errors[k]);
            CHECK_EQ(failed, 1);
            CHECK_EQ(row->call(), 0);
        }
    }
    CHECK_EQ(descriptors(), open_before);
    return arg;
}

TEST(every_call_fails_on_an_os_thread) {
    begin();
    every_row(NULL);
    end();
}

TEST_WORKERS(every_call_fails_in_a_fiber) {
    begin();
    CHECK_EQ(cc_run(every_row, NULL, NULL), 0);
    end();
}

/* ---- the poller ---- */

static void *opens_later(void *arg) {
    static const struct {
        enum kind kind;
        int errors[4];
    } ways[] = {{SET, {EMFILE, ENFILE, ENOMEM}}, {EVENT, {EMFILE, ENFILE, ENOMEM}}, {CONTROL, {ENOSPC, ENOMEM}}};
    long open_before = descriptors();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        for (int k = 0; ways[i].errors[k] != 0; k++) {
            arm(ways[i].kind, ways[i].errors[k], 1);
            int rc = waits_in_vain(ends[0]), failed = disarm();
            CHECK_EQ(rc, ways[i].errors[k]);
            CHECK_EQ(failed, 1);
            CHECK_EQ(descriptors(), open_before);
        }
    CHECK_EQ(waits_in_vain(ends[0]), 0);
    return arg;
}

TEST_WORKERS(the_poller_cannot_be_opened) {
    begin();
    CHECK_EQ(cc_run(opens_later, NULL, NULL), 0);
    end();
}

TEST_WORKERS(no_descriptor_for_the_poller) {
    begin();
    struct rlimit before, none;
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK_EQ(waits_in_vain(ends[0]), EMFILE);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(waits_in_vain(ends[0]), 0);
    end();
}

static void *read_one(void *arg) {
    char byte = 0;
    size_t n = 0;
    CHECK_EQ(cc_fd_read(ends[0], &byte, 1, &n), 0);
    CHECK(n == 1 && byte == 'x');
    return arg;
}

/* Every wait in the poller is interrupted, for a while. */
TEST_WORKERS(waits_of_the_poller_are_interrupted) {
    fail_needs_all();
    begin();
    CCTask reader;
    arm(WAIT, EINTR, 100);
    CHECK_EQ(cc_spawn(&reader, read_one, NULL, NULL), 0);
    while (cc_io_waiters() == 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    CHECK_EQ(cc_task_join(&reader, NULL), 0);
    CHECK_EQ(disarm(), 100);
    end();
}

/* ---- the poller of a runtime that has stopped ---- */

/* Its number may be another descriptor's by then. */
TEST_WORKERS(a_poller_that_was_closed_is_not_asked) {
    begin();
    char byte;
    size_t n;
    int rc[4];
    CHECK_EQ(cc_fd_read_until(ends[0], &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_fd_read_until(sockets[0], &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_fd_read_until(sockets[1], &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_runtime_shutdown(1000), 0);
    arm(CONTROL, EBADF, 100);
    rc[0] = cc_fd_release(sockets[0]);
    rc[1] = cc_fd_close(ends[0]);
    CHECK_EQ(disarm(), 0);
    CHECK_EQ(cc_fd_read_until(listener, &byte, 1, &n, cc_after_ms(1)), ENOTCONN); /* starts the next runtime */
    CHECK_EQ(cc_fd_wait_until(listener, CC_READABLE, NULL, cc_after_ms(1)), ETIMEDOUT);
    arm(CONTROL, ENOENT, 100); /* that has another one */
    rc[2] = cc_fd_close(sockets[0]);
    rc[3] = cc_fd_close(sockets[1]);
    CHECK_EQ(disarm(), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(rc[i], 0);
    CHECK_EQ(cc_fd_close(ends[1]) + cc_fd_close(listener), 0);
    CHECK_EQ(close(others[0]) + close(others[1]) + close(file), 0);
}

/* ---- no memory for the state of a number ---- */

TEST(no_memory_for_a_number) {
    enum { FAR = 700 };
    begin();
    char byte;
    size_t n;
    CHECK_EQ(dup2(ends[0], FAR), FAR);
    fail_arm(1, FAIL_MEMORY, true);
    int adopt = cc_fd_adopt(FAR), read = cc_fd_read_try(FAR, &byte, 1, &n), closed = cc_fd_close(FAR);
    long failed = fail_disarm();
    CHECK_EQ(adopt, ENOMEM);
    CHECK_EQ(read, ENOMEM);
    CHECK_EQ(closed, 0); /* that needs none */
    CHECK(failed >= 2);
    CHECK(__real_fcntl(FAR, F_GETFD) < 0 && errno == EBADF);
    end();
}

/* ---- names, in dumps ---- */

TEST(names_are_reported_as_far_as_they_are_known) {
    begin();
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(peer, (struct sockaddr *)&address, sizeof address), 0);
    const int fds[] = {listener, sockets[0], ends[0], file, peer};
    static const enum kind kinds[] = {OWN_NAME, PEER_NAME, OPTION, LINK};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            char text[200] = "";
            arm(kinds[k], k == 3 ? EACCES : ENOBUFS, 100);
            cc__os_describe(fds[i], false, text, sizeof text);
            disarm();
            printf("%d: %s\n", fds[i], text);
            CHECK(text[0] != 0 && strlen(text) < sizeof text);
        }
    close(peer);
    end();
}
