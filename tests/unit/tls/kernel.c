/* kernel.c - the option ktls: the same bytes, ends and errors, whether the kernel can encrypt or not. TEST_KTLS=1 says
 * that it can: then it must. */
#define CHOOSES_KTLS
#include "tls.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

static const CCTlsOptions by_kernel = {.ktls = 1};

/* Both ends over TCP. */
static struct ends kernel_pair(struct world *w, const char *where) {
    struct ends e;
    CCListener *l;
    CHECK_EQ(cc_listen(&l, where, NULL), 0);
    tcp_pair(l, &e.here, &e.there, NULL);
    cc_listener_close(l);
    secure_pair(w, &e, "localhost", 0, 0);
    return e;
}

#define TCP "tcp://127.0.0.1:0"

/* Not used where it was not asked for or cannot work; used where it can. */
static void check_used(CCConn *c, bool asked, bool possible) {
    uint64_t used = info_of(c).ktls;
    if (!asked || !possible) CHECK_EQ(used, 0);
    if (asked && possible && kernel_can()) CHECK_EQ(used, 1);
}

TEST(wrong_values) {
    CCTls *tls;
    CHECK_EQ(cc_tls_client(&tls, &(CCTlsOptions){.ktls = 2}), EINVAL);
    CHECK(strstr(cc_tls_error(), "ktls") != NULL);
    CHECK_EQ(cc_tls_client(&tls, &(CCTlsOptions){.ktls = UINT64_MAX}), EINVAL);
    CHECK_EQ(cc_tls_client(&tls, &by_kernel), 0);
    CHECK_EQ(cc_tls_reload(tls, &(CCTlsOptions){.ktls = 3}), EINVAL);
    cc_tls_free(tls);
}

TEST_WORKERS(the_same_bytes) {
    static const struct {
        size_t size, write_piece, read_piece;
    } cases[] = {{1000000, 200000, 100000}, {100000, 1000, 16384}, {400, 1, 1}};
    for (unsigned i = 0; i < 8; i++) { /* neither, one or both sides; TLS 1.2 and 1.3 */
        CCTlsOptions client = {.ktls = i & 1, .max_version = i < 4 ? 12 : 13}, server = {.ktls = i >> 1 & 1};
        struct world w = make_world(client, server);
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            struct ends e = kernel_pair(&w, TCP);
            check_used(e.here, client.ktls, true);
            check_used(e.there, server.ktls, true);
            both_ways(e, (size_t)test_scale((long)cases[k].size), cases[k].write_piece, cases[k].read_piece);
            CHECK_EQ(cc_conn_alive(e.here), ENODATA);
            close_pair(e);
        }
        free_world(&w);
    }
}

/* Where the kernel cannot: a Unix socket, another connection of TLS below, a send buffer without room. */
TEST(where_it_cannot_work) {
    struct world w = make_world(by_kernel, by_kernel);
    struct ends e;
    CHECK_EQ(cc_socketpair(&e.here, &e.there), 0);
    secure_pair(&w, &e, "localhost", 0, 0);
    check_used(e.here, true, false);
    both_ways(e, 100000, 30000, 30000);
    close_pair(e);
    struct world outer = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    e = kernel_pair(&outer, TCP);
    secure_pair(&w, &e, "localhost", 0, 0); /* within the first */
    check_used(e.here, true, false);
    check_used(e.there, true, false);
    both_ways(e, 100000, 30000, 30000);
    close_pair(e);
    e = kernel_pair(&w, TCP "?send_buffer=8192");
    check_used(e.there, true, false);
    both_ways(e, 100000, 30000, 30000);
    close_pair(e);
    free_world(&outer);
    free_world(&w);
}

/* ---- copies ---- */

