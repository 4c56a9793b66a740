/* serve.c - servers: limits, failures, panics, an orderly end; more connections than descriptors. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net.h"

static CCListener *listener;

static void listen_anywhere(void) {
    CHECK_EQ(cc_listen(&listener, "tcp://127.0.0.1:0", NULL), 0);
}

static CCServeStats stats(void) {
    CCServeStats s;
    CHECK_EQ(cc_serve_stats(listener, &s), 0);
    return s;
}

static int echo(CCConn *conn, void *arg) {
    char bytes[256];
    size_t n;
    (void)arg;
    int error;
    while ((error = cc_read(conn, bytes, sizeof bytes, &n)) == 0 && n > 0)
        if ((error = cc_write(conn, bytes, n, NULL)) != 0) break;
    return error;
}

static void ask(CCConn *c) {
    char byte = 0;
    CHECK_EQ(cc_write(c, "x", 1, NULL), 0);
    CHECK_EQ(cc_read_full(c, &byte, 1, NULL), 0);
    CHECK_EQ(byte, 'x');
}

static void *serves(void *arg) {
    CHECK_EQ(cc_listen(&listener, "tcp://127.0.0.1:0?reuseport", NULL), 0);
    int held = hold_port(listener);
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, echo, NULL, NULL), 0);
        CCConn *c[20];
        for (int i = 0; i < 20; i++) c[i] = dial(listener);
        for (int i = 0; i < 20; i++) ask(c[i]);
        CHECK_EQ(stats().open, 20);
        for (int i = 0; i < 20; i++) cc_close(c[i]);
        while (stats().open > 0) cc_yield();
        CHECK(stats().accepted == 20 && stats().most_open == 20 && stats().failed == 0);
        cc_nursery_cancel(n);
    }
    CCAddr addr;
    CCConn *c;
    CHECK_EQ(cc_listener_addr(listener, &addr), 0);
    CHECK_EQ(cc_dial_addr(&c, &addr, NULL, CC_FOREVER), ECONNREFUSED); /* it has stopped listening */
    CHECK_EQ(cc_accept(listener, &c), EBADF);
    cc_listener_close(listener);
    CHECK_EQ(close(held), 0);
    return arg;
}

TEST_WORKERS(a_server_until_it_is_cancelled) {
    CHECK_EQ(cc_run(serves, NULL, NULL), 0);
}

/* ---- a socket that already listens ---- */

/* A process that replaces another one gets its socket: what was pending is served, and nobody is refused. */
static void hand_over(const char *where) {
    CCListener *first;
    CCConn *pending, *later;
    CCAddr addr, same;
    CHECK_EQ(cc_listen(&first, where, NULL), 0);
    CHECK_EQ(cc_listener_addr(first, &addr), 0);
    pending = dial(first);
    int fd = dup(cc_listener_fd(first));
    cc_listener_close(first);
    CHECK_EQ(cc_listener_from_fd(&listener, fd, NULL), 0);
    CHECK_EQ(cc_listener_addr(listener, &same), 0);
    CHECK(cc_addr_compare(&addr, &same) == 0 && cc_listener_fd(listener) == fd);
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, echo, NULL, NULL), 0);
        ask(pending);
        later = dial(listener);
        ask(later);
        cc_close(pending);
        cc_close(later);
        while (stats().open > 0) cc_yield();
        cc_nursery_cancel(n);
    }
    CHECK_EQ(fcntl(fd, F_GETFD), -1); /* closed with the listener */
    cc_listener_close(listener);
}

