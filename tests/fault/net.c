/* net.c - the network without memory, threads or descriptors: each call returns an error, and nothing leaks. */
#include "fail.h"
#include "harness.h"
#include "lowest_fd.h"

#include "../programs/where.h"
#include "../unit/contexts.h"

#include <ccc/ccc.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* ---- what the calls need ---- */

static CCListener *listener;
static CCConn *here, *there;

static int names(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list, size_t *count,
                 void *arg) {
    (void)host, (void)service, (void)hints, (void)count, (void)arg;
    if (cc_listener_addr(listener, &list[0]) != 0) return ENOENT;
    list[1] = list[0];
    *count = 2;
    return 0;
}

/* ---- the calls ---- */

static int do_listen(void) {
    CCListener *l;
    int error = cc_listen(&l, "tcp://127.0.0.1:0", NULL);
    CHECK((l != NULL) == (error == 0));
    cc_listener_close(l);
    return error;
}

static int dial_and_accept(void) {
    CCConn *c, *a = NULL;
    CCAddr addr;
    CHECK_EQ(cc_listener_addr(listener, &addr), 0);
    int error = cc_dial_addr(&c, &addr, NULL, CC_FOREVER);
    CHECK((c != NULL) == (error == 0));
    if (error == 0) error = cc_accept(listener, &a);
    if (error == ENOMEM || error == EMFILE) { /* it is still in the backlog, or was closed */
        CCConn *left;
        (void)fail_disarm();
        if (cc_accept_try(listener, &left) == 0) cc_close(left);
    }
    cc_close(a);
    cc_close(c);
    return error;
}

static int dial_name(void) {
    CCConn *c, *a;
    int error = cc_dial(&c, "tcp://name:80", NULL);
    CHECK((c != NULL) == (error == 0));
    cc_close(c);
    long failed = fail_disarm();
    while (cc_accept_try(listener, &a) == 0) cc_close(a);
    cc_resolve_hook(names, NULL); /* forgets */
    return failed == 0 || error != 0 ? error : 0;
}

static int resolve(void) {
    CCAddr list[4];
    size_t n = 4;
    return cc_resolve("name", "80", &(CCResolveHints){.fresh = true}, list, &n);
}

static int pairs(void) {
    CCConn *a, *b;
    int error = cc_socketpair(&a, &b);
    CHECK((a != NULL) == (error == 0) && (b != NULL) == (error == 0));
    cc_close(a);
    cc_close(b);
    if (error == 0) error = cc_pipe(&a, &b);
    if (error == 0) {
        cc_close(a);
        cc_close(b);
    }
    return error;
}

static int udp(void) {
    CCUdp *u;
    int error = cc_udp_bind(&u, "udp://127.0.0.1:0", NULL);
    cc_udp_close(u);
    return error;
}

static int buffers(void) {
    static char big[50000], got[50001];
    CCWriter w;
    CCReader r;
    char *line;
    size_t n = 0;
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = '\n';
    CHECK_EQ(cc_writer_init(&w, there, 60000) + cc_reader_init(&r, here, 60000), 0);
    int error = 0, first = 0;
    do { /* nothing is lost: it continues where it stopped */
        size_t part = sizeof big - n < 20000 ? sizeof big - n : 20000, put;
        error = cc_writer_write(&w, big + n, part, &put);
        n += put;
        if (error != 0) {
            CHECK_EQ(error, ENOMEM);
            first = error;
            (void)fail_disarm();
        }
    } while (n < sizeof big);
    CHECK_EQ(cc_writer_flush(&w), 0);
    while ((error = cc_reader_line(&r, &line, &n)) == ENOMEM) {
        first = error;
        (void)fail_disarm();
    }
    CHECK_EQ(error, 0);
    CHECK_EQ(n, sizeof big - 1);
    memcpy(got, line, n);
    CHECK(memcmp(got, big, n) == 0);
    cc_reader_free(&r);
    cc_writer_free(&w);
    return first;
}

static int copy(void) {
    uint64_t n = 0;
    char byte;
    CHECK_EQ(cc_write(there, "x", 1, NULL), 0);
    int error = cc_copy(here, here, 1, &n); /* back to where it came from */
    if (error != 0) (void)fail_disarm();
    if (error != 0) CHECK_EQ(cc_copy(here, here, 1, &n), 0); /* it had not been read */
    CHECK_EQ(cc_read_full(there, &byte, 1, NULL), 0);
    return error;
}

static int answer(CCConn *conn, void *arg) {
    char byte;
    size_t n;
    (void)arg;
    int error = cc_read(conn, &byte, 1, &n);
    return error == 0 && n == 1 ? cc_write(conn, &byte, 1, NULL) : error;
}

static int serve(void) {
    CCListener *l;
    CCConn *c;
    CCAddr addr;
    char byte;
    size_t n;
    int error = cc_listen(&l, "tcp://127.0.0.1:0", NULL), result = 0;
    if (error != 0) return error;
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    CCNursery *nursery = cc_nursery_create(NULL);
    error = nursery == NULL ? ENOMEM : cc_serve(nursery, l, answer, NULL, &(CCServeOptions){.backoff_ms = 1});
    for (int tries = 0; error == 0; tries++) { /* whatever happens to the first connection, the server continues */
        CHECK(tries < 100);
        if (cc_dial_addr(&c, &addr, NULL, CC_FOREVER) != 0) continue;
        bool answered = cc_write(c, "x", 1, NULL) == 0 && cc_read(c, &byte, 1, &n) == 0 && n == 1;
        cc_close(c);
        if (answered) break;
        (void)fail_disarm();
    }
    if (nursery != NULL) {
        (void)cc_nursery_cancel(nursery);
        result = cc_nursery_wait(nursery);
        CHECK_EQ(cc_nursery_free(nursery), 0);
    }
    cc_listener_close(l);
    return error != 0 ? error : result == ECANCELED ? 0 : result;
}

