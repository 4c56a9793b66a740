/* descriptor.h - system calls on descriptors that do not wait: their results, or -errno. Never -EINTR. */
#ifndef CC_OS_DESCRIPTOR_H
#define CC_OS_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Makes room for as many descriptors as the process may have, up to `most`, if that is free: while it has one thread.
 * If threads share the table when it grows, the call that needs room waits until all CPUs have passed a quiescent
 * state: 5 to 25 ms, and again each time that the number has doubled. */
void cc__os_reserve(unsigned most);

/* For a descriptor of the library's own: gives it a number above 2, if there is one. A program that was started without
 * stdin, stdout or stderr may use those numbers nevertheless. Returns the number; negative ones as they are. */
int cc__os_above_standard(int fd);

/* 0 or an errno value. */
int cc__os_close(int fd);
/* The same without a wait for data that a socket has not sent (SO_LINGER): that is still sent. */
int cc__os_close_at_once(int fd);
/* Only the first half of it: a later close does not wait. 0; EBADF: not open. */
int cc__os_no_linger(int fd);
int cc__os_valid(int fd);
/* Switches the mode; *blocked: it was in blocking mode. */
int cc__os_nonblocking(int fd, bool on, bool *blocked);
/* Whether a read that returns less than was asked for has emptied it: only TCP sockets. */
bool cc__os_is_stream(int fd, bool *socket);
bool cc__os_is_blocking(int fd);

/* A description for people: "TCP 127.0.0.1:8080 <- 127.0.0.1:51234", with its own address first; the arrow points away
 * from it if `out`. "pipe:[4711]", "eventfd", a path. */
void cc__os_describe(int fd, bool out, char *text, size_t size);

/* What is known of a descriptor. OS_OTHER: the call must not wait whatever the mode is; if that requires a check before
 * it, the result is OS_LOOK_FIRST instead. OS_LOOKED_AT: the same with that check; no other call may be made on that
 * side meanwhile, and a write may move less than there is room for, or return OS_BORROW: the check is not enough, the
 * call needs non-blocking mode. OS_OWN: it is in non-blocking mode, and stays so.
 * OS_OWN_SOCKET: the same, a socket. */
enum os_mode { OS_OTHER, OS_LOOKED_AT, OS_OWN, OS_OWN_SOCKET };
enum { OS_LOOK_FIRST = -4096, OS_BORROW = -4097 }; /* not errno values */
/* These never raise SIGPIPE. */
ssize_t cc__os_readv(int fd, const struct iovec *parts, int n, enum os_mode mode);
ssize_t cc__os_writev(int fd, const struct iovec *parts, int n, enum os_mode mode);
ssize_t cc__os_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t cc__os_sendmsg(int fd, const struct msghdr *message, int flags);
/* The new descriptor is close-on-exec and non-blocking. */
int cc__os_accept(int fd, struct sockaddr *address, socklen_t *length, enum os_mode mode);
/* For a descriptor in non-blocking mode. -EINPROGRESS: wait until it is writable, then ask for the result. */
int cc__os_connect(int fd, const struct sockaddr *address, socklen_t length);
int cc__os_connected(int fd);
/* `to` is in non-blocking mode; own: so is `from`; otherwise that is checked first, as with OS_LOOKED_AT. */
ssize_t cc__os_sendfile(int to, int from, off_t *offset, size_t count);
ssize_t cc__os_splice(int from, bool own, int to, size_t count);

#endif
