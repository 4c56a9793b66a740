/* conn.c - connections: the public calls, and the operations of a connection with a descriptor. */
#include "net/conn.h"

#include "base/mem.h"
#include "os/socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/un.h>

/* ---- open, close, references ---- */

int cc__conn_open(CCConn **conn, int fd, bool adopted) {
    CCConn *c = cc__mem_alloc_small(sizeof *c);
    *conn = NULL;
    if (c == NULL) return ENOMEM;
    int error = adopted ? 0 : cc__fd_adopt(fd, false);
    if (error == 0) error = cc__fd_find(fd, &c->use);
    if (error != 0) {
        cc__mem_free(c);
        return error;
    }
    c->ops = &cc__socket_ops;
    cc__set(&c->refs, 1);
    *conn = c;
    return 0;
}

void cc__conn_keep(CCConn *c) {
    (void)cc__add(&c->refs, 1);
}

void cc__conn_drop(CCConn *c) {
    if (cc__sub(&c->refs, 1) != 1) return;
    if (c->ops->free != NULL) c->ops->free(c);
    cc__mem_free(c);
}

static void close_conn(CCConn *c, bool abort) {
    if (c == NULL) return;
    if (!cc__swap(&c->closed, 1)) c->ops->close(c, abort);
    cc__conn_drop(c);
}
void cc_close(CCConn *conn) {
    close_conn(conn, false);
}
void cc_abort(CCConn *conn) {
    close_conn(conn, true);
}

/* ---- bytes ---- */

int cc__conn_read(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    cc__conn_keep(c);
    int error = c->ops->read(c, parts, count, n, how, cc__earlier(cc__get(&c->read_deadline), deadline));
    cc__conn_drop(c);
    return error;
}

int cc__conn_write(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    cc__conn_keep(c);
    int error = c->ops->write(c, parts, count, n, how, cc__earlier(cc__get(&c->write_deadline), deadline));
    cc__conn_drop(c);
    return error;
}

int cc__conn_await(CCConn *c, bool drained, CCDeadline deadline) {
    cc__conn_keep(c);
    int error = c->ops->await(c, drained, cc__earlier(cc__get(&c->read_deadline), deadline));
    if (error == 0 && cc__get(&c->closed)) error = EBADF; /* a close ends the wait as an event does */
    cc__conn_drop(c);
    return error;
}

static int read_one(CCConn *c, void *buffer, size_t size, size_t *n, enum how how, CCDeadline deadline) {
    struct iovec one = {buffer, size};
    if (n == NULL) return EINVAL;
    *n = 0;
    if (c == NULL || (buffer == NULL && size > 0)) return EINVAL;
    return cc__conn_read(c, &one, 1, n, how, deadline);
}
int cc_read(CCConn *conn, void *buffer, size_t size, size_t *n) {
    return read_one(conn, buffer, size, n, HOW_WAIT, CC_FOREVER);
}
int cc_read_try(CCConn *conn, void *buffer, size_t size, size_t *n) {
    return read_one(conn, buffer, size, n, HOW_TRY, CC_FOREVER);
}
int cc_read_until(CCConn *conn, void *buffer, size_t size, size_t *n, CCDeadline deadline) {
    return read_one(conn, buffer, size, n, HOW_WAIT, deadline);
}

int cc_read_full_until(CCConn *conn, void *buffer, size_t size, size_t *n, CCDeadline deadline) {
    size_t ignored, got = 0;
    if (n == NULL) n = &ignored;
    *n = 0;
    if (conn == NULL || (buffer == NULL && size > 0)) return EINVAL;
    int error = 0;
    cc__conn_keep(conn); /* the connection may be closed between two reads */
    while (error == 0 && *n < size) {
        error = read_one(conn, (char *)buffer + *n, size - *n, &got, HOW_WAIT, deadline);
        if (error == 0 && got == 0) error = ENODATA;
        *n += got;
    }
    cc__conn_drop(conn);
    return error;
}
int cc_read_full(CCConn *conn, void *buffer, size_t size, size_t *n) {
    return cc_read_full_until(conn, buffer, size, n, CC_FOREVER);
}