static void *handed_over(void *arg) {
    int fds[2], udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
                idle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CCListener *none = (CCListener *)arg;
    char where[64];
    hand_over("tcp://127.0.0.1:0");
    snprintf(where, sizeof where, "unix:@ccc-handed-over-%d", (int)getpid());
    hand_over(where);
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(cc_listener_from_fd(&none, fds[0], NULL), ENOTSOCK);
    CHECK(none == NULL);
    CHECK_EQ(cc_listener_from_fd(&none, idle, NULL), EINVAL);
    CHECK_EQ(cc_listener_from_fd(&none, udp, NULL), EINVAL);
    CHECK_EQ(cc_listener_from_fd(&none, -1, NULL), EBADF);
    CHECK_EQ(cc_listener_from_fd(NULL, idle, NULL), EINVAL);
    CHECK_EQ(cc_listener_from_fd(&none, idle, &(CCConnOptions){.reserved = {1}}), EINVAL);
    CHECK_EQ(close(fds[0]) + close(fds[1]) + close(idle) + close(udp), 0); /* the caller keeps them */
    return arg;
}

TEST_WORKERS(a_socket_that_already_listens) {
    CHECK_EQ(cc_run(handed_over, NULL, NULL), 0);
}

static void *limited(void *arg) {
    listen_anywhere();
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, echo, NULL, &(CCServeOptions){.max_conns = 3}), 0);
        CCConn *c[6];
        for (int i = 0; i < 6; i++) c[i] = dial(listener); /* the system keeps those that are not accepted */
        for (int i = 0; i < 3; i++) ask(c[i]);
        char byte;
        size_t got;
        CHECK_EQ(cc_write(c[4], "x", 1, NULL), 0);
        CHECK_EQ(cc_read_until(c[4], &byte, 1, &got, cc_after_ms(5)), ETIMEDOUT);
        for (int i = 0; i < 3; i++) cc_close(c[i]);
        CHECK_EQ(cc_read_full(c[4], &byte, 1, NULL), 0); /* there is room now */
        for (int i = 3; i < 6; i++) ask(c[i]);
        CHECK_EQ(stats().most_open, 3);
        for (int i = 3; i < 6; i++) cc_close(c[i]);
        while (stats().open > 0) cc_yield();
        cc_nursery_cancel(n);
    }
    CHECK_EQ(stats().accepted, 6);
    cc_listener_close(listener);
    return arg;
}

TEST_WORKERS(no_more_than_the_limit) {
    CHECK_EQ(cc_run(limited, NULL, NULL), 0);
}

static _Atomic int failures, last_code;

static void note(CCConn *conn, int code, void *arg) {
    CCAddr peer;
    CHECK_EQ(cc_conn_peer(conn, &peer), 0);
    CHECK(arg == &failures);
    last_code = code;
    failures++;
}

static int fails(CCConn *conn, void *arg) {
    char what;
    size_t n;
    (void)arg;
    if (cc_read(conn, &what, 1, &n) != 0 || n == 0) return EIO;
    if (what == 'p') cc_panic("on purpose");
    if (what == 'c') cc_close(conn);
    if (what == 'a') cc_abort(conn);
    return what == 'f' ? EPROTO : 0;
}

static void *failing(void *arg) {
    listen_anywhere();
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, fails, &failures, &(CCServeOptions){.failed = note}), 0);
        static const char what[] = "fpcaf";
        for (int i = 0; i < 5; i++) {
            CCConn *c = dial(listener);
            char byte;
            size_t got;
            CHECK_EQ(cc_write(c, &what[i], 1, NULL), 0);
            int error = cc_read(c, &byte, 1, &got); /* whatever happened, it is closed */
            CHECK(what[i] == 'a' ? error == ECONNRESET : error == 0 && got == 0);
            cc_close(c);
            while (stats().open > 0) cc_yield();
            if (what[i] == 'p') CHECK_EQ(last_code, ENOTRECOVERABLE);
            if (what[i] == 'f') CHECK_EQ(last_code, EPROTO);
        }
        CHECK(stats().failed == 3 && stats().panicked == 1 && failures == 3);
        cc_nursery_cancel(n);
    }
    cc_listener_close(listener);
    return arg;
}

/* At the end of a server, handlers that wait for a next request return ECANCELED: this is not a failure. For a handler
 * that was not cancelled it is one. */
