/* retry.c - a client asks a server to count, and retries when it gets no answer; if only the answer was lost, the
 * server counts twice. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { REQUESTS = 5, PATIENCE_MS = 1000 };

static int counted; /* by the server's handlers, one at a time */
static CCMutex lock;

static int count(CCConn *conn, void *arg) {
    char request;
    size_t n;
    (void)arg;
    while (cc_read(conn, &request, 1, &n) == 0 && n == 1) {
        if (cc_mutex_lock(&lock) != 0) break;
        counted++;
        cc_mutex_unlock(&lock);
        if (cc_write(conn, &request, 1, NULL) != 0) break;
    }
    return 0;
}

/* One connection for each request, until it is answered. */
static void ask(const char *where) {
    for (int error = EAGAIN; error != 0;) {
        CCConn *conn;
        CCDeadline until = cc_after_ms(PATIENCE_MS);
        char byte = '+';
        error = cc_dial_until(&conn, where, NULL, until);
        if (error != 0) continue;
        error = cc_write_until(conn, &byte, 1, NULL, until);
        if (error == 0) error = cc_read_full_until(conn, &byte, 1, NULL, until);
        cc_close(conn);
    }
}

static void *run(void *arg) {
    CCListener *listener;
    CCAddr addr;
    char where[64];
    if (cc_listen(&listener, "tcp://127.0.0.1:0", NULL) != 0) return arg; /* a simulated fault, too */
    (void)cc_listener_addr(listener, &addr);
    snprintf(where, sizeof where, "tcp://127.0.0.1:%u", addr.port);
    CC_NURSERY(n) {
        if (cc_serve(n, listener, count, NULL, NULL) == 0)
            for (int i = 0; i < REQUESTS; i++) ask(where);
        cc_nursery_cancel(n);
    }
    cc_listener_close(listener);
    printf("%d asked, %d counted\n", REQUESTS, counted);
    return arg;
}

int main(void) {
    if (cc_run(run, NULL, NULL) != 0) return EXIT_FAILURE;
    return counted == REQUESTS || counted == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