CC_TASK(take_to_end, {
    CCConn *c;
    size_t size;
    unsigned pause_ms;
    bool noticed; /* else the end may come without a notice, for which there was no room */
}) {
    unsigned char bytes[20000];
    size_t n = 1, at = 0;
    while (n > 0) {
        if (self->pause_ms > 0) CHECK_EQ(cc_sleep_ms(self->pause_ms), 0);
        int error = cc_read(self->c, bytes, sizeof bytes, &n);
        CHECK(error == 0 || (error == ECONNRESET && !self->noticed));
        for (size_t k = 0; k < n; k++) CHECK_EQ(bytes[k], byte_at(at + k));
        at += n;
    }
    CHECK_EQ(at, self->size);
    return NULL;
}

static CCConn *file_of(size_t size) {
    char path[64];
    CCConn *file;
    snprintf(path, sizeof path, "/tmp/ccc-ktls-%d", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && unlink(path) == 0);
    unsigned char *bytes = malloc(size);
    CHECK(bytes != NULL);
    for (size_t i = 0; i < size; i++) bytes[i] = byte_at(i);
    CHECK_EQ(pwrite(fd, bytes, size, 0), (ssize_t)size);
    free(bytes);
    CHECK_EQ(cc_conn_from_fd(&file, fd), 0);
    return file;
}

CC_TASK(take_and_answer, {
    CCConn *c;
    size_t size;
}) {
    unsigned char *bytes = malloc(self->size);
    CHECK(bytes != NULL);
    CHECK_EQ(cc_read_full(self->c, bytes, self->size, NULL), 0);
    for (size_t i = 0; i < self->size; i++) CHECK_EQ(bytes[i], byte_at(i));
    free(bytes);
    CHECK_EQ(cc_write(self->c, "all", 3, NULL), 0);
    return NULL;
}

/* Of a file, of a part of one, and of a socket. The end is closed at once, and no byte is lost; of the part, all
 * arrives without that. */
TEST_WORKERS(copies) {
    size_t size = (size_t)test_scale(3000001);
    for (int i = 0; i < 3; i++) {
        struct world w = make_world(by_kernel, by_kernel);
        struct ends e = kernel_pair(&w, TCP), from = plain_pair();
        CCConn *file = file_of(size);
        uint64_t copied = 0;
        size_t most = i == 1 ? size / 2 : size;
        CC_NURSERY(n) {
            char answer[3];
            if (i != 1) CHECK_EQ(CC_GO_IN(n, take_to_end, .c = e.there, .size = most), 0);
            if (i == 1) CHECK_EQ(CC_GO_IN(n, take_and_answer, .c = e.there, .size = most), 0);
            if (i == 2) CHECK_EQ(CC_GO_IN(n, send_stream, .c = from.there, .size = size, .piece = 70000), 0);
            CHECK_EQ(cc_copy(e.here, i == 2 ? from.here : file, i == 1 ? most : UINT64_MAX, &copied), 0);
            if (i == 1) CHECK_EQ(cc_read_full(e.here, answer, sizeof answer, NULL), 0);
            cc_close(e.here);
        }
        CHECK_EQ(copied, most);
        cc_close(e.there);
        close_pair(from);
        cc_close(file);
        free_world(&w);
    }
}

CC_TASK(copy_for_ever, {
    CCConn *to, *from;
    int expected;
}) {
    CHECK_EQ(cc_copy(self->to, self->from, UINT64_MAX, NULL), self->expected);
    return NULL;
}

/* ---- ends ---- */

/* TLS-7: nobody reads until the buffers are full and the connection is closed. What writes have taken that returned 0
 * arrives. The kernel holds a record back if it crosses the end of the buffer and of a packet, so there are many
 * sizes. */
