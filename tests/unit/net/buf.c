/* buf.c - buffered readers and writers: limits, ends, waits that are interrupted; copying. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"

static CCConn *here, *there;

static void pair(void) {
    CHECK_EQ(cc_socketpair(&here, &there), 0);
}

static void end(void) {
    cc_close(here);
    cc_close(there);
}

static void put(const char *text) {
    CHECK_EQ(cc_write(there, text, strlen(text), NULL), 0);
}

/* ---- reading ---- */

static void *lines(void *arg) {
    CCReader r;
    char *line;
    size_t n;
    pair();
    CHECK_EQ(cc_reader_init(&r, here, 16), 0);
    put("one\ntwo\r\n\n\r\nnot yet");
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
    CHECK(n == 3 && strcmp(line, "one") == 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
    CHECK(n == 3 && strcmp(line, "two") == 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
    CHECK(n == 0 && line[0] == 0);
    CHECK_EQ(cc_conn_deadline(here, cc_after_ms(1), CC_FOREVER), 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), ETIMEDOUT);
    CHECK_EQ(cc_conn_deadline(here, CC_FOREVER, CC_FOREVER), 0);
    put(" over\n123456789012345\n1234567890123456\n");
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
    CHECK(n == 12 && strcmp(line, "not yet over") == 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0); /* 16 bytes with its end: the longest */
    CHECK_EQ(n, 15);
    CHECK_EQ(cc_reader_line(&r, &line, &n), EMSGSIZE);
    CHECK_EQ(cc_reader_line(&r, &line, &n), EMSGSIZE); /* nothing was taken */
    CHECK_EQ(cc_reader_skip(&r, 17), 0);
    put("rest");
    CHECK_EQ(cc_shutdown(there, CC_SHUT_WRITE), 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), ENODATA);
    CHECK_EQ(n, 4);
    const void *bytes;
    CHECK_EQ(cc_reader_peek(&r, 9, &bytes, &n), ENODATA);
    CHECK(n == 4 && memcmp(bytes, "rest", 4) == 0);
    CHECK_EQ(cc_reader_peek(&r, 17, &bytes, &n), EMSGSIZE);
    char text[8];
    CHECK_EQ(cc_reader_read_full(&r, text, 8, &n), ENODATA);
    CHECK_EQ(n, 4);
    CHECK_EQ(cc_reader_read(&r, text, 8, &n), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_reader_skip(&r, 1), ENODATA);
    cc_reader_free(&r);
    cc_reader_free(&r);
    end();
    return arg;
}

TEST(lines_and_their_limit) {
    CHECK_EQ(cc_run(lines, NULL, NULL), 0);
    lines(NULL);
}

CC_TASK(send_slowly, {
    const char *text;
    size_t size;
    unsigned piece;
}) {
    for (size_t i = 0; i < self->size; i += self->piece) {
        size_t n = self->size - i < self->piece ? self->size - i : self->piece;
        CHECK_EQ(cc_write(there, self->text + i, n, NULL), 0);
        cc_yield();
    }
    CHECK_EQ(cc_shutdown(there, CC_SHUT_WRITE), 0);
    return NULL;
}

