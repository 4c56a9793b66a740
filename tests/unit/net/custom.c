/* custom.c - connections with the program's own operations, and layers: every call of a connection works with a layer
 * that flips the bits of each byte. */
#include "net.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

struct flip {
    CCConn *under;
    bool aborted;
    bool splices; /* what comes out of a pipe is not flipped */
};

static _Atomic int closes, frees;

static void flip_bytes(unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) bytes[i] ^= 0xff;
}

static int flip_read(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline) {
    struct flip *f = state;
    CHECK_EQ(count, 1);
    int error = wait ? cc_read_until(f->under, parts[0].iov_base, parts[0].iov_len, n, deadline)
                     : cc_read_try(f->under, parts[0].iov_base, parts[0].iov_len, n);
    flip_bytes(parts[0].iov_base, *n);
    return error;
}

static int flip_write(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline) {
    struct flip *f = state;
    unsigned char text[256];
    int error = 0;
    for (int i = 0; i < count && error == 0; i++) {
        for (size_t at = 0; at < parts[i].iov_len && error == 0;) {
            size_t part = parts[i].iov_len - at < sizeof text ? parts[i].iov_len - at : sizeof text, put = 0;
            memcpy(text, (char *)parts[i].iov_base + at, part);
            flip_bytes(text, part);
            error =
                wait ? cc_write_until(f->under, text, part, &put, deadline) : cc_write_try(f->under, text, part, &put);
            at += put;
            *n += put;
        }
    }
    return error == EAGAIN && *n > 0 ? 0 : error;
}

static int flip_await(void *state, bool drained, CCDeadline deadline) {
    return cc_conn_await(((struct flip *)state)->under, drained, deadline);
}
static int flip_splice(void *state, int pipe, size_t count, size_t *n, CCDeadline deadline) {
    struct flip *f = state;
    if (!f->splices) return EINVAL;
    return count == 0 ? 0 : cc_fd_splice_until(pipe, cc_conn_fd(f->under), count, n, deadline);
}
static int flip_shutdown(void *state, bool read, bool write) {
    return cc_shutdown(((struct flip *)state)->under,
                       (CCShut)((read ? CC_SHUT_READ : 0) | (write ? CC_SHUT_WRITE : 0)));
}
static int flip_alive(void *state) {
    return cc_conn_alive(((struct flip *)state)->under);
}
static int flip_name(void *state, bool peer, CCAddr *addr) {
    CCConn *under = ((struct flip *)state)->under;
    return peer ? cc_conn_peer(under, addr) : cc_conn_local(under, addr);
}
static int flip_fd(void *state) {
    return cc_conn_fd(((struct flip *)state)->under);
}
static void flip_close(void *state, bool abort) {
    struct flip *f = state;
    atomic_fetch_add(&closes, 1);
    f->aborted = abort;
    (void)cc_shutdown(f->under, CC_SHUT_BOTH);
}
static void flip_free(void *state) {
    struct flip *f = state;
    atomic_fetch_add(&frees, 1);
    if (f->aborted)
        cc_abort(f->under);
    else
        cc_close(f->under);
    free(f);
}

static const CCConnOps flip_ops = {
    .read = flip_read,
    .write = flip_write,
    .await = flip_await,
    .splice = flip_splice,
    .shutdown = flip_shutdown,
    .alive = flip_alive,
    .name = flip_name,
    .fd = flip_fd,
    .close = flip_close,
    .free = flip_free,
};

static int flip_wrap(CCConn **conn) {
    struct flip *f = malloc(sizeof *f);
    CHECK(f != NULL);
    *f = (struct flip){.under = *conn};
    int error = cc_conn_create(conn, &flip_ops, f);
    CHECK_EQ(error, 0);
    return error;
}

static void make(CCConn **flipped, CCConn **plain) {
    CHECK_EQ(cc_socketpair(flipped, plain), 0);
    CHECK_EQ(flip_wrap(flipped), 0);
}

