/* proxy.c - clients that retry, a proxy and a server under simulated faults: each request is executed once and answered
 * in full; and bugs of the proxy and of the retries that seeds find. */
#include "sim_net.h"

#include <stdlib.h>

enum { ASKERS = 3, REQUESTS = 4, ANSWER = 3000, PATIENCE_MS = 2000, LIMIT_MS = 200000, IDS = ASKERS * REQUESTS };

enum bug {
    BUG_NONE,
    BUG_END_IS_KEPT,    /* the proxy does not pass on that a side has ended */
    BUG_SHORT_WRITES,   /* the proxy takes a write for complete that was not */
    BUG_RETRY_NO_ID,    /* the server executes a repeated request again */
    BUG_RETRY_IS_TAKEN, /* the client takes its last attempt for answered, although it has timed out */
    BUG_ERROR_IS_END,   /* the proxy passes a broken connection on as an ordinary end */
    BUG_IDS_TOO_EARLY,  /* the server records the id when the request arrives, before it is executed */
    BUGS
};
static const char *const names[BUGS] = {
    [BUG_END_IS_KEPT] = "the proxy does not pass on that a side has ended",
    [BUG_ERROR_IS_END] = "the proxy passes a broken connection on as an ordinary end",
    [BUG_SHORT_WRITES] = "the proxy takes a short write for a complete one",
    [BUG_RETRY_NO_ID] = "the server executes a repeated request again",
    [BUG_RETRY_IS_TAKEN] = "the client takes an attempt that timed out for answered",
    [BUG_IDS_TOO_EARLY] = "the server notes a request as done before it is",
};
static enum bug bug;

/* What the server has done, and what the clients believe. */
static struct {
    atomic_uint done[IDS];
    atomic_bool noted[IDS];
    atomic_uint left;
    atomic_bool wrong; /* an answer, or a client without one */
} all;

/* ---- the server ---- */

static int serve_one(CCConn *conn, void *arg) {
    unsigned char id, byte, answer[ANSWER];
    size_t n;
    (void)arg;
    CCDeadline until = cc_after_ms(PATIENCE_MS);
    int error = cc_read_full_until(conn, &id, 1, NULL, until);
    if (error != 0 || id >= IDS) return error;
    bool early = bug == BUG_IDS_TOO_EARLY, first = early && !atomic_exchange(&all.noted[id], true);
    error = cc_read_until(conn, &byte, 1, &n, until); /* the request ends here */
    if (error != 0) return error;
    if (!early) first = !atomic_exchange(&all.noted[id], true) || bug == BUG_RETRY_NO_ID;
    if (first) atomic_fetch_add(&all.done[id], 1);
    memset(answer, 'a' + id, sizeof answer);
    return cc_write_until(conn, answer, sizeof answer, NULL, until);
}

static void *serve_at(const char *where, CCConnFn handler) {
    CCListener *l;
    while (cc_listen(&l, where, NULL) != 0)
        if (cc_sleep_ms(10) != 0) return NULL;
    MAY_FAIL(cc_serve(NULL, l, handler, NULL, NULL));
    cc_listener_close(l);
    return NULL;
}

static void *server_host(void *arg) {
    (void)arg;
    return serve_at("tcp://[::]:7", serve_one);
}

/* ---- the proxy ---- */

static int copy_short(CCConn *to, CCConn *from) {
    char bytes[512];
    size_t n = 1, put;
    int error = 0;
    while (error == 0 && n > 0) {
        error = cc_read(from, bytes, sizeof bytes, &n);
        if (error == 0 && n > 0) error = cc_write_try(to, bytes, n, &put);
        if (error == EAGAIN) error = 0;
    }
    return error;
}

CC_CHILD(forward, { CCConn *to, *from; }) {
    int error =
        bug == BUG_SHORT_WRITES ? copy_short(self->to, self->from) : cc_copy(self->to, self->from, UINT64_MAX, NULL);
    if (error == 0 && bug != BUG_END_IS_KEPT) error = cc_shutdown(self->to, CC_SHUT_WRITE);
    return error == ENOTCONN ? 0 : error;
}

static int pass_on(CCConn *client, void *arg) {
    CCConn *server;
    (void)arg;
    int error = cc_dial_until(&server, "tcp://server:7", NULL, cc_after_ms(PATIENCE_MS));
    if (error != 0) {
        if (bug != BUG_ERROR_IS_END) cc_abort(client);
        return error;
    }
    CC_NURSERY(both, .result = &error) {
        CHECK_EQ(CC_GO_IN(both, forward, .to = server, .from = client), 0);
        CHECK_EQ(CC_GO_IN(both, forward, .to = client, .from = server), 0);
    }
    bool aborts = error != 0 && bug != BUG_ERROR_IS_END;
    (aborts ? cc_abort : cc_close)(server);
    if (aborts) cc_abort(client);
    return error;
}