/* The same bytes come out, whatever the sizes of writes and reads. */
static void *pieces(void *arg) {
    enum { SIZE = 100 * 1000 };
    char *text = malloc(SIZE), *got = malloc(SIZE + 1);
    uint64_t random = test_seed();
    for (size_t i = 0; i < SIZE; i++) text[i] = (char)('a' + i * i % 23);
    static const unsigned sizes[] = {1, 13, 4096, 70000};
    for (int k = 0; k < 4; k++) {
        pair();
        CC_NURSERY(n) {
            CCReader r;
            size_t have = 0, part;
            const void *bytes;
            size_t total = k == 0 ? 3000 : SIZE;
            CHECK_EQ(CC_GO_IN(n, send_slowly, .text = text, .size = total, .piece = sizes[k]), 0);
            CHECK_EQ(cc_reader_init(&r, here, k == 3 ? 50000 : 100), 0);
            int error = 0;
            while (have < total && error == 0) {
                switch (test_random(&random) % 5) {
                case 0:
                    error = cc_reader_read(&r, got + have, 1 + test_random(&random) % 40000 % (total - have), &part);
                    break;
                case 1:
                    part = 1 + test_random(&random) % 200 % (total - have);
                    error = cc_reader_read_full(&r, got + have, part, &part);
                    break;
                case 2:
                    part = 1 + test_random(&random) % 100 % (total - have);
                    size_t all;
                    CHECK_EQ(cc_reader_peek(&r, part, &bytes, &all), 0);
                    CHECK(all >= part && cc_reader_buffered(&r) == all);
                    memcpy(got + have, bytes, part);
                    error = cc_reader_skip(&r, part);
                    break;
                case 3:
                    if (memchr(text + have, 'a', total - have) == NULL) continue;
                    error = cc_reader_until(&r, 'a', &bytes, &part);
                    memcpy(got + have, bytes, part);
                    CHECK_EQ(((const char *)bytes)[part - 1], 'a');
                    CHECK(memchr(bytes, 'a', part - 1) == NULL);
                    break;
                default:
                    part = 1 + test_random(&random) % 300 % (total - have);
                    memcpy(got + have, text + have, part);
                    error = cc_reader_skip(&r, part);
                }
                have += part;
            }
            CHECK_EQ(error, 0);
            CHECK(memcmp(text, got, total) == 0);
            CHECK_EQ(cc_reader_read(&r, got, 1, &part), 0);
            CHECK_EQ(part, 0);
            cc_reader_free(&r);
        }
        end();
    }
    free(text);
    free(got);
    return arg;
}

TEST_WORKERS(bytes_in_any_pieces) {
    CHECK_EQ(cc_run(pieces, NULL, NULL), 0);
}

CC_TASK(wait_for_line, { CCReader *r; }) {
    char *line;
    size_t n;
    CHECK_EQ(cc_reader_line(self->r, &line, &n), 0);
    CHECK_EQ(strcmp(line, "second"), 0);
    return NULL;
}

static void *idle(void *arg) {
    CCReader r;
    char *line;
    size_t n;
    pair();
    CHECK_EQ(cc_reader_init(&r, here, 0), 0);
    put("first\n");
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, wait_for_line, .r = &r), 0);
        await_waiters(1);
        CHECK(r.bytes == NULL); /* one that waits holds no buffer */
        put("second\n");
    }
    cc_reader_free(&r);
    end();
    return arg;
}

TEST_WORKERS(a_reader_that_waits_has_no_buffer) {
    CHECK_EQ(cc_run(idle, NULL, NULL), 0);
}

TEST(a_peer_that_sends_for_ever) {
    pair();
    CCReader r;
    CHECK_EQ(cc_reader_init(&r, here, 100 * 1000), 0);
    char block[4096], *line;
    size_t n, sent = 0;
    memset(block, 'x', sizeof block);
    int error;
    do {
        CHECK_EQ(cc_write_try(there, block, sizeof block, &n), 0);
        sent += n;
        CHECK_EQ(cc_conn_deadline(here, cc_after_ms(1), CC_FOREVER), 0);
        error = cc_reader_line(&r, &line, &n);
    } while (error == ETIMEDOUT);
    CHECK_EQ(error, EMSGSIZE);
    CHECK_EQ(n, 100 * 1000);
    CHECK(r.size <= 100 * 1000 + 1 && sent < 110 * 1000);
    cc_reader_free(&r);
    end();
}

/* ---- writing ---- */

