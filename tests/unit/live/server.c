/* server.c - the live page: access control, limits of clients, and that it responds when all workers are stuck. */
#include "harness.h"

#include "diag/dump.h"
#include "live/live.h"

#include "../process/children.h"

#include <arpa/inet.h>
#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 20, SLOWLY_MS = 100000 /* a busy machine may stop the test between two of its steps */ };

static struct {
    unsigned port;
    char token[64];
    char answer[ANSWER_MAX];
} web;

static void serve_tcp(void) {
    char address[CC_VIEW_ADDRESS_MAX];
    cc__live_set_pace(SLOWLY_MS, SLOWLY_MS);
    CHECK_EQ(cc_view_start(&(CCViewConfig){.tcp = true}), 0);
    CHECK_EQ(cc_view_address(address, sizeof address), 0);
    CHECK_EQ(sscanf(address, "http://127.0.0.1:%u/?t=%60s", &web.port, web.token), 2);
    CHECK_EQ(strlen(web.token), TOKEN_LENGTH);
}

static int dial(void) {
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)web.port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
    close(fd);
    return -1;
}

static void put(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n <= 0) return; /* it has received enough */
        bytes += n;
        size -= (size_t)n;
    }
}

/* Reads the response to its end; returns its status, or 0: none came. */
static int take(int fd) {
    size_t length = 0;
    ssize_t n;
    while (length < ANSWER_MAX - 1 && (n = recv(fd, web.answer + length, ANSWER_MAX - 1 - length, 0)) > 0)
        length += (size_t)n;
    web.answer[length] = '\0';
    close(fd);
    int status = 0;
    return sscanf(web.answer, "HTTP/1.1 %d ", &status) == 1 ? status : 0;
}

static int ask_raw(const char *bytes, size_t size) {
    int fd = dial();
    CHECK(fd >= 0);
    put(fd, bytes, size);
    return take(fd);
}

static int ask(const char *line, const char *host, const char *more) {
    char text[1000];
    int n = snprintf(text, sizeof text, "%s\r\n%s%s%s%s\r\n", line, host != NULL ? "Host: " : "",
                     host != NULL ? host : "", host != NULL ? "\r\n" : "", more);
    return ask_raw(text, (size_t)n);
}

/* As the page asks. */
static int get(const char *target) {
    char line[200], host[40], token[100];
    snprintf(line, sizeof line, "GET %s HTTP/1.1", target);
    snprintf(host, sizeof host, "localhost:%u", web.port);
    snprintf(token, sizeof token, "Authorization: Bearer %s\r\n", web.token);
    return ask(line, host, token);
}

static bool says(const char *text) {
    return strstr(web.answer, text) != NULL;
}

static void *nothing(void *arg) {
    return arg;
}

/* ---- start and end ---- */

