/* dial.c - connecting to names: several addresses in parallel, which error is reported, connects without a response. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"
#include "refusing_port.h"

/* ---- names of the test ---- */

static struct {
    CCAddr list[8];
    size_t count;
} answer;

static int answer_names(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list, size_t *count,
                        void *arg) {
    (void)service, (void)hints, (void)arg;
    if (strcmp(host, "test") != 0) return ENOENT;
    for (size_t i = 0; i < answer.count && i < *count; i++) list[i] = answer.list[i];
    if (*count > answer.count) *count = answer.count;
    return 0;
}

static void clear_answer(void) {
    answer.count = 0;
    cc_resolve_hook(answer_names, NULL); /* forgets, too */
}

static void add_addr(CCAddr addr) {
    answer.list[answer.count++] = addr;
}

/* ---- addresses that behave in some way ---- */

static CCListener *good, *full;
static CCConn *fillers[64];
static size_t filled;
static int bound[8];
static size_t bound_count;

static CCAddr good_addr(void) {
    CCAddr addr;
    CHECK_EQ(cc_listener_addr(good, &addr), 0);
    return addr;
}

static CCAddr refusing_addr(void) {
    struct sockaddr_in in;
    CCAddr addr;
    CHECK(bound_count < sizeof bound / sizeof bound[0]);
    bound[bound_count++] = refusing_port(&in);
    CHECK_EQ(cc_addr_from_sockaddr(&addr, (struct sockaddr *)&in, sizeof in), 0);
    return addr;
}

/* A listener whose backlog is full does not answer. The system reports how many wait, and the limit. */
static CCAddr silent_addr(void) {
    CCAddr addr;
    struct tcp_info info;
    socklen_t size = sizeof info;
    CHECK_EQ(cc_listen(&full, "tcp://127.0.0.1:0?backlog=1", NULL), 0);
    CHECK_EQ(cc_listener_addr(full, &addr), 0);
    do {
        CHECK(filled < 64);
        CHECK_EQ(cc_dial_addr(&fillers[filled++], &addr, NULL, CC_FOREVER), 0);
        do CHECK_EQ(getsockopt(cc_listener_fd(full), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
        while (info.tcpi_unacked < filled);
    } while (info.tcpi_unacked <= info.tcpi_sacked);
    return addr;
}

static void start(void) {
    CHECK_EQ(cc_listen(&good, "tcp://127.0.0.1:0", NULL), 0);
    clear_answer();
}

static void finish(void) {
    for (size_t i = 0; i < filled; i++) cc_close(fillers[i]);
    while (bound_count > 0) CHECK_EQ(close(bound[--bound_count]), 0);
    cc_listener_close(full);
    cc_listener_close(good);
    cc_resolve_hook(NULL, NULL);
}

/* ---- cases ---- */

static void *first_wins(void *arg) {
    CCConn *c;
    CCAddr addr, peer;
    size_t at_first = cc_io_waiters();
    start();
    add_addr(silent_addr());
    add_addr(refusing_addr());
    add_addr(good_addr());
    uint64_t before = cc_now_ns();
    CHECK_EQ(cc_dial(&c, "tcp://test:1?fallback_ms=20", NULL), 0);
    CHECK(cc_now_ns() - before >= 20 * 1000000ull); /* the silent address had its time, the refusing one needed none */
    addr = good_addr();
    CHECK_EQ(cc_conn_peer(c, &peer), 0);
    CHECK_EQ(cc_addr_compare(&addr, &peer), 0);
    cc_close(c);
    CHECK_EQ(cc_io_waiters(), at_first); /* the others were cancelled */

    clear_answer();
    add_addr(refusing_addr());
    add_addr(good_addr());
    CHECK_EQ(cc_dial(&c, "tcp://test:1?fallback_ms=3600000", NULL), 0); /* a failure starts the next at once */
    cc_close(c);

    clear_answer();
    add_addr(good_addr());
    add_addr(good_addr());
    add_addr(good_addr());
    int fds = fds_before();
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(cc_dial(&c, "tcp://test:1?fallback_ms=1", NULL), 0);
        cc_close(c);
    }
    check_fds(fds); /* one that came second is closed */
    finish();
    return arg;
}

TEST_WORKERS(the_first_that_answers_wins) {
    CHECK_EQ(cc_run(first_wins, NULL, NULL), 0);
}

TEST(from_an_os_thread) {
    first_wins(NULL);
}

static void *errors(void *arg) {
    CCConn *c;
    CCAddr unreachable;
    start();
    CHECK_EQ(cc_addr_parse(&unreachable, "unix:@ccc-nobody-listens-here"), 0);
    CHECK_EQ(cc_dial(&c, "tcp://other:80", NULL), ENOENT);
    CHECK_EQ(cc_dial(&c, "tcp://test:80", NULL), ENOENT); /* a name without addresses */
    CCAddr silent = silent_addr();
    add_addr(silent);
    add_addr(silent);
    uint64_t before = cc_now_ns();
    CHECK_EQ(cc_dial_until(&c, "tcp://test:1?fallback_ms=5", NULL, cc_after_ms(30)), ETIMEDOUT);
    CHECK(c == NULL);
    CHECK(cc_now_ns() - before >= 30 * 1000000ull);
    CHECK_EQ(cc_dial_addr(&c, &silent, NULL, cc_after_ms(10)), ETIMEDOUT);

    clear_answer();
    add_addr(refusing_addr());
    add_addr(refusing_addr());
    CHECK_EQ(cc_dial(&c, "tcp://test:1", NULL), ECONNREFUSED);
    CCAddr six; /* with a source address of the wrong family, whose error is less informative than a refusal */
    CHECK_EQ(cc_addr_parse(&six, "[::1]:9"), 0);
    clear_answer();
    add_addr(six);
    add_addr(refusing_addr());
    add_addr(six);
    CHECK_EQ(cc_dial(&c, "tcp://test:1?local=127.0.0.1", NULL), ECONNREFUSED);
    clear_answer();
    add_addr(six);
    add_addr(six);
    CHECK_EQ(cc_dial(&c, "tcp://test:1?local=127.0.0.1", NULL), EAFNOSUPPORT);
    CHECK_EQ(cc_dial_addr(&c, &unreachable, NULL, CC_FOREVER), ECONNREFUSED);
    CHECK_EQ(cc_dial(&c, "unix:/nonexistent/socket", NULL), ENOENT);
    CCAddr later = good_addr();
    later.reserved[0] = 1; /* a field of a later version */
    CHECK_EQ(cc_dial_addr(&c, &later, NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_dial_addr(&c, &unreachable, &(CCDialOptions){.local = later}, CC_FOREVER), EINVAL);
    finish();
    return arg;
}

TEST(the_most_telling_error) {
    CHECK_EQ(cc_run(errors, NULL, NULL), 0);
}

CC_TASK(dial_cancelled, { CCAddr addr; }) {
    CCConn *c;
    CHECK_EQ(cc_dial_addr(&c, &self->addr, NULL, CC_FOREVER), ECANCELED);
    CHECK_EQ(cc_dial(&c, "tcp://test:1", NULL), ECANCELED);
    return NULL;
}

/* The deadline ends the attempts and the dial at the same time: whichever is first, the dial returns ETIMEDOUT. */
static void *too_late(void *arg) {
    CCConn *c;
    start();
    add_addr(silent_addr());
    add_addr(refusing_addr());
    for (int i = 0; i < 100; i++)
        CHECK_EQ(cc_dial_until(&c, "tcp://test:1?fallback_ms=1", NULL, cc_after_ms(4)), ETIMEDOUT);
    finish();
    return arg;
}

TEST_WORKERS(a_deadline_wins_over_other_errors) {
    CHECK_EQ(cc_run(too_late, NULL, NULL), 0);
}

static void *cancelled(void *arg) {
    start();
    CCAddr silent = silent_addr();
    add_addr(silent);
    add_addr(silent);
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, dial_cancelled, .addr = silent), 0);
        await_waiters(1);
        cc_nursery_cancel(n);
    }
    CHECK_EQ(cc_io_waiters(), 0);
    finish();
    return arg;
}