/* ---- the calls ---- */

TEST(bytes_pass_through_its_operations) {
    CCConn *c, *plain;
    CCAddr addr;
    char text[8];
    size_t n;
    make(&c, &plain);
    CHECK_EQ(cc_write(c, "\xbe\xbd", 2, &n), 0);
    CHECK_EQ(n, 2);
    CHECK_EQ(cc_read(plain, text, sizeof text, &n), 0);
    CHECK(n == 2 && memcmp(text, "AB", 2) == 0);
    CHECK_EQ(cc_conn_alive(c), 0);
    CHECK_EQ(cc_read_try(c, text, sizeof text, &n), EAGAIN);
    CHECK_EQ(cc_conn_await(c, true, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_conn_deadline(c, cc_after_ms(1), CC_FOREVER), 0);
    CHECK_EQ(cc_read(c, text, sizeof text, &n), ETIMEDOUT);
    CHECK_EQ(cc_conn_deadline(c, CC_FOREVER, CC_FOREVER), 0);
    CHECK_EQ(cc_write(plain, "\xbe", 1, NULL), 0);
    CHECK_EQ(cc_conn_await(c, false, CC_FOREVER), 0);
    CHECK_EQ(cc_conn_alive(c), EAGAIN);
    CHECK_EQ(cc_read(c, text, sizeof text, &n), 0);
    CHECK(n == 1 && text[0] == 'A');
    CHECK_EQ(cc_conn_local(c, &addr), 0);
    CHECK_EQ(cc_conn_fd(c), cc_conn_fd(((struct flip *)cc_conn_state(c, &flip_ops))->under));
    CHECK_EQ(cc_shutdown(c, CC_SHUT_WRITE), 0);
    CHECK_EQ(cc_read(plain, text, sizeof text, &n), 0);
    CHECK_EQ(n, 0);
    cc_close(c);
    cc_close(plain);
    CHECK_EQ(atomic_load(&closes), 1);
    CHECK_EQ(atomic_load(&frees), 1);
}

TEST(readers_and_writers_and_copies_use_it) {
    CCConn *c, *plain, *to, *from;
    CCReader r;
    CCWriter w;
    char *line, bytes[3];
    size_t n;
    uint64_t copied;
    make(&c, &plain);
    make(&to, &from);
    CHECK_EQ(cc_writer_init(&w, c, 0), 0);
    CHECK_EQ(cc_writer_print(&w, "%s\n", "word"), 0);
    CHECK_EQ(cc_writer_flush(&w), 0);
    CHECK_EQ(cc_shutdown(c, CC_SHUT_WRITE), 0);
    CHECK_EQ(cc_copy(to, plain, UINT64_MAX, &copied), 0); /* flipped twice */
    CHECK_EQ(copied, 5);
    cc_close(to);
    CHECK_EQ(cc_reader_init(&r, from, 0), 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
    CHECK(n == 4 && memcmp(line, "word", 4) == 0);
    CHECK_EQ(cc_read(from, bytes, sizeof bytes, &n), 0);
    CHECK_EQ(n, 0);
    cc_reader_free(&r);
    cc_close(from);
    cc_close(c);
    cc_close(plain);
    CHECK_EQ(atomic_load(&frees), 2);
}

CC_TASK(send_zeros, {
    CCConn *c;
    size_t size;
}) {
    static const char zeros[100000];
    for (size_t left = self->size; left > 0;) {
        size_t part = left < sizeof zeros ? left : sizeof zeros;
        CHECK_EQ(cc_write(self->c, zeros, part, NULL), 0);
        left -= part;
    }
    cc_close(self->c);
    return NULL;
}

CC_TASK(count_bytes, {
    CCConn *c;
    size_t size;
    bool splices;
}) {
    static unsigned char bytes[50000];
    size_t n = 1, sum = 0, zeros = 0;
    while (n > 0) {
        CHECK_EQ(cc_read(self->c, bytes, sizeof bytes, &n), 0);
        for (size_t i = 0; i < n; i++) zeros += bytes[i] == 0;
        sum += n;
    }
    CHECK_EQ(sum, self->size);
    if (self->splices) CHECK(zeros > self->size / 2); /* not the first ones */
    if (!self->splices) CHECK_EQ(zeros, 0);
    return NULL;
}

/* A source that counts the reads that find nothing, and knows, as a stream does, that there is nothing after a short
 * read. */
struct source {
    CCConn *under;
    int drained, empty;
};

static int source_read(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline) {
    struct source *s = state;
    CHECK_EQ(count, 1);
    CHECK(!wait);
    (void)deadline;
    int error = cc_read_try(s->under, parts[0].iov_base, parts[0].iov_len, n);
    s->empty += error == EAGAIN;
    return error;
}
static int source_write(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline) {
    (void)state, (void)parts, (void)count, (void)n, (void)wait, (void)deadline;
    return EPIPE;
}
static int source_await(void *state, bool drained, CCDeadline deadline) {
    struct source *s = state;
    s->drained += drained;
    return cc_conn_await(s->under, true, deadline);
}
static void source_close(void *state, bool abort) {
    struct source *s = state;
    (abort ? cc_abort : cc_close)(s->under);
}

static const CCConnOps source_ops = {
    .read = source_read, .write = source_write, .await = source_await, .close = source_close};

CC_TASK(answer_each, { CCConn *out, *in; }) {
    char byte;
    size_t n;
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(cc_write(self->out, "x", 1, NULL), 0);
        CHECK_EQ(cc_read(self->in, &byte, 1, &n), 0);
        CHECK_EQ(n, 1);
    }
    CHECK_EQ(cc_shutdown(self->out, CC_SHUT_WRITE), 0);
    return NULL;
}

static void *short_reads(void *arg) {
    struct source s = {0};
    CCConn *from, *out, *to, *in;
    uint64_t copied;
    CHECK_EQ(cc_socketpair(&s.under, &out), 0);
    CHECK_EQ(cc_socketpair(&to, &in), 0);
    CHECK_EQ(cc_conn_create(&from, &source_ops, &s), 0);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, answer_each, .out = out, .in = in), 0);
        CHECK_EQ(cc_copy(to, from, UINT64_MAX, &copied), 0);
    }
    CHECK_EQ(copied, 10);
    CHECK(s.empty == 0 && s.drained == 0);
    cc_close(from);
    cc_close(out);
    cc_close(to);
    cc_close(in);
    return arg;
}

