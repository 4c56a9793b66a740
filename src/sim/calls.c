/* calls.c - the calls of os/simulated.h on descriptors, sockets and the poller. */
#include "sim/system.h"

#include "base/mem.h"
#include "os/clock.h"
#include "sim/sim.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* ---- descriptors ---- */

static bool is_stream(const struct sock *s) {
    return s->kind == SOCK_CONNECTED || s->kind == SOCK_CONNECTING;
}

static int sys_close(int fd) {
    CC_SYS_ALONE;
    struct sock *s = cc__sys_numbered(fd);
    int error = s == NULL || !s->is_open ? EBADF : 0;
    if (error == 0) {
        cc__sys_unqueue(s);
        if (!s->crashed && is_stream(s)) cc__stream_close(s);
        for (unsigned k = 0; k < s->waiting_count; k++) { /* they can no longer be accepted */
            struct sock *w = cc__sys_find(s->waiting[k]);
            if (w == NULL) continue;
            w->reset_on_close = true;
            if (!w->crashed) cc__stream_close(w);
            cc__sys_free(w);
        }
        cc__sys_free(s);
    }
    return error;
}

static int sys_valid(int fd) {
    CC_SYS_ALONE;
    struct sock *s = cc__sys_numbered(fd);
    return s != NULL && s->is_open ? 0 : EBADF;
}

static bool sys_is_socket(int fd) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return false;
    return s->kind != SOCK_FILE && s->kind != SOCK_SPARE && !s->is_pipe;
}

/* By host name and port, for people. */
static int describe_name(const union sys_name *name, uint32_t host, char *text, size_t size) {
    const char *host_name = cc__sys.hosts[host].name;
    if (name->any.sa_family == AF_UNIX) return snprintf(text, size, "%s (Unix)", host_name);
    unsigned port = ntohs(name->any.sa_family == AF_INET ? name->in.sin_port : name->in6.sin6_port);
    return snprintf(text, size, "%s:%u", host_name, port);
}

static void sys_describe(int fd, bool out, char *text, size_t size) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) {
        snprintf(text, size, "simulated, closed");
        return;
    }
    char own[160], other[160] = "";
    describe_name(&s->local, s->host, own, sizeof own);
    if (s->has_peer) describe_name(&s->peer, s->peer_host, other, sizeof other);
    if (s->kind == SOCK_FILE)
        snprintf(text, size, "simulated file of %s", cc__sys.hosts[s->host].name);
    else if (s->has_peer)
        snprintf(text, size, "simulated %s %s %s", own, out ? "->" : "<-", other);
    else
        snprintf(text, size, "simulated %s", own);
}

/* 0, or the error of the kernel, so that no sum of lengths overflows. */
static int check_parts(const struct iovec *parts, size_t n) {
    size_t sum = 0;
    if (parts == NULL && n > 0) return -EFAULT;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].iov_len > SSIZE_MAX - sum) return -EINVAL;
        sum += parts[i].iov_len;
    }
    for (size_t i = 0; i < n; i++)
        if (parts[i].iov_base == NULL && parts[i].iov_len > 0) return -EFAULT;
    return 0;
}

static int check_message(const struct msghdr *m) {
    return m->msg_iovlen > IOV_MAX ? -EMSGSIZE : check_parts(m->msg_iov, m->msg_iovlen);
}

static ssize_t sys_readv(int fd, const struct iovec *parts, int n) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    if ((error = check_parts(parts, (size_t)n)) != 0) return error;
    struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)n};
    return s->kind == SOCK_MESSAGES ? cc__message_receive(s, &m, false)
           : s->kind == SOCK_FILE   ? cc__disk_read(s, parts, (size_t)n, OS_POSITION)
                                    : cc__stream_read(s, parts, (size_t)n, false);
}

static ssize_t sys_writev(int fd, const struct iovec *parts, int n) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    if ((error = check_parts(parts, (size_t)n)) != 0) return error;
    struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)n};
    return s->kind == SOCK_MESSAGES ? cc__message_send(s, &m)
           : s->kind == SOCK_FILE   ? cc__disk_write(s, parts, (size_t)n, OS_POSITION)
                                    : cc__stream_write(s, parts, (size_t)n);
}

