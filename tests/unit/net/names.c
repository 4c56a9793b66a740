/* names.c - name lookups: numeric addresses at once, equal lookups merged, callers that leave, the cache. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../../programs/where.h"
#include "net.h"

/* ---- a resolver of the test's ---- */

static _Atomic int asked;      /* lookups that have begun */
static _Atomic bool held;      /* they wait while it is set, as for a silent name server */
static _Atomic int answer = 0; /* 0: addresses; an errno value; -1: a panic */

static int resolver(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list, size_t *count,
                    void *arg) {
    (void)service, (void)hints, (void)arg;
    asked++;
    while (held) usleep(200);
    if (answer == -1) cc_panic("a resolver that panics");
    if (answer != 0) return answer;
    CHECK(*count >= 2);
    CHECK_EQ(cc_addr_parse(&list[0], "10.0.0.1:7"), 0);
    list[0].bytes[3] = (unsigned char)strlen(host);
    CHECK_EQ(cc_addr_parse(&list[1], "[::1]:7"), 0);
    *count = 2;
    return 0;
}

static void start(void) {
    asked = 0;
    held = false;
    answer = 0;
    cc_resolve_hook(resolver, NULL);
}

static int ask_until(const char *host, bool fresh, CCDeadline deadline) {
    CCAddr list[4];
    size_t n = 4;
    int error = cc_resolve_until(host, "7", &(CCResolveHints){.fresh = fresh}, list, &n, deadline);
    if (error == 0) CHECK(n == 2 && list[0].bytes[3] == strlen(host) && list[1].kind == CC_ADDR_IP6);
    return error;
}

static int ask(const char *host) {
    return ask_until(host, false, CC_FOREVER);
}

/* ---- cases ---- */

static void numbers(const char *host, const char *service, int kind, const char *expected) {
    CCAddr list[4];
    size_t n = 4;
    char text[256] = "", one[CC_ADDR_TEXT_MAX];
    int error = cc_resolve(host, service, &(CCResolveHints){.kind = kind}, list, &n);
    for (size_t i = 0; i < n && error == 0; i++) {
        CHECK_EQ(cc_addr_print(&list[i], one, sizeof one), 0);
        strcat(strcat(text, i > 0 ? " " : ""), one);
    }
    if (error != 0) snprintf(text, sizeof text, "%d", error);
    if (strcmp(text, expected) != 0) test_fail(__FILE__, __LINE__, "%s: %s", host != NULL ? host : "NULL", text);
}

TEST(numbers_are_answered_at_once) {
    char none[16];
    start();
    numbers("127.0.0.1", "80", 0, "127.0.0.1:80");
    numbers("::1", "80", 0, "[::1]:80");
    numbers("::1", NULL, 0, "::1");
    numbers("", "80", 0, "[::]:80 0.0.0.0:80");
    numbers(NULL, "80", CC_ADDR_IP4, "0.0.0.0:80");
    snprintf(none, sizeof none, "%d", ENOENT);
    numbers("::1", "80", CC_ADDR_IP4, none);
    CHECK_EQ(asked, 0);
    CCAddr list[1];
    size_t n = 1;
    CHECK_EQ(cc_resolve("::1", "80", &(CCResolveHints){.kind = CC_ADDR_IP4}, list, &n), ENOENT);
    CHECK_EQ(n, 1); /* as after any error */
    char name[300];
    memset(name, 'x', sizeof name);
    name[299] = 0;
    CHECK_EQ(cc_resolve(name, "80", NULL, list, &n), EINVAL);
    CHECK_EQ(cc_resolve("x", "80", &(CCResolveHints){.kind = CC_ADDR_UNIX}, list, &n), EINVAL);
    CHECK_EQ(cc_resolve("x", "80", &(CCResolveHints){.reserved = {1}}, list, &n), EINVAL);
    CHECK_EQ(cc_resolve("x", "80", NULL, NULL, &n), EINVAL);
    n = 0;
    CHECK_EQ(cc_resolve("x", "80", NULL, list, &n), EINVAL);
}

static void *system_names(void *arg) {
    CCAddr list[8];
    size_t n = 8;
    int error = cc_resolve("localhost", "80", NULL, list, &n);
    if (error == 0) CHECK(n > 0 && list[0].port == 80 && list[0].kind != CC_ADDR_NONE);
    n = 8;
    error = cc_resolve("localhost", "no-such-service", NULL, list, &n);
    CHECK(error != 0);
    return arg;
}