TEST_WORKERS(a_copy_does_not_read_again_after_a_short_read) {
    CHECK_EQ(cc_run(short_reads, NULL, NULL), 0);
}

/* A copy of many bytes goes through a pipe, if the connection says that it can take them from there. */
TEST_WORKERS(copies_may_come_out_of_a_pipe) {
    size_t size = 1000000;
    for (int splices = 0; splices < 2; splices++) {
        CCConn *c, *plain, *from, *source;
        uint64_t copied;
        make(&c, &plain);
        CHECK(!cc_conn_is_plain(c) && cc_conn_is_plain(plain) && !cc_conn_is_plain(NULL));
        ((struct flip *)cc_conn_state(c, &flip_ops))->splices = splices;
        CHECK_EQ(cc_socketpair(&from, &source), 0);
        CC_NURSERY(n) {
            CHECK_EQ(CC_GO_IN(n, send_zeros, .c = source, .size = size), 0);
            CHECK_EQ(CC_GO_IN(n, count_bytes, .c = plain, .size = size, .splices = splices), 0);
            CHECK_EQ(cc_copy(c, from, UINT64_MAX, &copied), 0);
            CHECK_EQ(copied, size);
            cc_close(c);
        }
        cc_close(plain);
        /* Nobody reads: the deadline of the connection ends it. */
        make(&c, &plain);
        ((struct flip *)cc_conn_state(c, &flip_ops))->splices = splices;
        CHECK_EQ(cc_conn_deadline(c, CC_FOREVER, cc_after_ms(30)), 0);
        cc_close(from);
        int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        CHECK_EQ(cc_conn_from_fd(&from, fd), 0);
        CHECK_EQ(cc_copy(c, from, UINT64_MAX, &copied), ETIMEDOUT);
        cc_close(from);
        cc_close(c);
        cc_close(plain);
    }
}

