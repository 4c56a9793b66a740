/* ops.c - the calls on descriptors: try, wait, try again.
 *
 * CALL-1  A call that returns ETIMEDOUT or ECANCELED has moved nothing since its last success: after a wait that
 *         ended so there is no
 *        further attempt.
 * CALL-2  After 64 calls in one turn the fiber lets others run: a descriptor that is always ready does not keep a
 *         worker.
 */
#include "io/fd.h"

#include "os/descriptor.h"
#include "sched/park.h"

#include <ccc/cc_fd.h>
#include <errno.h>
#include <limits.h>

_Static_assert(sizeof(off_t) == sizeof(int64_t) && sizeof(socklen_t) == sizeof(CCSockLen), "as cc_fd.h has them");

enum { CALLS_PER_TURN = 64 };

enum how { HOW_TRY, HOW_WAIT };

/* One operation, as its attempts see it. */
struct call {
    enum io_side side;
    ssize_t (*attempt)(int fd, struct call *c, enum os_mode mode);
    union {
        struct {
            const struct iovec *parts;
            int count;
        } vector;
        struct {
            struct msghdr *message;
            int flags;
        } message;
        struct {
            struct sockaddr *address;
            socklen_t *length;
        } accept;
        struct {
            const struct sockaddr *address;
            socklen_t length;
            bool begun;
        } connect;
        struct {
            int from;
            off_t *offset;
            size_t count;
        } file;
    };
    size_t most; /* bytes; less than that, in a stream: the side is empty, or full */
};

/* ---- turns ---- */

static struct {
    _Alignas(CC_LINE) _Atomic uint64_t turn;
    _Atomic uint32_t calls;
} spent[CC_WORKERS_MAX + 1];

/* CALL-2. A worker's own counter: no two fibers of it run at a time. */
static void give_way(void) {
    struct worker *w = cc__worker();
    struct fiber *self = cc__sched_current(w);
    if (self == NULL) return;
    unsigned owner = w->core.owner;
    uint64_t turn = cc__get(&w->core.turns);
    if (cc__get(&spent[owner].turn) != turn) {
        cc__set(&spent[owner].turn, turn);
        cc__set(&spent[owner].calls, 0);
    }
    uint32_t calls = cc__get(&spent[owner].calls) + 1;
    cc__set(&spent[owner].calls, calls);
    if (calls >= CALLS_PER_TURN) cc__sched_yield(w, self);
}

/* ---- the loop ---- */

static bool would_wait(ssize_t rc) {
    return rc == -EAGAIN || rc == -EINPROGRESS;
}

/* The result of an attempt that did not find the side empty or full; edges: how many there were before it. */
static void note_result(struct io_use *use, struct call *c, ssize_t rc, uint32_t edges) {
    struct io_fd *fd = use->fd;
    if (c->most != 0 && rc > 0 && (size_t)rc < c->most && (use->word & FD_ADOPTED) && !cc__get(&fd->no_skip))
        cc__set(&fd->side[c->side].drained, edges + 1); /* FD-6 */
    cc__fd_pass_on(fd, c->side);
}

static enum os_mode mode_of(uint64_t word) {
    return !(word & FD_ADOPTED) ? OS_OTHER : word & FD_SOCKET ? OS_OWN_SOCKET : OS_OWN;
}

static int run(int number, struct call *c, enum how how, uint64_t deadline, ssize_t *result) {
    struct io_use use;
    int error = cc__fd_find(number, &use);
    while (error == 0) {
        error = cc__fd_enter(&use);
        if (error != 0) break;
        ssize_t rc = -EAGAIN;
        uint32_t edges = cc__get(&use.fd->side[c->side].edges);
        if (how == HOW_TRY || !cc__fd_drained(use.fd, c->side)) rc = c->attempt(number, c, mode_of(use.word));
        cc__fd_leave(&use);
        if (!would_wait(rc)) {
            note_result(&use, c, rc, edges);
            give_way();
            *result = rc;
            return rc < 0 ? (int)-rc : 0;
        }
        if (how == HOW_TRY) return EAGAIN;
        error = cc__fd_wait(&use, c->side, deadline);
    }
    return error;
}