/* What the C library accepts as a number, but is no port. */
TEST(services_that_are_none) {
    static const char *const none[] = {"", "-1", "+80", " 80", "\t80", "65536", "99999", "4294967376"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CCAddr addr;
        size_t count = 1;
        int error = cc_resolve("127.0.0.1", none[i], NULL, &addr, &count);
        if (error != EPROTONOSUPPORT) test_fail(__FILE__, __LINE__, "\"%s\": %d, port %u", none[i], error, addr.port);
        CHECK_EQ(cc_resolve("localhost", none[i], NULL, &addr, &count), EPROTONOSUPPORT);
    }
    CCListener *l;
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:-1", NULL), EPROTONOSUPPORT);
}

/* Without descriptors the files cannot be read: that is not an answer about the name. */
static void *without_descriptors(void *arg) {
    struct rlimit before, none;
    CCAddr addr;
    CCConn *conn;
    size_t n = 1;
    CHECK_EQ(cc_sleep_ms(1), 0);
    (void)!cc_resolve("localhost", "80", NULL, &addr, &n); /* what the runtime opens once is open */
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    static const char *const hosts[] = {"localhost", "no-such-name.invalid"};
    for (int i = 0; i < 2; i++) {
        n = 1;
        CHECK_EQ(cc_resolve(hosts[i], "80", &(CCResolveHints){.fresh = true}, &addr, &n), EMFILE);
        n = 1;
        CHECK_EQ(cc_resolve(hosts[i], "http", &(CCResolveHints){.fresh = true}, &addr, &n), EMFILE);
    }
    CHECK_EQ(cc_dial(&conn, "tcp://no-such-name.invalid:80", NULL), EMFILE);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    return arg;
}

TEST(missing_descriptors_are_reported) {
    CHECK_EQ(cc_run(without_descriptors, NULL, NULL), 0);
}

TEST(the_system_is_asked) {
    CHECK_EQ(cc_run(system_names, NULL, NULL), 0);
    system_names(NULL);
}

static void *kept(void *arg) {
    start();
    CHECK_EQ(ask("one"), 0);
    CHECK_EQ(ask("one"), 0);
    CHECK_EQ(ask("ONE"), 0);
    CHECK_EQ(asked, 1); /* what was found is kept */
    CHECK_EQ(ask("three"), 0);
    CHECK_EQ(asked, 2);
    CHECK_EQ(ask_until("one", true, CC_FOREVER), 0);
    CHECK_EQ(asked, 3);
    cc_resolve_hook(resolver, NULL); /* forgets it */
    CHECK_EQ(ask("one"), 0);
    CHECK_EQ(asked, 4);
    answer = ENOENT;
    CHECK_EQ(ask("error"), ENOENT);
    CHECK_EQ(ask("error"), ENOENT);
    CHECK_EQ(asked, 6); /* errors are not */
    answer = 0;
    char name[16];
    for (int i = 0; i < 200; i++) { /* and the number of answers is limited */
        snprintf(name, sizeof name, "name%d", i);
        CHECK_EQ(ask(name), 0);
    }
    CHECK_EQ(ask("name199"), 0);
    CHECK_EQ(asked, 206);
    CHECK_EQ(ask("name1"), 0);
    CHECK_EQ(asked, 207);
    CCAddr list[1];
    size_t n = 1;
    CHECK_EQ(cc_resolve("name1", "7", NULL, list, &n), 0);
    CHECK_EQ(n, 1); /* what does not fit is left out */
    cc_resolve_hook(NULL, NULL);
    return arg;
}

TEST_WORKERS(what_was_found_is_kept_for_a_while) {
    CHECK_EQ(cc_run(kept, NULL, NULL), 0);
}

/* ---- many lookups at once ---- */

static _Atomic int begun, askers;

static int answer_to_all(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list,
                         size_t *count, void *arg) {
    (void)host, (void)service, (void)hints, (void)arg;
    while (begun < askers) usleep(10000); /* all that wait here take next to no CPU time */
    *count = 1;
    return cc_addr_parse(&list[0], "192.0.2.1");
}

CC_TASK(ask_own, { int number; }) {
    char name[24];
    snprintf(name, sizeof name, "host%d.example", self->number);
    CCAddr list[4];
    size_t n = 4;
    begun++;
    CHECK_EQ(cc_resolve(name, NULL, NULL, list, &n), 0);
    CHECK_EQ(n, 1);
    return NULL;
}

