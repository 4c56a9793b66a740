/* stream.c - bytes over TLS: round trips, both directions at a time, in small pieces; ends, deadlines, cancellation;
 * misbehaving peers. */
#include "tls.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>

static void check_text(const char *part) {
    if (strstr(cc_tls_error(), part) == NULL)
        test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", cc_tls_error(), part);
}

/* ---- bytes ---- */

TEST_WORKERS(both_ways_at_a_time) {
    static const struct {
        size_t size, write_piece, read_piece;
    } cases[] = {{600000, 200000, 100000}, {100000, 1000, 16384}, {3000, 3000, 1}, {400, 1, 1}, {50000, 20000, 7}};
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ends e = tls_pair(&w);
        both_ways(e, (size_t)test_scale((long)cases[i].size), cases[i].write_piece, cases[i].read_piece);
        CHECK_EQ(cc_conn_alive(e.here), ENODATA);
        close_pair(e);
    }
    free_world(&w);
}

TEST(old_versions_carry_bytes_as_well) {
    struct world w = make_world((CCTlsOptions){.max_version = 12}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    both_ways(e, (size_t)test_scale(200000), 30000, 30000);
    close_pair(e);
    free_world(&w);
}

TEST(readers_writers_vectors_and_copies) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w), f = tls_pair(&w);
    CCReader r;
    CCWriter out;
    char *line;
    size_t n;
    uint64_t copied;
    struct iovec parts[] = {{"one ", 4}, {"", 0}, {"two\r\n", 5}};
    CHECK_EQ(cc_writev(e.here, parts, 3, &n), 0);
    CHECK_EQ(n, 9);
    CHECK_EQ(cc_writer_init(&out, e.here, 0), 0);
    CHECK_EQ(cc_writer_print(&out, "%s\n", "three"), 0);
    CHECK_EQ(cc_writer_flush(&out), 0);
    CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), 0);
    CHECK_EQ(cc_write(e.here, "more", 4, &n), EPIPE);
    CHECK_EQ(cc_copy(f.here, e.there, UINT64_MAX, &copied), 0);
    CHECK_EQ(copied, 15);
    cc_close(f.here);
    CHECK_EQ(cc_reader_init(&r, f.there, 0), 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
    CHECK(strcmp(line, "one two") == 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), 0);
    CHECK(strcmp(line, "three") == 0);
    CHECK_EQ(cc_reader_line(&r, &line, &n), ENODATA);
    cc_reader_free(&r);
    cc_close(f.there);
    close_pair(e);
    free_world(&w);
}

TEST(tries_do_not_wait) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    static unsigned char much[100000], back[100000];
    char byte;
    size_t n, sum = 0, got = 0;
    CHECK_EQ(cc_read_try(e.here, &byte, 1, &n), EAGAIN);
    CHECK_EQ(cc_conn_alive(e.here), 0);
    CHECK_EQ(cc_conn_await(e.here, true, cc_after_ms(1)), ETIMEDOUT);
    for (size_t i = 0; i < sizeof much; i++) much[i] = byte_at(i);
    int error = 0;
    while (sum < 4000000 && (error = cc_write_try(e.here, much, sizeof much, &n)) == 0) {
        CHECK(n > 0);
        sum += n; /* of each call a part, from its beginning */
    }
    CHECK_EQ(error, EAGAIN);
    CHECK_EQ(n, 0);
    /* What was taken arrives without another write: the reader of the same side sends it. */
    CHECK_EQ(cc_conn_alive(e.there), EAGAIN);
    while (got < sum) {
        error = cc_read_try(e.there, back, sizeof back, &n);
        CHECK(error == 0 || error == EAGAIN);
        got += n;
        if (error == EAGAIN) CHECK_EQ(cc_read_until(e.here, &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    }
    CHECK_EQ(got, sum);
    close_pair(e);
    free_world(&w);
}

/* The handshake by tries alone, in one fiber. */
TEST(a_handshake_by_tries) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = plain_pair();
    CHECK_EQ(cc_tls_over(w.server, &e.there, NULL, CC_FOREVER), 0);
    char byte;
    size_t n;
    CHECK_EQ(cc_conn_alive(e.there), 0);
    CHECK_EQ(cc_read_try(e.there, &byte, 1, &n), EAGAIN);
    CHECK_EQ(cc_tls_over(w.client, &e.here, "localhost", cc_after_ms(1)), ETIMEDOUT); /* the server says nothing */
    cc_close(e.here);
    int error;
    do error = cc_read_try(e.there, &byte, 1, &n);
    while (error == EAGAIN);
    CHECK_EQ(error, ECONNRESET);
    check_text("during the handshake");
    cc_close(e.there);
    free_world(&w);
}

