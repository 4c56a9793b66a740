/* socket.c - sockets: create, name and set them. */
#include "os/socket.h"

#include "base/error.h"
#include "os/descriptor.h"
#include "os/linux/call.h"
#include "os/simulated.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Since Linux 4.18 and 5.0. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* Since Linux 6.6. */
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

int cc__os_socket(int family, int type) {
    const struct os_simulated *s = cc__os_simulation();
    if (unlikely(s != NULL)) return s->socket(family, type);
    return CALL(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int cc__os_socketpair(int fds[2]) {
    const struct os_simulated *s = cc__os_simulation();
    if (unlikely(s != NULL)) return s->pair(fds, false);
    return CALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
}

int cc__os_pipe(int fds[2]) {
    const struct os_simulated *s = cc__os_simulation();
    if (unlikely(s != NULL)) return s->pair(fds, true);
    return CALL(pipe2(fds, O_CLOEXEC | O_NONBLOCK));
}

int cc__os_spare_fd(void) {
    const struct os_simulated *s = cc__os_simulation();
    if (unlikely(s != NULL)) return s->spare_fd();
    return CALL(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

int cc__os_bind(int fd, const struct sockaddr *address, socklen_t length) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->bind(fd, address, length);
    return CALL(bind(fd, address, length));
}

int cc__os_listen(int fd, unsigned backlog) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->listen(fd, backlog);
    return CALL(listen(fd, backlog > INT32_MAX ? INT32_MAX : (int)backlog));
}

int cc__os_name(int fd, bool peer, struct sockaddr *address, socklen_t *length) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->name(fd, peer, address, length);
    return peer ? CALL(getpeername(fd, address, length)) : CALL(getsockname(fd, address, length));
}

int cc__os_shutdown(int fd, bool read, bool write) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->shutdown(fd, read, write);
    return CALL(shutdown(fd, read && write ? SHUT_RDWR : read ? SHUT_RD : SHUT_WR));
}

int cc__os_listens(int fd) {
    if (unlikely(cc__os_simulation_of(fd) != NULL)) return -EOPNOTSUPP;
    int listens = 0, type = 0;
    socklen_t size = sizeof listens;
    int rc = CALL(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size));
    if (rc == 0) rc = CALL(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size));
    return rc < 0 ? rc : listens && type == SOCK_STREAM;
}

static int set(int fd, int level, int name, unsigned value) {
    int number = value > INT32_MAX ? INT32_MAX : (int)value;
    return CALL(setsockopt(fd, level, name, &number, sizeof number));
}

/* The first probe after `seconds`, the others at the same interval, at most four. */
static int keep_alive(int fd, unsigned seconds) {
    int rc = set(fd, SOL_SOCKET, SO_KEEPALIVE, seconds != 0);
    if (seconds == 0 || rc < 0) return rc;
    if (seconds > 32767) seconds = 32767; /* the system's maximum */
    rc = set(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
    if (rc == 0) rc = set(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
    return rc == 0 ? set(fd, IPPROTO_TCP, TCP_KEEPCNT, 4) : rc;
}

int cc__os_set(int fd, enum os_socket_option option, unsigned value) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->set(fd, option, value);
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    switch (option) {
    case OS_REUSEADDR:
        return set(fd, SOL_SOCKET, SO_REUSEADDR, value);
    case OS_REUSEPORT:
        return set(fd, SOL_SOCKET, SO_REUSEPORT, value);
    case OS_V6ONLY:
        return set(fd, IPPROTO_IPV6, IPV6_V6ONLY, value);
    case OS_NODELAY:
        return set(fd, IPPROTO_TCP, TCP_NODELAY, value);
    case OS_KEEPALIVE:
        return keep_alive(fd, value);
    case OS_USER_TIMEOUT:
        return set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, value);
    case OS_SEND_BUFFER:
        return set(fd, SOL_SOCKET, SO_SNDBUF, value);
    case OS_RECEIVE_BUFFER:
        return set(fd, SOL_SOCKET, SO_RCVBUF, value);
    case OS_RESET_ON_CLOSE:
        return CALL(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
    case OS_UDP_SEGMENT:
        return set(fd, IPPROTO_UDP, UDP_SEGMENT, value);
    case OS_UDP_GRO:
        return set(fd, IPPROTO_UDP, UDP_GRO, value);
    }
    return -EINVAL;
}

ssize_t cc__os_peek(int fd) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->peek(fd);
    char byte;
    return CALL(recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT));
}

