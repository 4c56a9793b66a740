/* copy.c - from one connection to another: through a buffer, or, for bulk data, through a pipe.
 *
 * COPY-1  While a copy waits for bytes it holds neither a buffer nor a pipe.
 * COPY-2  A pipe is empty when it is taken and when it is returned; a non-empty one is closed.
 * COPY-3  At most PIPES pipes exist, and none while no copy is in progress.
 * COPY-4  A copy between two peers that are always ready still ends when it is cancelled (CALL-4 of io/ops.c), and at
 *         the deadlines of the connections.
 */
#include "net/buffers.h"
#include "net/conn.h"
#include "net/net.h"
#include "os/clock.h"
#include "os/socket.h"

#include <ccc/cc_buf.h>
#include <errno.h>

enum {
    PIPES = 64,
    PIPES_KEPT = 8,
    PIPE_BYTES = 64 * 1024, /* the default capacity of a pipe */
    FULL_READS = 4,         /* consecutive full buffers after which the pipe is tried. A guess */
    LOOK_AFTER = 64,        /* parts after which the clock is read */
};

struct pipe_ends {
    int out, in;
};

static struct {
    struct lock lock;
    unsigned copies, count, kept_count; /* calls in progress; pipes that exist; those of them that are unused */
    struct pipe_ends kept[PIPES_KEPT];
} pipes;

void cc__net_forget(void) {
    cc__buffers_forget();
    cc__names_forget();
    cc__layers_forget();
    pipes.lock = (struct lock){0};
    pipes.copies = pipes.count = pipes.kept_count = 0; /* shared with the parent: must not be used */
}

/* ---- the pipes ---- */

static void close_pipe(struct pipe_ends p) {
    (void)cc__os_close(p.out);
    (void)cc__os_close(p.in);
}

static bool take_pipe(struct pipe_ends *p) {
    int fds[2];
    bool found = false, more = false;
    cc__lock_take(&pipes.lock);
    if (pipes.kept_count > 0) {
        *p = pipes.kept[--pipes.kept_count];
        found = true;
    } else if (pipes.count < PIPES) {
        pipes.count++;
        more = true;
    }
    cc__lock_release(&pipes.lock);
    if (!more) return found;
    if (cc__os_pipe(fds) == 0) {
        *p = (struct pipe_ends){fds[0], fds[1]};
        return true;
    }
    cc__lock_take(&pipes.lock);
    pipes.count--;
    cc__lock_release(&pipes.lock);
    return false;
}

static void give_pipe(struct pipe_ends p, bool empty) {
    cc__lock_take(&pipes.lock);
    bool keep = empty && pipes.kept_count < PIPES_KEPT;
    if (keep)
        pipes.kept[pipes.kept_count++] = p;
    else
        pipes.count--;
    cc__lock_release(&pipes.lock);
    if (!keep) close_pipe(p);
}

static void begin_copy(void) {
    cc__lock_take(&pipes.lock);
    pipes.copies++;
    cc__lock_release(&pipes.lock);
}

static void end_copy(void) {
    struct pipe_ends old[PIPES_KEPT];
    unsigned count = 0;
    cc__lock_take(&pipes.lock);
    if (--pipes.copies == 0) { /* COPY-3 */
        count = pipes.kept_count;
        for (unsigned i = 0; i < count; i++) old[i] = pipes.kept[i];
        pipes.count -= count;
        pipes.kept_count = 0;
    }
    cc__lock_release(&pipes.lock);
    for (unsigned i = 0; i < count; i++) close_pipe(old[i]);
}

/* ---- one burst: until there is no more data, or the other method seems better ---- */

struct copy {
    CCConn *to, *from;
    uint64_t left, written;
    unsigned full;   /* full buffers in a row */
    unsigned parts;  /* since the clock was read */
    bool can_splice; /* `from` has a descriptor, `to` may take bytes out of a pipe, and the system has not refused */
    bool through_pipe;
};

static size_t at_most(const struct copy *c, size_t size) {
    return c->left < size ? (size_t)c->left : size;
}

static CCDeadline write_deadline(const struct copy *c) {
    return (CCDeadline){cc__get(&c->to->write_deadline)};
}

/* Before each part: 0, ECANCELED or ETIMEDOUT (COPY-4). */
static int check_end(struct copy *c) {
    int error = cc__call_check_cancel();
    if (error != 0 || ++c->parts < LOOK_AFTER) return error;
    c->parts = 0;
    uint64_t until = cc__wait_deadline(cc__earlier(cc__get(&c->from->read_deadline), write_deadline(c)));
    return until != WAIT_FOREVER && cc__clock_now() >= until ? ETIMEDOUT : 0;
}

static bool takes_pipes(const struct copy *c) {
    size_t n;
    return c->to->ops->splice == NULL || c->to->ops->splice(c->to, -1, 0, &n, write_deadline(c)) == 0;
}

/* 0: continue; EAGAIN: no data; ENODATA: end of stream. After less than it could read there is most likely no more: the
 * wait that follows knows that from the read (FD-6), without another one. */