/* ---- ends ---- */

TEST(an_orderly_end_differs_from_a_cut) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    char byte;
    size_t n;
    for (int aborted = 0; aborted < 2; aborted++) {
        struct ends e = tls_pair(&w);
        CHECK_EQ(cc_write(e.there, "x", 1, NULL), 0);
        if (aborted)
            cc_abort(e.there);
        else
            cc_close(e.there);
        CHECK_EQ(cc_read(e.here, &byte, 1, &n), 0);
        CHECK_EQ(n, 1);
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(cc_read(e.here, &byte, 1, &n), aborted ? ECONNRESET : 0);
            CHECK_EQ(n, 0);
            CHECK_EQ(cc_conn_alive(e.here), aborted ? ECONNRESET : ENODATA);
        }
        if (aborted && !kernel_can()) check_text("without a close notify"); /* TCP is reset */
        cc_close(e.here);
    }
    free_world(&w);
}

TEST(the_other_half_continues) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    char text[8];
    size_t n;
    CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), 0);
    CHECK_EQ(cc_read(e.there, text, 1, &n), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_write(e.there, "still", 5, NULL), 0);
    CHECK_EQ(cc_read_full(e.here, text, 5, NULL), 0);
    CHECK_EQ(cc_shutdown(e.there, CC_SHUT_WRITE), 0);
    CHECK_EQ(cc_read(e.here, text, 1, &n), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_shutdown(e.here, CC_SHUT_READ), 0);
    CHECK_EQ(cc_read(e.here, text, 1, &n), 0);
    CHECK_EQ(n, 0);
    close_pair(e);
    free_world(&w);
}

CC_TASK(read_until_end, {
    CCConn *c;
    int first, second; /* errors that it may end with */
}) {
    char bytes[64];
    size_t n = 1;
    int error = 0;
    while (error == 0 && n > 0) error = cc_read(self->c, bytes, sizeof bytes, &n);
    if (error != self->first && error != self->second)
        test_fail(__FILE__, __LINE__, "a read has ended with %d (%s)", error, cc_tls_error());
    return NULL;
}

CC_TASK(write_for_ever, {
    CCConn *c;
    int first, second;
}) {
    static const char bytes[50000];
    int error = 0;
    while (error == 0) error = cc_write(self->c, bytes, sizeof bytes, NULL);
    if (error != self->first && error != self->second)
        test_fail(__FILE__, __LINE__, "a write has ended with %d (%s)", error, cc_tls_error());
    return NULL;
}

static void await_waiters(size_t n) {
    while (cc_io_waiters() < n) cc_yield();
}

/* Until there is no room for another byte, nor for a notice. */
static size_t fill_up(CCConn *c) {
    static const char bytes[50000];
    size_t n, sum = 0;
    int error;
    for (int quiet = 0; quiet < (kernel_can() ? 3 : 1); quiet++) { /* TCP takes a while to find out */
        if (quiet > 0) CHECK_EQ(cc_sleep_ms(100), 0);
        for (; (error = cc_write_try(c, bytes, sizeof bytes, &n)) == 0; quiet = 0) sum += n;
        CHECK_EQ(error, EAGAIN);
    }
    return sum;
}

/* Its own side is read meanwhile, by a fiber that waits. */
static size_t fill_up_beside_a_reader(CCNursery *n, CCConn *c) {
    CHECK_EQ(CC_GO_IN(n, read_until_end, .c = c, .first = 0, .second = 0), 0);
    await_waiters(1);
    return fill_up(c);
}

CC_TASK(take_when_so_many_wait, {
    CCConn *c;
    size_t waiters, size;
}) {
    static char bytes[50000];
    size_t n, got = 0;
    await_waiters(self->waiters);
    do {
        CHECK_EQ(cc_read(self->c, bytes, sizeof bytes, &n), 0);
        got += n;
    } while (n > 0);
    CHECK_EQ(got, self->size);
    CHECK_EQ(cc_shutdown(self->c, CC_SHUT_WRITE), 0);
    return NULL;
}

