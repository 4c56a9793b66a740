/* cc_fd.h - file descriptors: calls that look blocking but park the fiber instead of blocking its thread.
 *
 * Any descriptor can be used: sockets, pipes, terminals, eventfd, timerfd, inotify, pidfd, and files, which are always
 * ready. cc_fd_adopt hands a descriptor over to the library, which sets non-blocking mode and registers it once; this
 * is the fast way. The program then closes it with cc_fd_close, or takes it back with cc_fd_release before it calls
 * close(2).
 *
 * Non-blocking mode belongs to the open file: other descriptors of it (made by dup(2), or 0, 1 and 2 of one terminal)
 * and other processes that have it get EAGAIN where they would have blocked, until it is released, and also after the
 * end of the program; if one of two adopted descriptors of it is released, calls on the other one may block.
 *
 * Descriptors that were not adopted keep their mode (cc_fd_sendfile, cc_fd_splice, cc_fd_connect and writes to a
 * terminal change it during the system call) and may be closed at any time, except while a caller waits for them. If
 * something else has ended a wait (its deadline, a cancellation, another descriptor of a cc_poll), and from then on
 * the program uses only its own system calls on the descriptor, use cc_fd_close: after close(2) the kernel may keep
 * the file open until the runtime has polled the next event.
 *
 * When a wait ends with ETIMEDOUT or ECANCELED, nothing was read, written, accepted or connected. (A partial write
 * reports how many bytes were written.) A wait ends with EBADF when the descriptor is closed by cc_fd_close.
 *
 * Each call has three forms. The plain form waits as long as necessary; _try never waits and returns EAGAIN; _until
 * returns ETIMEDOUT when the deadline has passed. All return 0 or an errno value, and do not modify errno. None raises
 * SIGPIPE.
 *
 * Any context. A fiber parks; an OS thread blocks, and gets ECANCELED when the runtime shuts down. A fiber that never
 * has to wait yields after 64 calls. After 64 calls without a wait or a yield, every form except _try also checks for
 * cancellation: it returns ECANCELED and has done nothing. So a peer that is always ready cannot keep a cancelled loop
 * running. In a simulation a call that would have to wait for a real descriptor returns ENOTSUP; those of cc_net.h are
 * simulated. In a hosted call (cc_panic.h) such a call panics.
 */
#ifndef CCC_CC_FD_H
#define CCC_CC_FD_H

#include <ccc/cc_base.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* Defined in <sys/socket.h>, <sys/uio.h> and <poll.h>. This header does not include them, because they declare names
 * like send and recv. CCSockLen is socklen_t. */
struct iovec;
struct msghdr;
struct pollfd;
struct sockaddr;
typedef unsigned int CCSockLen;

/* ---- ownership ---- */

/* Hands the descriptor over to the library: sets non-blocking mode and registers it. Adopting it twice has no further
 * effect. Calls and waits in progress on it continue. EBADF, ENOMEM. Does not switch. */
CC_API int cc_fd_adopt(int fd);

/* Takes the descriptor back, and restores its mode. EBUSY: a system call or wait on it is in progress. (A call whose
 * wait has ended, and which has not continued yet, is not noticed: it returns EBADF.) A descriptor that was not adopted
 * is left unchanged. EBADF. Does not switch. */
CC_API int cc_fd_release(int fd);

/* Closes the descriptor, adopted or not; callers that wait for it get EBADF. The number is not reused before system
 * calls in progress on it have ended. Does not wait for unsent data of a socket, whatever SO_LINGER says; it is still
 * sent. EBADF: not open. Does not switch. */
CC_API int cc_fd_close(int fd);

/* ---- bytes ---- */

/* Reads the bytes that are available, at least one and at most `size`; *n gets their number. *n == 0: the end of the
 * stream; or `size` is 0, and the call did not wait. */