static ssize_t receive_one(struct sock *s, struct msghdr *m, int flags) {
    int error = check_message(m);
    if (error != 0) return error;
    m->msg_controllen = 0;
    m->msg_flags = 0;
    if (s->kind == SOCK_MESSAGES)
        return flags & MSG_PEEK ? -EOPNOTSUPP : cc__message_receive(s, m, (flags & MSG_TRUNC) != 0);
    if (s->kind == SOCK_FILE || s->kind == SOCK_SPARE) return -ENOTSOCK;
    m->msg_namelen = 0;
    return cc__stream_read(s, m->msg_iov, m->msg_iovlen, (flags & MSG_PEEK) != 0);
}

/* Descriptors and credentials cannot be sent. */
static ssize_t send_one(struct sock *s, const struct msghdr *m) {
    int error = check_message(m);
    if (error != 0) return error;
    if (m->msg_controllen != 0) return -EOPNOTSUPP;
    if (s->kind == SOCK_MESSAGES) return cc__message_send(s, m);
    if (s->kind == SOCK_FILE || s->kind == SOCK_SPARE) return -ENOTSOCK;
    return cc__stream_write(s, m->msg_iov, m->msg_iovlen);
}

static ssize_t sys_recvmsg(int fd, struct msghdr *message, int flags) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    return receive_one(s, message, flags);
}

static ssize_t sys_sendmsg(int fd, const struct msghdr *message, int flags) {
    int error;
    (void)flags;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    return send_one(s, message);
}

static ssize_t sys_receive_many(int fd, struct mmsghdr *list, unsigned count) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    ssize_t rc = 0;
    unsigned n = 0;
    for (; n < count && (rc = receive_one(s, &list[n].msg_hdr, MSG_TRUNC)) >= 0; n++) list[n].msg_len = (unsigned)rc;
    return n > 0 ? (ssize_t)n : rc;
}

static ssize_t sys_send_many(int fd, struct mmsghdr *list, unsigned count) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    ssize_t rc = 0;
    unsigned n = 0;
    for (; n < count && (rc = send_one(s, &list[n].msg_hdr)) >= 0; n++) list[n].msg_len = (unsigned)rc;
    return n > 0 ? (ssize_t)n : rc;
}

/* ---- sockets ---- */

static int sys_socket(int family, int type) {
    struct sock *s;
    if (family != AF_INET && family != AF_INET6 && family != AF_UNIX) return -EAFNOSUPPORT;
    if (family == AF_UNIX && type != SOCK_STREAM) return -EOPNOTSUPP;
    CC_SYS_ALONE;
    int rc = cc__sys_open(type == SOCK_DGRAM ? SOCK_MESSAGES : SOCK_NEW, &s);
    if (rc == 0) {
        s->family = family;
        s->type = type;
        s->is_local = family == AF_UNIX;
        s->window = cc__sys.net.window;
        rc = cc__sys_number(s);
    }
    return rc;
}

static int sys_pair(int fds[2], bool is_pipe) {
    struct sock *a = NULL, *b = NULL;
    CC_SYS_ALONE;
    int rc = cc__sys_open(SOCK_CONNECTED, &a);
    if (rc == 0) rc = cc__sys_open(SOCK_CONNECTED, &b);
    if (rc == 0) {
        a->window = b->window = cc__sys.net.window;
        a->is_pipe = b->is_pipe = is_pipe;
        rc = cc__stream_pair(a, b);
    }
    if (rc == 0 && is_pipe) { /* from b to a */
        a->fin_sent = b->no_reads = true;
    }
    if (rc != 0) {
        if (a != NULL) cc__sys_free(a);
        if (b != NULL) cc__sys_free(b);
    } else {
        fds[0] = cc__sys_number(a);
        fds[1] = cc__sys_number(b);
    }
    return rc;
}

static int sys_spare_fd(void) {
    struct sock *s;
    CC_SYS_ALONE;
    int rc = cc__sys_open(SOCK_SPARE, &s);
    if (rc == 0) rc = cc__sys_number(s);
    return rc;
}

static int sys_bind(int fd, const struct sockaddr *address, socklen_t length) {
    struct endpoint place;
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    int rc = s->kind != SOCK_NEW && s->kind != SOCK_MESSAGES ? -EINVAL : 0;
    if (rc == 0) rc = cc__sys_endpoint(address, length, s->host, &place);
    if (rc == 0 && place.family != s->family) rc = -EAFNOSUPPORT;
    if (rc == 0) rc = cc__sys_bind(s, &place);
    return rc;
}