static int passes_on(CCConn *conn, void *arg) {
    char byte;
    size_t n;
    (void)arg;
    int error = cc_read(conn, &byte, 1, &n);
    return error == 0 && n > 0 ? ECANCELED : error;
}

static void *cancelled_handlers(void *arg) {
    enum { IDLE = 5 };
    CCConn *idle[IDLE];
    listen_anywhere();
    failures = 0;
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, passes_on, &failures, &(CCServeOptions){.failed = note}), 0);
        CCConn *c = dial(listener);
        CHECK_EQ(cc_write(c, "x", 1, NULL), 0);
        while (stats().accepted < 1 || stats().open > 0) cc_yield();
        CHECK(stats().failed == 1 && failures == 1 && last_code == ECANCELED);
        cc_close(c);
        for (int i = 0; i < IDLE; i++) idle[i] = dial(listener);
        while (stats().open < IDLE) cc_yield();
        cc_nursery_cancel(n);
    }
    CHECK(stats().failed == 1 && stats().cancelled == IDLE && failures == 1);
    for (int i = 0; i < IDLE; i++) cc_close(idle[i]);
    cc_listener_close(listener);
    return arg;
}

TEST_WORKERS(a_cancelled_handler_has_not_failed) {
    CHECK_EQ(cc_run(cancelled_handlers, NULL, NULL), 0);
}

/* The callback for failures panics: connections are closed, and their places are free, all the same. */
static void panic_on_failure(CCConn *conn, int code, void *arg) {
    (void)conn, (void)code, (void)arg;
    cc_panic("on purpose, too");
}

static void *failing_twice(void *arg) {
    listen_anywhere();
    CC_NURSERY(n) {
        CCServeOptions options = {.failed = panic_on_failure, .max_conns = 1};
        CHECK_EQ(cc_serve(n, listener, fails, NULL, &options), 0);
        static const char what[] = "fpf";
        for (int i = 0; i < 3; i++) {
            CCConn *c = dial(listener);
            char byte;
            size_t got;
            CHECK_EQ(cc_write(c, &what[i], 1, NULL), 0);
            CHECK_EQ(cc_read(c, &byte, 1, &got), 0);
            CHECK_EQ(got, 0);
            cc_close(c);
        }
        while (stats().open > 0) cc_yield();
        CHECK(stats().failed == 3 && stats().panicked == 1);
        cc_nursery_cancel(n);
    }
    cc_listener_close(listener);
    return arg;
}

TEST_WORKERS(a_panic_in_the_failure_callback) {
    CHECK_EQ(cc_run(failing_twice, NULL, NULL), 0);
}

TEST_WORKERS(failures_and_panics_do_not_end_it) {
    CHECK_EQ(cc_run(failing, NULL, NULL), 0);
}

/* ---- the end ---- */

static int finish_line(CCConn *conn, void *arg) {
    char byte;
    size_t n;
    _Atomic int *outcomes = arg;
    int error = cc_read(conn, &byte, 1, &n);
    if (error == 0) error = cc_read(conn, &byte, 1, &n); /* waits for its second byte */
    if (error == 0 && n == 1) error = cc_write(conn, "done", 4, NULL);
    outcomes[error == ECANCELED]++;
    return error;
}