int cc__os_credentials(int fd, int64_t *pid, uint32_t *uid, uint32_t *gid) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->credentials(fd, pid, uid, gid);
    struct ucred who = {0, 0, 0};
    socklen_t size = sizeof who;
    int rc = CALL(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size));
    *pid = who.pid;
    *uid = who.uid;
    *gid = who.gid;
    return rc;
}

ssize_t cc__os_send_many(int fd, struct mmsghdr *list, unsigned count) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->send_many(fd, list, count);
    return CALL(sendmmsg(fd, list, count, MSG_DONTWAIT | MSG_NOSIGNAL));
}

ssize_t cc__os_receive_many(int fd, struct mmsghdr *list, unsigned count) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->receive_many(fd, list, count);
    return CALL(recvmmsg(fd, list, count, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC, NULL));
}

unsigned cc__os_interface(const char *name) {
    CC_KEEP_ERRNO;
    return if_nametoindex(name);
}

/* A simulated Unix socket has a name, but no file. */
int cc__os_socket_file(const char *path, struct os_file_id *id) {
    if (unlikely(cc__os_simulation() != NULL)) return -ENOENT;
    struct stat status;
    int rc = CALL(lstat(path, &status));
    if (rc < 0) return rc;
    *id = (struct os_file_id){status.st_dev, status.st_ino};
    return S_ISSOCK(status.st_mode) ? 0 : -EEXIST;
}

int cc__os_unlink(const char *path) {
    if (unlikely(cc__os_simulation() != NULL)) return -ENOENT;
    return CALL(unlink(path));
}

/* Linux creates the file with the mode of the socket itself. */
int cc__os_socket_mode(int fd, unsigned mode) {
    if (unlikely(cc__os_simulation_of(fd) != NULL)) return 0;
    return CALL(fchmod(fd, (mode_t)mode));
}

/* For an O_PATH descriptor. Before Linux 6.6 the system permits that only by way of /proc. */
static int chmod_named(int fd, unsigned mode) {
    char name[40];
    if (CALL((int)syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH)) == 0) return 0;
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return CALL(chmod(name, (mode_t)mode));
}

/* A user that may write to the directory can replace the file by a link between two calls. So the file is opened, and
 * the opened file is changed. */
int cc__os_chmod_socket(const char *path, unsigned mode) {
    if (unlikely(cc__os_simulation() != NULL)) return 0;
    struct stat status;
    int fd = CALL(open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (fd < 0) return fd;
    int rc = CALL(fstat(fd, &status));
    if (rc == 0 && !S_ISSOCK(status.st_mode)) rc = -EEXIST;
    if (rc == 0 && (status.st_mode & 07777) != mode) rc = chmod_named(fd, mode);
    (void)cc__os_close(fd);
    return rc;
}

/* ---- for the runtime's own server: never simulated ---- */

int cc__os_wait_any(struct pollfd *fds, unsigned count, int timeout_ms) {
    int saved = cc__errno_get(), n = poll(fds, count, timeout_ms);
    if (n < 0) n = cc__errno_get() == EINTR ? 0 : -cc__errno_get();
    cc__errno_set(saved);
    return n;
}

int cc__os_memory_file(void) {
    return CALL(memfd_create("ccc", MFD_CLOEXEC));
}

bool cc__os_random(void *bytes, size_t size) {
    return CALL(getrandom(bytes, size, 0)) == (ssize_t)size;
}

int cc__os_private_folder(const char *path) {
    struct stat status;
    int rc = CALL(mkdir(path, 0700));
    if (rc != 0 && rc != -EEXIST) return rc;
    rc = CALL(lstat(path, &status));
    if (rc != 0) return rc;
    return S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0 ? 0 : -EACCES;
}

bool cc__os_may_look(uint32_t uid) {
    return uid == geteuid() || uid == 0;
}
