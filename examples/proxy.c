/* proxy.c - a TCP proxy: proxy LISTEN TARGET, as in proxy tcp://:8080 tcp://localhost:80.
 *
 * Two fibers copy, one for each direction. A slow reader slows its writer down (backpressure), because writes wait; an
 * end of file is passed on, and the answer still comes back (half-close); an error ends both. Without arguments it
 * demonstrates that. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies everything, then the end of file. An error ends the other direction, too: the nursery is cancelled. */
CC_CHILD(forward, { CCConn *to, *from; }) {
    int error = cc_copy(self->to, self->from, UINT64_MAX, NULL);
    if (error == 0) error = cc_shutdown(self->to, CC_SHUT_WRITE);
    return error == ENOTCONN ? 0 : error; /* already disconnected */
}

static int proxy(CCConn *client, void *target) {
    CCConn *server;
    int error = cc_dial_until(&server, target, NULL, cc_after_ms(10000));
    if (error != 0) {
        cc_abort(client);
        return error;
    }
    CC_NURSERY(both, .result = &error) {
        if (CC_GO_IN(both, forward, .to = server, .from = client) != 0 ||
            CC_GO_IN(both, forward, .to = client, .from = server) != 0)
            cc_nursery_cancel_with(both, ENOMEM, "no memory for a connection");
    }
    if (error == 0) {
        cc_close(server);
    } else {
        cc_abort(server); /* a reset, so that the peer does not take it for an orderly end */
        cc_abort(client);
    }
    return error;
}

/* ---- demonstration: an upper-case server behind the proxy, and a client ---- */

static int upper(CCConn *conn, void *arg) {
    char bytes[1024];
    size_t n;
    int error;
    (void)arg;
    while ((error = cc_read(conn, bytes, sizeof bytes, &n)) == 0 && n > 0) {
        for (size_t i = 0; i < n; i++)
            if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] = (char)(bytes[i] - 'a' + 'A');
        if ((error = cc_write(conn, bytes, n, NULL)) != 0) break;
    }
    if (error == 0) error = cc_write(conn, "bye", 3, NULL); /* after the client's end of file */
    return error;
}

enum { SIZE = 2 * 1000 * 1000 };

CC_CHILD(send_all, {
    CCConn *conn;
    const char *bytes;
}) {
    int error = cc_write(self->conn, self->bytes, SIZE, NULL);
    return error != 0 ? error : cc_shutdown(self->conn, CC_SHUT_WRITE);
}

static int talk(const char *where) {
    CCConn *conn;
    char *sent = malloc(SIZE), *got = malloc(SIZE + 16);
    size_t n = 0;
    int error = cc_dial(&conn, where, NULL);
    for (size_t i = 0; i < SIZE; i++) sent[i] = (char)('a' + i % 26);
    if (error == 0) {
        CC_NURSERY(n_send, .result = &error) {
            if (CC_GO_IN(n_send, send_all, .conn = conn, .bytes = sent) != 0) break;
            error = cc_read_full(conn, got, SIZE + 16, &n); /* until the end of file: ENODATA */
        }
        printf("%d bytes sent, %zu came back, the last of them \"%.3s\"\n", SIZE, n, n >= 3 ? got + n - 3 : "");
        cc_close(conn);
    }
    free(sent);
    free(got);
    return error;
}

static char *where_of(CCListener *l, char *text) {
    CCAddr addr;
    cc_listener_addr(l, &addr);
    strcpy(text, "tcp://");
    cc_addr_print(&addr, text + 6, CC_ADDR_TEXT_MAX);
    return text;
}

static void *show(void *arg) {
    CCListener *front, *back;
    char target[CC_ADDR_TEXT_MAX + 8], where[CC_ADDR_TEXT_MAX + 8];
    int error = cc_listen(&back, "tcp://127.0.0.1:0", NULL);
    if (error == 0) error = cc_listen(&front, "tcp://127.0.0.1:0", NULL);
    if (error != 0) return CC_ERROR(error);
    CC_NURSERY(servers) {
        if (cc_serve(servers, back, upper, NULL, NULL) == 0 &&
            cc_serve(servers, front, proxy, where_of(back, target), NULL) == 0)
            error = talk(where_of(front, where));
        cc_nursery_cancel(servers);
    }
    cc_listener_close(front);
    cc_listener_close(back);
    (void)arg;
    return CC_ERROR(error);
}

static void *serve(void *arg) {
    char **argv = arg;
    CCListener *listener;
    int error = cc_listen(&listener, argv[1], NULL);
    if (error == 0) error = cc_serve(NULL, listener, proxy, argv[2], &(CCServeOptions){.max_conns = 10000});
    return CC_ERROR(error);
}

int main(int argc, char **argv) {
    void *result = NULL;
    int error = cc_run(argc == 3 ? serve : show, argv, &result);
    if (error == 0) error = (int)(intptr_t)result;
    if (error != 0) fprintf(stderr, "proxy: %s\n", strerror(error));
    return error != 0;
}