CC_TASK(read_nothing, { CCConn *c; }) {
    char byte;
    size_t n;
    int error = cc_read(self->c, &byte, 1, &n);
    CHECK(error == EBADF || (error == 0 && n == 0)); /* this kind shuts it down, and leaves it at that */
    return NULL;
}

TEST_WORKERS(close_ends_waits_and_frees_it_behind_them) {
    CCConn *c, *plain;
    make(&c, &plain);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, read_nothing, .c = c), 0);
        await_waiters(1);
        cc_close(c);
    }
    while (atomic_load(&frees) != 1) cc_yield();
    cc_close(plain);
}

/* A query of a connection is a call as well: it is not freed meanwhile. */
static CCEvent asked, answered;

static int slow_name(void *state, bool peer, CCAddr *addr) {
    CHECK_EQ(cc_event_set(&asked), 0);
    CHECK_EQ(cc_event_wait(&answered), 0);
    return flip_name(state, peer, addr);
}
static int slow_fd(void *state) {
    CCAddr addr;
    (void)slow_name(state, false, &addr);
    return 7;
}

CC_TASK(look, {
    CCConn *c;
    int what;
}) {
    CCAddr addr;
    if (self->what == 2) {
        CHECK_EQ(cc_conn_fd(self->c), 7);
    } else {
        CHECK_EQ(self->what ? cc_conn_peer(self->c, &addr) : cc_conn_local(self->c, &addr), 0);
    }
    return NULL;
}

TEST_WORKERS(close_waits_for_queries) {
    CCConnOps ops = flip_ops;
    ops.name = slow_name;
    ops.fd = slow_fd;
    for (int what = 0; what < 3; what++) {
        CCConn *c, *plain;
        struct flip *f = malloc(sizeof *f);
        CHECK(f != NULL);
        CHECK_EQ(cc_socketpair(&f->under, &plain), 0);
        CHECK_EQ(cc_conn_create(&c, &ops, f), 0);
        CHECK(cc_event_reset(&asked) == 0 && cc_event_reset(&answered) == 0);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, look, .c = c, .what = what), 0);
            CHECK_EQ(cc_event_wait(&asked), 0);
            cc_close(c);
            CHECK_EQ(atomic_load(&frees), what);
            CHECK_EQ(cc_event_set(&answered), 0);
        }
        CHECK_EQ(atomic_load(&frees), what + 1);
        cc_close(plain);
    }
}

