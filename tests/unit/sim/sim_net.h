/* sim_net.h - shared by the tests of the simulated network: networks, a trace, an echo server and its clients. */
#ifndef CCC_TESTS_SIM_NET_H
#define CCC_TESTS_SIM_NET_H

#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* A network without faults, and fast. */
static inline CCSimNet calm_net(void) {
    CCSimNet net = {.latency_min_us = 100, .latency_max_us = 1000, .window = 4096};
    return net;
}

static inline void use_net(CCSimNet net) {
    CHECK_EQ(cc_sim_net_set(&net), 0);
}

static inline CCSimStats net_stats(void) {
    CCSimStats s;
    CHECK_EQ(cc_sim_stats(&s), 0);
    return s;
}

/* ---- what happened, in order ---- */

static struct {
    char text[1 << 16];
    atomic_size_t length; /* a line's place is reserved, then written: fibers do not share bytes */
} trace;

__attribute__((format(printf, 1, 2))) static inline void note(const char *format, ...) {
    char line[160];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    size_t at = atomic_fetch_add(&trace.length, (size_t)n);
    CHECK(at + (size_t)n < sizeof trace.text);
    memcpy(trace.text + at, line, (size_t)n);
}

static inline void clear_trace(void) {
    memset(trace.text, 0, sizeof trace.text);
    atomic_store(&trace.length, 0);
}

/* Runs it twice with each seed, and compares. */
static inline void same_twice(CCTaskFn fn, uint64_t seeds) {
    static char first[sizeof trace.text];
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        clear_trace();
        CHECK_EQ(cc_sim_run(seed, fn, NULL, NULL), 0);
        memcpy(first, trace.text, sizeof first);
        clear_trace();
        CHECK_EQ(cc_sim_run(seed, fn, NULL, NULL), 0);
        if (strcmp(first, trace.text) != 0)
            printf("seed %llu\n--- first\n%s--- second\n%s", (unsigned long long)seed, first, trace.text);
        CHECK(strcmp(first, trace.text) == 0);
        CHECK(trace.text[0] != 0);
    }
}

/* ---- echo ---- */

static inline int echo(CCConn *conn, void *arg) {
    char buffer[512];
    size_t n;
    (void)arg;
    for (;;) {
        int error = cc_read(conn, buffer, sizeof buffer, &n);
        if (error != 0 || n == 0) return error;
        error = cc_write(conn, buffer, n, NULL);
        if (error != 0) return error;
    }
}

/* Sends bytes that nobody else sends, reads them again, and ends in order. */
static inline int exchange(CCConn *conn, unsigned number, size_t size) {
    unsigned char out[256], in[256];
    size_t n, most = sizeof out;
    CCSimNet net;
    CHECK_EQ(cc_sim_net(&net), 0);
    if (net.window < most) most = net.window; /* an echo of more would fill both windows */
    for (size_t done = 0; done < size;) {
        size_t part = size - done < most ? size - done : most;
        for (size_t i = 0; i < part; i++) out[i] = (unsigned char)((done + i) * 7 + number * 31);
        int error = cc_write_until(conn, out, part, NULL, cc_after_ms(60000));
        if (error == 0) error = cc_read_full_until(conn, in, part, &n, cc_after_ms(60000));
        if (error != 0) return error;
        CHECK(memcmp(in, out, part) == 0); /* nothing lost, nothing invented */
        done += part;
    }
    int error = cc_shutdown(conn, CC_SHUT_WRITE);
    if (error == 0) error = cc_read_until(conn, in, sizeof in, &n, cc_after_ms(60000));
    if (error == 0) CHECK_EQ(n, 0);
    return error;
}

struct client {
    char where[48];
    unsigned number;
    size_t size;
    int error;
};

static inline void *run_client(void *arg) {
    struct client *c = arg;
    CCConn *conn;
    c->error = cc_dial_until(&conn, c->where, NULL, cc_after_ms(200000));
    if (c->error == 0) {
        c->error = exchange(conn, c->number, c->size);
        cc_close(conn);
    }
    note("client %u: %d at %llu\n", c->number, c->error, (unsigned long long)cc_now_ns());
    return NULL;
}

enum { CLIENTS = 4 };

static inline CCListener *listen_at(const char *where) {
    CCListener *l;
    int error;
    do error = cc_listen(&l, where, NULL);
    while (error == EMFILE); /* a fault that a seed may choose */
    CHECK_EQ(error, 0);
    return l;
}

/* A server and its clients, on one host. Returns how many clients have failed. */
static inline unsigned run_echo(const char *where, size_t size) {
    struct client clients[CLIENTS];
    CCAddr addr;
    CCListener *l = listen_at(where);
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    CCNursery *server = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    CHECK(server != NULL);
    CHECK_EQ(cc_serve(server, l, echo, NULL, NULL), 0);
    CC_NURSERY(n) {
        for (unsigned i = 0; i < CLIENTS; i++) {
            clients[i] = (struct client){.number = i, .size = size};
            if (addr.kind == CC_ADDR_UNIX)
                snprintf(clients[i].where, sizeof clients[i].where, "%s", where);
            else
                snprintf(clients[i].where, sizeof clients[i].where, "tcp://127.0.0.1:%u", addr.port);
            CHECK_EQ(cc_nursery_spawn(n, run_client, &clients[i]), 0);
        }
    }
    unsigned failed = 0;
    for (unsigned i = 0; i < CLIENTS; i++) failed += clients[i].error != 0;
    CHECK_EQ(cc_nursery_cancel(server), 0);
    (void)cc_nursery_free(server);
    cc_listener_close(l);
    return failed;
}

#endif
