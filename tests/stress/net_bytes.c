/* net_bytes.c - many connections through a proxy to a server, with peers that disappear: on connections that end in an
 * orderly way every byte has arrived, in order; nothing is left open. */
#include "harness.h"
#include "lowest_fd.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t random_of(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static unsigned char byte_at(uint64_t position, uint64_t stream) {
    return (unsigned char)(position * 7 + position / 256 + stream * 13);
}

/* ---- the server: sends back what it gets, by one of several ways, and sometimes gives up ---- */

static int echo(CCConn *conn, void *arg) {
    static _Atomic uint64_t served;
    uint64_t seed = test_seed() + served++;
    (void)arg;
    if (random_of(&seed) % 4 == 0) {
        int error = cc_copy(conn, conn, UINT64_MAX, NULL);
        return error != 0 ? error : cc_shutdown(conn, CC_SHUT_WRITE);
    }
    CCReader in;
    CCWriter out;
    const void *bytes;
    size_t n;
    CHECK_EQ(cc_reader_init(&in, conn, 4000) + cc_writer_init(&out, conn, 10000), 0);
    bool vanish = random_of(&seed) % 8 == 0;
    int error;
    while ((error = cc_reader_peek(&in, 1, &bytes, &n)) == 0) {
        if (vanish && random_of(&seed) % 8 == 0) break;
        size_t part = random_of(&seed) % n + 1;
        error = cc_writer_write(&out, bytes, part, NULL);
        if (error == 0) error = cc_reader_skip(&in, part);
        if (error == 0 && random_of(&seed) % 3 == 0) error = cc_writer_flush(&out);
        if (error == 0 && cc_reader_buffered(&in) == 0) error = cc_writer_flush(&out);
        if (error != 0) break;
    }
    if (error == ENODATA) error = cc_writer_flush(&out);
    cc_reader_free(&in);
    cc_writer_free(&out);
    if (vanish && error == 0) cc_abort(conn);
    return error == ENODATA ? 0 : error;
}

/* ---- the proxy ---- */

CC_CHILD(forward, { CCConn *to, *from; }) {
    int error = cc_copy(self->to, self->from, UINT64_MAX, NULL);
    if (error == 0) error = cc_shutdown(self->to, CC_SHUT_WRITE);
    return error == ENOTCONN ? 0 : error;
}

static int proxy(CCConn *client, void *target) {
    CCConn *server;
    int error = cc_dial_addr(&server, target, NULL, CC_FOREVER);
    if (error != 0) {
        cc_abort(client);
        return error;
    }
    CC_NURSERY(both, .result = &error) {
        CHECK_EQ(CC_GO_IN(both, forward, .to = server, .from = client), 0);
        CHECK_EQ(CC_GO_IN(both, forward, .to = client, .from = server), 0);
    }
    if (error == 0) {
        cc_close(server);
    } else {
        cc_abort(server);
        cc_abort(client);
    }
    return error;
}

/* ---- the clients ---- */

static _Atomic long complete, broken;

struct stream {
    CCConn *conn;
    uint64_t number, length;
};

static void *send_stream(void *arg) {
    struct stream *s = arg;
    uint64_t seed = test_seed() ^ s->number;
    unsigned char bytes[3000];
    int error = 0;
    for (uint64_t at = 0; at < s->length && error == 0;) {
        size_t size = random_of(&seed) % sizeof bytes + 1, n;
        if (size > s->length - at) size = s->length - at;
        for (size_t i = 0; i < size; i++) bytes[i] = byte_at(at + i, s->number);
        error = cc_write(s->conn, bytes, size, &n);
        at += n;
    }
    if (error == 0) (void)cc_shutdown(s->conn, CC_SHUT_WRITE);
    return NULL;
}

CC_TASK(client, {
    CCAddr addr;
    uint64_t number;
}) {
    uint64_t seed = ~test_seed() + self->number, at = 0;
    struct stream s = {.number = self->number, .length = random_of(&seed) % 300000};
    bool vanish = random_of(&seed) % 8 == 0;
    if (cc_dial_addr(&s.conn, &self->addr, NULL, CC_FOREVER) != 0) return NULL; /* the proxy has been cancelled */
    int error = 0;
    CC_NURSERY(n) {
        CHECK_EQ(cc_nursery_spawn(n, send_stream, &s), 0);
        for (;;) {
            unsigned char bytes[4000];
            size_t got, size = random_of(&seed) % 5 == 0 ? 1 : random_of(&seed) % sizeof bytes + 1;
            error = cc_read(s.conn, bytes, size, &got);
            if (error != 0 || got == 0) break;
            for (size_t i = 0; i < got; i++) CHECK_EQ(bytes[i], byte_at(at + i, s.number));
            at += got;
            if (vanish && at > s.length / 2) break;
        }
        cc_nursery_cancel(n);
    }
    /* An orderly end. A Unix socket has no other. */
    if (error == 0 && !vanish && self->addr.kind != CC_ADDR_UNIX) CHECK_EQ(at, s.length);
    if (error == 0 && !vanish)
        complete++;
    else
        broken++;
    vanish ? cc_abort(s.conn) : cc_close(s.conn);
    return NULL;
}

static void *traffic(void *arg) {
    long *rounds = arg;
    char name[64];
    snprintf(name, sizeof name, "unix:@ccc-stress-%d", (int)getpid());
    for (long round = 0; round < *rounds; round++) {
        CCListener *front, *back;
        CCAddr front_addr, back_addr;
        CHECK_EQ(cc_listen(&back, "tcp://127.0.0.1:0", NULL), 0);
        CHECK_EQ(cc_listen(&front, round % 2 == 0 ? "tcp://127.0.0.1:0" : name, NULL), 0);
        CHECK_EQ(cc_listener_addr(back, &back_addr) + cc_listener_addr(front, &front_addr), 0);
        CC_NURSERY(servers) {
            CHECK_EQ(cc_serve(servers, back, echo, NULL, NULL), 0);
            CHECK_EQ(cc_serve(servers, front, proxy, &back_addr, &(CCServeOptions){.max_conns = 20}), 0);
            CC_NURSERY(clients)
            for (uint64_t i = 0; i < 30; i++)
                CHECK_EQ(CC_GO_IN(clients, client, .addr = front_addr, .number = (uint64_t)round * 30 + i), 0);
            cc_nursery_cancel(servers);
        }
        CCServeStats stats;
        CHECK_EQ(cc_serve_stats(front, &stats), 0);
        CHECK(stats.open == 0 && stats.most_open <= 20 && stats.panicked == 0);
        cc_listener_close(front);
        cc_listener_close(back);
    }
    return NULL;
}

TEST_WORKERS(every_byte_through_a_proxy, .timeout = 300) {
    long rounds = test_rounds(4, 400);
    CHECK_EQ(cc_run(traffic, &(long){1}, NULL), 0);
    int fd = lowest_fd();
    CHECK_EQ(cc_run(traffic, &rounds, NULL), 0);
    CHECK_EQ(lowest_fd(), fd);
    CHECK(complete > 0);
    test_count("streams", (uint64_t)(complete + broken));
}