TEST(start_and_stop) {
    char address[CC_VIEW_ADDRESS_MAX], path[64];
    struct stat status;
    CHECK_EQ(cc_view_stop(), EALREADY);
    CHECK_EQ(cc_view_address(address, sizeof address), ESRCH);
    CHECK_EQ(cc_view_address(NULL, 10), EINVAL);
    CHECK_EQ(cc_view_address(address, 0), EINVAL);
    CHECK_EQ(cc_view_start(&(CCViewConfig){.port = 80}), EINVAL);
    CHECK_EQ(cc_view_start(&(CCViewConfig){.path = ""}), EINVAL);
    CHECK_EQ(cc_view_start(&(CCViewConfig){.path = "x", .tcp = true}), EINVAL);
    CHECK_EQ(cc_view_start(&(CCViewConfig){.reserved = {1}}), EINVAL);
    CHECK_EQ(cc_view_start(&(CCViewConfig){.path = "/no/such/folder/x"}), ENOENT);
    char far[200];
    memset(far, 'x', sizeof far);
    far[sizeof far - 1] = '\0';
    CHECK_EQ(cc_view_start(&(CCViewConfig){.path = far}), EINVAL);
    int before = open_fds();
    snprintf(path, sizeof path, "/tmp/ccc-test-%d.sock", (int)getpid());
    unlink(path);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_view_start(&(CCViewConfig){.path = path}), 0);
        CHECK_EQ(cc_view_start(NULL), EALREADY);
        CHECK_EQ(cc_view_address(address, sizeof address), 0);
        CHECK(strcmp(address, path) == 0);
        CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
        CHECK_EQ(cc_view_stop(), 0);
        CHECK(stat(path, &status) != 0);
        check_open_fds(before);
    }
    CHECK_EQ(cc_view_start(&(CCViewConfig){.path = path}), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_view_address(address, sizeof address), ESRCH);
    CHECK(stat(path, &status) != 0);
    CHECK_EQ(cc_view_start(&(CCViewConfig){.tcp = true}), 0); /* the runtime is started again */
    CHECK_EQ(cc_view_stop(), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void *start_and_stop_here(void *arg) {
    CHECK_EQ(cc_view_start(&(CCViewConfig){.tcp = true}), 0);
    CHECK_EQ(cc_view_stop(), 0);
    return arg;
}

TEST_WORKERS(in_a_fiber) {
    CHECK_EQ(cc_run(start_and_stop_here, NULL, NULL), 0);
}

static void *start_simulated(void *arg) {
    CHECK_EQ(cc_view_start(&(CCViewConfig){.tcp = true}), ENOTSUP);
    return arg;
}

TEST(not_in_a_simulation) {
    CHECK_EQ(cc_sim_run(1, start_simulated, NULL, NULL), 0);
}

TEST(not_if_that_starts_a_simulation) {
    setenv("CC_SIM_SEED", "7", 1);
    (void)start_simulated(NULL);
    CHECK_EQ(cc_sim_seed(), 7);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    unsetenv("CC_SIM_SEED");
}

TEST(a_unix_socket) {
    char path[64];
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "/tmp/ccc-test-%d.sock", (int)getpid());
    unlink(path);
    CHECK_EQ(cc_view_start(&(CCViewConfig){.path = path}), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(to.sun_path, path);
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    put(fd, "GET /stats HTTP/1.0\r\n\r\n", 23); /* neither host nor token: the system knows the peer */
    CHECK_EQ(take(fd), 200);
    CHECK(says("\"workers\":["));
    CHECK_EQ(cc_view_start(&(CCViewConfig){.path = path}), EALREADY);
    CHECK_EQ(cc_view_stop(), 0);
}

/* A child of fork has no page, and does not keep the port of its parent's. */
TEST(a_forked_child_has_none) {
    int ends[2], back[2];
    char byte, address[CC_VIEW_ADDRESS_MAX];
    serve_tcp();
    CHECK(pipe(ends) == 0 && pipe(back) == 0);
    pid_t child = test_fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ends[1]);
        bool none = cc_view_address(address, sizeof address) == ESRCH;
        CHECK_EQ(write(back[1], "", 1), 1);                     /* the fork handlers have run */
        while (read(ends[0], &byte, 1) < 0 && errno == EINTR) { /* until the parent has checked */
        }
        _exit(none ? 0 : 1);
    }
    close(ends[0]);
    while (read(back[0], &byte, 1) != 1) CHECK_EQ(errno, EINTR);
    CHECK_EQ(get("/stats"), 200);
    CHECK_EQ(cc_view_stop(), 0);
    CHECK_EQ(dial(), -1);
    close(ends[1]);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

TEST(out_of_descriptors) {
    struct rlimit limit;
    CHECK_EQ(cc_run(nothing, NULL, NULL), 0);
    int before = open_fds();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (rlim_t n = 3; n < 64; n++) {
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){n, limit.rlim_max}), 0);
        int rc = cc_view_start(&(CCViewConfig){.tcp = true});
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
        if (rc == 0) break;
        CHECK_EQ(rc, EMFILE);
        check_open_fds(before);
    }
    CHECK_EQ(cc_view_stop(), 0);
    check_open_fds(before);
}

static void *wait_for_ever(void *arg) {
    CCChan *ch = cc_chan_create(1, 0);
    char c;
    MAY_FAIL(cc_chan_recv(ch, &c, 1));
    return arg;
}