static int sys_listen(int fd, unsigned backlog) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    int rc = s->kind != SOCK_NEW && s->kind != SOCK_LISTENER ? -EINVAL : 0;
    if (rc == 0 && !s->bound) rc = cc__sys_bind_any(s, s->host, false);
    if (rc == 0) {
        s->kind = SOCK_LISTENER;
        s->backlog = backlog == 0 ? 1 : backlog > BACKLOG_MAX ? BACKLOG_MAX : backlog;
        if (s->waiting == NULL) s->waiting = cc__mem_alloc_small(BACKLOG_MAX * sizeof *s->waiting);
        if (s->waiting == NULL) rc = -ENOBUFS;
    }
    return rc;
}

static int sys_accept(int fd, struct sockaddr *address, socklen_t *length) {
    struct sock *accepted;
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    int rc = s->kind == SOCK_LISTENER ? cc__stream_accept(s, &accepted) : -EINVAL;
    if (rc == 0) {
        if (address != NULL && length != NULL) cc__sys_copy_name(&accepted->peer, address, length);
        rc = cc__sys_number(accepted);
    }
    return rc;
}

static int sys_connect(int fd, const struct sockaddr *address, socklen_t length) {
    union sys_name name = {0};
    struct endpoint place;
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    int rc = cc__sys_endpoint(address, length, s->host, &place);
    if (rc == 0 && (s->kind == SOCK_CONNECTING || s->kind == SOCK_CONNECTED))
        rc = s->kind == SOCK_CONNECTED ? -EISCONN : -EALREADY;
    else if (rc == 0 && s->kind != SOCK_NEW && s->kind != SOCK_MESSAGES)
        rc = -EINVAL;
    if (rc == 0) memcpy(&name, address, length < sizeof name ? length : sizeof name);
    if (rc == 0 && s->kind == SOCK_MESSAGES) {
        rc = place.host == HOSTS_MAX ? -ENETUNREACH : cc__sys_bind_any(s, place.host, place.loopback);
        if (rc == 0) {
            s->peer = name;
            s->peer_host = place.host;
            s->has_peer = true;
        }
    } else if (rc == 0) {
        rc = cc__stream_connect(s, &place, &name);
    }
    return rc;
}

static int sys_connected(int fd) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    int rc = -s->error;
    s->error = 0;
    return rc;
}

static int sys_name(int fd, bool peer, struct sockaddr *address, socklen_t *length) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    union sys_name none = {.any = {.sa_family = (sa_family_t)s->family}};
    int rc = s->is_pipe || s->kind == SOCK_FILE || s->kind == SOCK_SPARE ? -ENOTSOCK
             : peer && (!s->has_peer || s->broken)                       ? -ENOTCONN
                                                                         : 0;
    bool named = peer || s->bound || s->kind == SOCK_CONNECTED;
    if (rc == 0) cc__sys_copy_name(peer ? &s->peer : named ? &s->local : &none, address, length);
    return rc;
}

static int sys_shutdown(int fd, bool read, bool write) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    return s->is_pipe || s->kind == SOCK_FILE || s->kind == SOCK_SPARE ? -ENOTSOCK
           : s->kind != SOCK_CONNECTED                                 ? -ENOTCONN
                                                                       : cc__stream_shutdown(s, read, write);
}

static int sys_set(int fd, enum os_socket_option option, unsigned value) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    int rc = 0;
    switch (option) {
    case OS_REUSEPORT:
        s->reuseport = value != 0;
        break;
    case OS_V6ONLY:
        s->v6only = value != 0;
        break;
    case OS_KEEPALIVE:
        s->keepalive_s = value;
        break;
    case OS_USER_TIMEOUT:
        s->user_timeout_ms = value;
        break;
    case OS_RECEIVE_BUFFER:
        if (s->kind == SOCK_NEW && value > 0) s->window = value < 1 << 20 ? value : 1 << 20;
        break;
    case OS_RESET_ON_CLOSE:
        s->reset_on_close = true;
        break;
    case OS_UDP_SEGMENT:
    case OS_UDP_GRO:
        rc = -ENOPROTOOPT;
        break;
    default: /* no observable effect */
        break;
    }
    return rc;
}

static ssize_t sys_peek(int fd) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    return is_stream(s) ? cc__stream_peek(s) : -ENOTSOCK;
}

static int sys_credentials(int fd, int64_t *pid, uint32_t *uid, uint32_t *gid) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error;
    *pid = 1 + (int64_t)s->peer_host;
    *uid = *gid = 1000;
    return 0;
}

/* ---- poller ---- */