TEST(bad_arguments) {
    CCConn *c = (CCConn *)1, *plain;
    CCConnOps ops = flip_ops;
    CHECK_EQ(cc_conn_create(NULL, &ops, NULL), EINVAL);
    CHECK_EQ(cc_conn_create(&c, NULL, NULL), EINVAL);
    CHECK(c == NULL);
    ops.read = NULL;
    CHECK_EQ(cc_conn_create(&c, &ops, NULL), EINVAL);
    ops = flip_ops;
    ops.reserved[0] = 1;
    CHECK_EQ(cc_conn_create(&c, &ops, NULL), EINVAL);
    CHECK_EQ(cc_conn_await(NULL, false, CC_FOREVER), EINVAL);
    CHECK(cc_conn_state(NULL, &flip_ops) == NULL);
    CHECK_EQ(cc_socketpair(&c, &plain), 0);
    CHECK(cc_conn_state(c, &flip_ops) == NULL);
    cc_close(c);

    /* What it does not have. */
    CCAddr addr;
    struct flip f = {.under = plain};
    ops = flip_ops;
    ops.shutdown = NULL;
    ops.alive = NULL;
    ops.name = NULL;
    ops.fd = NULL;
    ops.free = NULL;
    CHECK_EQ(cc_conn_create(&c, &ops, &f), 0);
    CHECK(cc_conn_state(c, &flip_ops) == NULL && cc_conn_state(c, &ops) == &f);
    CHECK_EQ(cc_shutdown(c, CC_SHUT_WRITE), EOPNOTSUPP);
    CHECK_EQ(cc_conn_alive(c), EOPNOTSUPP);
    CHECK_EQ(cc_conn_peer(c, &addr), EOPNOTSUPP);
    CHECK_EQ(cc_conn_fd(c), -1);

    /* Its operations do not see them: the answers are those of a connection with a descriptor. */
    CCConn *open, *peer;
    CHECK_EQ(cc_socketpair(&open, &peer), 0);
    CCConn *both[] = {c, open};
    struct iovec parts[] = {{(void *)(uintptr_t) "a", 1}, {NULL, 1}};
    struct iovec wrap[] = {{(void *)(uintptr_t) "a", SIZE_MAX}, {(void *)(uintptr_t) "bc", 2}};
    for (size_t i = 0; i < 2; i++) {
        size_t n = 9;
        CHECK_EQ(cc_writev(both[i], wrap, 2, &n), EINVAL);
        CHECK_EQ(n, 0);
        n = 9;
        CHECK_EQ(cc_writev(both[i], parts + 1, 1, &n), EFAULT);
        CHECK_EQ(n, 0);
        CHECK_EQ(cc_writev(both[i], parts, -1, &n), EINVAL);
        CHECK_EQ(cc_writev(both[i], parts, INT_MAX, &n), EINVAL);
        CHECK_EQ(cc_writev(both[i], NULL, 1, &n), EINVAL);
        CHECK_EQ(cc_writev(both[i], NULL, 0, &n), 0);
    }
    cc_close(open);
    cc_close(peer);
    CHECK_EQ(cc_unix_send_fds(c, NULL, 0, "x", 1), EOPNOTSUPP);
    CHECK_EQ(cc_writev(c, NULL, 1, NULL), EINVAL);
    cc_close(c);
    cc_close(plain);
}

/* ---- layers ---- */

static _Atomic int refused, dropped;

static int dialled(CCConn **conn, const char *host, CCDeadline deadline, void *arg) {
    (void)deadline;
    CHECK(strcmp(host, "127.0.0.1") == 0 || strcmp(host, "localhost") == 0);
    if (atomic_load((_Atomic int *)arg) != 0) return EPROTO;
    return flip_wrap(conn);
}
static int accepted(CCConn **conn, void *arg) {
    if (atomic_load((_Atomic int *)arg) != 0) return EPROTO;
    return flip_wrap(conn);
}
static void drop(void *arg) {
    (void)arg;
    atomic_fetch_add(&dropped, 1);
}

static const CCConnLayer layer = {.dialled = dialled, .accepted = accepted, .dropped = drop, .arg = &refused};

static int echo(CCConn *conn, void *arg) {
    (void)arg;
    CHECK(cc_conn_state(conn, &flip_ops) != NULL);
    return cc_copy(conn, conn, UINT64_MAX, NULL);
}

static void ask(const char *where) {
    CCConn *c;
    char text[8];
    CHECK_EQ(cc_dial(&c, where, NULL), 0);
    CHECK_EQ(cc_write(c, "question", 8, NULL), 0);
    CHECK_EQ(cc_read_full(c, text, 8, NULL), 0);
    CHECK(memcmp(text, "question", 8) == 0);
    cc_close(c);
}

