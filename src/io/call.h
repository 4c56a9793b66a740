/* call.h - the loop of a call on a descriptor: try, wait, try again. For the calls of cc_fd.h, which look the
 * descriptor up by its number, and for rooms that keep one: they look it up once, with cc__fd_find, and pass on the
 * result. If the number was closed meanwhile, and perhaps reused, they get EBADF (FD-4).
 */
#ifndef CC_IO_CALL_H
#define CC_IO_CALL_H

#include "io/fd.h"
#include "os/descriptor.h"

enum how { HOW_TRY, HOW_WAIT };

/* One operation, with the arguments of its attempts. */
struct call {
    enum io_side side;
    ssize_t (*attempt)(int fd, struct call *c, enum os_mode mode); /* bytes or another result; -errno */
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
            struct mmsghdr *list;
            unsigned count;
        } messages;
        struct {
            struct sockaddr *address;
            socklen_t *length;
        } accept;
        struct {
            const struct sockaddr *address;
            socklen_t length;
            bool begun, full;
        } connect;
        struct {
            int from;              /* a descriptor that only the caller uses; or */
            struct io_use *source; /* any other */
            off_t *offset;
            size_t count;
        } file;
    };
    size_t most;  /* bytes; a stream that moves fewer is empty, or full */
    bool borrows; /* the attempt would block in blocking mode (FD-10) */
};

/* use: the caller's own, a copy if need be. 0 or an errno value; *result: what the attempt returned, also if negative,
 * if one was made and did not have to wait. Any context; switches. */
int cc__call_run(struct io_use *use, struct call *c, enum how how, uint64_t deadline, ssize_t *result);

/* For loops of attempts that do not wait, and before a wait for what may be ready: a caller that never has to wait
 * checks at intervals whether it is cancelled (CALL-4). 0 or ECANCELED. Any context; does not switch. */
int cc__call_check_cancel(void);

/* As cc_fd_readv and cc_fd_writev. */
int cc__call_read(struct io_use *use, const struct iovec *parts, int count, size_t *n, enum how how,
                  CCDeadline deadline);
int cc__call_write(struct io_use *use, const struct iovec *parts, int count, size_t *n, enum how how,
                   CCDeadline deadline);
/* As cc_fd_accept: a new descriptor, adopted. */
int cc__call_accept(struct io_use *use, int *connection, struct sockaddr *address, socklen_t *length, enum how how,
                    CCDeadline deadline);
/* As cc_fd_sendfile, but for data that is not in the page cache the calling thread waits for the disk. */
int cc__call_sendfile(int to, int file, int64_t *offset, size_t count, size_t *n, enum how how, CCDeadline deadline);

#endif