/* The reader of the side that ends waits for its peer already when the notice finds no room, and sends nothing. */
TEST_WORKERS(a_close_notify_without_space_waits) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    CC_NURSERY(n) {
        size_t size = fill_up_beside_a_reader(n, e.here);
        CHECK_EQ(CC_GO_IN(n, take_when_so_many_wait, .c = e.there, .waiters = 2, .size = size), 0);
        CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), 0);
    }
    close_pair(e);
    free_world(&w);
}

CC_TASK(end_own_side, { CCConn *c; }) {
    CHECK_EQ(cc_shutdown(self->c, CC_SHUT_WRITE), 0);
    return NULL;
}

/* Two callers shut down the same side: the second one cuts nothing off. */
TEST_WORKERS(a_waiting_close_notify_is_sent_once) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    CC_NURSERY(n) {
        size_t size = fill_up_beside_a_reader(n, e.here);
        CHECK_EQ(CC_GO_IN(n, end_own_side, .c = e.here), 0);
        await_waiters(2);
        CHECK_EQ(CC_GO_IN(n, end_own_side, .c = e.here), 0);
        cc_yield();
        CHECK_EQ(CC_GO_IN(n, take_when_so_many_wait, .c = e.there, .waiters = 2, .size = size), 0);
    }
    close_pair(e);
    free_world(&w);
}

/* A write of no bytes sends what is left, and returns when it has gone out. */
TEST_WORKERS(a_write_of_nothing_sends_what_is_left) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    CC_NURSERY(n) {
        size_t size = fill_up_beside_a_reader(n, e.here);
        CHECK_EQ(CC_GO_IN(n, take_when_so_many_wait, .c = e.there, .waiters = 2, .size = size), 0);
        CHECK_EQ(cc_write(e.here, NULL, 0, NULL), 0);
        CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), 0);
    }
    close_pair(e);
    free_world(&w);
}

/* Nobody reads, and the peer waits for that: the side that has ended its direction reads next, and sends the
 * close_notify. */
TEST(a_close_notify_without_space_is_left_to_the_reader) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    char byte;
    size_t got, size = fill_up(e.here);
    CC_NURSERY(n) {
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), ECANCELED);
    }
    CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), 0);
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, take_when_so_many_wait, .c = e.there, .size = size), 0);
        CHECK_EQ(cc_read(e.here, &byte, 1, &got), 0);
        CHECK_EQ(got, 0);
    }
    close_pair(e);
    free_world(&w);
}

CC_TASK(end_and_fail, { CCConn *c; }) {
    CHECK_EQ(cc_shutdown(self->c, CC_SHUT_WRITE), EBADF);
    return NULL;
}

/* A notice that waits is a wait as any other. */
TEST_WORKERS(close_ends_a_waiting_close_notify) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    for (int aborted = 0; aborted < 2; aborted++) {
        struct ends e = tls_pair(&w);
        CC_NURSERY(n) {
            (void)fill_up(e.here);
            CHECK_EQ(CC_GO_IN(n, end_and_fail, .c = e.here), 0);
            await_waiters(1);
            (aborted ? cc_abort : cc_close)(e.here);
        }
        cc_close(e.there);
    }
    free_world(&w);
}

TEST_WORKERS(close_and_shutdown_end_the_waits_of_others) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    for (int way = 0; way < 3; way++) {
        struct ends e = tls_pair(&w);
        int expected[] = {EBADF, EBADF, 0}, wrote[] = {EBADF, EBADF, EPIPE};
        CC_NURSERY(n) {
            CHECK_EQ(CC_GO_IN(n, read_until_end, .c = e.here, .first = expected[way], .second = expected[way]), 0);
            CHECK_EQ(CC_GO_IN(n, write_for_ever, .c = e.here, .first = wrote[way], .second = wrote[way]), 0);
            await_waiters(2);
            if (way == 0) cc_close(e.here);
            if (way == 1) cc_abort(e.here);
            if (way == 2) CHECK_EQ(cc_shutdown(e.here, CC_SHUT_BOTH), 0);
        }
        if (way == 2) cc_close(e.here);
        CC_NURSERY(n) { /* within a record */
            CHECK_EQ(CC_GO_IN(n, read_until_end, .c = e.there, .first = ECONNRESET, .second = ECONNRESET), 0);
        }
        cc_close(e.there);
    }
    free_world(&w);
}

