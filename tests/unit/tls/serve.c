/* serve.c - servers over TLS: by name and by listener, many connections, certificates that change under load, a limit
 * of handshakes. */
#include "tls.h"

static int echo(CCConn *conn, void *arg) {
    (void)arg;
    return cc_copy(conn, conn, UINT64_MAX, NULL);
}

struct service {
    CCListener *listener;
    CCNursery *nursery;
    char where[64];
};

static void start(struct service *s, CCTls *tls, CCConnFn fn, void *arg, const char *where) {
    CCAddr addr;
    CHECK_EQ(cc_listen(&s->listener, where, NULL), 0);
    if (tls != NULL) CHECK_EQ(cc_tls_listen(tls, s->listener), 0);
    CHECK_EQ(cc_listener_addr(s->listener, &addr), 0);
    snprintf(s->where, sizeof s->where, "tls://localhost:%u", addr.port);
    s->nursery = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    CHECK(s->nursery != NULL);
    CHECK_EQ(cc_serve(s->nursery, s->listener, fn, arg, NULL), 0);
}

static void stop(struct service *s) {
    CHECK_EQ(cc_nursery_cancel(s->nursery), 0);
    MAY_FAIL(cc_nursery_wait(s->nursery));
    CHECK_EQ(cc_nursery_free(s->nursery), 0);
    cc_listener_close(s->listener);
}

static void ask(CCConn *c) {
    char text[8];
    CHECK_EQ(cc_write(c, "question", 8, NULL), 0);
    CHECK_EQ(cc_read_full(c, text, 8, NULL), 0);
    CHECK(memcmp(text, "question", 8) == 0);
}

TEST_WORKERS(a_string_is_all_that_changes) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct service s;
    CCListener *l;
    CCConn *c;
    CHECK_EQ(cc_listen(&l, "tls://127.0.0.1:0", NULL), EINVAL);
    CHECK_EQ(cc_tls_register(w.client, w.server), 0);
    CHECK_EQ(cc_tls_register(w.client, w.server), EEXIST);
    start(&s, NULL, echo, NULL, "tls://127.0.0.1:0");
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_dial(&c, s.where, NULL), 0);
        ask(c);
        CHECK_EQ(info_of(c).resumed, i > 0);
        cc_close(c);
    }
    /* One whose name is another. */
    CCAddr addr;
    char where[64];
    CHECK_EQ(cc_listener_addr(s.listener, &addr), 0);
    snprintf(where, sizeof where, "tls://127.0.0.1:%u", addr.port);
    CHECK_EQ(cc_dial(&c, where, NULL), 0);
    cc_close(c);
    struct made bad = make_cert((struct wish){.name = "x", .hosts = "DNS:other.example", .by = &w.ca});
    CHECK_EQ(cc_tls_reload(w.server, &(CCTlsOptions){.cert = bad.cert_pem, .key = bad.key_pem}), 0);
    CHECK_EQ(cc_tls_reload(w.client, &(CCTlsOptions){.ca = w.ca.cert_pem}), 0); /* forgets its tickets */
    CHECK_EQ(cc_dial(&c, s.where, NULL), EKEYREJECTED);
    CHECK(c == NULL && strstr(cc_tls_error(), "hostname mismatch") != NULL);
    stop(&s);
    free_cert(&bad);
    free_world(&w);
}

/* ---- many ---- */

struct many {
    CCTls *client;
    CCAddr addr;
    int rounds;
    CCBarrier together;
    _Atomic int resumed, first, second; /* connections by the certificate that they saw */
};

static CCConn *connect_to(struct many *m) {
    CCConn *c;
    CHECK_EQ(cc_dial_addr(&c, &m->addr, NULL, CC_FOREVER), 0);
    int error = cc_tls_over(m->client, &c, "localhost", CC_FOREVER);
    if (error != 0) test_fail(__FILE__, __LINE__, "%d %s", error, cc_tls_error());
    return c;
}

CC_TASK(stay_and_ask, { struct many *m; }) {
    CCConn *c = connect_to(self->m);
    CHECK_EQ(cc_barrier_wait(&self->m->together), 0);
    ask(c);
    cc_close(c);
    return NULL;
}

