/* socket.h - sockets: create, name and set them. Results or -errno; never -EINTR. What moves bytes is in
 * os/descriptor.h.
 */
#ifndef CC_OS_SOCKET_H
#define CC_OS_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Descriptors are close-on-exec and non-blocking. */
int cc__os_socket(int family, int type);
int cc__os_socketpair(int fds[2]);
int cc__os_pipe(int fds[2]);
/* A descriptor without a purpose, to reserve a number. */
int cc__os_spare_fd(void);

/* cc__os_name: as getsockname(2) and getpeername(2). */
int cc__os_bind(int fd, const struct sockaddr *address, socklen_t length);
int cc__os_listen(int fd, unsigned backlog);
int cc__os_name(int fd, bool peer, struct sockaddr *address, socklen_t *length);
int cc__os_shutdown(int fd, bool read, bool write);
/* 1: it is a stream socket that listens; 0: it is another one; -EOPNOTSUPP: it is simulated. */
int cc__os_listens(int fd);

enum os_socket_option {
    OS_REUSEADDR,
    OS_REUSEPORT,
    OS_V6ONLY,
    OS_NODELAY,
    OS_KEEPALIVE,    /* seconds; 0: off */
    OS_USER_TIMEOUT, /* ms */
    OS_SEND_BUFFER,
    OS_RECEIVE_BUFFER,
    OS_RESET_ON_CLOSE,
    OS_UDP_SEGMENT, /* bytes of a segment; 0: off */
    OS_UDP_GRO,
};
int cc__os_set(int fd, enum os_socket_option option, unsigned value);

/* Peeks at the next byte: 1: there is one; 0: the end; -EAGAIN: nothing yet; or the socket's error. */
ssize_t cc__os_peek(int fd);
/* poll(2): how many of them have events; 0 also after a signal. */
struct pollfd;
int cc__os_wait_any(struct pollfd *fds, unsigned count, int timeout_ms);
int cc__os_credentials(int fd, int64_t *pid, uint32_t *uid, uint32_t *gid);

/* sendmmsg(2), recvmmsg(2): how many messages. */
struct mmsghdr;
ssize_t cc__os_send_many(int fd, struct mmsghdr *list, unsigned count);
ssize_t cc__os_receive_many(int fd, struct mmsghdr *list, unsigned count);

/* The number of an interface by its name; 0: unknown. */
unsigned cc__os_interface(const char *name);

/* Identifies a file that is a Unix socket, to distinguish it from a later one; -EEXIST: it is not a socket. */
struct os_file_id {
    uint64_t device, number;
};
int cc__os_socket_file(const char *path, struct os_file_id *id);
int cc__os_unlink(const char *path);
/* Permissions of that file. Before bind: at most these, less the umask, from its creation on. */
int cc__os_socket_mode(int fd, unsigned mode);
/* After bind: exactly these. Does not follow a symbolic link; -EEXIST: it is not a socket. */
int cc__os_chmod_socket(const char *path, unsigned mode);

/* An unnamed file in memory. */
int cc__os_memory_file(void);
/* Secret random bytes; false: the system has none. */
bool cc__os_random(void *bytes, size_t size);
/* A directory that only this user can enter, created if need be. -EACCES: it belongs to another user, or is open to
 * others. */
int cc__os_private_folder(const char *path);
/* Whether that user may inspect this process: it is the process's own, or root. */
bool cc__os_may_look(uint32_t uid);

#endif