static void *graceful(void *arg) {
    static _Atomic int outcomes[2];
    listen_anywhere();
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, finish_line, outcomes, &(CCServeOptions){.grace_ms = 60000}), 0);
        CCConn *c = dial(listener);
        CHECK_EQ(cc_write(c, "1", 1, NULL), 0);
        while (stats().open < 1) cc_yield();
        await_waiters(1);
        cc_nursery_cancel(n);
        CC_SHIELD { /* the handler goes on */
            char text[4];
            CHECK_EQ(cc_write(c, "2", 1, NULL), 0);
            CHECK_EQ(cc_read_full(c, text, 4, NULL), 0);
        }
        cc_close(c);
    }
    CHECK(outcomes[0] == 1 && outcomes[1] == 0 && stats().cancelled == 0);
    cc_listener_close(listener);

    listen_anywhere();
    CCConn *c = NULL;
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, finish_line, outcomes, &(CCServeOptions){.grace_ms = 5}), 0);
        c = dial(listener);
        CHECK_EQ(cc_write(c, "1", 1, NULL), 0);
        while (stats().open < 1) cc_yield();
        cc_nursery_cancel(n); /* it does not finish in time */
    }
    cc_close(c);
    CHECK(outcomes[1] == 1 && stats().cancelled == 1 && stats().open == 0);
    cc_listener_close(listener);
    return arg;
}

TEST_WORKERS(an_orderly_end) {
    CHECK_EQ(cc_run(graceful, NULL, NULL), 0);
}

/* Requests of a byte, each answered behind a shield. 'w': when `gate` is set. */
static CCEvent gate;
static _Atomic int answering;

static int answer(CCConn *conn, char request) {
    CCError reason;
    answering++;
    int error = request == 'w' ? cc_event_wait(&gate) : 0;
    answering--;
    char reply = cc_cancel_reason(&reason) == 0 ? 'l' : 'n'; /* the last one, or there may be a next */
    return error != 0 ? error : cc_write(conn, &reply, 1, NULL);
}

static int answer_all(CCConn *conn, void *arg) {
    char request;
    size_t n;
    (void)arg;
    int error;
    while ((error = cc_read(conn, &request, 1, &n)) == 0 && n > 0) {
        CC_SHIELD error = answer(conn, request);
        if (error != 0) break;
    }
    return error;
}

static void request(CCConn *c, char what, char expected) {
    char reply = 0;
    CHECK_EQ(cc_write(c, &what, 1, NULL), 0);
    if (expected == 0) return;
    CHECK_EQ(cc_read_full(c, &reply, 1, NULL), 0);
    CHECK_EQ(reply, expected);
}

static void *drains(void *arg) {
    CCServeOptions options = {.grace_ms = 60000, .grace_for_shields = true};
    char byte;
    size_t got;
    listen_anywhere();
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, answer_all, NULL, &options), 0);
        CCConn *idle = dial(listener), *fresh = dial(listener), *busy = dial(listener);
        request(idle, 'x', 'n');
        request(busy, 'w', 0);
        while (stats().open < 3 || answering < 1) cc_yield();
        cc_nursery_cancel(n);
        CC_SHIELD {
            CHECK_EQ(cc_read(idle, &byte, 1, &got), 0);
            CHECK_EQ(got, 0);
            CHECK_EQ(cc_read(fresh, &byte, 1, &got), 0);
            CHECK_EQ(got, 0);
            CHECK_EQ(answering, 1);
            CHECK_EQ(cc_event_set(&gate), 0);
            CHECK_EQ(cc_read_full(busy, &byte, 1, NULL), 0);
            CHECK_EQ(byte, 'l');
            CHECK_EQ(cc_read(busy, &byte, 1, &got), 0); /* there is no next one */
            CHECK_EQ(got, 0);
        }
        cc_close(idle);
        cc_close(fresh);
        cc_close(busy);
    }
    CHECK_EQ(stats().cancelled, 0);
    cc_listener_close(listener);

    CHECK_EQ(cc_event_reset(&gate), 0);
    options.grace_ms = 5;
    listen_anywhere();
    CCConn *busy = NULL, *idle = NULL;
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, answer_all, NULL, &options), 0);
        busy = dial(listener);
        idle = dial(listener);
        request(busy, 'w', 0);
        while (stats().open < 2 || answering < 1) cc_yield();
        cc_nursery_cancel(n); /* the shield does not hold for ever */
    }
    CHECK(stats().cancelled >= 1 && stats().open == 0); /* the other one, too, if it had no turn in that time */
    cc_close(busy);
    cc_close(idle);
    cc_listener_close(listener);
    return arg;
}