TEST(a_thousand_connections_on_two_workers, .timeout = 240) {
    setenv("CC_WORKERS", "2", 1);
    long count = test_scale(1000);
    struct world w = make_world((CCTlsOptions){.handshake_ms = 240000}, (CCTlsOptions){.handshake_ms = 240000});
    struct service s;
    start(&s, w.server, echo, NULL, "tcp://127.0.0.1:0");
    struct many m = {.client = w.client, .together = CC_BARRIER_INIT((uint32_t)count)};
    CHECK_EQ(cc_listener_addr(s.listener, &m.addr), 0);
    CC_NURSERY(n) {
        for (long i = 0; i < count; i++) CHECK_EQ(CC_GO_IN(n, stay_and_ask, .m = &m), 0);
    }
    CCServeStats stats;
    CHECK_EQ(cc_serve_stats(s.listener, &stats), 0);
    CHECK_EQ(stats.accepted, count);
    CHECK_EQ(stats.most_open, count);
    stop(&s);
    free_world(&w);
}

/* ---- other certificates, while clients come ---- */

CC_TASK(connect_often, { struct many *m; }) {
    struct many *m = self->m;
    for (int i = 0; i < m->rounds; i++) {
        CCConn *c = connect_to(m);
        ask(c);
        CCTlsInfo info = info_of(c);
        if (info.resumed) atomic_fetch_add(&m->resumed, 1);
        CHECK(strcmp(info.peer, "CN = localhost") == 0 || strcmp(info.peer, "CN = second") == 0);
        atomic_fetch_add(strcmp(info.peer, "CN = second") == 0 ? &m->second : &m->first, 1);
        ask(c);
        cc_close(c);
    }
    return NULL;
}

TEST_WORKERS(certificates_change_under_load, .timeout = 120) {
    struct world w = make_world((CCTlsOptions){.no_tickets = true}, (CCTlsOptions){0});
    struct made second = make_cert((struct wish){.name = "second", .hosts = "DNS:localhost", .by = &w.ca});
    CCTlsOptions options[2] = {{.cert = w.cert.cert_pem, .key = w.cert.key_pem},
                               {.cert = second.cert_pem, .key = second.key_pem}};
    struct service s;
    start(&s, w.server, echo, NULL, "tcp://127.0.0.1:0");
    struct many m = {.client = w.client, .rounds = (int)test_scale(8)};
    CHECK_EQ(cc_listener_addr(s.listener, &m.addr), 0);
    CCConn *old = connect_to(&m);
    ask(old);
    CC_NURSERY(n) {
        for (int i = 0; i < 4; i++) CHECK_EQ(CC_GO_IN(n, connect_often, .m = &m), 0);
        for (int i = 0; i < 20; i++) {
            CHECK_EQ(cc_tls_reload(w.server, &options[i % 2 == 0]), 0);
            cc_yield();
        }
    }
    ask(old); /* goes on */
    cc_close(old);
    CHECK_EQ(cc_tls_reload(w.server, &options[1]), 0);
    CCConn *c = connect_to(&m);
    CHECK(strcmp(info_of(c).peer, "CN = second") == 0);
    cc_close(c);
    CHECK_EQ(atomic_load(&m.first) + atomic_load(&m.second), 4 * m.rounds);
    stop(&s);
    free_cert(&second);
    free_world(&w);
}

/* ---- the limit ---- */

TEST_WORKERS(handshakes_wait_for_a_place) {
    struct world w =
        make_world((CCTlsOptions){.handshake_ms = 60000}, (CCTlsOptions){.max_handshakes = 1, .handshake_ms = 60000});
    struct service s;
    start(&s, w.server, echo, NULL, "tcp://127.0.0.1:0");
    struct many m = {.client = w.client};
    CHECK_EQ(cc_listener_addr(s.listener, &m.addr), 0);
    CCConn *silent[20], *slow, *c;
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_dial_addr(&silent[i], &m.addr, NULL, CC_FOREVER), 0);
    c = connect_to(&m); /* silent clients do not use up the limit */
    ask(c);
    cc_close(c);
    CHECK_EQ(cc_dial_addr(&slow, &m.addr, NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_write(slow, "\x16\x03\x01", 3, NULL), 0); /* a handshake in progress uses up the limit */
    bool waited = false;
    for (int i = 0; i < 1000 && !waited; i++) {
        CHECK_EQ(cc_dial_addr(&c, &m.addr, NULL, CC_FOREVER), 0);
        int error = cc_tls_over(w.client, &c, "localhost", cc_after_ms(50));
        waited = error == ETIMEDOUT;
        CHECK(error == 0 || waited);
        cc_close(c);
    }
    CHECK(waited);
    cc_close(slow);
    c = connect_to(&m);
    ask(c);
    cc_close(c);
    for (int i = 0; i < 20; i++) cc_close(silent[i]);
    stop(&s);
    free_world(&w);
}
