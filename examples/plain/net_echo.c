/* net_echo.c - ../net_echo.c by functions alone. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 1000, CONNS_MAX = 10000, GRACE_MS = 1000 };

struct server {
    CCListener *listener;
    CCNursery *acceptors, *connections;
    CCSem room;
};

struct connection {
    struct server *server;
    CCConn *conn;
};

static void *echo(void *arg) {
    struct connection *c = arg;
    char bytes[512];
    size_t n;
    while (cc_read(c->conn, bytes, sizeof bytes, &n) == 0 && n > 0)
        if (cc_write(c->conn, bytes, n, NULL) != 0) break;
    cc_close(c->conn);
    cc_sem_release(&c->server->room, 1);
    free(c);
    return NULL;
}

/* Accepts the next connection; retries after a temporary error. */
static int accept_one(struct server *s, CCConn **conn) {
    int error = cc_sem_acquire(&s->room);
    while (error == 0 && (error = cc_accept(s->listener, conn)) != 0) {
        if (error != EMFILE && error != ENFILE && error != ENOMEM && error != ENOBUFS && error != ECONNABORTED) break;
        error = cc_sleep_ms(10);
    }
    return error;
}

static int serve(void *arg) {
    struct server *s = arg;
    CCConn *conn;
    int error;
    while ((error = accept_one(s, &conn)) == 0) {
        struct connection *c = malloc(sizeof *c);
        if (c != NULL) *c = (struct connection){s, conn};
        if (c == NULL || cc_nursery_spawn(s->connections, echo, c) != 0) {
            free(c);
            cc_close(conn);
            cc_sem_release(&s->room, 1);
        }
    }
    return error;
}

static int start_server(struct server *s) {
    cc_sem_release(&s->room, CONNS_MAX);
    s->connections = cc_nursery_create(NULL);
    s->acceptors = cc_nursery_create(NULL);
    if (s->connections == NULL || s->acceptors == NULL) return ENOMEM;
    return cc_nursery_spawn_status(s->acceptors, serve, s);
}

/* The connections get some time to end by themselves. */
static void stop_server(struct server *s) {
    cc_nursery_cancel(s->acceptors);
    cc_nursery_wait(s->acceptors);
    cc_nursery_free(s->acceptors);
    if (cc_nursery_wait_until(s->connections, cc_after_ms(GRACE_MS)) == ETIMEDOUT) cc_nursery_cancel(s->connections);
    cc_nursery_wait(s->connections);
    cc_nursery_free(s->connections);
}

static int talk(const CCAddr *address, int rounds) {
    CCDeadline deadline = cc_after_ms(60000);
    CCConn *conn;
    int error = cc_dial_addr(&conn, address, NULL, deadline);
    if (error != 0) return error;
    for (int i = 0, got; i < rounds && error == 0; i++) { /* short messages: the server echoes while it reads */
        error = cc_write_until(conn, &i, sizeof i, NULL, deadline);
        if (error == 0) error = cc_read_full_until(conn, &got, sizeof got, NULL, deadline);
        if (error == 0 && got != i) error = EPROTO;
    }
    cc_close(conn);
    return error;
}

struct client {
    CCAddr address;
    int rounds;
};

static int client(void *arg) {
    const struct client *c = arg;
    int error = EAGAIN;
    for (int i = 0; i < TRIES && error != 0 && error != EPROTO && cc_sleep_ms(i > 0) == 0; i++)
        error = talk(&c->address, c->rounds);
    return error;
}

static int run_clients(struct client *how, int count) {
    CCNursery *clients = cc_nursery_create(NULL);
    if (clients == NULL) return ENOMEM;
    int error = 0;
    for (int i = 0; i < count && error == 0; i++) error = cc_nursery_spawn_status(clients, client, how);
    if (error != 0) cc_nursery_cancel_with(clients, error, NULL);
    error = cc_nursery_wait(clients);
    cc_nursery_free(clients);
    return error;
}

struct options {
    const char *where;
    int clients, rounds;
};

static void *run(void *arg) {
    const struct options *o = arg;
    struct server server = {0};
    struct client how = {.rounds = o->rounds};
    char text[CC_ADDR_TEXT_MAX];
    int failed = EMFILE;
    for (int i = 0; i < TRIES && failed == EMFILE; i++)
        failed = cc_listen(&server.listener, o->where != NULL ? o->where : "tcp://127.0.0.1:0", NULL);
    if (failed != 0) return CC_ERROR(failed);
    cc_listener_addr(server.listener, &how.address);
    cc_addr_print(&how.address, text, sizeof text);
    if (o->where != NULL) printf("listening at %s\n", text);
    failed = start_server(&server);
    if (failed == 0) failed = o->where != NULL ? cc_nursery_wait(server.acceptors) : run_clients(&how, o->clients);
    stop_server(&server);
    cc_listener_close(server.listener);
    if (failed == 0) printf("%d clients, %d echoes each\n", o->clients, o->rounds);
    return CC_ERROR(failed);
}

int main(int argc, char **argv) {
    bool serve_only = argc > 1 && strchr(argv[1], ':') != NULL;
    struct options o = {serve_only ? argv[1] : NULL, argc > 1 ? atoi(argv[1]) : 50, argc > 2 ? atoi(argv[2]) : 20};
    void *result = NULL;
    int error = cc_run(run, &o, &result);
    if (error == 0) error = (int)(intptr_t)result;
    if (error != 0) fprintf(stderr, "net_echo: %s\n", strerror(error));
    return error != 0;
}