/* ---- a close while a write computes, in simulations ---- */

CC_TASK(write_once, {
    CCConn *c;
    atomic_bool *started;
}) {
    static const char bytes[300000];
    atomic_store(self->started, true);
    int error = cc_write(self->c, bytes, sizeof bytes, NULL);
    CHECK(error == 0 || error == EBADF);
    return NULL;
}

CC_TASK(read_what_comes, { CCConn *c; }) {
    static char bytes[50000];
    size_t n = 1;
    while (n > 0 && cc_read(self->c, bytes, sizeof bytes, &n) == 0) {
    }
    return NULL;
}

static void *close_beside_a_write(void *world) {
    struct ends e;
    atomic_bool started = false;
    CCSimNet net = {.latency_min_us = 1, .latency_max_us = 10, .window = 1 << 20}; /* the write does not have to wait */
    CHECK_EQ(cc_sim_net_set(&net), 0);
    CHECK_EQ(cc_socketpair(&e.here, &e.there), 0);
    secure_pair(world, &e, "localhost", 0, 0);
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, read_what_comes, .c = e.here), 0);
        CHECK_EQ(CC_GO_IN(n, write_once, .c = e.there, .started = &started), 0);
        while (!atomic_load(&started)) cc_yield();
        for (uint64_t i = cc_sim_seed() % 8; i > 0; i--) cc_yield();
        cc_close(e.there);
    }
    cc_close(e.here);
    return NULL;
}

TEST(a_write_in_progress_sees_the_close) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    for (uint64_t seed = 1; seed <= (uint64_t)test_scale(300); seed++)
        CHECK_EQ(cc_sim_run(seed, close_beside_a_write, &w, NULL), 0);
    free_world(&w);
}

TEST_WORKERS(cancellation_and_deadlines_end_every_wait) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w), plain = plain_pair();
    char byte;
    size_t n;
    static const char bytes[500000];
    CCNursery *nursery = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    CHECK(nursery != NULL);
    CHECK_EQ(cc_tls_over(w.server, &plain.there, NULL, CC_FOREVER), 0);
    CHECK_EQ(CC_GO_IN(nursery, shake, .conn = plain.there, .expected = ECANCELED), 0);
    CHECK_EQ(CC_GO_IN(nursery, read_until_end, .c = e.here, .first = ECANCELED, .second = ECANCELED), 0);
    CHECK_EQ(CC_GO_IN(nursery, write_for_ever, .c = e.here, .first = ECANCELED, .second = ECANCELED), 0);
    await_waiters(3);
    CHECK_EQ(cc_nursery_cancel(nursery), 0);
    MAY_FAIL(cc_nursery_wait(nursery));
    CHECK_EQ(cc_nursery_free(nursery), 0);
    CHECK_EQ(cc_tls_handshake(plain.there, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_read_until(e.here, &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_write_until(e.here, bytes, sizeof bytes, &n, cc_after_ms(1)), ETIMEDOUT);
    close_pair(e);
    close_pair(plain);
    free_world(&w);
}

CC_TASK(take_counted, {
    CCConn *c;
    size_t size;
}) {
    unsigned char bytes[3000];
    size_t n, at = 0;
    while (at < self->size) {
        CHECK_EQ(cc_read(self->c, bytes, sizeof bytes, &n), 0);
        CHECK(n > 0);
        for (size_t i = 0; i < n; i++) CHECK_EQ(bytes[i], byte_at(at + i));
        at += n;
    }
    return NULL;
}

/* TLS-4: a write that was left within a record goes on with the next one. */
TEST_WORKERS(an_interrupted_write_continues) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    static unsigned char bytes[1 << 20];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = byte_at(i);
    size_t n, at = 0;
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(cc_write_until(e.here, bytes + at, sizeof bytes - at, &n, cc_after_ms(1)), ETIMEDOUT);
        at += n;
    }
    CHECK(at > 0 && at < sizeof bytes);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, take_counted, .c = e.there, .size = sizeof bytes), 0);
        CHECK_EQ(cc_write(e.here, bytes + at, sizeof bytes - at, &n), 0);
    }
    close_pair(e);
    free_world(&w);
}

/* ---- bad peers ---- */