static void *proxy_host(void *arg) {
    (void)arg;
    return serve_at("tcp://[::]:8", pass_on);
}

/* ---- the clients ---- */

/* One attempt: 0, and the size of the answer, which ends with the stream. */
static int ask(unsigned char id, unsigned char *answer, size_t *size) {
    CCConn *conn;
    CCDeadline until = cc_after_ms(PATIENCE_MS);
    *size = 0;
    int error = cc_dial_until(&conn, "tcp://proxy:8", NULL, until);
    if (error != 0) return error;
    error = cc_write_until(conn, &id, 1, NULL, until);
    if (error == 0) error = cc_shutdown(conn, CC_SHUT_WRITE);
    if (error == 0) error = cc_read_full_until(conn, answer, ANSWER + 1, size, until);
    cc_close(conn);
    return error == ENODATA ? 0 : error == 0 ? EPROTO : error;
}

static void *client_host(void *arg) {
    unsigned number = *(unsigned *)arg;
    for (unsigned i = 0; i < REQUESTS; i++) {
        unsigned char id = (unsigned char)(number * REQUESTS + i), answer[ANSWER + 1];
        CCDeadline limit = cc_after_ms(LIMIT_MS);
        size_t size = 0;
        int error;
        while ((error = ask(id, answer, &size)) != 0 && cc_now_ns() < limit.ns) {
            if (error == ETIMEDOUT && bug == BUG_RETRY_IS_TAKEN) break;
            if (cc_sleep_ms(100) != 0) break;
        }
        bool good = size == ANSWER && atomic_load(&all.done[id]) == 1;
        for (size_t k = 0; k < size && good; k++) good = answer[k] == 'a' + id;
        if (!good) atomic_store(&all.wrong, true);
    }
    atomic_fetch_sub(&all.left, 1);
    return NULL;
}

/* ---- one seed ---- */

static void restart(CCSimHost host, CCTaskFn fn) {
    if (cc_sim_is_up(host)) CHECK_EQ(cc_sim_crash(host), 0);
    CHECK_EQ(cc_sim_start(host, fn, NULL), 0);
}

static void *whole_program(void *arg) {
    CCSimHost hosts[ASKERS], proxy, server;
    unsigned numbers[ASKERS];
    CCSimNet net;
    CHECK_EQ(cc_sim_net(&net), 0);
    if (net.latency_max_us > 20000) net.latency_max_us = 20000;
    if (net.latency_min_us > 1000) net.latency_min_us = 1000;
    if (net.window < 512) net.window = 512; /* an answer takes less than the client's timeout */
    use_net(net);
    CHECK_EQ(cc_sim_host(&proxy, "proxy"), 0);
    CHECK_EQ(cc_sim_host(&server, "server"), 0);
    restart(proxy, proxy_host);
    restart(server, server_host);
    atomic_store(&all.left, ASKERS);
    for (unsigned i = 0; i < ASKERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "client%u", i);
        numbers[i] = i;
        CHECK_EQ(cc_sim_host(&hosts[i], name), 0);
        CHECK_EQ(cc_sim_start(hosts[i], client_host, &numbers[i]), 0);
    }
    uint64_t random = cc_sim_seed() * 1009 + 1;
    for (int i = 0; i < 6 && atomic_load(&all.left) > 0; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        CHECK_EQ(cc_sleep_ms((random >> 40) % 300), 0);
        if ((random >> 33) % 3 == 0) restart(proxy, proxy_host);
        if ((random >> 33) % 3 == 1) CHECK_EQ(cc_sim_partition(proxy, server, cc_after_ms((random >> 45) % 3000)), 0);
    }
    while (atomic_load(&all.left) > 0) CHECK_EQ(cc_sleep_ms(100), 0);
    CHECK_EQ(cc_sim_crash(proxy), 0);
    CHECK_EQ(cc_sim_crash(server), 0);
    return arg;
}

static bool fails(uint64_t seed) {
    memset(&all, 0, sizeof all);
    CHECK_EQ(cc_sim_run(seed, whole_program, NULL, NULL), 0);
    return atomic_load(&all.wrong);
}

TEST(seeds, .timeout = 600) {
    for (uint64_t seed = 1; seed <= (uint64_t)test_rounds(30, 3000); seed++) {
        bool failed = fails(seed);
        if (failed) printf("seed %llu\n", (unsigned long long)seed);
        CHECK(!failed);
    }
}

/* The first four need few seeds. */
TEST(seeds_find_bugs, .timeout = 600) {
    for (bug = 1; bug < (test_long() ? BUGS : 5); bug++) {
        uint64_t seed = 1;
        while (seed <= 1000 && !fails(seed)) seed++;
        fprintf(stderr, "%s: seed %llu\n", names[bug], (unsigned long long)seed);
        CHECK(seed <= 1000);
        CHECK(fails(seed));
    }
}