TEST_WORKERS(an_orderly_end_of_idle_connections) {
    CHECK_EQ(cc_run(drains, NULL, NULL), 0);
}

CC_TASK(close_later, { CCListener *l; }) {
    CCConn *c = dial(self->l);
    ask(c);
    cc_close(c);
    while (stats().open > 0) cc_yield();
    cc_listener_close(self->l);
    return NULL;
}

static void *here(void *arg) {
    listen_anywhere();
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, close_later, .l = listener), 0);
        CHECK_EQ(cc_serve(NULL, listener, echo, NULL, NULL), 0); /* until the listener is closed */
    }
    CHECK_EQ(cc_serve(NULL, NULL, echo, NULL, NULL), EINVAL);
    return arg;
}

TEST_WORKERS(a_server_in_the_caller) {
    CHECK_EQ(cc_run(here, NULL, NULL), 0);
}

/* A handler has ended, and its fiber not yet: it is not one that was cancelled. */
static CCLocalKey last_key;
static atomic_bool server_cancelled;

static void end_late(void *value) {
    (void)value;
    while (!atomic_load(&server_cancelled)) cc_yield();
    for (int i = 0; i < 20; i++) cc_yield(); /* the server checks which handlers are left */
}

static int echo_one(CCConn *conn, void *arg) {
    char byte;
    CHECK_EQ(cc_local_set(last_key, &last_key), 0);
    int error = cc_read_full(conn, &byte, 1, NULL);
    return error != 0 ? error : cc_write(conn, arg, 1, NULL);
}

static void *ends_late(void *arg) {
    CHECK_EQ(cc_local_key_create(&last_key, end_late), 0);
    listen_anywhere();
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, echo_one, "x", NULL), 0);
        CCConn *c = dial(listener);
        ask(c);
        cc_close(c);
        while (stats().open > 0) cc_yield();
        cc_nursery_cancel(n);
        atomic_store(&server_cancelled, true);
    }
    CHECK(stats().accepted == 1 && stats().cancelled == 0);
    CHECK_EQ(cc_listener_fd(listener), -1); /* the server has closed it, and its number may be another one's */
    cc_listener_close(listener);
    CHECK_EQ(cc_local_key_delete(last_key), 0);
    return arg;
}

TEST_WORKERS(handlers_that_have_ended_are_not_cancelled) {
    CHECK_EQ(cc_run(ends_late, NULL, NULL), 0);
}

/* A handler that waits for its peer has the only slot: the server waits for it, and still ends. */
CC_TASK(close_when_full, { CCListener *l; }) {
    CCConn *c = dial(self->l);
    char byte;
    size_t n;
    ask(c);
    for (int i = 0; i < 100; i++) cc_yield();
    cc_listener_close(self->l);
    CHECK_EQ(cc_read(c, &byte, 1, &n), 0); /* the handler was cancelled */
    CHECK_EQ(n, 0);
    cc_close(c);
    return NULL;
}

static void *full(void *arg) {
    for (int i = 0; i < 20; i++) {
        listen_anywhere();
        CC_NURSERY(n) {
            CHECK_EQ(CC_GO_IN(n, close_when_full, .l = listener), 0);
            CHECK_EQ(cc_serve(NULL, listener, echo, NULL, &(CCServeOptions){.max_conns = 1}), 0);
        }
    }
    return arg;
}

TEST_WORKERS(a_listener_that_is_closed_while_all_places_are_taken) {
    CHECK_EQ(cc_run(full, NULL, NULL), 0);
}

/* ---- more connections than descriptors ---- */

enum { PROCESSES = 2 };

/* For each process. In the long profile 20,000 connections are served with a thousand descriptors. */
static int client_count(void) {
    return test_long() ? 10000 : 30;
}

