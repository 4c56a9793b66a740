/* ops.c - the calls on descriptors: try, wait, try again.
 *
 * CALL-1  A call that returns ETIMEDOUT or ECANCELED has moved nothing since its last success: after a wait that ended
 *         so there is no further attempt. If a hint (FD-6) has replaced the attempt, there is one: an event may not
 *         have been fetched yet, and what need not wait is done also after the deadline, and by a caller that is
 *         cancelled.
 * CALL-2  After 64 calls in one turn the fiber yields: a descriptor that is always ready must not monopolise a worker.
 * CALL-3  As many clients may wait behind one listener as behind all descriptors that are ready. So a fiber that
 *         accepts is not queued behind all others as long as others have had more turns than it has made calls: it lets
 *         one fiber run after each 64 calls. That at most doubles the waiting time of any other fiber.
 * CALL-4  A peer that is always faster must not keep a cancelled caller going: a fiber that has made 64 calls in one
 *         turn, or an OS thread that has made as many without a wait, checks for a cancellation before its next call
 *         that may wait. Then it gets ECANCELED once, and counts from 0, so that it can still send its last messages.
 */
#include "io/call.h"

#include "os/simulated.h"
#include "sched/park.h"
#include "sim/sim.h"

#include <ccc/cc_fd.h>
#include <ccc/cc_nursery.h>
#include <errno.h>
#include <limits.h>

_Static_assert(sizeof(off_t) == sizeof(int64_t) && sizeof(socklen_t) == sizeof(CCSockLen), "as cc_fd.h has them");

enum {
    CALLS_PER_TURN = 64,
    TURNS_SAVED_MAX = 1024, /* turns of others that a fiber that accepts can use: some milliseconds */
};

/* ---- turns ---- */

static struct {
    _Alignas(CC_LINE) _Atomic uint64_t turn;
    _Atomic uint32_t calls;
    _Atomic uint32_t saved; /* turns of others that fibers that accept have not used: CALL-3 */
    _Atomic uint64_t check; /* turn + 1: a call in that turn first checks for a cancellation: CALL-4 */
} spent[CC_WORKERS_MAX + ISLANDS_MAX + 1];

/* An OS thread's calls since its last wait. Not inlined: fibers change threads. */
static _Thread_local uint32_t thread_calls __attribute__((tls_model("initial-exec")));

static CC_NOINLINE uint32_t *calls_of_thread(void) {
    return &thread_calls;
}

/* CALL-4: the fiber has just yielded. If it waits before its next call, that call is in another turn. */
static void check_at_next_call(void) {
    struct worker *w = cc__worker();
    cc__set(&spent[w->core.owner].check, cc__get(&w->core.turns) + 1);
}

static bool check_is_due(void) {
    struct worker *w = cc__worker();
    if (unlikely(cc__sched_current(w) == NULL)) {
        bool many = *calls_of_thread() >= CALLS_PER_TURN;
        if (many) *calls_of_thread() = 0;
        return many;
    }
    unsigned owner = w->core.owner;
    if (likely(cc__get(&spent[owner].check) != cc__get(&w->core.turns) + 1)) return false;
    cc__set(&spent[owner].check, 0);
    return true;
}

int cc__call_check_cancel(void) {
    return unlikely(check_is_due()) ? cc_check_cancel() : 0;
}

/* CALL-2. The counters are per worker: its fibers run one at a time. */
static void maybe_yield(bool accepts) {
    struct worker *w = cc__worker();
    struct fiber *self = cc__sched_current(w);
    if (self == NULL) {
        ++*calls_of_thread(); /* CALL-4 */
        return;
    }
    unsigned owner = w->core.owner;
    uint64_t turn = cc__get(&w->core.turns);
    uint64_t passed = turn - cc__get(&spent[owner].turn);
    uint32_t saved = cc__get(&spent[owner].saved);
    if (passed != 0) {
        saved = passed < TURNS_SAVED_MAX - saved ? saved + (uint32_t)passed : TURNS_SAVED_MAX;
        cc__set(&spent[owner].saved, saved);
        cc__set(&spent[owner].turn, turn);
        cc__set(&spent[owner].calls, 0);
    }
    uint32_t calls = cc__get(&spent[owner].calls) + 1;
    cc__set(&spent[owner].calls, calls);
    if (likely(calls < CALLS_PER_TURN)) return;
    if (!accepts || saved < CALLS_PER_TURN) {
        cc__sched_yield(w, self);
    } else {
        cc__set(&spent[owner].saved, saved - CALLS_PER_TURN); /* CALL-3 */
        cc__sched_yield_to_one(w, self);
    }
    check_at_next_call();
}