static int run_counted(int fd, struct call *c, enum how how, CCDeadline deadline, size_t *n) {
    ssize_t result = 0;
    int error = run(fd, c, how, cc__wait_deadline(deadline), &result);
    *n = error == 0 ? (size_t)result : 0;
    return error;
}

/* ---- bytes ---- */

static size_t length_of(const struct iovec *parts, int count) {
    size_t sum = 0;
    for (int i = 0; i < count; i++) sum += parts[i].iov_len;
    return sum;
}

static bool bad_vector(const struct iovec *parts, int count) {
    return count < 0 || count > IOV_MAX || (count > 0 && parts == NULL);
}

static ssize_t attempt_read(int fd, struct call *c, enum os_mode mode) {
    return cc__os_readv(fd, c->vector.parts, c->vector.count, mode);
}

static ssize_t attempt_write(int fd, struct call *c, enum os_mode mode) {
    return cc__os_writev(fd, c->vector.parts, c->vector.count, mode);
}

static int read_all_forms(int fd, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    if (n == NULL || bad_vector(parts, count)) return EINVAL;
    struct call c = {
        .side = IO_READ, .attempt = attempt_read, .vector = {parts, count}, .most = length_of(parts, count)};
    return run_counted(fd, &c, how, deadline, n);
}

/* Writes until all has gone out. The caller's vector stays as it is: a copy of the first part that is left is
 * changed. */
static int write_all_forms(int fd, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    size_t ignored, done = 0, left = 0;
    if (n == NULL) n = &ignored;
    *n = 0;
    if (bad_vector(parts, count)) return EINVAL;
    left = length_of(parts, count);
    size_t skipped = 0; /* bytes of parts[0] that have gone out */
    int error = 0;
    do {
        struct iovec rest;
        struct call c = {.side = IO_WRITE, .attempt = attempt_write, .most = left};
        if (skipped == 0) {
            c.vector.parts = parts;
            c.vector.count = count;
        } else {
            rest = (struct iovec){(char *)parts[0].iov_base + skipped, parts[0].iov_len - skipped};
            c.vector.parts = &rest;
            c.vector.count = 1;
            c.most = rest.iov_len;
        }
        size_t put = 0;
        error = run_counted(fd, &c, how, deadline, &put);
        done += put;
        left -= put;
        for (skipped += put; count > 0 && skipped >= parts[0].iov_len && left > 0; parts++, count--)
            skipped -= parts[0].iov_len;
        if (error == EAGAIN && how == HOW_TRY && done > 0) error = 0;
        if (how == HOW_TRY) break;
    } while (error == 0 && left > 0);
    *n = done;
    return error;
}