TEST(accepted_bytes_arrive) {
    static unsigned char bytes[8 << 20];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = byte_at(i);
    struct world w = make_world(by_kernel, by_kernel);
    for (unsigned room = 34000; room < 100000; room += 1100) {
        char where[64];
        snprintf(where, sizeof where, TCP "?send_buffer=%u", room);
        struct ends e = kernel_pair(&w, where);
        size_t n = 0, taken = 0, got = 0, piece = 16384;
        int error = 0;
        while (error == 0) {
            CHECK(taken + piece <= sizeof bytes);
            error = cc_write_until(e.there, bytes + taken, piece, &n, cc_after_ms(20));
            if (error == 0) taken += n;
        }
        CHECK_EQ(error, ETIMEDOUT);
        CHECK(taken > 0);
        cc_close(e.there);
        do {
            static unsigned char back[50000];
            error = cc_read(e.here, back, sizeof back, &n);
            CHECK(error == 0 || error == ECONNRESET); /* the last one was cut off */
            CHECK(memcmp(back, bytes + got, n) == 0);
            got += n;
        } while (error == 0 && n > 0);
        CHECK(got >= taken);
        cc_close(e.here);
    }
    free_world(&w);
}

/* The same with a slow reader, and with the end if it was written before. */
TEST_WORKERS(a_close_after_a_large_write_loses_nothing) {
    static const char *const where[] = {TCP, TCP "?send_buffer=70000", TCP "?send_buffer=40000&receive_buffer=4096"};
    size_t size = 700000;
    unsigned char *bytes = malloc(size);
    CHECK(bytes != NULL);
    for (size_t i = 0; i < size; i++) bytes[i] = byte_at(i);
    struct world w = make_world(by_kernel, by_kernel);
    for (int i = 0; i < 6; i++) {
        struct ends e = kernel_pair(&w, where[i / 2]);
        CC_NURSERY(n) {
            CHECK_EQ(
                CC_GO_IN(n, take_to_end, .c = e.here, .size = size - 1, .pause_ms = 1 + (unsigned)i, .noticed = i % 2),
                0);
            CHECK_EQ(cc_write(e.there, bytes, size - 1, NULL), 0);
            if (i % 2 == 1) CHECK_EQ(cc_shutdown(e.there, CC_SHUT_WRITE), 0);
            if (i % 2 == 1) CHECK_EQ(cc_write(e.there, "x", 1, NULL), EPIPE);
            cc_close(e.there);
        }
        cc_close(e.here);
    }
    free(bytes);
    free_world(&w);
}

/* Deadlines and cancellation end a write and a copy that find no space. What was taken keeps its place in the stream.
 */
TEST_WORKERS(an_interrupted_write_continues) {
    struct world w = make_world(by_kernel, by_kernel);
    struct ends e = kernel_pair(&w, TCP "?send_buffer=70000&receive_buffer=8192");
    static unsigned char bytes[4 << 20];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = byte_at(i);
    size_t n, at = 0;
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(cc_write_until(e.there, bytes + at, sizeof bytes - at, &n, cc_after_ms(5)), ETIMEDOUT);
        at += n;
    }
    while (cc_write_try(e.there, bytes + at, sizeof bytes - at, &n) == 0) at += n;
    CHECK(at > 0 && at < sizeof bytes);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, take_to_end, .c = e.here, .size = sizeof bytes), 0);
        CHECK_EQ(cc_write(e.there, bytes + at, sizeof bytes - at, &n), 0);
        cc_close(e.there);
    }
    cc_close(e.here);
    free_world(&w);
}

TEST_WORKERS(a_copy_without_room_is_cancelled) {
    struct world w = make_world(by_kernel, by_kernel);
    for (int i = 0; i < 3; i++) {
        struct ends e = kernel_pair(&w, TCP);
        CCConn *file = file_of(16 << 20);
        static const int expected[] = {ECANCELED, ETIMEDOUT, EBADF};
        if (i == 1) CHECK_EQ(cc_conn_deadline(e.there, CC_FOREVER, cc_after_ms(50)), 0);
        CCNursery *nursery = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
        CHECK(nursery != NULL);
        CHECK_EQ(CC_GO_IN(nursery, copy_for_ever, .to = e.there, .from = file, .expected = expected[i]), 0);
        if (i != 1)
            while (cc_io_waiters() < 1) cc_yield();
        if (i == 0) CHECK_EQ(cc_nursery_cancel(nursery), 0);
        if (i == 2) cc_close(e.there);
        MAY_FAIL(cc_nursery_wait(nursery));
        CHECK_EQ(cc_nursery_free(nursery), 0);
        if (i != 2) cc_abort(e.there);
        cc_close(e.here);
        cc_close(file);
    }
    free_world(&w);
}