TEST(garbage_instead_of_a_handshake) {
    static const char *texts[] = {"GET / HTTP/1.0\r\n\r\n", "\x16\x03\x01\xff\xff nonsense", "\x80\x2e\x01\x00\x02",
                                  "\x15\x03\x01\x00\x02\x02\x28", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff\xff\xff"};
    static const size_t lengths[] = {18, 14, 5, 7, 12};
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    for (int i = 0; i < 10; i++) {
        struct ends e = plain_pair();
        bool server = i >= 5;
        CHECK_EQ(cc_write(e.here, texts[i % 5], lengths[i % 5], NULL), 0);
        CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), 0);
        int error = cc_tls_over(server ? w.server : w.client, &e.there, server ? NULL : "localhost", CC_FOREVER);
        if (server) {
            CHECK_EQ(error, 0);
            error = cc_tls_handshake(e.there, CC_FOREVER);
        }
        if (error != EPROTO && error != ECONNRESET)
            test_fail(__FILE__, __LINE__, "%d: %d %s", i, error, cc_tls_error());
        CHECK(cc_tls_error()[0] != 0);
        close_pair(e);
    }
    free_world(&w);
}

TEST(a_silent_peer_has_its_time) {
    struct world w = make_world((CCTlsOptions){.handshake_ms = 20}, (CCTlsOptions){.handshake_ms = 20});
    struct ends e = plain_pair();
    char byte;
    size_t n;
    CHECK_EQ(cc_tls_over(w.client, &e.here, "localhost", CC_FOREVER), ETIMEDOUT);
    check_text("the handshake has taken too long");
    close_pair(e);
    e = plain_pair();
    CHECK_EQ(cc_tls_over(w.server, &e.here, NULL, CC_FOREVER), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(cc_read(e.here, &byte, 1, &n), ETIMEDOUT);
        check_text("the handshake has taken too long");
        CHECK_EQ(cc_write(e.here, "x", 1, &n), ETIMEDOUT);
    }
    close_pair(e);
    free_world(&w);
}

/* Passes on so many bytes of each direction, then resets or ends both sides. */
CC_TASK(relay, {
    CCConn *a, *b;
    size_t left;
    bool reset;
}) {
    unsigned char bytes[256];
    size_t n, left[2] = {self->left, self->left};
    bool over[2] = {false, false};
    while (left[0] > 0 && left[1] > 0 && !over[0] && !over[1]) {
        for (int i = 0; i < 2; i++) {
            size_t most = left[i] < sizeof bytes ? left[i] : sizeof bytes;
            int error = cc_read_until(i == 0 ? self->a : self->b, bytes, most, &n, cc_after_ms(2));
            if (error == ETIMEDOUT) continue;
            if (error != 0 || n == 0 || cc_write(i == 0 ? self->b : self->a, bytes, n, NULL) != 0) over[i] = true;
            left[i] -= n;
        }
    }
    (self->reset ? cc_abort : cc_close)(self->a);
    (self->reset ? cc_abort : cc_close)(self->b);
    return NULL;
}

CC_TASK(serve_and_fail, { CCConn *c; }) {
    char byte;
    size_t n = 1;
    int error = 0;
    while (error == 0 && n > 0) error = cc_read(self->c, &byte, 1, &n); /* whatever it is, it ends */
    cc_close(self->c);
    return NULL;
}

TEST_WORKERS(a_peer_that_is_cut_off_anywhere) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    CCListener *l;
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", NULL), 0);
    for (size_t left = 0; left < 1500; left += left < 6 ? 1 : (size_t)(1500 / test_scale(20))) {
        CCConn *client, *server, *a, *b;
        char byte;
        size_t n = 1;
        tcp_pair(l, &client, &a, NULL);
        tcp_pair(l, &server, &b, NULL);
        CHECK_EQ(cc_tls_over(w.server, &server, NULL, CC_FOREVER), 0);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, relay, .a = a, .b = b, .left = left, .reset = left % 2 == 0), 0);
            CHECK_EQ(CC_GO_IN(nursery, serve_and_fail, .c = server), 0);
            int error = cc_tls_over(w.client, &client, "localhost", CC_FOREVER);
            while (error == 0 && n > 0) error = cc_write(client, "x", 1, NULL);
            CHECK(error == ECONNRESET || error == EPROTO || error == EPIPE || error == EINVAL);
            CHECK(error != EINVAL);
            if (cc_tls_info(client, &(CCTlsInfo){0}) == 0) {
                error = cc_read(client, &byte, 1, &n);
                CHECK(error == ECONNRESET);
            }
            cc_close(client);
        }
    }
    cc_listener_close(l);
    free_world(&w);
}