/* Its threads are the runtime's own: they send nothing. */
TEST_DIES(it_hides_no_deadlock, "ccc: deadlock") {
#ifdef CC_TSAN
    fprintf(stderr, "ccc: deadlock\n"); /* not searched for */
    _exit(1);
#endif
    serve_tcp();
    CHECK_EQ(get("/stats"), 200);
    (void)cc_run(wait_for_ever, NULL, NULL);
}

/* ---- access control ---- */

TEST(wrong_hosts_and_tokens) {
    char right[40], line[200], other[120];
    serve_tcp();
    snprintf(right, sizeof right, "127.0.0.1:%u", web.port);
    snprintf(line, sizeof line, "GET /stats?t=%s HTTP/1.1", web.token);
    CHECK_EQ(ask(line, right, ""), 200);
    CHECK(!says("Set-Cookie")); /* every port of the machine would receive it */
    CHECK(!says("Access-Control"));
    CHECK(says("Cache-Control: no-store") && says("Content-Security-Policy: default-src 'none'"));
    CHECK_EQ(ask(line, NULL, ""), 403);
    CHECK_EQ(ask(line, "evil.example", ""), 403);
    CHECK_EQ(ask(line, "127.0.0.1", ""), 403);
    snprintf(other, sizeof other, "Host: %s\r\n", right);
    CHECK_EQ(ask(line, right, other), 403); /* which of them? */
    snprintf(other, sizeof other, "evil.example:%u", web.port);
    CHECK_EQ(ask(line, other, ""), 403);
    snprintf(other, sizeof other, "%s.evil.example", right);
    CHECK_EQ(ask(line, other, ""), 403);
    CHECK_EQ(ask("GET /stats HTTP/1.1", right, ""), 403);
    CHECK(!says("workers") && !says(web.token));
    CHECK_EQ(ask("GET /stats?t= HTTP/1.1", right, ""), 403);
    CHECK_EQ(ask("GET /stats?t=00000000000000000000000000000000 HTTP/1.1", right, ""), 403);
    snprintf(line, sizeof line, "GET /stats?t=%.31s HTTP/1.1", web.token);
    CHECK_EQ(ask(line, right, ""), 403);
    snprintf(other, sizeof other, "Authorization: Bearer %s\r\n", web.token);
    CHECK_EQ(ask("GET /stats HTTP/1.1", right, other), 200);
    snprintf(other, sizeof other, "Authorization: Bearer %s0\r\n", web.token);
    CHECK_EQ(ask("GET /stats HTTP/1.1", right, other), 403);
    snprintf(other, sizeof other, "Cookie: ccc_%u=%s\r\n", web.port, web.token);
    CHECK_EQ(ask("GET /stats HTTP/1.1", right, other), 403);
    CHECK_EQ(get("/stats"), 200);
    snprintf(other, sizeof other, "Authorization: Bearer %s\r\n", web.token);
    CHECK_EQ(ask("POST /stats HTTP/1.1", right, other), 405);
    CHECK(says("Allow: GET"));
    CHECK_EQ(ask("HEAD /stats HTTP/1.1", right, other), 405);
    CHECK_EQ(ask("OPTIONS /stats HTTP/1.1", right, other), 405);
    CHECK_EQ(ask("GET /nothing HTTP/1.1", right, other), 404);
    CHECK_EQ(ask("GET /../etc/passwd HTTP/1.1", right, other), 404);
    CHECK_EQ(cc_view_stop(), 0);
}

/* The page is the same for every program: the browser keeps the token elsewhere. */
TEST(the_page_itself_needs_no_token) {
    char right[40];
    serve_tcp();
    snprintf(right, sizeof right, "127.0.0.1:%u", web.port);
    int status = ask("GET / HTTP/1.1", right, "");
    CHECK(status == 200 || status == 503); /* a build without the page */
    CHECK(!says(web.token) && !says("Set-Cookie"));
    CHECK_EQ(ask("GET / HTTP/1.1", "evil.example", ""), 403);
    CHECK_EQ(ask("POST / HTTP/1.1", right, ""), 403);
    CHECK_EQ(cc_view_stop(), 0);
}