static void *writes(void *arg) {
    CCWriter w;
    char text[64], *big = malloc(100000);
    size_t n;
    pair();
    CHECK_EQ(cc_writer_init(&w, there, 20), 0);
    CHECK_EQ(cc_writer_write(&w, "hello ", 6, &n), 0);
    CHECK_EQ(n, 6);
    CHECK_EQ(cc_writer_print(&w, "%s %d", "world", 7), 0);
    CHECK_EQ(cc_writer_buffered(&w), 13);
    CHECK_EQ(cc_read_try(here, text, sizeof text, &n), EAGAIN); /* nothing has gone out */
    CHECK_EQ(cc_writer_flush(&w), 0);
    CHECK(w.bytes == NULL);
    CHECK_EQ(cc_read_full(here, text, 13, NULL), 0);
    CHECK(memcmp(text, "hello world 7", 13) == 0);
    CHECK_EQ(cc_writer_flush(&w), 0);
    CHECK_EQ(cc_writer_write(&w, "0123456789", 10, NULL), 0);
    CHECK_EQ(cc_writer_write(&w, "0123456789", 10, NULL), 0);
    CHECK_EQ(cc_writer_buffered(&w), 20);
    CHECK_EQ(cc_writer_write(&w, "x", 1, NULL), 0); /* over the mark: all goes out */
    CHECK_EQ(cc_writer_buffered(&w), 0);
    CHECK_EQ(cc_read_full(here, text, 21, NULL), 0);
    CHECK(memcmp(text, "01234567890123456789x", 21) == 0);
    cc_writer_free(&w);

    CHECK_EQ(cc_writer_init(&w, there, 64 * 1024), 0);
    CHECK_EQ(cc_writer_print(&w, "%040000d", 5), 0); /* longer than a buffer */
    CHECK_EQ(cc_writer_buffered(&w), 40000);
    CHECK_EQ(cc_writer_flush(&w), 0);
    CHECK_EQ(cc_read_full(here, big, 40000, NULL), 0);
    CHECK(big[0] == '0' && big[39999] == '5');

    CHECK_EQ(cc_writer_write(&w, "kept", 4, NULL), 0); /* a flush that stops in the middle goes on later */
    memset(big, 'b', 100000);
    CHECK_EQ(cc_conn_deadline(there, CC_FOREVER, cc_after_ms(5)), 0);
    size_t sent = 0;
    int error = 0;
    while (error == 0) {
        error = cc_writer_write(&w, big, 100000, &n);
        sent += n;
    }
    CHECK_EQ(error, ETIMEDOUT);
    size_t kept = cc_writer_buffered(&w), got = 0;
    CHECK_EQ(kept, 0); /* the four bytes went out first */
    CHECK_EQ(cc_read_full(here, text, 4, NULL), 0);
    CHECK(memcmp(text, "kept", 4) == 0);
    while (got < sent) {
        CHECK_EQ(cc_read(here, big, 100000, &n), 0);
        got += n;
    }
    CHECK_EQ(got, sent);
    CHECK_EQ(cc_conn_deadline(there, CC_FOREVER, CC_FOREVER), 0);
    CHECK_EQ(cc_writer_write(&w, "lost", 4, NULL), 0);
    cc_close(here);
    CHECK_EQ(cc_writer_flush(&w), EPIPE);
    cc_writer_free(&w);
    cc_close(there);
    free(big);
    return arg;
}

TEST(a_writer_and_its_mark) {
    CHECK_EQ(cc_run(writes, NULL, NULL), 0);
}

TEST(wrong_arguments) {
    CCReader r = {0};
    CCWriter w = {0};
    char *line;
    size_t n;
    CHECK_EQ(cc_reader_init(NULL, NULL, 0), EINVAL);
    CHECK_EQ(cc_reader_init(&r, NULL, 0), EINVAL);
    CHECK_EQ(cc_reader_line(&r, &line, &n), EINVAL);
    CHECK_EQ(cc_reader_line(NULL, &line, &n), EINVAL);
    CHECK_EQ(cc_writer_init(&w, NULL, 0), EINVAL);
    CHECK_EQ(cc_writer_write(&w, "x", 1, NULL), EINVAL);
    CHECK_EQ(cc_writer_flush(&w), EINVAL);
    CHECK_EQ(cc_copy(NULL, NULL, 1, NULL), EINVAL);
    pair();
    CHECK_EQ(cc_reader_init(&r, here, CC_BUF_MAX + 1), EINVAL);
    end();
    cc_reader_free(NULL);
    cc_writer_free(NULL);
}

/* ---- copying ---- */

struct copied {
    CCConn *from, *to;
    uint64_t n;
    int error;
};

static void *copy_all(void *arg) {
    struct copied *c = arg;
    c->error = cc_copy(c->to, c->from, UINT64_MAX, &c->n);
    (void)cc_shutdown(c->to, CC_SHUT_WRITE);
    return NULL;
}

CC_TASK(read_all, {
    CCConn *c;
    uint64_t *sum, *count;
}) {
    char *bytes = malloc(30000);
    size_t n;
    while (cc_read(self->c, bytes, 30000, &n) == 0 && n > 0)
        for (size_t i = 0; i < n; i++) *self->sum = *self->sum * 31 + (unsigned char)bytes[i], ++*self->count;
    free(bytes);
    return NULL;
}