void cc__fd_maybe_yield(void) {
    maybe_yield(false);
}

/* ---- the loop ---- */

static bool would_wait(ssize_t rc) {
    return rc == -EAGAIN || rc == -EINPROGRESS;
}

/* After an attempt, with `edges` before it, and before the call leaves: a close and a release forget the hints of the
 * descriptor when no call is inside. */
static void note_hint(const struct io_use *use, const struct call *c, ssize_t rc, uint32_t edges) {
    struct io_fd *fd = use->fd;
    if (c->most != 0 && rc > 0 && (size_t)rc < c->most && (use->word & FD_ADOPTED) && !cc__get(&fd->no_skip))
        cc__set(&fd->side[c->side].drained, edges + 1); /* FD-6 */
}

/* After an attempt that did not find the side empty or full. */
static void note_result(const struct io_use *use, const struct call *c) {
    if (!(use->word & FD_ADOPTED)) cc__fd_found(use);
    cc__fd_pass_on(use->fd, c->side);
}

/* Whether the error ends a connection; it is reported once. */
static bool is_broken(ssize_t rc) {
    return rc == -ECONNRESET || rc == -ETIMEDOUT || rc == -EHOSTUNREACH || rc == -ENETUNREACH || rc == -EHOSTDOWN ||
           rc == -ENETDOWN || rc == -ENETRESET || rc == -ECONNABORTED;
}

static enum os_mode mode_of(uint64_t word) {
    return !(word & FD_ADOPTED) ? OS_OTHER : word & FD_SOCKET ? OS_OWN_SOCKET : OS_OWN;
}

static ssize_t attempt_accept(int fd, struct call *c, enum os_mode mode);

/* FD-11, and FD-10 for terminals. */
static CC_NOINLINE ssize_t attempt_in_turn(struct io_use *use, struct call *c) {
    enum io_side side = c->side;
    ssize_t rc = cc__fd_take_turn(use->fd, side);
    if (rc != 0) return rc;
    rc = c->attempt(use->fd->number, c, OS_LOOKED_AT);
    if (rc == OS_BORROW) {
        cc__fd_borrow_mode(use->fd);
        rc = c->attempt(use->fd->number, c, OS_OWN);
        cc__fd_return_mode(use->fd);
    }
    cc__fd_give_turn(use->fd, side);
    return rc;
}

static ssize_t attempt(struct io_use *use, struct call *c) {
    enum os_mode mode = mode_of(use->word);
    bool borrows = unlikely(c->borrows) && mode == OS_OTHER;
    if (borrows) cc__fd_borrow_mode(use->fd);
    ssize_t rc = c->attempt(use->fd->number, c, mode);
    if (borrows) cc__fd_return_mode(use->fd);
    return unlikely(rc == OS_LOOK_FIRST) ? attempt_in_turn(use, c) : rc;
}

int cc__call_run(struct io_use *use, struct call *c, enum how how, uint64_t deadline, ssize_t *result) {
    if (unlikely(use->fd->number >= OS_SIMULATED)) cc__sim_point();
    int over = how == HOW_WAIT ? cc__call_check_cancel() : 0; /* CALL-4 */
    if (unlikely(over != 0)) return over;
    /* over: the result of a wait before which no attempt was made (CALL-1). */
    for (;;) {
        ssize_t rc = -EAGAIN;
        uint32_t edges = cc__fd_edges(use->fd, c->side);
        bool tries = how == HOW_TRY || c->most == 0 || over != 0 || !cc__fd_drained(use->fd, c->side, edges);
        if (tries) {
            int error = cc__fd_enter(use);
            if (unlikely(error != 0)) return error;
            rc = attempt(use, c);
            if (unlikely(is_broken(rc))) cc__set(&use->fd->broken, (uint16_t)-rc); /* FD-9 */
            note_hint(use, c, rc, edges);
            cc__fd_leave(use);
        }
        if (!would_wait(rc)) {
            note_result(use, c);
            maybe_yield(c->attempt == attempt_accept);
            *result = rc;
            return rc < 0 ? (int)-rc : 0;
        }
        if (how == HOW_TRY) return EAGAIN;
        if (unlikely(over != 0)) return over;
        over = cc__fd_wait(use, c->side, edges, deadline);
        if (unlikely(cc__worker() == NULL)) *calls_of_thread() = 0;
        if (unlikely(over != 0 && tries)) return over;
    }
}