TEST(malformed_requests) {
    static const char *const bad[] = {"GET\r\n\r\n",
                                      "\r\n\r\n",
                                      "GET /stats\r\n\r\n",
                                      "GET stats HTTP/1.1\r\n\r\n",
                                      "GET http://127.0.0.1/ HTTP/1.1\r\n\r\n",
                                      "GET /stats HTTP/2.0\r\n\r\n",
                                      " \r\n\r\n"};
    serve_tcp();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) CHECK_EQ(ask_raw(bad[i], strlen(bad[i])), 400);
    CHECK_EQ(ask_raw("GET /\0 HTTP/1.1\r\n\r\n", 20), 400);
    char *giant = malloc(1 << 20);
    memset(giant, 'x', 1 << 20);
    CHECK_EQ(ask_raw(giant, 1 << 20), 431);
    free(giant);
    CHECK_EQ(get("/stats"), 200);
    CHECK_EQ(cc_view_stop(), 0);
}

/* The second of two requests is not answered: the answer to the first says that the connection ends. */
TEST(pipelining) {
    char text[1000];
    int n = 0;
    serve_tcp();
    for (int i = 0; i < 2; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "GET /scopes?t=%s HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
                      web.token, web.port);
    CHECK_EQ(ask_raw(text, (size_t)n), 200);
    CHECK(says("Connection: close"));
    CHECK(strstr(strstr(web.answer, "HTTP/1.1") + 1, "HTTP/1.1") == NULL);
    CHECK_EQ(cc_view_stop(), 0);
}

/* ---- limits ---- */

TEST(a_slow_client_is_dropped) {
    serve_tcp();
    cc__live_set_pace(50, SLOWLY_MS);
    int silent = dial(), slow = dial();
    put(slow, "GET /st", 7);
    CHECK_EQ(take(slow), 0);
    CHECK_EQ(take(silent), 0);
    cc__live_set_pace(SLOWLY_MS, SLOWLY_MS);
    CHECK_EQ(get("/stats"), 200);
    CHECK_EQ(cc_view_stop(), 0);
}

/* Idle connections are closed in favour of those with a request; a client that does not read its answer blocks no
 * other. */
TEST(a_hundred_connections) {
    enum { MANY = 100 };
    int fds[MANY];
    serve_tcp();
    for (int i = 0; i < MANY; i++) fds[i] = dial();
    CHECK_EQ(get("/stats"), 200);
    for (int i = 0; i < MANY; i++) {
        char text[200];
        int n = snprintf(text, sizeof text, "GET /dump.json?t=%s HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", web.token,
                         web.port);
        if (fds[i] >= 0) put(fds[i], text, (size_t)n);
    }
    CHECK_EQ(get("/metrics"), 200);
    for (int i = 0; i < MANY; i++)
        if (fds[i] >= 0) close(fds[i]);
    CHECK_EQ(get("/stats"), 200);
    CHECK_EQ(cc_view_stop(), 0);
}

/* A report that is written to a pipe that nobody reads delays the page for a while, and not for ever. */
TEST(a_report_that_does_not_end) {
    serve_tcp();
    CHECK_EQ(get("/groups"), 200);
    cc__live_set_pace(SLOWLY_MS, 50);
    cc__dump_begin();
    CHECK_EQ(get("/groups"), 503);
    cc__dump_end();
    cc__live_set_pace(SLOWLY_MS, SLOWLY_MS);
    CHECK_EQ(get("/groups"), 200);
    CHECK_EQ(cc_view_stop(), 0);
}

/* ---- what it shows ---- */

static atomic_bool over;
static atomic_int spinning;

static void *spin(void *arg) {
    cc_fiber_set_name("spinner");
    atomic_fetch_add(&spinning, 1);
    while (!atomic_load(&over)) {
    }
    return arg;
}