static int write_parts(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    size_t ignored;
    if (n == NULL) n = &ignored;
    *n = 0;
    return c == NULL ? EINVAL : cc__conn_write(c, parts, count, n, how, deadline);
}
static int write_one(CCConn *c, const void *bytes, size_t size, size_t *n, enum how how, CCDeadline deadline) {
    struct iovec one = {(void *)(uintptr_t)bytes, size};
    if (bytes == NULL && size > 0) c = NULL;
    return write_parts(c, &one, 1, n, how, deadline);
}
int cc_write(CCConn *conn, const void *bytes, size_t size, size_t *n) {
    return write_one(conn, bytes, size, n, HOW_WAIT, CC_FOREVER);
}
int cc_write_try(CCConn *conn, const void *bytes, size_t size, size_t *n) {
    return write_one(conn, bytes, size, n, HOW_TRY, CC_FOREVER);
}
int cc_write_until(CCConn *conn, const void *bytes, size_t size, size_t *n, CCDeadline deadline) {
    return write_one(conn, bytes, size, n, HOW_WAIT, deadline);
}
int cc_writev(CCConn *conn, const struct iovec *parts, int count, size_t *n) {
    return write_parts(conn, parts, count, n, HOW_WAIT, CC_FOREVER);
}
int cc_writev_try(CCConn *conn, const struct iovec *parts, int count, size_t *n) {
    return write_parts(conn, parts, count, n, HOW_TRY, CC_FOREVER);
}
int cc_writev_until(CCConn *conn, const struct iovec *parts, int count, size_t *n, CCDeadline deadline) {
    return write_parts(conn, parts, count, n, HOW_WAIT, deadline);
}

int cc_shutdown(CCConn *conn, CCShut side) {
    if (conn == NULL || side < CC_SHUT_READ || side > CC_SHUT_BOTH) return EINVAL;
    cc__conn_keep(conn);
    int error = conn->ops->shutdown(conn, (side & CC_SHUT_READ) != 0, (side & CC_SHUT_WRITE) != 0);
    cc__conn_drop(conn);
    return error;
}

/* ---- properties ---- */

int cc_conn_deadline(CCConn *conn, CCDeadline read, CCDeadline write) {
    if (conn == NULL) return EINVAL;
    cc__set(&conn->read_deadline, read.ns);
    cc__set(&conn->write_deadline, write.ns);
    return 0;
}
int cc_conn_alive(CCConn *conn) {
    if (conn == NULL) return EINVAL;
    cc__conn_keep(conn);
    int error = conn->ops->alive(conn);
    cc__conn_drop(conn);
    return error;
}
static int name_of(CCConn *c, bool peer, CCAddr *addr) {
    if (c == NULL || addr == NULL) return EINVAL;
    cc__conn_keep(c);
    int error = c->ops->name(c, peer, addr);
    cc__conn_drop(c);
    return error;
}
int cc_conn_local(CCConn *conn, CCAddr *addr) {
    return name_of(conn, false, addr);
}
int cc_conn_peer(CCConn *conn, CCAddr *addr) {
    return name_of(conn, true, addr);
}
int cc_conn_fd(CCConn *conn) {
    if (conn == NULL || cc__get(&conn->closed)) return -1;
    cc__conn_keep(conn);
    int fd = conn->ops->fd(conn);
    cc__conn_drop(conn);
    return fd;
}
bool cc_conn_is_plain(CCConn *conn) {
    return conn != NULL && conn->ops == &cc__socket_ops;
}
int cc_conn_await(CCConn *conn, bool drained, CCDeadline deadline) {
    return conn == NULL ? EINVAL : cc__conn_await(conn, drained, deadline);
}

/* ---- connections with a descriptor ---- */

static int socket_read(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    struct io_use use = c->use;
    int error = cc__call_read(&use, parts, count, n, how, deadline);
    if (unlikely(error == 0 && *n == 0)) error = cc__fd_broken(&c->use); /* a write may have consumed the error */
    return error;
}

static int socket_write(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    struct io_use use = c->use;
    return cc__call_write(&use, parts, count, n, how, deadline);
}

static int socket_await(CCConn *c, bool drained, CCDeadline deadline) {
    struct io_use use = c->use;
    uint32_t seen = cc__fd_edges(use.fd, IO_READ);
    int error = cc__call_check_cancel();
    if (error != 0 || (!drained && !cc__fd_drained(use.fd, IO_READ, seen))) return error;
    error = drained ? cc__fd_look(&use, POLLER_READ) : ARM_WAIT; /* an edge may have arrived since the attempt */
    if (error != ARM_WAIT) return error;
    error = cc__fd_wait(&use, IO_READ, seen, cc__wait_deadline(deadline));
    bool over = error == ETIMEDOUT || error == ECANCELED;
    return over && !drained && cc__fd_look(&use, POLLER_READ) == 0 ? 0 : error; /* as in CALL-1 */
}

static int socket_shutdown(CCConn *c, bool read, bool write) {
    struct io_use use = c->use;
    int error = cc__fd_enter(&use);
    if (error != 0) return error;
    error = -cc__os_shutdown(use.fd->number, read, write);
    if (error == 0) cc__fd_shut(&use, (read ? POLLER_READ : 0u) | (write ? POLLER_WRITE : 0u));
    cc__fd_leave(&use);
    return error == ENOTSOCK ? EOPNOTSUPP : error;
}