/* A peer that has disconnected: an error, for a write, a copy and the close_notify, and no signal. */
TEST(no_signal) {
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    struct world w = make_world(by_kernel, by_kernel);
    for (int i = 0; i < 3; i++) {
        struct ends e = kernel_pair(&w, TCP);
        CCConn *file = file_of(1 << 20);
        static const char bytes[1000];
        int error = 0;
        cc_abort(e.there);
        if (i == 0)
            while (error == 0) error = cc_write(e.here, bytes, sizeof bytes, NULL);
        if (i == 1) error = cc_copy(e.here, file, UINT64_MAX, NULL);
        if (i == 2) error = ECONNRESET;
        CHECK(error == ECONNRESET || error == EPIPE);
        for (int k = 0; k < 2; k++) MAY_FAIL(cc_shutdown(e.here, CC_SHUT_WRITE));
        cc_close(e.here);
        cc_close(file);
    }
    free_world(&w);
}

/* What the kernel holds back of a copy it tries to send when the socket is closed, which may have no peer by then. */
TEST(no_signal_at_the_end_of_a_copy) {
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    struct world w = make_world(by_kernel, by_kernel);
    for (unsigned room = 34000; room < 60000; room += 1100) {
        char where[64];
        snprintf(where, sizeof where, TCP "?send_buffer=%u", room);
        struct ends e = kernel_pair(&w, where);
        CCConn *file = file_of(8 << 20);
        CHECK_EQ(cc_conn_deadline(e.there, CC_FOREVER, cc_after_ms(20)), 0);
        CHECK_EQ(cc_copy(e.there, file, UINT64_MAX, NULL), ETIMEDOUT);
        CHECK_EQ(cc_shutdown(e.there, CC_SHUT_BOTH), 0);
        (room % 2200 < 1100 ? cc_close : cc_abort)(e.there);
        cc_close(e.here);
        cc_close(file);
    }
    free_world(&w);
}

/* ---- new keys ---- */

static void *ask_for_new_keys(void *arg) {
    int fd = *(int *)arg;
    char bytes[5];
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
    CHECK_EQ(SSL_connect(ssl), 1);
    CHECK_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    CHECK_EQ(SSL_write(ssl, "new", 3), 3);
    int n = SSL_read(ssl, bytes, sizeof bytes);
    CHECK(n == (kernel_can() ? 0 : 5) || n < 0);
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    return NULL;
}

TEST(a_peer_that_asks_for_new_keys) {
    struct world w = make_world(by_kernel, by_kernel);
    CCListener *l;
    CCConn *client, *server;
    char bytes[3];
    CHECK_EQ(cc_listen(&l, TCP, NULL), 0);
    tcp_pair(l, &client, &server, NULL);
    CHECK_EQ(cc_tls_over(w.server, &server, NULL, CC_FOREVER), 0);
    int fd = fcntl(cc_conn_fd(client), F_DUPFD_CLOEXEC, 0);
    CHECK(fd >= 0);
    cc_close(client);
    CHECK_EQ(fcntl(fd, F_SETFL, 0), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, ask_for_new_keys, &fd), 0);
    CHECK_EQ(cc_read_full(server, bytes, 3, NULL), 0);
    bool used = info_of(server).ktls != 0;
    for (int i = 0; i < (used ? 2 : 1); i++) CHECK_EQ(cc_write(server, "bytes", 5, NULL), used ? EPROTO : 0);
    if (used) CHECK(strstr(cc_tls_error(), "new keys") != NULL);
    cc_close(server);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    cc_listener_close(l);
    free_world(&w);
}
