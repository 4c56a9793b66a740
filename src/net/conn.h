/* conn.h - a connection: what its owner and the calls in progress share, and a table of operations.
 *
 * CONN-1  `refs` counts the owner and every call in progress. The last of them frees the memory.
 * CONN-2  cc_close closes the descriptor, even with calls in progress: it was looked up once, when the connection was
 *         created, so a call that continues afterwards gets EBADF and never another descriptor with the same number
 *         (FD-4).
 */
#ifndef CC_NET_CONN_H
#define CC_NET_CONN_H

#include "io/call.h"

#include <ccc/cc_net.h>

/* The operations of a kind of connection. Each returns 0 or an errno value. */
struct conn_ops {
    int (*read)(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline);
    /* Writes everything; HOW_TRY: what fits. *n is always set. */
    int (*write)(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline);
    /* Waits until a read may find something. drained: a read has just found nothing; false: returns at once if a read
     * is known to find something. */
    int (*await)(CCConn *c, bool drained, CCDeadline deadline);
    /* Waits for room, and takes bytes out of a pipe. EINVAL: it cannot. NULL: a descriptor; the system splices. */
    int (*splice)(CCConn *c, int pipe, size_t count, size_t *n, CCDeadline deadline);
    int (*shutdown)(CCConn *c, bool read, bool write);
    int (*alive)(CCConn *c);
    int (*name)(CCConn *c, bool peer, CCAddr *addr);
    int (*fd)(CCConn *c);
    /* Ends the waits of other calls; called once. */
    void (*close)(CCConn *c, bool abort);
    void (*free)(CCConn *c); /* called for the last reference; may be NULL */
};

struct CCConn {
    const struct conn_ops *ops;
    _Atomic uint32_t refs;   /* CONN-1 */
    _Atomic uint32_t closed; /* a word: riscv64 cannot exchange bytes */
    struct io_use use;       /* for a connection with a descriptor; never changed: calls take copies */
    _Atomic uint64_t read_deadline, write_deadline;
};

/* Creates a connection with a descriptor, which it adopts. 0, or an errno value: then the descriptor is unchanged.
 * adopted: the descriptor is new and already adopted. */
int cc__conn_open(CCConn **conn, int fd, bool adopted);
extern const struct conn_ops cc__socket_ops;

/* Takes a reference, for a user that may outlive the owner (CONN-1). */
void cc__conn_keep(CCConn *c);
void cc__conn_drop(CCConn *c);

/* The calls of cc_net.h for buffers and copies; the connection's own deadline applies too. */
int cc__conn_read(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline);
int cc__conn_write(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline);
int cc__conn_await(CCConn *c, bool drained, CCDeadline deadline);

/* Sets options of TCP connections; connections inherit those of a listener. 0 or an errno value. */
int cc__conn_set(int fd, bool tcp, const CCConnOptions *options);

CC_INLINE CCDeadline cc__earlier(uint64_t a, CCDeadline b) {
    CCDeadline first = {b.ns == 0 || (a != 0 && a < b.ns) ? a : b.ns};
    return first;
}

#endif