static int socket_alive(CCConn *c) {
    struct io_use use = c->use;
    int error = cc__fd_enter(&use);
    if (error != 0) return error;
    ssize_t rc = cc__os_peek(use.fd->number);
    if (rc == -ENOTSOCK) { /* a pipe */
        struct pollfd one = {.fd = use.fd->number, .events = POLLIN};
        int n = cc__poller_look_all(&one, 1);
        rc = n < 0 ? n : one.revents & POLLIN ? 1 : one.revents & POLLNVAL ? -EBADF : one.revents != 0 ? 0 : -EAGAIN;
    }
    if (rc < 0 && rc != -EAGAIN) cc__set(&use.fd->broken, (uint16_t)-rc); /* FD-9: the system reports it only once */
    cc__fd_leave(&use);
    int broken = rc == 0 ? cc__fd_broken(&c->use) : 0;
    return broken != 0 ? broken : rc > 0 ? EAGAIN : rc == 0 ? ENODATA : rc == -EAGAIN ? 0 : (int)-rc;
}

static int socket_name(CCConn *c, bool peer, CCAddr *addr) {
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
        struct sockaddr_un un;
    } name;
    socklen_t length = sizeof name;
    struct io_use use = c->use;
    int error = cc__fd_enter(&use);
    if (error != 0) return error;
    error = -cc__os_name(use.fd->number, peer, &name.any, &length);
    cc__fd_leave(&use);
    if (error != 0) return error == ENOTSOCK ? EOPNOTSUPP : error;
    return cc_addr_from_sockaddr(addr, &name.any, length);
}

static int socket_fd(CCConn *c) {
    return c->use.fd->number;
}

static void socket_close(CCConn *c, bool abort) {
    int number = c->use.fd->number;
    if (abort) {
        struct io_use use = c->use;
        if (cc__fd_enter(&use) == 0) {
            (void)cc__os_set(number, OS_RESET_ON_CLOSE, 1);
            cc__fd_leave(&use);
        }
    }
    (void)cc__fd_close_used(&c->use);
}

const struct conn_ops cc__socket_ops = {
    .read = socket_read,
    .write = socket_write,
    .await = socket_await,
    .shutdown = socket_shutdown,
    .alive = socket_alive,
    .name = socket_name,
    .fd = socket_fd,
    .close = socket_close,
};

/* ---- create ---- */

int cc_conn_from_fd(CCConn **conn, int fd) {
    if (conn == NULL) return EINVAL;
    *conn = NULL;
    return cc__conn_open(conn, fd, false);
}

static int open_both(CCConn **one, CCConn **other, int fds[2]) {
    int error = cc__fd_adopt(fds[0], true);
    if (error == 0) error = cc__conn_open(one, fds[0], true);
    if (error != 0) {
        (void)cc__fd_close(fds[0]);
    } else {
        error = cc__fd_adopt(fds[1], true);
        if (error == 0) error = cc__conn_open(other, fds[1], true);
        if (error == 0) return 0;
        cc_close(*one);
        *one = NULL;
    }
    (void)cc__fd_close(fds[1]);
    return error;
}

/* EINVAL: a pointer is NULL. */
static int clear_both(CCConn **one, CCConn **other) {
    if (one != NULL) *one = NULL;
    if (other != NULL) *other = NULL;
    return one == NULL || other == NULL ? EINVAL : 0;
}

int cc_socketpair(CCConn **one, CCConn **other) {
    int fds[2];
    if (clear_both(one, other) != 0) return EINVAL;
    int rc = cc__os_socketpair(fds);
    return rc < 0 ? -rc : open_both(one, other, fds);
}

int cc_pipe(CCConn **reader, CCConn **writer) {
    int fds[2];
    if (clear_both(reader, writer) != 0) return EINVAL;
    int rc = cc__os_pipe(fds);
    return rc < 0 ? -rc : open_both(reader, writer, fds);
}

int cc__conn_set(int fd, bool tcp, const CCConnOptions *o) {
    int rc = 0;
    if (tcp && !o->delay) rc = cc__os_set(fd, OS_NODELAY, 1);
    if (rc == 0 && tcp && o->keepalive != 0) rc = cc__os_set(fd, OS_KEEPALIVE, o->keepalive);
    if (rc == 0 && tcp && o->user_timeout_ms != 0) rc = cc__os_set(fd, OS_USER_TIMEOUT, o->user_timeout_ms);
    if (rc == 0 && o->send_buffer != 0) rc = cc__os_set(fd, OS_SEND_BUFFER, o->send_buffer);
    if (rc == 0 && o->receive_buffer != 0) rc = cc__os_set(fd, OS_RECEIVE_BUFFER, o->receive_buffer);
    return -rc;
}