/* What a shield hides from the caller does not end the attempts either. */
static void *in_a_shield(void *arg) {
    CCConn *c;
    int rc;
    start();
    add_addr(refusing_addr());
    add_addr(good_addr());
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK_EQ(cc_dial(&c, "tcp://test:1", NULL), ECANCELED);
        CC_SHIELD {
            CHECK_EQ(cc_dial(&c, "tcp://test:1", NULL), 0);
            cc_close(c);
            clear_answer();
            CCAddr silent = silent_addr();
            add_addr(silent);
            add_addr(silent);
            CC_WITH_DEADLINE(cc_after_ms(20)) CHECK_EQ(cc_dial(&c, "tcp://test:1", NULL), ECANCELED);
        }
    }
    CHECK_EQ(rc, ECANCELED);
    CHECK_EQ(cc_io_waiters(), 0);
    finish();
    return arg;
}

TEST_WORKERS(a_dial_in_a_shield) {
    CHECK_EQ(cc_run(in_a_shield, NULL, NULL), 0);
}

TEST_WORKERS(a_cancelled_dial) {
    CHECK_EQ(cc_run(cancelled, NULL, NULL), 0);
}

static void *full_unix(void *arg) {
    CCListener *l;
    CCConn *c, *first, *there;
    char where[64];
    snprintf(where, sizeof where, "unix:@ccc-full-%d", (int)getpid());
    CHECK_EQ(cc_listen(&l, where, &(CCListenOptions){.backlog = 1}), 0);
    size_t n = 0;
    while (cc_dial_until(&c, where, NULL, cc_after_ms(5)) == 0) {
        CHECK(n < 64);
        fillers[n++] = c;
    }
    CHECK_EQ(cc_dial_until(&first, where, NULL, cc_after_ms(5)), ETIMEDOUT);
    CHECK_EQ(cc_accept(l, &there), 0); /* makes room */
    cc_close(there);
    CHECK_EQ(cc_dial(&first, where, NULL), 0);
    cc_close(first);
    while (n > 0) cc_close(fillers[--n]);
    cc_listener_close(l);
    return arg;
}

TEST(a_unix_listener_that_is_full) {
    CHECK_EQ(cc_run(full_unix, NULL, NULL), 0);
}

/* The simulated network is not this machine's, and it is gone afterwards. */
static void *simulated(void *arg) {
    CCConn *c;
    CCAddr addr = good_addr();
    char where[64];
    snprintf(where, sizeof where, "tcp://127.0.0.1:%u", addr.port);
    CHECK_EQ(cc_dial_until(&c, where, NULL, cc_after_ms(1000)), ECONNREFUSED);
    CHECK(c == NULL);
    return arg;
}

TEST(a_simulation_does_not_reach_the_network) {
    CHECK_EQ(cc_listen(&good, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_sim_run(7, simulated, NULL, NULL), 0);
    CCAddr addr = good_addr();
    char where[64];
    CCConn *c;
    snprintf(where, sizeof where, "tcp://127.0.0.1:%u", addr.port);
    CHECK_EQ(cc_dial(&c, where, NULL), 0);
    cc_close(c);
    cc_listener_close(good);
}