/* All workers compute, and another fiber never gets its turn. */
TEST(all_workers_stuck) {
    enum { WORKERS = 2 };
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = WORKERS, .max_workers = WORKERS}), 0);
    serve_tcp();
    CCTask tasks[WORKERS + 1];
    for (int i = 0; i < WORKERS; i++) CHECK_EQ(cc_spawn(&tasks[i], spin, NULL, NULL), 0);
    while (atomic_load(&spinning) < WORKERS) usleep(1000);
    CHECK_EQ(cc_spawn(&tasks[WORKERS], nothing, NULL, &(CCSpawnOptions){.name = "waits"}), 0);
    CHECK_EQ(get("/stats"), 200);
    CHECK(says("\"name\":\"spinner\""));
    CHECK_EQ(get("/groups"), 200);
    CHECK(says("\"state\":\"runs\"") && says("\"has not run yet\""));
    do CHECK_EQ(get("/wrong"), 200);
    while (!says("\"starved\"") || !says("\"stuck\"")); /* after a second */
    CHECK(says("\"name\":\"spinner\""));
    CHECK_EQ(get("/metrics"), 200);
    CHECK(says("ccc_fibers{state=\"ready\"} 1\n") && says("\n# EOF\n"));
    CHECK_EQ(get("/dump"), 200);
    CHECK(says("ccc: end of dump"));
    atomic_store(&over, true);
    for (int i = 0; i <= WORKERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    CHECK_EQ(dial(), -1);
}

static CCMutex lock;

static void *want(void *arg) {
    cc_mutex_lock_uncancellable(&lock);
    cc_mutex_unlock(&lock);
    return arg;
}

static void *hold(void *gate) {
    CCTask waiter;
    CCEvent *go_on = gate;
    cc_mutex_lock_uncancellable(&lock);
    CHECK_EQ(cc_spawn(&waiter, want, NULL, &(CCSpawnOptions){.name = "waiter"}), 0);
    CHECK_EQ(cc_event_wait(go_on), 0);
    cc_mutex_unlock(&lock);
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    return NULL;
}

/* From one fiber to the other and back. */
TEST_WORKERS(the_wait_graph) {
    CCEvent go_on = {0};
    CCTask holder;
    char id[24], target[60];
    serve_tcp();
    CHECK_EQ(cc_spawn(&holder, hold, &go_on, &(CCSpawnOptions){.name = "holder"}), 0);
    do CHECK_EQ(get("/groups"), 200);
    while (!says("held by fiber"));
    CHECK(says("\"name\":\"waiter\"") && says("\"reason\":\"mutex\""));
    CHECK_EQ(sscanf(strstr(web.answer, "\"for_fiber\":\""), "\"for_fiber\":\"%20[0-9.]", id), 1);
    snprintf(target, sizeof target, "/fiber?id=%s", id);
    CHECK_EQ(get(target), 200);
    CHECK(says("\"name\":\"holder\"") && says("\"waited_for_by_total\":1") && says("\"name\":\"waiter\""));
    snprintf(target, sizeof target, "/fibers?like=%s", id);
    CHECK_EQ(get(target), 200);
    CHECK(says("\"count\":1"));
    CHECK_EQ(get("/fiber?id=99999.1"), 404);
    CHECK_EQ(get("/fiber?id=x"), 404);
    CHECK_EQ(get("/fiber"), 404);
    cc_event_set(&go_on);
    CHECK_EQ(cc_task_join(&holder, NULL), 0);
    CHECK_EQ(get(target), 404);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

struct consumer {
    CCChan *own;
    CCEvent *stop;
};

static void *consume(void *arg) {
    struct consumer *c = arg;
    for (int v, status;;) CC_MATCH(CC_RECV(c->own, &v, &status), CC_EVENT_CASE(c->stop)) {
        case 0:
            break;
        default:
            return NULL;
        }
}

static void *crossed(void *arg) {
    CCMutex **locks = arg;
    cc_mutex_lock_uncancellable(locks[0]);
    atomic_fetch_add(&spinning, 1);
    while (atomic_load(&spinning) < 2) cc_yield();
    if (cc_mutex_lock(locks[1]) == 0) cc_mutex_unlock(locks[1]);
    cc_mutex_unlock(locks[0]);
    return NULL;
}

/* Fibers that wait for their own channel, and for an event that all of them share, do not wait for each other. A cycle
 * of locks is reported, also beside them. */
TEST_WORKERS(a_cycle_is_one) {
    CCEvent stop = {0};
    CCTask tasks[2];
    CCNursery *crossing = cc_nursery_create(NULL);
    CCMutex first = {0}, second = {0};
    CCMutex *locks[2][2] = {{&first, &second}, {&second, &first}};
    struct consumer consumers[2];
    serve_tcp();
    for (int i = 0; i < 2; i++) {
        consumers[i] = (struct consumer){cc_chan_create(sizeof(int), 0), &stop};
        CHECK_EQ(cc_spawn(&tasks[i], consume, &consumers[i], NULL), 0);
    }
    do CHECK_EQ(get("/groups"), 200);
    while (!says("\"count\":2") || !says("\"reason\":\"select\"")); /* both of them wait */
    CHECK_EQ(get("/wrong"), 200);
    CHECK(!says("\"cycle\""));
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_nursery_spawn(crossing, crossed, locks[i]), 0);
    do CHECK_EQ(get("/wrong"), 200);
    while (!says("\"cycle\""));
    CHECK(says("a cycle of 2 waits"));
    CHECK_EQ(cc_nursery_cancel(crossing), 0);
    MAY_FAIL(cc_nursery_wait(crossing));
    CHECK_EQ(cc_nursery_free(crossing), 0);
    cc_event_set(&stop);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
        cc_chan_free(consumers[i].own);
    }
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