static int by_buffer(struct copy *c) {
    char *bytes = cc__buffer_take(BUFFER_SIZE);
    if (bytes == NULL) return ENOMEM;
    int error = 0;
    bool is_short = false;
    while (error == 0 && c->left > 0 && !c->through_pipe && !is_short) {
        struct iovec part = {bytes, at_most(c, BUFFER_SIZE)};
        size_t got = 0, put = 0;
        error = check_end(c);
        if (error == 0) error = cc__conn_read(c->from, &part, 1, &got, HOW_TRY, CC_FOREVER);
        if (error == 0 && got == 0) error = ENODATA;
        if (error != 0) break;
        is_short = got < part.iov_len;
        part.iov_len = got;
        error = cc__conn_write(c->to, &part, 1, &put, HOW_WAIT, CC_FOREVER);
        c->written += put;
        c->left -= got;
        c->full = got == BUFFER_SIZE ? c->full + 1 : 0;
        if (c->full >= FULL_READS && c->can_splice) c->through_pipe = c->can_splice = takes_pipes(c);
    }
    cc__buffer_give(bytes, BUFFER_SIZE);
    return error;
}

/* The pipe is empty, so EAGAIN means that `fd` has no data. */
static ssize_t attempt_fill(int fd, struct call *c, enum os_mode mode) {
    return cc__os_splice(fd, mode != OS_OTHER, c->file.from, c->file.count);
}
/* The pipe is not empty, so EAGAIN means that `fd` has no room. */
static ssize_t attempt_drain(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    return cc__os_splice(c->file.from, true, fd, c->file.count);
}

static int splice_once(CCConn *conn, enum io_side side, int pipe_end, size_t count, size_t *n) {
    struct io_use use = conn->use;
    struct call call = {
        .side = side, .attempt = side == IO_READ ? attempt_fill : attempt_drain, .borrows = side == IO_WRITE};
    call.file.from = pipe_end;
    call.file.count = count;
    ssize_t moved = 0;
    uint64_t until = cc__get(side == IO_READ ? &conn->read_deadline : &conn->write_deadline);
    int error =
        cc__call_run(&use, &call, side == IO_READ ? HOW_TRY : HOW_WAIT, cc__wait_deadline((CCDeadline){until}), &moved);
    *n = error == 0 ? (size_t)moved : 0;
    if (error == 0 && moved == 0 && side == IO_READ) error = cc__fd_broken(&conn->use);
    return error;
}

/* The system refuses to splice from the pipe to this descriptor: a file opened for appending, for example. */
static int empty_by_buffer(struct copy *c, int pipe_end, size_t *inside) {
    char *bytes = cc__buffer_take(BUFFER_SIZE);
    if (bytes == NULL) return ENOMEM;
    int error = 0;
    while (error == 0 && *inside > 0) {
        struct iovec part = {bytes, *inside < BUFFER_SIZE ? *inside : BUFFER_SIZE};
        size_t put = 0;
        ssize_t got = cc__os_readv(pipe_end, &part, 1, OS_OWN);
        error = got < 0 ? (int)-got : got == 0 ? EIO : 0;
        if (error != 0) break;
        part.iov_len = (size_t)got;
        *inside -= (size_t)got;
        error = cc__conn_write(c->to, &part, 1, &put, HOW_WAIT, CC_FOREVER);
        c->written += put;
    }
    cc__buffer_give(bytes, BUFFER_SIZE);
    return error;
}

static int by_pipe(struct copy *c) {
    struct pipe_ends p;
    size_t inside = 0;
    c->through_pipe = false; /* unless it succeeds */
    c->full = 0;
    if (!take_pipe(&p)) return 0;
    int error = 0;
    while (error == 0 && c->left > 0) {
        error = check_end(c);
        if (error == 0) error = splice_once(c->from, IO_READ, p.in, at_most(c, PIPE_BYTES), &inside);
        if (error == EINVAL) { /* not for these descriptors */
            c->can_splice = false;
            error = 0;
            break;
        }
        if (error == 0 && inside == 0) error = ENODATA;
        size_t came = inside;
        while (error == 0 && inside > 0) {
            size_t put;
            error = c->to->ops->splice == NULL ? splice_once(c->to, IO_WRITE, p.out, inside, &put)
                                               : c->to->ops->splice(c->to, p.out, inside, &put, write_deadline(c));
            inside -= put;
            c->written += put;
            if (error != EINVAL) continue;
            c->can_splice = false;
            error = empty_by_buffer(c, p.out, &inside);
        }
        c->left -= came;
        c->through_pipe = came >= BUFFER_SIZE && c->can_splice;
        if (!c->through_pipe) break;
    }
    give_pipe(p, inside == 0); /* COPY-2 */
    return error;
}

int cc_copy(CCConn *to, CCConn *from, uint64_t most, uint64_t *n) {
    uint64_t ignored;
    if (n == NULL) n = &ignored;
    *n = 0;
    if (to == NULL || from == NULL) return EINVAL;
    struct copy c = {.to = to, .from = from, .left = most};
    c.can_splice = from->ops == &cc__socket_ops;
    cc__conn_keep(to);
    cc__conn_keep(from);
    begin_copy();
    int error = 0;
    bool drained = false;
    while (error == 0 && c.left > 0) {
        error = cc__conn_await(from, drained, CC_FOREVER); /* COPY-1 */
        if (error == 0) error = c.through_pipe ? by_pipe(&c) : by_buffer(&c);
        drained = error == EAGAIN;
        if (drained) error = 0;
    }
    end_copy();
    cc__conn_drop(from);
    cc__conn_drop(to);
    *n = c.written;
    return error == ENODATA ? 0 : error;
}
