/* net_echo.c - echo.c on cc_net: net_echo [WORKERS]. Prints its port; ends when it is killed. */
#include "server.h"

#include <ccc/ccc.h>

#include <stdio.h>
#include <stdlib.h>

enum { BUFFER = 2048 };

static int echo(CCConn *conn, void *arg) {
    char bytes[BUFFER];
    size_t n;
    (void)arg;
    while (cc_read(conn, bytes, sizeof bytes, &n) == 0 && n > 0)
        if (cc_write(conn, bytes, n, NULL) != 0) break;
    return 0;
}

static void *serve(void *arg) {
    CCListener *listener;
    CCAddr addr;
    if (cc_listen(&listener, "tcp://127.0.0.1:0", NULL) != 0) return arg;
    cc_listener_addr(listener, &addr);
    printf("port %d\n", addr.port);
    fflush(stdout);
    (void)!cc_serve(NULL, listener, echo, NULL, NULL);
    return arg;
}

int main(int argc, char **argv) {
    return server_main(argc, argv, serve);
}