static int run_counted(struct io_use *use, struct call *c, enum how how, CCDeadline deadline, size_t *n) {
    ssize_t result = 0;
    int error = cc__call_run(use, c, how, cc__wait_deadline(deadline), &result);
    *n = error == 0 ? (size_t)result : 0;
    return error;
}

/* ---- bytes ---- */

/* SIZE_MAX: more than that, which the system refuses. */
static size_t length_of(const struct iovec *parts, int count) {
    size_t sum = 0;
    for (int i = 0; i < count; i++) sum = parts[i].iov_len <= SIZE_MAX - sum ? sum + parts[i].iov_len : SIZE_MAX;
    return sum;
}

static bool bad_vector(const struct iovec *parts, int count) {
    return count < 0 || count > IOV_MAX || (count > 0 && parts == NULL);
}

static ssize_t attempt_read(int fd, struct call *c, enum os_mode mode) {
    return cc__os_readv(fd, c->vector.parts, c->vector.count, mode);
}

static ssize_t attempt_write(int fd, struct call *c, enum os_mode mode) {
    return cc__os_writev(fd, c->vector.parts, c->vector.count, mode);
}

/* Systems differ in whether an empty read waits for data; here it never does. */
static int read_nothing(struct io_use *use, size_t *n) {
    *n = 0;
    int error = cc__fd_enter(use);
    if (error != 0) return error;
    error = cc__os_valid(use->fd->number);
    cc__fd_leave(use);
    return error;
}

int cc__call_read(struct io_use *use, const struct iovec *parts, int count, size_t *n, enum how how,
                  CCDeadline deadline) {
    if (n == NULL || bad_vector(parts, count)) return EINVAL;
    struct call c = {
        .side = IO_READ, .attempt = attempt_read, .vector = {parts, count}, .most = length_of(parts, count)};
    return c.most == 0 ? read_nothing(use, n) : run_counted(use, &c, how, deadline, n);
}
static int read_all_forms(int fd, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    if (n == NULL) return EINVAL;
    struct io_use use;
    int error = bad_vector(parts, count) ? EINVAL : cc__fd_find(fd, &use);
    *n = 0;
    return error != 0 ? error : cc__call_read(&use, parts, count, n, how, deadline);
}

/* Writes until everything is written. The caller's vector is not changed: what is left of its first part is in a
 * copy. */
int cc__call_write(struct io_use *use, const struct iovec *parts, int count, size_t *n, enum how how,
                   CCDeadline deadline) {
    size_t ignored, done = 0, left = 0;
    if (n == NULL) n = &ignored;
    *n = 0;
    if (bad_vector(parts, count)) return EINVAL;
    left = length_of(parts, count);
    size_t skipped = 0; /* bytes of parts[0] that have been written */
    int error = 0;
    do {
        struct iovec rest;
        struct call c = {.side = IO_WRITE, .attempt = attempt_write, .most = left};
        if (skipped == 0) {
            c.vector.parts = parts;
            c.vector.count = count;
        } else {
            rest = (struct iovec){(char *)parts[0].iov_base + skipped, parts[0].iov_len - skipped};
            c.vector.parts = &rest;
            c.vector.count = 1;
            c.most = rest.iov_len;
        }
        size_t put = 0;
        error = run_counted(use, &c, how, deadline, &put);
        done += put;
        left -= put;
        for (skipped += put; count > 0 && skipped >= parts[0].iov_len && left > 0; parts++, count--)
            skipped -= parts[0].iov_len;
        if (error == EAGAIN && how == HOW_TRY && done > 0) error = 0;
        if (how == HOW_TRY) break;
    } while (error == 0 && left > 0);
    *n = done;
    return error;
}

static int write_all_forms(int fd, const struct iovec *parts, int count, size_t *n, enum how how, CCDeadline deadline) {
    struct io_use use;
    if (n != NULL) *n = 0;
    int error = bad_vector(parts, count) ? EINVAL : cc__fd_find(fd, &use);
    return error != 0 ? error : cc__call_write(&use, parts, count, n, how, deadline);
}

