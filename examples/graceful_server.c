/* graceful_server.c - graceful shutdown of a server: it accepts no more, requests that have started finish behind
 * shields, and when the grace period is over the rest is cancelled. Clients are channels here. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>

enum { CLIENTS = 5 };

static struct {
    CCChan *connections; /* of CCChan *, one for each client */
    int finished, idle, hung;
} server;

static void count(int *counter) {
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Serves requests until the client disconnects or the server stops; a request that has started is finished. */
CC_TASK(serve, { CCChan *client; }) {
    int request;
    while (cc_chan_recv(self->client, &request, sizeof request) == 0) {
        int rc = 0;
        CC_SHIELD rc = cc_sleep_ms((uint64_t)request); /* stands for the work */
        if (rc != 0) {
            count(&server.hung); /* the grace period ended first */
            return NULL;
        }
        count(&server.finished);
    }
    count(&server.idle);
    return NULL;
}

CC_TASK(listen_on, { CCNursery *nursery; }) {
    CCChan *client;
    while (cc_chan_recv(server.connections, &client, sizeof client) == 0)
        CC_GO_IN(self->nursery, serve, .client = client);
    return NULL;
}

static void say_goodbye(void *arg) {
    printf("%s: %d requests finished, %d clients were idle, %d hung.\n", (const char *)arg, server.finished,
           server.idle, server.hung);
}

static void *run_server(void *arg) {
    CCChan *clients[CLIENTS];
    int short_one = 1, endless = 3600 * 1000;
    (void)arg;
    server.connections = cc_chan_create(sizeof(CCChan *), 0);

    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.name = "server", .grace_ms = 1000});
    cc_nursery_at_exit(n, say_goodbye, "The server has stopped");
    cc_nursery_autoclose(n, server.connections);
    CC_GO_IN(n, listen_on, .nursery = n);

    /* Three clients have a request in progress, one of which hangs; two are connected and idle. */
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = cc_chan_create(sizeof(int), 0);
        cc_chan_send(server.connections, &clients[i], sizeof clients[i]);
        if (i < 3) cc_chan_send(clients[i], i == 2 ? &endless : &short_one, sizeof(int));
    }

    cc_nursery_cancel_with(n, EINTR, "the operator stops the server");
    int rc = cc_nursery_wait(n);
    printf("The reason: %s. New connections: %s.\n", rc == EINTR ? "EINTR" : "?",
           cc_chan_is_closed(server.connections) ? "refused" : "accepted");
    cc_nursery_free(n);
    for (int i = 0; i < CLIENTS; i++) cc_chan_free(clients[i]);
    cc_chan_free(server.connections);
    return NULL;
}

int main(void) {
    cc_run(run_server, NULL, NULL);
    return cc_runtime_shutdown(1000);
}