static int sys_watch(int fd, uint64_t data, unsigned sides) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return -error;
    int rc = s->kind == SOCK_FILE ? EPERM : 0;
    if (rc == 0) {
        cc__sys_unqueue(s);
        s->watched = true;
        s->once = sides;
        s->data = data;
        unsigned ready = cc__sys_sides(s);
        cc__sys_report(s, sides == 0 ? ready : ready & (sides | POLLER_HANGUP));
    }
    return rc;
}

static int sys_watch_again(int fd, uint64_t data) {
    int error;
    struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return -error;
    bool watched = s->watched;
    cc__sys_leave();
    return watched ? sys_watch(fd, data, 0) : ENOENT;
}

static void sys_unwatch(int fd) {
    CC_SYS_ALONE;
    struct sock *s = cc__sys_numbered(fd);
    if (s != NULL) {
        cc__sys_unqueue(s);
        s->watched = false;
    }
}

static unsigned sys_wait(struct poller_event *events) {
    unsigned n = 0;
    CC_SYS_ALONE;
    while (n < POLLER_BATCH && cc__sys.ready_first != 0) {
        struct sock *s = cc__sys.socks[cc__sys.ready_first - 1];
        events[n++] = (struct poller_event){s->data, s->pending};
        if (s->once != 0) s->watched = false;
        cc__sys_unqueue(s);
    }
    return n;
}

static int sys_look(int fd, unsigned sides) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL) return error == -ECANCELED ? (int)(sides | POLLER_HANGUP) : error;
    return (int)(cc__sys_sides(s) & (s->broken ? sides | POLLER_HANGUP : sides));
}

static short sys_poll(int fd, short events) {
    int error;
    CC_SYS_LEAVE struct sock *s = cc__sys_enter(fd, &error);
    if (s == NULL && error != -ECANCELED) return POLLNVAL;
    unsigned sides = s != NULL ? cc__sys_sides(s) : POLLER_READ | POLLER_WRITE | POLLER_HANGUP;
    int gone = s == NULL ? POLLHUP : is_stream(s) ? cc__stream_gone(s, &sides) : s->error != 0 ? POLLERR : 0;
    return (short)(gone | (events & ((sides & POLLER_READ ? POLLIN | POLLRDNORM : 0) |
                                     (sides & POLLER_WRITE ? POLLOUT | POLLWRNORM : 0) |
                                     (sides & POLLER_HANGUP ? POLLRDHUP : 0))));
}

static uint64_t sys_next_due(void) {
    cc__lock_take(&cc__sys.lock);
    uint64_t next = cc__sys_next_packet(), due = cc__sys.ready_first != 0 ? cc__clock_now() : next;
    cc__lock_release(&cc__sys.lock);
    return due;
}

const struct os_simulated cc__sys_table = {
    .close = sys_close,
    .valid = sys_valid,
    .is_socket = sys_is_socket,
    .describe = sys_describe,
    .readv = sys_readv,
    .writev = sys_writev,
    .recvmsg = sys_recvmsg,
    .sendmsg = sys_sendmsg,
    .accept = sys_accept,
    .connect = sys_connect,
    .connected = sys_connected,
    .socket = sys_socket,
    .pair = sys_pair,
    .spare_fd = sys_spare_fd,
    .bind = sys_bind,
    .listen = sys_listen,
    .name = sys_name,
    .shutdown = sys_shutdown,
    .set = sys_set,
    .peek = sys_peek,
    .credentials = sys_credentials,
    .send_many = sys_send_many,
    .receive_many = sys_receive_many,
    .watch = sys_watch,
    .watch_again = sys_watch_again,
    .unwatch = sys_unwatch,
    .wait = sys_wait,
    .look = sys_look,
    .poll = sys_poll,
    .next_due = sys_next_due,
    .has_files = cc__sys_has_files,
    .file_read = cc__sys_file_read,
    .file_write = cc__sys_file_write,
    .file_open = cc__sys_file_open,
    .file_temp = cc__sys_file_temp,
    .file_sync = cc__sys_file_sync,
    .file_truncate = cc__sys_file_truncate,
    .file_fstat = cc__sys_file_fstat,
    .file_lock = cc__sys_file_lock,
    .path_stat = cc__sys_path_stat,
    .path_rename = cc__sys_path_rename,
    .path_unlink = cc__sys_path_unlink,
    .path_mkdir = cc__sys_path_mkdir,
    .dir_read = cc__sys_dir_read,
};