int cc_fd_readv(int fd, const struct iovec *parts, int count, size_t *n) {
    return read_all_forms(fd, parts, count, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_readv_try(int fd, const struct iovec *parts, int count, size_t *n) {
    return read_all_forms(fd, parts, count, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_readv_until(int fd, const struct iovec *parts, int count, size_t *n, CCDeadline deadline) {
    return read_all_forms(fd, parts, count, n, HOW_WAIT, deadline);
}
int cc_fd_writev(int fd, const struct iovec *parts, int count, size_t *n) {
    return write_all_forms(fd, parts, count, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_writev_try(int fd, const struct iovec *parts, int count, size_t *n) {
    return write_all_forms(fd, parts, count, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_writev_until(int fd, const struct iovec *parts, int count, size_t *n, CCDeadline deadline) {
    return write_all_forms(fd, parts, count, n, HOW_WAIT, deadline);
}

static int read_one(int fd, void *buffer, size_t size, size_t *n, enum how how, CCDeadline deadline) {
    struct iovec one = {buffer, size};
    if (n != NULL) *n = 0;
    return buffer == NULL && size > 0 ? EINVAL : read_all_forms(fd, &one, 1, n, how, deadline);
}
int cc_fd_read(int fd, void *buffer, size_t size, size_t *n) {
    return read_one(fd, buffer, size, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_read_try(int fd, void *buffer, size_t size, size_t *n) {
    return read_one(fd, buffer, size, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_read_until(int fd, void *buffer, size_t size, size_t *n, CCDeadline deadline) {
    return read_one(fd, buffer, size, n, HOW_WAIT, deadline);
}

static int write_one(int fd, const void *bytes, size_t size, size_t *n, enum how how, CCDeadline deadline) {
    struct iovec one = {(void *)(uintptr_t)bytes, size};
    if (n != NULL) *n = 0;
    return bytes == NULL && size > 0 ? EINVAL : write_all_forms(fd, &one, 1, n, how, deadline);
}
int cc_fd_write(int fd, const void *bytes, size_t size, size_t *n) {
    return write_one(fd, bytes, size, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_write_try(int fd, const void *bytes, size_t size, size_t *n) {
    return write_one(fd, bytes, size, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_write_until(int fd, const void *bytes, size_t size, size_t *n, CCDeadline deadline) {
    return write_one(fd, bytes, size, n, HOW_WAIT, deadline);
}

/* ---- sockets ---- */

static ssize_t attempt_recvmsg(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    return cc__os_recvmsg(fd, c->message.message, c->message.flags);
}
static ssize_t attempt_sendmsg(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    return cc__os_sendmsg(fd, c->message.message, c->message.flags);
}
static int message_forms(int fd, const struct msghdr *message, int flags, size_t *n, bool send, enum how how,
                         CCDeadline deadline) {
    if (n != NULL) *n = 0;
    if (message == NULL || n == NULL) return EINVAL;
    struct call c = {.side = send ? IO_WRITE : IO_READ,
                     .attempt = send ? attempt_sendmsg : attempt_recvmsg,
                     .message = {(struct msghdr *)(uintptr_t)message, flags}};
    struct io_use use;
    int error = cc__fd_find(fd, &use);
    return error != 0 ? error : run_counted(&use, &c, how, deadline, n);
}
int cc_fd_recvmsg(int fd, struct msghdr *message, int flags, size_t *n) {
    return message_forms(fd, message, flags, n, false, HOW_WAIT, CC_FOREVER);
}
int cc_fd_recvmsg_try(int fd, struct msghdr *message, int flags, size_t *n) {
    return message_forms(fd, message, flags, n, false, HOW_TRY, CC_FOREVER);
}
int cc_fd_recvmsg_until(int fd, struct msghdr *message, int flags, size_t *n, CCDeadline deadline) {
    return message_forms(fd, message, flags, n, false, HOW_WAIT, deadline);
}
int cc_fd_sendmsg(int fd, const struct msghdr *message, int flags, size_t *n) {
    return message_forms(fd, message, flags, n, true, HOW_WAIT, CC_FOREVER);
}
int cc_fd_sendmsg_try(int fd, const struct msghdr *message, int flags, size_t *n) {
    return message_forms(fd, message, flags, n, true, HOW_TRY, CC_FOREVER);
}
int cc_fd_sendmsg_until(int fd, const struct msghdr *message, int flags, size_t *n, CCDeadline deadline) {
    return message_forms(fd, message, flags, n, true, HOW_WAIT, deadline);
}

static ssize_t attempt_accept(int fd, struct call *c, enum os_mode mode) {
    return cc__os_accept(fd, c->accept.address, c->accept.length, mode);
}
int cc__call_accept(struct io_use *use, int *connection, struct sockaddr *address, socklen_t *length, enum how how,
                    CCDeadline deadline) {
    struct call c = {.side = IO_READ, .attempt = attempt_accept, .accept = {address, length}};
    ssize_t result = -1;
    int error = cc__call_run(use, &c, how, cc__wait_deadline(deadline), &result);
    if (error != 0) return error;
    error = cc__fd_adopt_accepted((int)result, use->word);
    if (error != 0) (void)cc__os_close((int)result);
    *connection = error == 0 ? (int)result : -1;
    return error;
}
static int accept_forms(int fd, int *connection, struct sockaddr *address, socklen_t *length, enum how how,
                        CCDeadline deadline) {
    struct io_use use;
    if (connection == NULL) return EINVAL;
    *connection = -1;
    int error = cc__fd_find(fd, &use);
    return error != 0 ? error : cc__call_accept(&use, connection, address, length, how, deadline);
}
int cc_fd_accept(int fd, int *connection, struct sockaddr *address, socklen_t *length) {
    return accept_forms(fd, connection, address, length, HOW_WAIT, CC_FOREVER);
}
int cc_fd_accept_try(int fd, int *connection, struct sockaddr *address, socklen_t *length) {
    return accept_forms(fd, connection, address, length, HOW_TRY, CC_FOREVER);
}
int cc_fd_accept_until(int fd, int *connection, struct sockaddr *address, socklen_t *length, CCDeadline deadline) {
    return accept_forms(fd, connection, address, length, HOW_WAIT, deadline);
}

/* Writable means that the connect has ended, with success or not; until then the result is not known. */
static ssize_t attempt_connect(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    if (c->connect.begun) {
        int ready = cc__poller_look(fd, POLLER_WRITE);
        return ready < 0 ? ready : ready == 0 ? -EAGAIN : cc__os_connected(fd);
    }
    c->connect.begun = true;
    c->borrows = false;
    int rc = cc__os_connect(fd, c->connect.address, c->connect.length);
    c->connect.full = rc == -EAGAIN;
    if (c->connect.full) return -ENOBUFS; /* this cannot be waited for: see connect_forms */
    return rc == -EALREADY ? -EINPROGRESS : rc == -EISCONN ? 0 : rc;
}
static int connect_forms(int fd, const struct sockaddr *address, socklen_t length, enum how how, CCDeadline deadline) {
    if (address == NULL) return EINVAL;
    uint64_t until = cc__wait_deadline(deadline);
    struct io_use use;
    int error = cc__fd_find(fd, &use);
    if (error != 0) return error;
    /* A Unix listener whose backlog is full cannot be waited for: try again, ever more rarely. */
    for (uint64_t pause = 1;; pause = pause < 64 ? pause * 2 : 64) {
        struct call c = {
            .side = IO_WRITE, .attempt = attempt_connect, .connect = {address, length, false, false}, .borrows = true};
        ssize_t ignored;
        error = cc__call_run(&use, &c, how, until, &ignored);
        if (!c.connect.full) return error;
        if (how == HOW_TRY) return EAGAIN;
        if (cc_now_ns() >= until) return ETIMEDOUT;
        CCDeadline next = cc_after_ms(pause);
        error = cc_sleep_until(until < next.ns ? deadline : next);
        if (error != 0) return error;
    }
}
int cc_fd_connect(int fd, const struct sockaddr *address, socklen_t length) {
    return connect_forms(fd, address, length, HOW_WAIT, CC_FOREVER);
}
int cc_fd_connect_try(int fd, const struct sockaddr *address, socklen_t length) {
    return connect_forms(fd, address, length, HOW_TRY, CC_FOREVER);
}
int cc_fd_connect_until(int fd, const struct sockaddr *address, socklen_t length, CCDeadline deadline) {
    return connect_forms(fd, address, length, HOW_WAIT, deadline);
}

/* ---- from one descriptor to another ---- */

/* FD-4 for the other descriptor: it is not closed, nor its number reused, during the call. */
static ssize_t attempt_sendfile(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    int error = cc__fd_enter(c->file.source);
    if (error != 0) return -error;
    ssize_t sent = cc__os_sendfile(fd, c->file.source->fd->number, c->file.offset, c->file.count);
    cc__fd_leave(c->file.source);
    return sent;
}
int cc__call_sendfile(int to, int file, int64_t *offset, size_t count, size_t *n, enum how how, CCDeadline deadline) {
    if (n == NULL) return EINVAL;
    struct io_use use, source;
    struct call c = {.side = IO_WRITE, .attempt = attempt_sendfile, .borrows = true};
    c.file.source = &source;
    c.file.offset = (off_t *)offset;
    c.file.count = count;
    int error = cc__fd_find(to, &use);
    if (error == 0) error = cc__fd_find(file, &source);
    *n = 0;
    return error != 0 ? error : run_counted(&use, &c, how, deadline, n);
}

static ssize_t attempt_splice(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    int error = cc__fd_enter(c->file.source);
    if (error != 0) return -error;
    struct io_fd *source = c->file.source->fd;
    bool own = (c->file.source->word & FD_ADOPTED) != 0;
    ssize_t moved = own ? 0 : cc__fd_take_turn(source, IO_READ); /* FD-11 */
    if (moved == 0) {
        moved = cc__os_splice(source->number, own, fd, c->file.count);
        if (!own) cc__fd_give_turn(source, IO_READ);
    }
    cc__fd_leave(c->file.source);
    return moved;
}
/* EAGAIN does not say which of the two has to wait: it is one that is not ready after the attempt, since an edge will
 * come only for that one. 0: both are ready by now, try again; ARM_WAIT: wait for *side; or an error. */
static int find_waiting_side(struct io_use use[IO_SIDES], enum io_side *side) {
    *side = IO_READ;
    int error = cc__fd_look(&use[IO_READ], POLLER_READ);
    if (error != 0) return error;
    *side = IO_WRITE;
    return cc__fd_look(&use[IO_WRITE], POLLER_WRITE);
}
static int splice_forms(int from, int to, size_t count, size_t *n, enum how how, CCDeadline deadline) {
    if (n == NULL) return EINVAL;
    *n = 0;
    uint64_t until = cc__wait_deadline(deadline);
    struct io_use use[IO_SIDES];
    int error = cc__fd_find(from, &use[IO_READ]);
    if (error == 0) error = cc__fd_find(to, &use[IO_WRITE]);
    if (error == 0 && how == HOW_WAIT) error = cc__call_check_cancel(); /* CALL-4: the attempts below only try */
    for (bool again = false; error == 0;) {
        struct call c = {.side = IO_WRITE, .attempt = attempt_splice, .borrows = true};
        enum io_side side;
        ssize_t moved = 0;
        c.file.source = &use[IO_READ];
        c.file.count = count;
        uint32_t seen[] = {cc__fd_edges(use[IO_READ].fd, IO_READ), cc__fd_edges(use[IO_WRITE].fd, IO_WRITE)};
        error = cc__call_run(&use[IO_WRITE], &c, HOW_TRY, until, &moved);
        if (error == 0) {
            *n = (size_t)moved;
            cc__fd_found(&use[IO_READ]);
        }
        if (error != EAGAIN || how == HOW_TRY) return error;
        error = find_waiting_side(use, &side);
        bool both = error == 0;
        if (error == ARM_WAIT) {
            error = cc__fd_wait(&use[side], side, seen[side], until);
        } else if (both && again) { /* most likely the system has no memory for it */
            CCDeadline next = cc_after_ms(1);
            error = cc_now_ns() >= until ? ETIMEDOUT : cc_sleep_until(until < next.ns ? deadline : next);
        }
        again = both;
    }
    return error;
}
int cc_fd_splice(int from, int to, size_t count, size_t *n) {
    return splice_forms(from, to, count, n, HOW_WAIT, CC_FOREVER);
}
int cc_fd_splice_try(int from, int to, size_t count, size_t *n) {
    return splice_forms(from, to, count, n, HOW_TRY, CC_FOREVER);
}
int cc_fd_splice_until(int from, int to, size_t count, size_t *n, CCDeadline deadline) {
    return splice_forms(from, to, count, n, HOW_WAIT, deadline);
}

/* ---- the rest ---- */

int cc_fd_adopt(int fd) {
    return cc__fd_adopt(fd, false);
}
int cc_fd_release(int fd) {
    return cc__fd_release(fd);
}
int cc_fd_close(int fd) {
    return cc__fd_close(fd);
}
size_t cc_io_waiters(void) {
    return cc__fd_waiting();
}