struct ends {
    CCChan *ch;
    int fd;
};

static void *listens(void *arg) {
    struct ends *e = arg;
    int v, status[2];
    CC_MATCH(CC_RECV(e->ch, &v, &status[0]), CC_READABLE_CASE(e->fd, &status[1])) {
    default:
        return NULL;
    }
}

/* A wait that includes a descriptor is no deadlock: its peer may act at any time. */
TEST(waits_without_a_partner) {
    int pair[2];
    CCTask task;
    unsigned long long ns = 0;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    struct ends ends = {cc_chan_create(sizeof(int), 0), pair[0]};
    serve_tcp();
    CHECK_EQ(cc_spawn(&task, listens, &ends, &(CCSpawnOptions){.name = "listener"}), 0);
    while (ns < 1100000000) { /* after a second it would be */
        CHECK_EQ(get("/groups"), 200);
        const char *at = strstr(web.answer, "\"ns_min\":");
        if (at != NULL) CHECK_EQ(sscanf(at, "\"ns_min\":%llu", &ns), 1);
    }
    CHECK(says("\"reason\":\"select\""));
    CHECK_EQ(get("/wrong"), 200);
    CHECK(!says("\"alone\""));
    CHECK_EQ(cc_chan_close(ends.ch), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(ends.ch);
    close(pair[0]);
    close(pair[1]);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* ---- jobs ---- */

TEST(traces_and_profiles) {
    serve_tcp();
    CHECK_EQ(get("/profile?kind=fibers"), 200);
    CHECK_EQ(get("/profile?kind=none"), 400);
    CHECK_EQ(get("/trace?format=none"), 400);
    CHECK_EQ(get("/profile?kind=block&seconds=0"), 200); /* it records for itself */
    CHECK_EQ(get("/profile?kind=contention&seconds=0"), 200);
    CHECK_EQ(get("/trace?format=go&seconds=0"), 200);
    CHECK(says("go 1.22 trace"));
    CHECK_EQ(get("/trace?format=text&seconds=0"), 200);
    CHECK_EQ(get("/profile?kind=cpu&seconds=0"), 200);
    CHECK_EQ(cc_record_stop(), EALREADY); /* it is off again */
    CHECK_EQ(cc_view_stop(), 0);
}

/* A job ends early when the runtime does; others are served meanwhile, and a second job is refused. */
TEST(a_shutdown_ends_a_job) {
    char text[200];
    serve_tcp();
    int fd = dial();
    put(fd, text,
        (size_t)snprintf(text, sizeof text,
                         "GET /profile?kind=cpu&seconds=30&t=%s HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", web.token,
                         web.port));
    do CHECK_EQ(get("/stats"), 200);
    while (get("/trace?seconds=0") != 503);
    uint64_t begin = cc_now_ns();
    CHECK_EQ(cc_runtime_shutdown(100000), 0);
    CHECK(cc_now_ns() - begin < UINT64_C(25000000000));
    close(fd);
}
