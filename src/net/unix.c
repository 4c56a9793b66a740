/* unix.c - features of Unix sockets: descriptor passing and peer credentials. */
#include "net/conn.h"
#include "os/socket.h"

#include <errno.h>
#include <string.h>

_Static_assert(CC_UNIX_FDS_MAX == 253, "SCM_MAX_FD of Linux");

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(CC_UNIX_FDS_MAX * sizeof(int))];
};

static ssize_t attempt_send(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    return cc__os_sendmsg(fd, c->message.message, c->message.flags);
}
static ssize_t attempt_receive(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    return cc__os_recvmsg(fd, c->message.message, c->message.flags);
}

static int run(CCConn *c, struct call *call, _Atomic uint64_t *deadline, ssize_t *result) {
    struct io_use use = c->use;
    int error = cc__call_run(&use, call, HOW_WAIT, cc__wait_deadline((CCDeadline){cc__get(deadline)}), result);
    return error == ENOTSOCK || error == EINVAL ? EOPNOTSUPP : error;
}

/* What the kernel moves at most. It rejects a part whose length exceeds a signed number. */
static size_t in_one_call(size_t size) {
    const size_t most = 0x7ffff000;
    return size < most ? size : most;
}

/* TCP ignores ancillary data. */
static bool is_unix(CCConn *c) {
    CCAddr addr;
    return c->ops == &cc__socket_ops && cc_conn_local(c, &addr) == 0 && addr.kind == CC_ADDR_UNIX;
}

int cc_unix_send_fds(CCConn *conn, const int *fds, size_t count, const void *bytes, size_t size) {
    union control control;
    if (conn == NULL || bytes == NULL || size == 0 || count > CC_UNIX_FDS_MAX || (fds == NULL && count > 0))
        return EINVAL;
    if (!is_unix(conn)) return EOPNOTSUPP;
    struct iovec part = {(void *)(uintptr_t)bytes, in_one_call(size)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        memset(&control, 0, message.msg_controllen);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
    }
    struct call call = {.side = IO_WRITE, .attempt = attempt_send, .message = {&message, 0}};
    ssize_t sent = 0;
    cc__conn_keep(conn);
    int error = run(conn, &call, &conn->write_deadline, &sent); /* the descriptors are sent with the first byte */
    if (error == 0 && (size_t)sent < size)
        error = cc_write(conn, (const char *)bytes + sent, size - (size_t)sent, NULL);
    cc__conn_drop(conn);
    return error;
}

/* Moves the descriptors of a message to the caller's array; closes those beyond `room`. Returns how many arrived. */
static size_t take_fds(struct msghdr *message, int *fds, size_t room) {
    size_t came = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h != NULL; h = CMSG_NXTHDR(message, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
        size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++, came++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (came < room)
                fds[came] = fd;
            else
                (void)cc__os_close(fd);
        }
    }
    return came;
}

int cc_unix_recv_fds(CCConn *conn, int *fds, size_t *count, void *buffer, size_t size, size_t *n) {
    union control control;
    if (conn == NULL || count == NULL || n == NULL || buffer == NULL || size == 0 || (fds == NULL && *count > 0))
        return EINVAL;
    size_t room = *count;
    *count = *n = 0;
    if (!is_unix(conn)) return EOPNOTSUPP;
    struct iovec part = {buffer, in_one_call(size)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct call call = {.side = IO_READ, .attempt = attempt_receive, .message = {&message, MSG_CMSG_CLOEXEC}};
    ssize_t got = 0;
    cc__conn_keep(conn);
    int error = run(conn, &call, &conn->read_deadline, &got);
    cc__conn_drop(conn);
    if (error != 0) return error;
    size_t came = take_fds(&message, fds, room);
    bool cut = (message.msg_flags & MSG_CTRUNC) != 0; /* the buffer fits the maximum, so the process is out of
                                                       * descriptors */
    if (cut || came > room) {
        for (size_t i = 0; i < came && i < room; i++) (void)cc__os_close(fds[i]);
        return cut ? EMFILE : EMSGSIZE;
    }
    *count = came;
    *n = (size_t)got;
    return 0;
}

int cc_unix_credentials(CCConn *conn, CCCredentials *who) {
    if (conn == NULL || who == NULL) return EINVAL;
    *who = (CCCredentials){0};
    if (!is_unix(conn)) return EOPNOTSUPP;
    struct io_use use = conn->use;
    int error = cc__fd_enter(&use);
    if (error != 0) return error;
    error = -cc__os_credentials(use.fd->number, &who->pid, &who->uid, &who->gid);
    cc__fd_leave(&use);
    return error;
}
