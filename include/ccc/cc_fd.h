/* cc_fd.h - file descriptors: calls that look blocking and park the fiber instead of its thread.
 *
 * Any descriptor of the program can be used: sockets, pipes, terminals, eventfd, timerfd, inotify, pidfd, and files,
 * which are always ready. cc_fd_adopt hands one over to the library: it is put into non-blocking mode and registered
 * once, which is the fast way; the program then closes it with cc_fd_close, or takes it back with cc_fd_release before
 * it closes it itself. Others are left in the mode that they are in, and may be closed at any time, but not while
 * somebody waits for them.
 *
 * A wait ends with ETIMEDOUT or ECANCELED: then nothing was read, written, accepted or connected. (A write of many
 * bytes says how many went out.) It ends with EBADF when the descriptor is closed by cc_fd_close meanwhile.
 *
 * Each call has three forms. The plain one waits as long as it has to; _try does not wait: EAGAIN; _until waits until a
 * deadline: ETIMEDOUT. All return 0 or an errno value, and leave errno as it is. None raises SIGPIPE.
 *
 * Any context. A fiber parks; an OS thread blocks, and gets ECANCELED when the runtime is shut down. A fiber that never
 * has to wait gives way to others after 64 calls; and after 64 calls without a wait or a yield a call that may wait,
 * which a _try form may not, looks whether its caller is cancelled: ECANCELED, and nothing was done. So a peer that is
 * always ready does not keep a cancelled loop going. In a simulation a call that would have to wait for a descriptor of
 * the system returns ENOTSUP; those of cc_net.h are simulated; in a hosted call (cc_panic.h) it panics.
 */
#ifndef CCC_CC_FD_H
#define CCC_CC_FD_H

#include <ccc/cc_base.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* Those of <sys/socket.h>, <sys/uio.h> and <poll.h>, which a program includes if it needs them: they declare names like
 * send and recv, and this header does not. CCSockLen is socklen_t. */
struct iovec;
struct msghdr;
struct pollfd;
struct sockaddr;
typedef unsigned int CCSockLen;

/* ---- whose descriptor it is ---- */

/* The library's from now on: in non-blocking mode, registered once. Twice is the same as once. Calls and waits that
 * others have begun with it go on. EBADF, ENOMEM. Does not switch. */
CC_API int cc_fd_adopt(int fd);

/* The program's again, in the mode that it had before. EBUSY: somebody uses it or waits for it. One that was not
 * adopted stays as it is. EBADF. Does not switch. */
CC_API int cc_fd_release(int fd);

/* Closes it, adopted or not: whoever waits for it gets EBADF. A system call that another thread makes with it at
 * this moment ends first; the number is not used again before. What a socket has not sent is not waited for, whatever
 * SO_LINGER says, and goes out all the same. EBADF: it is not open. Does not switch. */
CC_API int cc_fd_close(int fd);

/* ---- bytes ---- */

/* Reads what there is, at least a byte and at most `size`: *n says how many. 0 bytes: the end; or `size` is 0, and
 * nothing is waited for. */