static void *copies(void *arg) {
    CCListener *l;
    char *bytes = malloc(200000);
    for (int i = 0; i < 200000; i++) bytes[i] = (char)(i * 7 % 253);
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", NULL), 0);
    for (int bulk = 0; bulk < 2; bulk++) {
        int before = fds_before();
        CCConn *client = dial(l), *a, *b = dial(l), *server;
        CHECK_EQ(cc_accept(l, &a), 0);
        CHECK_EQ(cc_accept(l, &server), 0);
        struct copied c = {.from = a, .to = b};
        uint64_t sum = 0, count = 0, expected = 0, total = 0;
        CC_NURSERY(n) {
            CHECK_EQ(cc_nursery_spawn(n, copy_all, &c), 0);
            CHECK_EQ(CC_GO_IN(n, read_all, .c = server, .sum = &sum, .count = &count), 0);
            for (long i = 0; i < test_scale(bulk ? 40 : 200); i++) {
                size_t size = bulk ? 200000 : 1 + (size_t)i * 37 % 900;
                CHECK_EQ(cc_write(client, bytes, size, NULL), 0);
                for (size_t k = 0; k < size; k++) expected = expected * 31 + (unsigned char)bytes[k];
                total += size;
                if (!bulk) cc_yield();
            }
            CHECK_EQ(cc_shutdown(client, CC_SHUT_WRITE), 0);
        }
        CHECK_EQ(c.error, 0);
        CHECK(c.n == total && count == total && sum == expected);
        cc_close(client);
        cc_close(server);
        cc_close(a);
        cc_close(b);
        check_fds(before); /* no pipe is left */
    }
    cc_listener_close(l);
    free(bytes);
    return arg;
}

CC_TASK(write_all, { CCConn *c; }) {
    for (unsigned i = 0; i < 1000000;) {
        unsigned numbers[2000];
        for (unsigned k = 0; k < 2000; k++) numbers[k] = i++;
        CHECK_EQ(cc_write(self->c, numbers, sizeof numbers, NULL), 0);
    }
    CHECK_EQ(cc_shutdown(self->c, CC_SHUT_WRITE), 0);
    return NULL;
}

/* A pipe cannot be spliced into it: bytes that are already in the pipe must not get lost. */
static void *to_the_end_of_a_file(void *arg) {
    char path[64];
    CCConn *to;
    uint64_t copied;
    int before = fds_before();
    snprintf(path, sizeof path, "/tmp/ccc-net-copy-%d", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && unlink(path) == 0);
    CHECK_EQ(cc_conn_from_fd(&to, fd), 0);
    pair();
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, write_all, .c = there), 0);
        CHECK_EQ(cc_copy(to, here, UINT64_MAX, &copied), 0);
    }
    CHECK_EQ(copied, 4000000);
    for (unsigned i = 0; i < 1000000;) {
        unsigned numbers[2000];
        CHECK_EQ(pread(fd, numbers, sizeof numbers, (off_t)i * 4), (ssize_t)sizeof numbers);
        for (unsigned k = 0; k < 2000; k++) CHECK_EQ(numbers[k], i++);
    }
    end();
    cc_close(to);
    check_fds(before);
    return arg;
}

TEST_WORKERS(a_copy_to_the_end_of_a_file) {
    CHECK_EQ(cc_run(to_the_end_of_a_file, NULL, NULL), 0);
}

TEST_WORKERS(copies_small_and_large) {
    CHECK_EQ(cc_run(copies, NULL, NULL), 0);
}

struct line { /* client - a, copied to b - server */
    CCConn *client, *a, *b, *server;
};

static struct line make_line(CCListener *l) {
    struct line x = {.client = dial(l)};
    CHECK_EQ(cc_accept(l, &x.a), 0);
    x.b = dial(l);
    CHECK_EQ(cc_accept(l, &x.server), 0);
    return x;
}

static void end_line(struct line x) {
    cc_close(x.client);
    cc_close(x.a);
    cc_close(x.b);
    cc_close(x.server);
}

CC_TASK(send_much, {
    CCConn *c;
    const char *bytes;
    size_t size;
}) {
    MAY_FAIL(cc_write(self->c, self->bytes, self->size, NULL));
    MAY_FAIL(cc_shutdown(self->c, CC_SHUT_WRITE));
    return NULL;
}