/* A closing server does not read the close_notify of a client that has ended its side: the system must not take that
 * for unread data, and reset the connection. */
TEST_WORKERS(an_unread_close_notify_loses_no_answer) {
    enum { ANSWER = 48 * 1024 }; /* more than the client's window, and less than the server's buffer */
    static unsigned char answer[ANSWER], got[ANSWER];
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    CCListener *l;
    CCAddr addr;
    char request[4];
    size_t n;
    struct ends e;
    CCDeadline late = cc_after_ms(60000);
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0?send_buffer=200000", NULL), 0);
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    CHECK_EQ(cc_dial_addr(&e.here, &addr, &(CCDialOptions){.conn = {.receive_buffer = 4096}}, late), 0);
    CHECK_EQ(cc_accept(l, &e.there), 0);
    secure_pair(&w, &e, "localhost", 0, 0);
    CHECK_EQ(cc_write(e.here, "give", 4, NULL), 0);
    CHECK_EQ(cc_read_full_until(e.there, request, 4, NULL, late), 0);
    CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), 0);
    CHECK_EQ(cc_conn_await(e.there, true, late), 0); /* the notice is here, and nobody has read it */
    for (size_t i = 0; i < ANSWER; i++) answer[i] = byte_at(i);
    CHECK_EQ(cc_write_until(e.there, answer, ANSWER, NULL, late), 0);
    cc_close(e.there);
    CHECK_EQ(cc_read_full_until(e.here, got, ANSWER, NULL, late), 0);
    CHECK(memcmp(got, answer, ANSWER) == 0);
    CHECK_EQ(cc_read_until(e.here, got, 1, &n, late), 0);
    CHECK_EQ(n, 0);
    cc_close(e.here);
    cc_listener_close(l);
    free_world(&w);
}

/* A client that asks for another handshake over and over: refused, and the connection goes on. */
struct renegotiation {
    int fd;
    int asked;
};

static void *renegotiate(void *arg) {
    struct renegotiation *r = arg;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, r->fd);
    CHECK_EQ(SSL_connect(ssl), 1);
    char byte;
    CHECK_EQ(SSL_write(ssl, "a", 1), 1);
    CHECK_EQ(SSL_read(ssl, &byte, 1), 1);
    if (SSL_renegotiate(ssl) == 1 && SSL_do_handshake(ssl) != 1) r->asked = 1;
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(r->fd);
    return NULL;
}

TEST(renegotiation_is_refused) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    CCConn *c;
    CHECK_EQ(cc_conn_from_fd(&c, fds[0]), 0);
    CHECK_EQ(cc_tls_over(w.server, &c, NULL, CC_FOREVER), 0);
    struct renegotiation r = {fds[1], 0};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, renegotiate, &r), 0);
    char byte;
    size_t n;
    CHECK_EQ(cc_read(c, &byte, 1, &n), 0);
    CHECK(n == 1 && byte == 'a');
    CHECK_EQ(cc_write(c, "b", 1, NULL), 0);
    int error = cc_read(c, &byte, 1, &n); /* the client gives up; no second handshake was made */
    CHECK(error == ECONNRESET || error == EPROTO || (error == 0 && n == 0));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(r.asked, 1);
    cc_close(c);
    free_world(&w);
}

/* TLS-5: data that nobody reads stays with the peer that sends it. */
TEST(an_endless_peer_uses_no_memory) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    static const char bytes[100000];
    char byte;
    size_t n;
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 20; i++) {
        MAY_FAIL(cc_write_until(e.here, bytes, sizeof bytes, &n, cc_after_ms(1)));
        CHECK_EQ(cc_read(e.there, &byte, 1, &n), 0);
    }
    size_t after = mallinfo2().uordblks;
    CHECK(after < before + 600000); /* both sides' buffers */
    close_pair(e);
    free_world(&w);
}

CC_TASK(pause_and_write, {
    CCConn *c;
    unsigned ms;
}) {
    CHECK_EQ(cc_sleep_ms(self->ms), 0);
    CHECK_EQ(cc_write(self->c, "late", 4, NULL), 0);
    return NULL;
}