/* Another process, with its own descriptors: every connection gets an answer or an end of file. */
static int clients(unsigned port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rlimit limit;
    int count = client_count(), *fds = calloc((size_t)count, sizeof *fds);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    address.sin_port = htons((uint16_t)port);
    for (int i = 0; i < count; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (fds[i] < 0 || connect(fds[i], (struct sockaddr *)&address, sizeof address) != 0) return 1;
        (void)!send(fds[i], "x", 1, MSG_NOSIGNAL);
    }
    for (int i = 0; i < count; i++) {
        char byte;
        (void)!recv(fds[i], &byte, 1, 0); /* the end, an error or an answer: but not silence */
    }
    for (int i = 0; i < count; i++) close(fds[i]); /* nobody made room for another before */
    free(fds);
    return 0;
}

struct starvation {
    bool at_once; /* no descriptor is left before the server has its first turn */
    int ends[2];  /* of a pipe: the port */
    pid_t children[PROCESSES];
};

/* Every number below the limit is taken, and will be: the runtime has no file of the system open to close soon. */
static bool all_taken(rlim_t limit) {
    char path[32], name[8];
    for (rlim_t fd = 3; fd < limit; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", (int)fd);
        ssize_t n = readlink(path, name, sizeof name);
        if (n < 0 || strncmp(name, "/proc/", 6) == 0 || strncmp(name, "/sys/", 5) == 0) return false;
    }
    return true;
}

static void *starved(void *arg) {
    const struct starvation *s = arg;
    struct rlimit few;
    int fd = dup(0), status;
    CCAddr addr;
    close(fd);
    listen_anywhere();
    CHECK_EQ(cc_listener_addr(listener, &addr), 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &few), 0);
    few.rlim_cur = test_long() ? 1000 : (rlim_t)fd + 24;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, echo, NULL, &(CCServeOptions){.backoff_ms = 20}), 0);
        int eaten[1000], count = 0;
        for (; s->at_once && !all_taken(few.rlim_cur); usleep(1000))
            while (count < 1000 && (eaten[count] = dup(0)) >= 0) count++;
        uint16_t port = addr.port;
        for (int i = 0; i < PROCESSES; i++) CHECK_EQ(write(s->ends[1], &port, sizeof port), sizeof port);
        for (int i = 0; i < PROCESSES; i++) {
            while (waitpid(s->children[i], &status, WNOHANG) == 0) CHECK_EQ(cc_sleep_ms(5), 0);
            CHECK(WIFEXITED(status));
            CHECK_EQ(WEXITSTATUS(status), 0);
        }
        while (stats().open > 0) cc_yield();
        CHECK(stats().pauses > 0 && stats().shed > 0 && (stats().accepted > 0) == !s->at_once);
        CHECK_EQ(stats().accepted + stats().shed, (uint64_t)(PROCESSES * client_count()));
        while (count > 0) close(eaten[--count]);
        CCConn *c = dial(listener); /* as if nothing had happened */
        ask(c);
        cc_close(c);
        cc_nursery_cancel(n);
    }
    cc_listener_close(listener);
    return NULL;
}

static void starve(bool at_once) {
    struct starvation s = {.at_once = at_once};
    CHECK_EQ(pipe(s.ends), 0);
    for (int i = 0; i < PROCESSES; i++) {
        s.children[i] = fork(); /* before there is a runtime */
        CHECK(s.children[i] >= 0);
        if (s.children[i] == 0) {
            uint16_t port = 0;
            close(s.ends[1]);
            _exit(read(s.ends[0], &port, sizeof port) == sizeof port ? clients(port) : 3);
        }
    }
    CHECK_EQ(cc_run(starved, &s, NULL), 0);
}

TEST_WORKERS(more_connections_than_descriptors, .timeout = 300) {
    starve(false);
}

TEST_WORKERS(no_descriptor_from_the_start, .timeout = 300) {
    if (test_long()) SKIP("the same as in the short profile");
    starve(true);
}