CC_API CC_MUST_CHECK int cc_fd_read(int fd, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_read_try(int fd, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_read_until(int fd, void *buffer, size_t size, size_t *n, CCDeadline deadline);

/* Writes all of it. n: may be NULL; how many bytes went out, also when it ends with an error. */
CC_API CC_MUST_CHECK int cc_fd_write(int fd, const void *bytes, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_write_try(int fd, const void *bytes, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_write_until(int fd, const void *bytes, size_t size, size_t *n, CCDeadline deadline);

/* The same for several pieces of memory, IOV_MAX at most. */
CC_API CC_MUST_CHECK int cc_fd_readv(int fd, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_readv_try(int fd, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_readv_until(int fd, const struct iovec *parts, int count, size_t *n,
                                           CCDeadline deadline);
CC_API CC_MUST_CHECK int cc_fd_writev(int fd, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_writev_try(int fd, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_writev_until(int fd, const struct iovec *parts, int count, size_t *n,
                                            CCDeadline deadline);

/* ---- sockets ---- */

/* As recvmsg(2) and sendmsg(2): one message, or what there is of a stream. */
CC_API CC_MUST_CHECK int cc_fd_recvmsg(int fd, struct msghdr *message, int flags, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_recvmsg_try(int fd, struct msghdr *message, int flags, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_recvmsg_until(int fd, struct msghdr *message, int flags, size_t *n, CCDeadline deadline);
CC_API CC_MUST_CHECK int cc_fd_sendmsg(int fd, const struct msghdr *message, int flags, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_sendmsg_try(int fd, const struct msghdr *message, int flags, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_sendmsg_until(int fd, const struct msghdr *message, int flags, size_t *n,
                                             CCDeadline deadline);

/* *connection: a new descriptor, adopted and close-on-exec. address, length: as accept(2), may be NULL. */
CC_API CC_MUST_CHECK int cc_fd_accept(int fd, int *connection, struct sockaddr *address, CCSockLen *length);
CC_API CC_MUST_CHECK int cc_fd_accept_try(int fd, int *connection, struct sockaddr *address, CCSockLen *length);
CC_API CC_MUST_CHECK int cc_fd_accept_until(int fd, int *connection, struct sockaddr *address, CCSockLen *length,
                                            CCDeadline deadline);

/* After ETIMEDOUT, ECANCELED or any other error the socket is good for nothing but to be closed. The _try form
 * returns EAGAIN when the connection is under way; the next call goes on with it. */
CC_API CC_MUST_CHECK int cc_fd_connect(int fd, const struct sockaddr *address, CCSockLen length);
CC_API CC_MUST_CHECK int cc_fd_connect_try(int fd, const struct sockaddr *address, CCSockLen length);
CC_API CC_MUST_CHECK int cc_fd_connect_until(int fd, const struct sockaddr *address, CCSockLen length,
                                             CCDeadline deadline);

/* ---- from one descriptor to another ---- */

/* Up to `count` bytes of a file at *offset, which moves on; NULL: at its own position. *n: how many; 0: the file's
 * end. */
CC_API CC_MUST_CHECK int cc_fd_sendfile(int to, int file, int64_t *offset, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_sendfile_try(int to, int file, int64_t *offset, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_sendfile_until(int to, int file, int64_t *offset, size_t count, size_t *n,
                                              CCDeadline deadline);

/* Moves what there is, at most `count` bytes; one of the two is a pipe. *n == 0: the end. */
CC_API CC_MUST_CHECK int cc_fd_splice(int from, int to, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_splice_try(int from, int to, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_splice_until(int from, int to, size_t count, size_t *n, CCDeadline deadline);

/* ---- readiness ---- */

enum {
    CC_READABLE = 1, /* a read would not wait: there are bytes, or the end, or an error */
    CC_WRITABLE = 2, /* a write of some bytes would not wait */
    CC_HANGUP = 4    /* the peer is gone or has shut down its side for writing, or there is an error */
};

/* Waits until at least one of `events` holds, and reads or writes nothing: for libraries that do that themselves.
 * *ready, if not NULL: which of them hold, and CC_HANGUP whenever the peer is gone or there is an error. Somebody else
 * may read what there is before the caller does. EINVAL: no event, or an unknown one. */
CC_API CC_MUST_CHECK int cc_fd_wait(int fd, int events, int *ready);
CC_API CC_MUST_CHECK int cc_fd_wait_try(int fd, int events, int *ready);
CC_API CC_MUST_CHECK int cc_fd_wait_until(int fd, int events, int *ready, CCDeadline deadline);

/* poll(2) for fibers: the entries mean the same, and so do their results. Negative descriptors are ignored; POLLHUP,
 * POLLERR and POLLNVAL are reported without being asked for; one that is closed by cc_fd_close meanwhile gets POLLNVAL.
 * 0: *ready, if not NULL, entries have a result that is not 0. ETIMEDOUT: none has. CC_PASSED does not wait. n == 0:
 * waits for the deadline. EINVAL: NULL, or more entries than the limit of open descriptors. */
CC_API CC_MUST_CHECK int cc_poll(struct pollfd *fds, size_t n, CCDeadline deadline, size_t *ready);

/* ---- what waits ---- */

/* How many fibers and OS threads wait for descriptors at present. Any context; does not switch. */
CC_API size_t cc_io_waiters(void);

CC_END_DECLS

#endif