CC_API CC_MUST_CHECK int cc_fd_read(int fd, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_read_try(int fd, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_read_until(int fd, void *buffer, size_t size, size_t *n, CCDeadline deadline);

/* Writes all `size` bytes. n: may be NULL; how many bytes were written, also after an error. */
CC_API CC_MUST_CHECK int cc_fd_write(int fd, const void *bytes, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_write_try(int fd, const void *bytes, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_write_until(int fd, const void *bytes, size_t size, size_t *n, CCDeadline deadline);

/* The same for several buffers, at most IOV_MAX. */
CC_API CC_MUST_CHECK int cc_fd_readv(int fd, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_readv_try(int fd, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_readv_until(int fd, const struct iovec *parts, int count, size_t *n,
                                           CCDeadline deadline);
CC_API CC_MUST_CHECK int cc_fd_writev(int fd, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_writev_try(int fd, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_writev_until(int fd, const struct iovec *parts, int count, size_t *n,
                                            CCDeadline deadline);

/* ---- sockets ---- */

/* As recvmsg(2) and sendmsg(2): one message, or what is available of a stream. */
CC_API CC_MUST_CHECK int cc_fd_recvmsg(int fd, struct msghdr *message, int flags, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_recvmsg_try(int fd, struct msghdr *message, int flags, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_recvmsg_until(int fd, struct msghdr *message, int flags, size_t *n, CCDeadline deadline);
CC_API CC_MUST_CHECK int cc_fd_sendmsg(int fd, const struct msghdr *message, int flags, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_sendmsg_try(int fd, const struct msghdr *message, int flags, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_sendmsg_until(int fd, const struct msghdr *message, int flags, size_t *n,
                                             CCDeadline deadline);

/* A listener in blocking mode from which others accept by accept(2), say in other processes, has to be adopted:
 * otherwise the call may block its worker if they are faster. *connection: a new descriptor, adopted and
 * close-on-exec; -1 on error. address, length: as accept(2), may be NULL. */
CC_API CC_MUST_CHECK int cc_fd_accept(int fd, int *connection, struct sockaddr *address, CCSockLen *length);
CC_API CC_MUST_CHECK int cc_fd_accept_try(int fd, int *connection, struct sockaddr *address, CCSockLen *length);
CC_API CC_MUST_CHECK int cc_fd_accept_until(int fd, int *connection, struct sockaddr *address, CCSockLen *length,
                                            CCDeadline deadline);

/* After ETIMEDOUT, ECANCELED or any other error the socket can only be closed. The _try form returns EAGAIN while the
 * connection is in progress; the next call continues it. */
CC_API CC_MUST_CHECK int cc_fd_connect(int fd, const struct sockaddr *address, CCSockLen length);
CC_API CC_MUST_CHECK int cc_fd_connect_try(int fd, const struct sockaddr *address, CCSockLen length);
CC_API CC_MUST_CHECK int cc_fd_connect_until(int fd, const struct sockaddr *address, CCSockLen length,
                                             CCDeadline deadline);

/* ---- from one descriptor to another ---- */

/* Sends up to `count` bytes of a file from *offset, which is advanced; NULL: from the file position. *n: how many,
 * which may be fewer; 0: end of file. A pool thread first reads data that is not in the page cache; the deadline does
 * not end that. In the _try form, and on a file system that cannot tell what is cached, the worker waits for it. */
CC_API CC_MUST_CHECK int cc_fd_sendfile(int to, int file, int64_t *offset, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_sendfile_try(int to, int file, int64_t *offset, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_sendfile_until(int to, int file, int64_t *offset, size_t count, size_t *n,
                                              CCDeadline deadline);

/* Moves the bytes that are available, at most `count`; one of the two descriptors is a pipe. *n == 0: the end. */
CC_API CC_MUST_CHECK int cc_fd_splice(int from, int to, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_splice_try(int from, int to, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_fd_splice_until(int from, int to, size_t count, size_t *n, CCDeadline deadline);

/* ---- readiness ---- */

enum {
    CC_READABLE = 1, /* a read would not wait: data, end of stream, or an error */
    CC_WRITABLE = 2, /* a write of some bytes would not wait */
    CC_HANGUP = 4    /* the peer has disconnected or shut down its write side, or there is an error */
};

/* Waits until at least one of `events` holds, without reading or writing: for libraries that do their own I/O. *ready,
 * if not NULL: which of them hold, and CC_HANGUP whenever the peer has disconnected or there is an error; that it
 * has only shut down its write side is reported if CC_HANGUP is among `events`. Another
 * caller may read the data first. EINVAL: no event, or an unknown one. */
CC_API CC_MUST_CHECK int cc_fd_wait(int fd, int events, int *ready);
CC_API CC_MUST_CHECK int cc_fd_wait_try(int fd, int events, int *ready);
CC_API CC_MUST_CHECK int cc_fd_wait_until(int fd, int events, int *ready, CCDeadline deadline);

/* poll(2) for fibers, with the same meaning of entries and results. Negative descriptors are ignored; POLLHUP, POLLERR
 * and POLLNVAL are always reported; a descriptor closed by cc_fd_close during the wait gets POLLNVAL. Returns 0 and
 * sets *ready, if not NULL, to the number of entries with a nonzero result; ETIMEDOUT if there is none. CC_PASSED does
 * not wait. n == 0: waits for the deadline. EINVAL: NULL, or more entries than the limit of open descriptors. */
CC_API CC_MUST_CHECK int cc_poll(struct pollfd *fds, size_t n, CCDeadline deadline, size_t *ready);

/* ---- statistics ---- */

/* The number of waiters in the lists of all descriptors, not of fibers and OS threads that wait: each call counts once,
 * but a cc_poll once for each entry, and a select once for each arm, also if these name the same descriptor. Any
 * context; does not switch. */
CC_API size_t cc_io_waiters(void);

CC_END_DECLS

#endif