/* A queued lookup is found in constant time: a search of the queue would take six seconds of CPU time. */
TEST(many_ask_for_names, .timeout = 300) {
    bool cheap = !(UNDER_ASAN || UNDER_TSAN || under_valgrind() || under_qemu());
    askers = cheap ? 40000 : 500;
    cc_resolve_hook(answer_to_all, NULL);
    CCTask *line = calloc((size_t)askers, sizeof *line);
    CHECK(line != NULL);
    for (int i = 0; i < askers; i++) line[i] = CC_GO(ask_own, .number = i);
    for (int i = 0; i < askers; i++) CHECK_EQ(cc_task_join(&line[i], NULL), 0);
    CHECK(!cheap || clock() < (clock_t)3 * CLOCKS_PER_SEC); /* mostly half a second */
    cc_resolve_hook(NULL, NULL);
    free(line);
}

static _Atomic int through;

CC_TASK(ask_and_count, { int expected; }) {
    CHECK_EQ(ask("same"), self->expected);
    through++;
    return NULL;
}

static void *on_thread(void *arg) {
    CHECK_EQ(ask("same"), 0);
    through++;
    return arg;
}

static void *together(void *arg) {
    pthread_t thread;
    start();
    held = true;
    CHECK_EQ(pthread_create(&thread, NULL, on_thread, NULL), 0);
    CC_NURSERY(n) {
        for (int i = 0; i < 20; i++) CHECK_EQ(CC_GO_IN(n, ask_and_count, .expected = 0), 0);
        while (asked == 0) cc_yield();
        for (int i = 0; i < 50; i++) cc_yield();
        CHECK_EQ(through, 0);
        CHECK_EQ(asked, 1);
        held = false;
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(asked == 1 && through == 21);
    cc_resolve_hook(NULL, NULL);
    return arg;
}

TEST_WORKERS(equal_lookups_are_one) {
    CHECK_EQ(cc_run(together, NULL, NULL), 0);
}

static void *leaves(void *arg) {
    start();
    held = true;
    while (asked == 0) CHECK_EQ(ask_until("slow", false, cc_after_ms(3)), ETIMEDOUT); /* one of them began it */
    CHECK_EQ(ask_until("slow", false, cc_after_ms(3)), ETIMEDOUT);                    /* waited for it */
    CHECK_EQ(asked, 1);
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, ask_and_count, .expected = ECANCELED), 0);
        while (asked < 2) cc_yield();
        cc_nursery_cancel(n);
    }
    CCConn *c;
    CHECK_EQ(cc_dial_until(&c, "tcp://slow:7", NULL, cc_after_ms(3)), ETIMEDOUT);
    CHECK_EQ(asked, 2);
    held = false;
    CHECK_EQ(ask("slow"), 0); /* the answer that nobody waited for */
    CHECK_EQ(asked, 2);
    cc_resolve_hook(NULL, NULL);
    return arg;
}

TEST_WORKERS(callers_may_leave) {
    CHECK_EQ(cc_run(leaves, NULL, NULL), 0);
}

TEST(an_os_thread_may_leave) {
    leaves(NULL);
}

static void *many_slow(void *arg) {
    enum { NAMES = 40 };
    char name[16];
    start();
    held = true;
    for (int i = 0; i < NAMES; i++) { /* more than there are threads: some never begin */
        snprintf(name, sizeof name, "slow%d", i);
        CHECK_EQ(ask_until(name, false, cc_after_ms(1)), ETIMEDOUT);
    }
    CHECK(asked < NAMES);
    held = false;
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "slow%d", i);
        CHECK_EQ(ask(name), 0);
    }
    CHECK_EQ(asked, NAMES); /* each was asked for once */
    cc_resolve_hook(NULL, NULL);
    return arg;
}

TEST(a_silent_name_server) {
    CHECK_EQ(cc_run(many_slow, NULL, NULL), 0);
}

CC_TASK(ask_slow, {
    const char *host;
    int expected;
}) {
    CHECK_EQ(ask(self->host), self->expected);
    through++;
    return NULL;
}

/* The caller that started a lookup leaves before it has a thread: another one takes it over. */
static void *hand_over(void *arg) {
    static char names[24][16];
    start();
    held = true;
    through = 0;
    CC_NURSERY(all) {
        for (int i = 0; i < 24; i++) { /* more than there are threads */
            snprintf(names[i], sizeof names[i], "n%d", i);
            CHECK_EQ(CC_GO_IN(all, ask_slow, .host = names[i], .expected = 0), 0);
        }
        while (asked < 16) cc_yield();
        CC_NURSERY(first) {
            CHECK_EQ(CC_GO_IN(first, ask_slow, .host = "last", .expected = ECANCELED), 0);
            for (int i = 0; i < 20; i++) cc_yield();
            for (int i = 0; i < 3; i++) CHECK_EQ(CC_GO_IN(all, ask_slow, .host = "last", .expected = 0), 0);
            for (int i = 0; i < 20; i++) cc_yield();
            cc_nursery_cancel(first);
        }
        CHECK_EQ(through, 1);
        for (int i = 0; i < 20; i++) cc_yield();
        CHECK_EQ(through, 1); /* it is not taken for an answer */
        held = false;
    }
    CHECK_EQ(through, 28);
    CHECK_EQ(asked, 25);
    cc_resolve_hook(NULL, NULL);
    return arg;
}

