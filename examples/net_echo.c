/* net_echo.c - an echo server on cc_net, and clients that talk to it: net_echo [CLIENTS] [ROUNDS].
 *
 * With "tcp://HOST:PORT" or "unix:PATH" in place of the numbers it only serves, until it is killed. A client whose
 * connection fails dials again: in a simulation the network has faults.
 */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 1000 };

static int echo(CCConn *conn, void *arg) {
    char bytes[512];
    size_t n;
    int error;
    (void)arg;
    while ((error = cc_read(conn, bytes, sizeof bytes, &n)) == 0 && n > 0)
        if ((error = cc_write(conn, bytes, n, NULL)) != 0) break;
    return error;
}

static int talk(const CCAddr *address, int rounds) {
    CCConn *conn;
    int error = cc_dial_addr(&conn, address, NULL, CC_FOREVER);
    if (error != 0) return error;
    for (int i = 0, got; i < rounds && error == 0; i++) { /* short messages: the server echoes while it reads */
        error = cc_write(conn, &i, sizeof i, NULL);
        if (error == 0) error = cc_read_full(conn, &got, sizeof got, NULL);
        if (error == 0 && got != i) error = EPROTO;
    }
    cc_close(conn);
    return error;
}

CC_CHILD(client, {
    CCAddr address;
    int rounds;
}) {
    int error = EAGAIN;
    for (int i = 0; i < TRIES && error != 0 && error != EPROTO && cc_sleep_ms(i > 0) == 0; i++)
        CC_WITH_DEADLINE(cc_after_s(60)) error = talk(&self->address, self->rounds);
    return error;
}

struct options {
    const char *where;
    int clients, rounds;
};

static void *run(void *arg) {
    const struct options *o = arg;
    CCListener *listener;
    CCAddr address;
    char text[CC_ADDR_TEXT_MAX];
    int failed = EMFILE;
    for (int i = 0; i < TRIES && failed == EMFILE; i++)
        failed = cc_listen(&listener, o->where != NULL ? o->where : "tcp://127.0.0.1:0", NULL);
    if (failed != 0) return CC_ERROR(failed);
    cc_listener_addr(listener, &address);
    cc_addr_print(&address, text, sizeof text);
    if (o->where != NULL) printf("listening at %s\n", text);
    CC_NURSERY(servers) {
        failed = cc_serve(servers, listener, echo, NULL, &(CCServeOptions){.max_conns = 10000, .grace_ms = 1000});
        if (failed != 0 || o->where != NULL) break; /* the block waits for the server */
        CC_NURSERY(clients, .result = &failed) {
            for (int i = 0; i < o->clients; i++)
                if (CC_GO_IN(clients, client, .address = address, .rounds = o->rounds) != 0) break;
        }
        cc_nursery_cancel(servers);
    }
    cc_listener_close(listener);
    if (failed == 0) printf("%d clients, %d echoes each\n", o->clients, o->rounds);
    return CC_ERROR(failed);
}

int main(int argc, char **argv) {
    bool serve = argc > 1 && strchr(argv[1], ':') != NULL;
    struct options o = {serve ? argv[1] : NULL, argc > 1 ? atoi(argv[1]) : 50, argc > 2 ? atoi(argv[2]) : 20};
    void *result = NULL;
    int error = cc_run(run, &o, &result);
    if (error == 0) error = (int)(intptr_t)result;
    if (error != 0) fprintf(stderr, "net_echo: %s\n", strerror(error));
    return error != 0;
}
