/* conn.h - a connection: what its owner and the calls that are under way share, and a table of operations.
 *
 * CONN-1  `refs` counts the owner and every call that is under way. The memory is freed by the last of them.
 * CONN-2  The descriptor is closed by cc_close, whoever else is inside: it was looked up once, when the connection was
 *         made, so a call that goes on afterwards gets EBADF and never another descriptor with the same number (FD-4).
 */
#ifndef CC_NET_CONN_H
#define CC_NET_CONN_H

#include "io/call.h"

#include <ccc/cc_net.h>

/* What a kind of connection can do. Each returns 0 or an errno value. */
struct conn_ops {
    int (*read)(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline);
    /* All of it; HOW_TRY: what there is room for. *n is set in any case. */
    int (*write)(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline);
    /* Until a read may find something. drained: a read has just found nothing; false: unless one is known to. */
    int (*await)(CCConn *c, bool drained, CCDeadline deadline);
    int (*shutdown)(CCConn *c, bool read, bool write);
    int (*alive)(CCConn *c);
    int (*name)(CCConn *c, bool peer, CCAddr *addr);
    int (*fd)(CCConn *c);
    /* Waits of others end; called once. */
    void (*close)(CCConn *c, bool abort);
    void (*free)(CCConn *c); /* the last of them has left; may be NULL */
};

struct CCConn {
    const struct conn_ops *ops;
    _Atomic uint32_t refs;   /* CONN-1 */
    _Atomic uint32_t closed; /* a word: riscv64 exchanges no bytes */
    struct io_use use;       /* of one with a descriptor; never changed: calls take copies */
    _Atomic uint64_t read_deadline, write_deadline;
};

/* Sets up one with a descriptor, which it adopts. 0, or an errno value: then the descriptor is as it was. fresh: the
 * descriptor is new and has been adopted. */
int cc__conn_open(CCConn **conn, int fd, bool adopted);
extern const struct conn_ops cc__socket_ops;

/* For somebody who needs the connection longer than its owner may (CONN-1). */
void cc__conn_keep(CCConn *c);
void cc__conn_drop(CCConn *c);

/* The calls of cc_net.h, as the buffers and copies use them; the connection's own deadline holds as well. */
int cc__conn_read(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline);
int cc__conn_write(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline);
int cc__conn_await(CCConn *c, bool drained, CCDeadline deadline);

/* Options of TCP connections; on a listener they are inherited. 0 or an errno value. */
int cc__conn_set(int fd, bool tcp, const CCConnOptions *options);

CC_INLINE CCDeadline cc__earlier(uint64_t a, CCDeadline b) {
    CCDeadline first = {b.ns == 0 || (a != 0 && a < b.ns) ? a : b.ns};
    return first;
}

#endif