TEST_WORKERS(the_first_caller_leaves) {
    CHECK_EQ(cc_run(hand_over, NULL, NULL), 0);
}

/* ---- a resolver that waits on the fibers ---- */

static CCEvent answers; /* set: it answers; else it waits, as for a silent name server */

static int waiting_resolver(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list,
                            size_t *count, CCDeadline deadline, void *arg) {
    CHECK(arg == &answers);
    asked++;
    int error = cc_event_wait_until(&answers, deadline);
    return error != 0 ? error : resolver(host, service, hints, list, count, NULL);
}

static void wait_and_answer(void) {
    start();
    CHECK_EQ(cc_event_reset(&answers), 0);
    cc_resolve_by(waiting_resolver, &answers);
    through = 0;
}

static void *by_fibers(void *arg) {
    wait_and_answer();
    CHECK_EQ(ask_until("slow", false, cc_after_ms(3)), ETIMEDOUT); /* gave it up */
    CHECK_EQ(asked, 1);
    CC_NURSERY(all) {
        CC_NURSERY(first) {
            CHECK_EQ(CC_GO_IN(first, ask_slow, .host = "same", .expected = ECANCELED), 0);
            while (asked < 2) cc_yield();
            for (int i = 0; i < 5; i++) CHECK_EQ(CC_GO_IN(all, ask_slow, .host = "same", .expected = 0), 0);
            for (int i = 0; i < 20; i++) cc_yield();
            CHECK_EQ(asked, 2);
            cc_nursery_cancel(first);
        }
        while (asked < 3) cc_yield(); /* one of the others asks again */
        for (int i = 0; i < 20; i++) cc_yield();
        CHECK(asked == 3 && through == 1);
        CHECK_EQ(cc_event_set(&answers), 0);
    }
    CHECK(asked == 4 && through == 6); /* `resolver` counts, too */
    CHECK_EQ(ask("same"), 0);          /* kept */
    CHECK_EQ(asked, 4);
    answer = ENOENT;
    CHECK_EQ(ask("error"), ENOENT);
    cc_resolve_by(NULL, NULL);
    return arg;
}

TEST_WORKERS(a_resolver_that_waits_on_fibers) {
    CHECK_EQ(cc_run(by_fibers, NULL, NULL), 0);
}

TEST(a_resolver_that_waits_on_an_os_thread) {
    wait_and_answer();
    CHECK_EQ(cc_event_set(&answers), 0);
    CHECK_EQ(ask("here"), 0);
    CHECK_EQ(asked, 2);
}

/* A panic is the caller's own; others that wait for the same answer get one. */
static void ask_without_answer(void *arg) {
    (void)arg;
    (void)ask("bad");
}

static void *by_fibers_that_panic(void *arg) {
    wait_and_answer();
    answer = -1;
    CHECK_EQ(cc_event_set(&answers), 0);
    CHECK_EQ(cc_try(ask_without_answer, NULL, NULL), ENOTRECOVERABLE);
    answer = 0;
    CHECK_EQ(ask("bad"), 0);
    cc_resolve_by(NULL, NULL);
    return arg;
}

TEST_WORKERS(a_resolver_that_panics_on_fibers) {
    CHECK_EQ(cc_run(by_fibers_that_panic, NULL, NULL), 0);
}

static void *panics(void *arg) {
    start();
    answer = -1;
    CHECK_EQ(ask("bad"), ENOTRECOVERABLE);
    answer = 0;
    CHECK_EQ(ask("bad"), 0);
    cc_resolve_hook(NULL, NULL);
    return arg;
}

TEST(a_resolver_that_panics) {
    CHECK_EQ(cc_run(panics, NULL, NULL), 0);
}

static void *simulated(void *arg) {
    CCAddr list[2];
    size_t n = 2;
    CHECK_EQ(cc_resolve("name", "7", NULL, list, &n), ENOENT); /* no simulated host has that name */
    start();
    CHECK_EQ(ask("name"), 0);
    CHECK_EQ(ask("name"), 0);
    CHECK_EQ(asked, 2); /* nothing is kept: a run depends on its seed alone */
    cc_resolve_hook(NULL, NULL);
    return arg;
}

TEST(names_in_a_simulation) {
    CHECK_EQ(cc_sim_run(3, simulated, NULL, NULL), 0);
}