TEST_WORKERS(a_registered_layer_is_dialled_and_served_by_name) {
    CCListener *l;
    CCConn *c;
    CCAddr addr;
    char where[64];
    CHECK_EQ(cc_listen(&l, "flip://127.0.0.1:0", NULL), EINVAL);
    CHECK_EQ(cc_conn_layer("flip", &layer), 0);
    CHECK_EQ(cc_conn_layer("flip", &layer), EEXIST);
    CHECK_EQ(cc_listen(&l, "flip://127.0.0.1:0?backlog=5", NULL), 0);
    CHECK_EQ(cc_listener_layer(l, &layer), EEXIST);
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    snprintf(where, sizeof where, "flip://127.0.0.1:%u", addr.port);
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){0});
    CHECK(n != NULL);
    CHECK_EQ(cc_serve(n, l, echo, NULL, NULL), 0);
    for (int i = 0; i < 10; i++) ask(where);

    atomic_store(&refused, 1); /* one that cannot be wrapped is closed */
    CHECK_EQ(cc_dial(&c, where, NULL), EPROTO);
    CHECK(c == NULL);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    MAY_FAIL(cc_nursery_wait(n));
    CHECK_EQ(cc_nursery_free(n), 0);
    cc_listener_close(l);
    CHECK_EQ(atomic_load(&dropped), 0);
}

TEST_WORKERS(a_listener_has_a_layer_of_its_own) {
    CCListener *l;
    CCConn *c, *plain;
    char byte;
    size_t n;
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_listener_layer(l, &layer), 0);
    plain = dial(l);
    CHECK_EQ(cc_accept(l, &c), 0);
    CHECK_EQ(cc_write(c, "\xbe", 1, NULL), 0);
    CHECK_EQ(cc_read(plain, &byte, 1, &n), 0);
    CHECK_EQ(byte, 'A');
    cc_close(c);
    cc_close(plain);
    atomic_store(&refused, 1);
    plain = dial(l);
    CHECK_EQ(cc_accept(l, &c), EPROTO);
    CHECK(c == NULL);
    CHECK_EQ(cc_read(plain, &byte, 1, &n), 0);
    CHECK_EQ(n, 0);
    cc_close(plain);
    CHECK_EQ(atomic_load(&dropped), 0);
    cc_listener_close(l);
    CHECK_EQ(atomic_load(&dropped), 1);
}

TEST(bad_layers) {
    CCListener *l;
    CCConn *c;
    CCConnLayer other = {.arg = &refused};
    CHECK_EQ(cc_conn_layer(NULL, &layer), EINVAL);
    CHECK_EQ(cc_conn_layer("", &layer), EINVAL);
    CHECK_EQ(cc_conn_layer("tcp", &layer), EINVAL);
    CHECK_EQ(cc_conn_layer("Flip", &layer), EINVAL);
    CHECK_EQ(cc_conn_layer("abcdefghijklmnop", &layer), EINVAL);
    CHECK_EQ(cc_conn_layer("flip", NULL), EINVAL);
    CHECK_EQ(cc_listener_layer(NULL, &layer), EINVAL);
    CHECK_EQ(cc_conn_layer("neither", &other), 0);
    CHECK_EQ(cc_listen(&l, "neither://127.0.0.1:0", NULL), EOPNOTSUPP);
    CHECK_EQ(cc_dial(&c, "neither://127.0.0.1:1", NULL), EOPNOTSUPP);
    other.reserved[0] = 1;
    CHECK_EQ(cc_conn_layer("reserved", &other), EINVAL);
    char name[] = "layer0";
    for (int i = 1; i < CC_CONN_LAYERS_MAX; i++) {
        name[5] = (char)('a' + i);
        CHECK_EQ(cc_conn_layer(name, &layer), 0);
    }
    CHECK_EQ(cc_conn_layer("onemore", &layer), ENOSPC);
}