static void *wait_long(void *arg) {
    struct ends *e = arg;
    for (unsigned ms = 0; ms <= 350; ms += 350) { /* before and after the time when the stack is trimmed */
        char bytes[8] = "";
        size_t n = 0;
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, pause_and_write, .c = e->there, .ms = ms), 0);
            CHECK_EQ(cc_read_full(e->here, bytes, 4, &n), 0);
        }
        CHECK(n == 4 && strcmp(bytes, "late") == 0);
    }
    char byte;
    size_t n;
    uint64_t before = cc_now_ns();
    CHECK_EQ(cc_read_until(e->here, &byte, 1, &n, cc_after_ms(300)), ETIMEDOUT);
    CHECK(cc_now_ns() - before >= 300000000);
    return NULL;
}

/* A fiber that has waited for a while returns a part of its stack, and continues. */
TEST(a_long_wait) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    CHECK_EQ(cc_run(wait_long, &e, NULL), 0);
    close_pair(e);
    free_world(&w);
}

static uint64_t parks(void) {
    CCStats stats;
    CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
    return stats.parks;
}

static void *wait_idle(void *arg) {
    struct ends *e = arg;
    char byte;
    size_t n;
    CHECK_EQ(cc_write(e->there, "x", 1, NULL), 0);
    CHECK_EQ(cc_read(e->here, &byte, 1, &n), 0);
    uint64_t before = parks();
    CHECK_EQ(cc_read_until(e->here, &byte, 1, &n, cc_after_ms(1600)), ETIMEDOUT);
    CHECK(parks() - before <= 3); /* once until the stack is trimmed, and once for the rest of the time */
    return NULL;
}

TEST(an_idle_connection_is_not_woken) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    CHECK_EQ(cc_run(wait_idle, &e, NULL), 0);
    close_pair(e);
    free_world(&w);
}

/* The heap without both ends of a connection, and with the server's alone. OpenSSL keeps a buffer of a client for the
 * next ticket. */
TEST(an_idle_connection_holds_no_buffer) {
    enum { PAIRS = 20 };
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e[PAIRS];
    char byte;
    size_t n, servers = 0, clients = 0;
    for (int i = 0; i < PAIRS; i++) {
        e[i] = tls_pair(&w);
        CHECK_EQ(cc_write(e[i].here, "x", 1, NULL), 0);
        CHECK_EQ(cc_read(e[i].there, &byte, 1, &n), 0);
        CHECK_EQ(cc_write(e[i].there, "x", 1, NULL), 0);
        CHECK_EQ(cc_read(e[i].here, &byte, 1, &n), 0);
        CHECK_EQ(cc_read_until(e[i].here, &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
        CHECK_EQ(cc_read_until(e[i].there, &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    }
    for (int i = 0; i < PAIRS; i++) {
        size_t all = mallinfo2().uordblks;
        cc_abort(e[i].there);
        size_t left = mallinfo2().uordblks;
        cc_abort(e[i].here);
        servers += all - left;
        clients += left - mallinfo2().uordblks;
    }
    printf("%zu bytes for a server's end, %zu for a client's\n", servers / PAIRS, clients / PAIRS);
    CHECK(servers / PAIRS < 16000); /* less than one record's buffer */
    CHECK(clients / PAIRS < 36000);
    free_world(&w);
}

/* ---- OS threads ---- */

struct thread_end {
    CCConn *c;
    CCTls *tls;
};

static void *client_thread(void *arg) {
    struct thread_end *t = arg;
    char text[6];
    int error = cc_tls_over(t->tls, &t->c, "localhost", CC_FOREVER);
    CHECK_EQ(error, 0);
    CHECK_EQ(cc_write(t->c, "thread", 6, NULL), 0);
    CHECK_EQ(cc_read_full(t->c, text, 6, NULL), 0);
    CHECK(memcmp(text, "thread", 6) == 0);
    cc_close(t->c);
    return NULL;
}

TEST(threads_block) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = plain_pair();
    struct thread_end t = {e.here, w.client};
    pthread_t thread;
    CHECK_EQ(cc_tls_over(w.server, &e.there, NULL, CC_FOREVER), 0);
    CHECK_EQ(pthread_create(&thread, NULL, client_thread, &t), 0);
    CHECK_EQ(cc_copy(e.there, e.there, UINT64_MAX, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    cc_close(e.there);
    free_world(&w);
}