/* ---- each failure of each ---- */

static const struct {
    const char *name;
    int (*call)(void);
} calls[] = {{"listen", do_listen},
             {"dial", dial_and_accept},
             {"dial a name", dial_name},
             {"resolve", resolve},
             {"pairs", pairs},
             {"udp", udp},
             {"buffers", buffers},
             {"copy", copy},
             {"serve", serve}};

static int kinds;

static void each_call(void) {
    CHECK_EQ(cc_listen(&listener, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_socketpair(&here, &there), 0);
    cc_resolve_hook(names, NULL);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        CHECK_EQ(calls[i].call(), 0);
        int fd = lowest_fd();
        for (long k = 1;; k++) {
            CHECK(k < 200);
            fail_arm(k, kinds, false);
            int error = calls[i].call();
            (void)fail_disarm();
            long failed = fail.failed;
            if (error != 0 && error != ENOMEM && error != EAGAIN)
                test_fail(__FILE__, __LINE__, "%s, failure %ld: %d", calls[i].name, k, error);
            if (error != 0) CHECK(failed > 0);
            for (int wait = 0; lowest_fd() != fd; wait++) { /* a handler may be about to end */
                CHECK(wait < 30000);
                CHECK_EQ(cc_sleep_ms(1), 0);
            }
            if (failed == 0) break;
        }
    }
    cc_resolve_hook(NULL, NULL);
    cc_close(here);
    cc_close(there);
    cc_listener_close(listener);
}

static void run_all(int which) {
    kinds = which;
    in_both_contexts(each_call);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST_WORKERS(each_call_in_turn) {
    run_all(FAIL_MEMORY);
    long blocks = fail.blocks; /* what stays: the table of descriptors, some buffers */
    run_all(FAIL_MEMORY);
    CHECK_EQ(fail.blocks, blocks);
    run_all(FAIL_THREAD);
}

/* ---- no descriptors ---- */

static void no_descriptors(void) {
    struct rlimit old, few;
    CHECK_EQ(cc_listen(&listener, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_socketpair(&here, &there), 0);
    cc_resolve_hook(names, NULL);
    CHECK_EQ(calls[1].call(), 0); /* the poller has its own */
    int first = lowest_fd();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (int more = 0; more < 6; more++) { /* exactly that many are left */
        few = old;
        few.rlim_cur = (rlim_t)(first + more);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            if (calls[i].call == serve) continue; /* its client needs some of its own: unit/net/serve */
            int error = calls[i].call();
            if (error != 0 && error != EMFILE) test_fail(__FILE__, __LINE__, "%s: %d", calls[i].name, error);
        }
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
        CHECK_EQ(lowest_fd(), first);
    }
    cc_resolve_hook(NULL, NULL);
    cc_close(here);
    cc_close(there);
    cc_listener_close(listener);
}

TEST(no_descriptors_left) {
    if (under_valgrind() || under_qemu()) SKIP("it has its own descriptors, and its own limit");
    CHECK_EQ(cc_runtime_init(NULL), 0);
    in_both_contexts(no_descriptors);
}

/* ---- no stacks ---- */

/* A handler that runs reports it, and stays. */
static int stay(CCConn *conn, void *arg) {
    char byte;
    size_t n;
    (void)arg;
    int error = cc_write(conn, "x", 1, NULL);
    return error != 0 ? error : cc_read(conn, &byte, 1, &n);
}

/* 1: there is a handler; 0: the connection was aborted, perhaps before it was known to be made. */
static unsigned is_handled(CCConn **c) {
    char byte;
    size_t n = 0;
    CCAddr addr;
    CHECK_EQ(cc_listener_addr(listener, &addr), 0);
    int error = cc_dial_addr(c, &addr, NULL, CC_FOREVER);
    if (error == 0) error = cc_read(*c, &byte, 1, &n);
    CHECK(error == 0 || error == ECONNRESET);
    return error == 0 && n == 1;
}

static void *no_stacks(void *arg) {
    enum { MOST = 100 };
    static CCConn *conns[MOST];
    CCConn *named;
    CCServeStats stats;
    unsigned count = 0, handled = 0;
    CHECK_EQ(cc_listen(&listener, "tcp://127.0.0.1:0", NULL), 0);
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, stay, NULL, &(CCServeOptions){.max_conns = MOST, .backoff_ms = 1}), 0);
        while (cc_io_waiters() == 0) cc_yield();
        fail_arm(1, FAIL_MAP, true);
        do { /* a few stacks are left */
            CHECK(count < MOST);
            handled += is_handled(&conns[count++]);
        } while (handled == count);
        CHECK_EQ(cc_serve_stats(listener, &stats), 0);
        CHECK(stats.shed == 1 && stats.open == handled && stats.accepted == handled);
        cc_resolve_hook(names, NULL);
        int error = cc_dial(&named, "tcp://two.example:80", NULL); /* another worker may have a stack for it */
        CHECK(error == ENOMEM || error == ECONNRESET || error == 0);
        cc_close(named);
        cc_resolve_hook(NULL, NULL);
        CHECK(fail_disarm() > 0);
        for (unsigned i = 0; i < count; i++) cc_close(conns[i]);
        CHECK(is_handled(&conns[0]));
        cc_close(conns[0]);
        cc_nursery_cancel(n);
    }
    cc_listener_close(listener);
    return arg;
}

TEST_WORKERS(no_stack_for_a_handler) {
    int before = lowest_fd();
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.stack_size = 64 * 1024 * 1024}), 0); /* of which few are kept */
    CHECK_EQ(cc_run(no_stacks, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(lowest_fd(), before);
}