/* A copy that ends with bytes in its pipe must not leave them to the next. */
static void *copy_after_failure(void *arg) {
    enum { SIZE = 3000000 };
    CCListener *l;
    char *first = malloc(SIZE), *second = malloc(SIZE), *got = malloc(SIZE);
    memset(first, 'f', SIZE);
    memset(second, 's', SIZE);
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", NULL), 0);
    struct line idle = make_line(l), bad = make_line(l), good = make_line(l);
    struct copied on_idle = {.from = idle.a, .to = idle.b}, on_good = {.from = good.a, .to = good.b};
    CHECK_EQ(setsockopt(cc_conn_fd(bad.b), SOL_SOCKET, SO_SNDBUF, &(int){65536}, sizeof(int)), 0);
    CHECK_EQ(setsockopt(cc_conn_fd(bad.server), SOL_SOCKET, SO_RCVBUF, &(int){65536}, sizeof(int)), 0);
    CC_NURSERY(n) {
        CHECK_EQ(cc_nursery_spawn(n, copy_all, &on_idle), 0); /* while it copies, pipes are kept */
        CC_NURSERY(sender) {
            struct copied on_bad = {.from = bad.a, .to = bad.b};
            CHECK_EQ(CC_GO_IN(sender, send_much, .c = bad.client, .bytes = first, .size = SIZE), 0);
            CC_NURSERY(copier) {
                CHECK_EQ(cc_nursery_spawn(copier, copy_all, &on_bad), 0);
                CHECK_EQ(cc_read_full(bad.server, got, 500000, NULL),
                         0); /* and no more: it waits with bytes in its pipe */
                struct pollfd room = {.fd = cc_conn_fd(bad.b), .events = POLLOUT};
                for (int full = 0; full < 100; cc_yield()) full = poll(&room, 1, 0) == 0 ? full + 1 : 0;
                cc_nursery_cancel(copier);
            }
            CHECK_EQ(on_bad.error, ECANCELED);
            cc_nursery_cancel(sender);
        }
        CC_NURSERY(others) {
            CHECK_EQ(CC_GO_IN(others, send_much, .c = good.client, .bytes = second, .size = SIZE), 0);
            CHECK_EQ(cc_nursery_spawn(others, copy_all, &on_good), 0);
            CHECK_EQ(cc_read_full(good.server, got, SIZE, NULL), 0);
            CHECK(memcmp(got, second, SIZE) == 0);
        }
        cc_nursery_cancel(n);
    }
    end_line(idle);
    end_line(bad);
    end_line(good);
    cc_listener_close(l);
    free(first);
    free(second);
    free(got);
    return arg;
}

TEST_WORKERS(a_copy_after_one_that_failed) {
    CHECK_EQ(cc_run(copy_after_failure, NULL, NULL), 0);
}

/* Peers that are always ready: a copy, and a reader, can only be ended from outside (COPY-4). */
struct endless {
    CCConn *from, *to;
    CCReader in;
};

static int copy_endless(struct endless *e) {
    return cc_copy(e->to, e->from, UINT64_MAX, NULL);
}

static int skip_endless(struct endless *e) {
    return cc_reader_skip(&e->in, UINT64_MAX);
}

static int lines_endless(struct endless *e) { /* parts of lines stay in the buffer */
    const void *bytes;
    size_t n;
    int error = 0;
    while (error == 0) {
        error = cc_reader_peek(&e->in, 100, &bytes, &n);
        if (error == 0) error = cc_reader_skip(&e->in, n - 1);
    }
    return error;
}

