/* custom.c - connections whose operations come from another library or the program. */
#include "base/error.h"
#include "base/mem.h"
#include "net/conn.h"

#include <errno.h>
#include <limits.h>
#include <sys/uio.h>

struct custom {
    CCConn conn; /* first */
    const CCConnOps *ops;
    void *state;
};

static struct custom *custom_of(CCConn *c) {
    return (struct custom *)c;
}

static int custom_read(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    *n = 0;
    return custom_of(c)->ops->read(custom_of(c)->state, parts, count, n, how == HOW_WAIT, deadline);
}

/* As for a descriptor, where the system checks this: the operations need not, and can add the lengths. */
static int check_parts(const struct iovec *parts, int count) {
    size_t sum = 0;
    if (count < 0 || count > IOV_MAX || (parts == NULL && count > 0)) return EINVAL;
    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len > SSIZE_MAX - sum) return EINVAL;
        sum += parts[i].iov_len;
    }
    for (int i = 0; i < count; i++)
        if (parts[i].iov_base == NULL && parts[i].iov_len > 0) return EFAULT;
    return 0;
}

static int custom_write(CCConn *c, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    *n = 0;
    int error = check_parts(parts, count);
    if (error != 0) return error;
    return custom_of(c)->ops->write(custom_of(c)->state, parts, count, n, how == HOW_WAIT, deadline);
}

static int custom_await(CCConn *c, bool drained, CCDeadline deadline) {
    return custom_of(c)->ops->await(custom_of(c)->state, drained, deadline);
}

static int custom_splice(CCConn *c, int pipe, size_t count, size_t *n, CCDeadline deadline) {
    const CCConnOps *ops = custom_of(c)->ops;
    *n = 0;
    return ops->splice == NULL ? EINVAL : ops->splice(custom_of(c)->state, pipe, count, n, deadline);
}

static int custom_shutdown(CCConn *c, bool read, bool write) {
    const CCConnOps *ops = custom_of(c)->ops;
    return ops->shutdown == NULL ? EOPNOTSUPP : ops->shutdown(custom_of(c)->state, read, write);
}

static int custom_alive(CCConn *c) {
    const CCConnOps *ops = custom_of(c)->ops;
    return ops->alive == NULL ? EOPNOTSUPP : ops->alive(custom_of(c)->state);
}

static int custom_name(CCConn *c, bool peer, CCAddr *addr) {
    const CCConnOps *ops = custom_of(c)->ops;
    return ops->name == NULL ? EOPNOTSUPP : ops->name(custom_of(c)->state, peer, addr);
}

static int custom_fd(CCConn *c) {
    const CCConnOps *ops = custom_of(c)->ops;
    return ops->fd == NULL ? -1 : ops->fd(custom_of(c)->state);
}

static void custom_close(CCConn *c, bool abort) {
    custom_of(c)->ops->close(custom_of(c)->state, abort);
}

static void custom_free(CCConn *c) {
    if (custom_of(c)->ops->free != NULL) custom_of(c)->ops->free(custom_of(c)->state);
}

static const struct conn_ops custom_ops = {
    .read = custom_read,
    .write = custom_write,
    .await = custom_await,
    .splice = custom_splice,
    .shutdown = custom_shutdown,
    .alive = custom_alive,
    .name = custom_name,
    .fd = custom_fd,
    .close = custom_close,
    .free = custom_free,
};

int cc_conn_create(CCConn **conn, const CCConnOps *ops, void *state) {
    if (conn == NULL) return EINVAL;
    *conn = NULL;
    if (ops == NULL || ops->read == NULL || ops->write == NULL || ops->await == NULL || ops->close == NULL ||
        cc__reserved_used(ops))
        return EINVAL;
    struct custom *c = cc__mem_alloc_small(sizeof *c);
    if (c == NULL) return ENOMEM;
    c->conn.ops = &custom_ops;
    c->ops = ops;
    c->state = state;
    cc__set(&c->conn.refs, 1);
    *conn = &c->conn;
    return 0;
}

void *cc_conn_state(CCConn *conn, const CCConnOps *ops) {
    return conn == NULL || conn->ops != &custom_ops || custom_of(conn)->ops != ops ? NULL : custom_of(conn)->state;
}