int cc_fd_readv(int fd, const struct iovec *parts, int count, size_t *n) {
    return read_all_forms(fd, parts, count, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_readv_try(int fd, const struct iovec *parts, int count, size_t *n) {
    return read_all_forms(fd, parts, count, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_readv_until(int fd, const struct iovec *parts, int count, size_t *n, CCDeadline deadline) {
    return read_all_forms(fd, parts, count, n, HOW_WAIT, deadline);
}
int cc_fd_writev(int fd, const struct iovec *parts, int count, size_t *n) {
    return write_all_forms(fd, parts, count, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_writev_try(int fd, const struct iovec *parts, int count, size_t *n) {
    return write_all_forms(fd, parts, count, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_writev_until(int fd, const struct iovec *parts, int count, size_t *n, CCDeadline deadline) {
    return write_all_forms(fd, parts, count, n, HOW_WAIT, deadline);
}

static int read_one(int fd, void *buffer, size_t size, size_t *n, enum how how, CCDeadline deadline) {
    struct iovec one = {buffer, size};
    return buffer == NULL && size > 0 ? EINVAL : read_all_forms(fd, &one, 1, n, how, deadline);
}
int cc_fd_read(int fd, void *buffer, size_t size, size_t *n) {
    return read_one(fd, buffer, size, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_read_try(int fd, void *buffer, size_t size, size_t *n) {
    return read_one(fd, buffer, size, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_read_until(int fd, void *buffer, size_t size, size_t *n, CCDeadline deadline) {
    return read_one(fd, buffer, size, n, HOW_WAIT, deadline);
}

static int write_one(int fd, const void *bytes, size_t size, size_t *n, enum how how, CCDeadline deadline) {
    struct iovec one = {(void *)(uintptr_t)bytes, size};
    return bytes == NULL && size > 0 ? EINVAL : write_all_forms(fd, &one, 1, n, how, deadline);
}
int cc_fd_write(int fd, const void *bytes, size_t size, size_t *n) {
    return write_one(fd, bytes, size, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_write_try(int fd, const void *bytes, size_t size, size_t *n) {
    return write_one(fd, bytes, size, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_write_until(int fd, const void *bytes, size_t size, size_t *n, CCDeadline deadline) {
    return write_one(fd, bytes, size, n, HOW_WAIT, deadline);
}

/* ---- sockets ---- */

static ssize_t attempt_recvmsg(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    return cc__os_recvmsg(fd, c->message.message, c->message.flags);
}
static ssize_t attempt_sendmsg(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    return cc__os_sendmsg(fd, c->message.message, c->message.flags);
}
static int message_forms(int fd, const struct msghdr *message, int flags, size_t *n, bool send, enum how how,
                         CCDeadline deadline) {
    if (message == NULL || n == NULL) return EINVAL;
    struct call c = {.side = send ? IO_WRITE : IO_READ,
                     .attempt = send ? attempt_sendmsg : attempt_recvmsg,
                     .message = {(struct msghdr *)(uintptr_t)message, flags}};
    return run_counted(fd, &c, how, deadline, n);
}
int cc_fd_recvmsg(int fd, struct msghdr *message, int flags, size_t *n) {
    return message_forms(fd, message, flags, n, false, HOW_WAIT, CC_FOREVER);
}
int cc_fd_recvmsg_try(int fd, struct msghdr *message, int flags, size_t *n) {
    return message_forms(fd, message, flags, n, false, HOW_TRY, CC_FOREVER);
}
int cc_fd_recvmsg_until(int fd, struct msghdr *message, int flags, size_t *n, CCDeadline deadline) {
    return message_forms(fd, message, flags, n, false, HOW_WAIT, deadline);
}
int cc_fd_sendmsg(int fd, const struct msghdr *message, int flags, size_t *n) {
    return message_forms(fd, message, flags, n, true, HOW_WAIT, CC_FOREVER);
}
int cc_fd_sendmsg_try(int fd, const struct msghdr *message, int flags, size_t *n) {
    return message_forms(fd, message, flags, n, true, HOW_TRY, CC_FOREVER);
}
int cc_fd_sendmsg_until(int fd, const struct msghdr *message, int flags, size_t *n, CCDeadline deadline) {
    return message_forms(fd, message, flags, n, true, HOW_WAIT, deadline);
}

static ssize_t attempt_accept(int fd, struct call *c, enum os_mode mode) {
    return cc__os_accept(fd, c->accept.address, c->accept.length, mode != OS_OTHER);
}
static int accept_forms(int fd, int *connection, struct sockaddr *address, socklen_t *length, enum how how,
                        CCDeadline deadline) {
    if (connection == NULL) return EINVAL;
    struct call c = {.side = IO_READ, .attempt = attempt_accept, .accept = {address, length}};
    ssize_t result = -1;
    int error = run(fd, &c, how, cc__wait_deadline(deadline), &result);
    if (error != 0) return error;
    error = cc__fd_adopt((int)result, true);
    if (error != 0) (void)cc__os_close((int)result);
    *connection = error == 0 ? (int)result : -1;
    return error;
}
int cc_fd_accept(int fd, int *connection, struct sockaddr *address, socklen_t *length) {
    return accept_forms(fd, connection, address, length, HOW_WAIT, CC_FOREVER);
}
int cc_fd_accept_try(int fd, int *connection, struct sockaddr *address, socklen_t *length) {
    return accept_forms(fd, connection, address, length, HOW_TRY, CC_FOREVER);
}
int cc_fd_accept_until(int fd, int *connection, struct sockaddr *address, socklen_t *length, CCDeadline deadline) {
    return accept_forms(fd, connection, address, length, HOW_WAIT, deadline);
}

/* Writable means that it is over, one way or the other: but not before the system says so. */
static ssize_t attempt_connect(int fd, struct call *c, enum os_mode mode) {
    if (c->connect.begun) {
        int ready = cc__poller_look(fd, POLLER_WRITE);
        return ready < 0 ? ready : ready == 0 ? -EAGAIN : cc__os_connected(fd);
    }
    c->connect.begun = true;
    int rc = cc__os_connect(fd, c->connect.address, c->connect.length, mode != OS_OTHER);
    return rc == -EALREADY ? -EINPROGRESS : rc == -EISCONN ? 0 : rc;
}
static int connect_forms(int fd, const struct sockaddr *address, socklen_t length, enum how how, CCDeadline deadline) {
    if (address == NULL) return EINVAL;
    struct call c = {.side = IO_WRITE, .attempt = attempt_connect, .connect = {address, length, false}};
    ssize_t ignored;
    return run(fd, &c, how, cc__wait_deadline(deadline), &ignored);
}
int cc_fd_connect(int fd, const struct sockaddr *address, socklen_t length) {
    return connect_forms(fd, address, length, HOW_WAIT, CC_FOREVER);
}
int cc_fd_connect_try(int fd, const struct sockaddr *address, socklen_t length) {
    return connect_forms(fd, address, length, HOW_TRY, CC_FOREVER);
}
int cc_fd_connect_until(int fd, const struct sockaddr *address, socklen_t length, CCDeadline deadline) {
    return connect_forms(fd, address, length, HOW_WAIT, deadline);
}

/* ---- from one descriptor to another ---- */

static ssize_t attempt_sendfile(int fd, struct call *c, enum os_mode mode) {
    return cc__os_sendfile(fd, c->file.from, c->file.offset, c->file.count, mode != OS_OTHER);
}
static int sendfile_forms(int to, int file, int64_t *offset, size_t count, size_t *n, enum how how,
                          CCDeadline deadline) {
    if (n == NULL) return EINVAL;
    struct call c = {.side = IO_WRITE, .attempt = attempt_sendfile, .file = {file, (off_t *)offset, count}};
    return run_counted(to, &c, how, deadline, n);
}
int cc_fd_sendfile(int to, int file, int64_t *offset, size_t count, size_t *n) {
    return sendfile_forms(to, file, offset, count, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_sendfile_try(int to, int file, int64_t *offset, size_t count, size_t *n) {
    return sendfile_forms(to, file, offset, count, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_sendfile_until(int to, int file, int64_t *offset, size_t count, size_t *n, CCDeadline deadline) {
    return sendfile_forms(to, file, offset, count, n, HOW_WAIT, deadline);
}

/* EAGAIN does not say which of the two has to wait: whichever is not ready. */
static ssize_t attempt_splice(int fd, struct call *c, enum os_mode mode) {
    ssize_t moved = cc__os_splice(c->file.from, fd, c->file.count, mode != OS_OTHER);
    if (moved == -EAGAIN && cc__poller_look(fd, POLLER_WRITE) > 0) c->side = IO_READ;
    return moved;
}
static int splice_forms(int from, int to, size_t count, size_t *n, enum how how, CCDeadline deadline) {
    if (n == NULL) return EINVAL;
    uint64_t until = cc__wait_deadline(deadline);
    for (;;) {
        struct call c = {.side = IO_WRITE, .attempt = attempt_splice, .file = {from, NULL, count}};
        ssize_t moved = 0;
        int error = run(to, &c, HOW_TRY, until, &moved);
        *n = error == 0 ? (size_t)moved : 0;
        if (error != EAGAIN || how == HOW_TRY) return error;
        struct io_use use;
        error = cc__fd_find(c.side == IO_READ ? from : to, &use);
        if (error == 0) error = cc__fd_wait(&use, c.side, until);
        if (error != 0) return error;
    }
}
int cc_fd_splice(int from, int to, size_t count, size_t *n) {
    return splice_forms(from, to, count, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_splice_try(int from, int to, size_t count, size_t *n) {
    return splice_forms(from, to, count, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_splice_until(int from, int to, size_t count, size_t *n, CCDeadline deadline) {
    return splice_forms(from, to, count, n, HOW_WAIT, deadline);
}

/* ---- the rest ---- */

int cc_fd_adopt(int fd) {
    return cc__fd_adopt(fd, false);
}
int cc_fd_release(int fd) {
    return cc__fd_release(fd);
}
int cc_fd_close(int fd) {
    return cc__fd_close(fd);
}
size_t cc_io_waiters(void) {
    return cc__fd_waiting();
}