static CCConn *conn_of(const char *path, int flags) {
    CCConn *conn;
    int fd = open(path, flags | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(cc_conn_from_fd(&conn, fd), 0);
    return conn;
}

static void *endless(void *arg) {
    static int (*const calls[])(struct endless * e) = {copy_endless, skip_endless, lines_endless};
    struct endless e = {conn_of("/dev/zero", O_RDONLY), conn_of("/dev/null", O_WRONLY), {0}};
    CHECK_EQ(cc_reader_init(&e.in, e.from, 0), 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        bool late = false;
        CC_WITH_DEADLINE(cc_after_ms(5), &late) CHECK_EQ(calls[i](&e), ECANCELED);
        CHECK(late);
    }
    CHECK_EQ(cc_conn_deadline(e.from, cc_after_ms(5), CC_FOREVER), 0);
    CHECK_EQ(copy_endless(&e), ETIMEDOUT);
    CHECK_EQ(cc_conn_deadline(e.from, CC_FOREVER, CC_FOREVER), 0);
    CHECK_EQ(cc_conn_deadline(e.to, CC_FOREVER, cc_after_ms(5)), 0);
    CHECK_EQ(copy_endless(&e), ETIMEDOUT);
    cc_reader_free(&e.in);
    cc_close(e.from);
    cc_close(e.to);
    return arg;
}

TEST_WORKERS(what_never_has_to_wait_can_be_ended) {
    CHECK_EQ(cc_run(endless, NULL, NULL), 0);
}

/* The same between sockets, through a pipe: another process writes and reads as fast as it can. */
struct pump {
    int fd;
    atomic_bool stop;
};

static void *write_on(void *arg) {
    static const char bytes[256 * 1024];
    struct pump *p = arg;
    while (!atomic_load(&p->stop) && send(p->fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0) continue;
    return NULL;
}

static void *read_on(void *arg) {
    static char bytes[256 * 1024];
    struct pump *p = arg;
    while (recv(p->fd, bytes, sizeof bytes, 0) > 0) continue;
    return NULL;
}

static void *copy_that_never_waits(void *arg) {
    int from[2], to[2];
    pthread_t threads[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, from), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to), 0);
    struct pump in = {.fd = from[0]}, out = {.fd = to[0]};
    struct endless e = {0};
    CHECK_EQ(cc_conn_from_fd(&e.from, from[1]), 0);
    CHECK_EQ(cc_conn_from_fd(&e.to, to[1]), 0);
    CHECK_EQ(pthread_create(&threads[0], NULL, write_on, &in), 0);
    CHECK_EQ(pthread_create(&threads[1], NULL, read_on, &out), 0);
    CC_WITH_DEADLINE(cc_after_ms(50)) CHECK_EQ(copy_endless(&e), ECANCELED);
    CHECK_EQ(cc_conn_deadline(e.from, cc_after_ms(50), CC_FOREVER), 0);
    CHECK_EQ(copy_endless(&e), ETIMEDOUT);
    atomic_store(&in.stop, true);
    cc_close(e.from);
    cc_close(e.to);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    close(from[0]);
    close(to[0]);
    return arg;
}

TEST_WORKERS(a_copy_that_never_waits_can_be_cancelled) {
    CHECK_EQ(cc_run(copy_that_never_waits, NULL, NULL), 0);
}

static void *copy_ends(void *arg) {
    char text[16];
    uint64_t n;
    CCConn *a, *b, *c, *d;
    CHECK_EQ(cc_socketpair(&a, &b), 0);
    CHECK_EQ(cc_socketpair(&c, &d), 0);
    CHECK_EQ(cc_write(a, "0123456789", 10, NULL), 0);
    CHECK_EQ(cc_copy(c, b, 4, &n), 0); /* so many and no more */
    CHECK_EQ(n, 4);
    CHECK_EQ(cc_copy(c, b, 0, &n), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_read_full(d, text, 4, NULL), 0);
    CHECK_EQ(cc_conn_deadline(b, cc_after_ms(5), CC_FOREVER), 0);
    CHECK_EQ(cc_copy(c, b, UINT64_MAX, &n), ETIMEDOUT);
    CHECK_EQ(n, 6);
    CHECK_EQ(cc_conn_deadline(b, CC_FOREVER, CC_FOREVER), 0);
    struct copied w = {.from = b, .to = c};
    CC_NURSERY(nursery) {
        CHECK_EQ(cc_nursery_spawn(nursery, copy_all, &w), 0);
        await_waiters(1);
        cc_nursery_cancel(nursery);
    }
    CHECK_EQ(w.error, ECANCELED);
    cc_close(d);
    CHECK_EQ(cc_write(a, "x", 1, NULL), 0);
    CHECK_EQ(cc_copy(c, b, UINT64_MAX, &n), EPIPE);
    cc_close(a);
    CHECK_EQ(cc_copy(c, b, UINT64_MAX, &n), 0); /* the end */
    cc_close(b);
    cc_close(c);
    return arg;
}

/* ---- a connection that is closed meanwhile ---- */

enum { LINE, PEEK, READ, SKIP, READ_FULL, UNTIL, AWAIT, KINDS };
static _Atomic int waiting;

static void *wait_for_bytes(void *arg) {
    int kind = *(int *)arg, rc = 0;
    CCReader r;
    char *line, bytes[10];
    const void *seen;
    size_t n;
    CHECK_EQ(cc_reader_init(&r, here, 0), 0);
    atomic_store(&waiting, 1);
    switch (kind) {
    case LINE:
        rc = cc_reader_line(&r, &line, &n);
        break;
    case PEEK:
        rc = cc_reader_peek(&r, 4, &seen, &n);
        break;
    case READ:
        rc = cc_reader_read(&r, bytes, sizeof bytes, &n);
        break;
    case SKIP:
        rc = cc_reader_skip(&r, 10);
        break;
    case READ_FULL:
        rc = cc_reader_read_full(&r, bytes, sizeof bytes, &n);
        break;
    case UNTIL:
        rc = cc_reader_until(&r, 'x', &seen, &n);
        break;
    default:
        rc = cc_conn_await(here, true, CC_FOREVER);
        break;
    }
    CHECK_EQ(rc, EBADF);
    cc_reader_free(&r);
    return arg;
}

static void *close_beside_a_reader(void *arg) {
    for (int kind = 0; kind < KINDS; kind++) {
        for (int aborts = 0; aborts < 2; aborts++) {
            pair();
            atomic_store(&waiting, 0);
            CCTask task = cc_fiber_spawn_task(wait_for_bytes, &kind);
            while (atomic_load(&waiting) == 0) cc_yield();
            CHECK_EQ(cc_sleep_ms(1), 0); /* it may also wait after the close */
            if (aborts)
                cc_abort(here);
            else
                cc_close(here);
            CHECK_EQ(cc_task_join(&task, NULL), 0);
            cc_close(there);
        }
    }
    return arg;
}

/* What has arrived is there also after the deadline and for a caller that is cancelled, as for cc_read: the read before
 * has found less than it could, and the event may not have been fetched yet. */
static void *what_has_arrived(void *arg) {
    CCListener *listener;
    CCReader r;
    char *line;
    size_t n;
    uint64_t copied;
    pair();
    CHECK_EQ(cc_listen(&listener, "tcp://127.0.0.1:0", NULL), 0);
    CCConn *far = dial(listener), *near;
    CHECK_EQ(cc_accept(listener, &near), 0);
    CHECK_EQ(cc_reader_init(&r, near, 0), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(cc_write(far, "one\n", 4, NULL), 0);
        CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
        CHECK_EQ(cc_write(far, "two\n", 4, NULL), 0);
        CHECK_EQ(cc_conn_deadline(near, (CCDeadline){1}, CC_FOREVER), 0);
        int error = i == 0 ? cc_reader_line(&r, &line, &n) : cc_copy(here, near, 4, &copied);
        CHECK_EQ(error, 0);
        CHECK_EQ(cc_reader_line(&r, &line, &n), ETIMEDOUT);
        CHECK_EQ(cc_conn_deadline(near, CC_FOREVER, CC_FOREVER), 0);
    }
    CHECK_EQ(cc_write(far, "one\n", 4, NULL), 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
    CHECK_EQ(cc_write(far, "two\n", 4, NULL), 0);
    CC_WITH_DEADLINE((CCDeadline){1}) {
        CHECK_EQ(cc_check_cancel(), ECANCELED);
        CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
        CHECK_EQ(cc_reader_line(&r, &line, &n), ECANCELED);
    }
    cc_reader_free(&r);
    cc_close(near);
    cc_close(far);
    cc_listener_close(listener);
    cc_close(here);
    cc_close(there);
    return arg;
}

TEST_WORKERS(what_has_arrived_is_read_after_the_deadline) {
    CHECK_EQ(cc_run(what_has_arrived, NULL, NULL), 0);
}

TEST(a_close_beside_a_reader) {
    CHECK_EQ(cc_run(close_beside_a_reader, NULL, NULL), 0);
}

TEST(copies_that_end) {
    CHECK_EQ(cc_run(copy_ends, NULL, NULL), 0);
}
