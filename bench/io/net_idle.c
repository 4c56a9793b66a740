/* net_idle.c - what idle connections take: net_idle [CONNECTIONS]. A child process connects, has one line answered on
 * each connection, and is silent; the server, with a fiber and a buffered reader for each, says how much memory it has
 * more than before, in all and for each. What the system keeps for its sockets does not count. */
#include "server.h"

#include <ccc/ccc.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2], count;

static long rss_kb(void) {
    char line[256];
    long value = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0) value = atol(line + 6);
    if (f != NULL) fclose(f);
    return value;
}

static int answer_lines(CCConn *conn, void *arg) {
    CCReader in;
    char *line;
    size_t n;
    (void)arg;
    cc_reader_init(&in, conn, 4096);
    while (cc_reader_line(&in, &line, &n) == 0) {
        line[n] = '\n';
        if (cc_write(conn, line, n + 1, NULL) != 0) break;
    }
    cc_reader_free(&in);
    return 0;
}

static int client(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint16_t port;
    char line[8];
    if (read(ends[0], &port, sizeof port) != sizeof port) return 1;
    address.sin_port = htons(port);
    for (int i = 0; i < count; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 || write(fd, "hello\n", 6) != 6 ||
            recv(fd, line, 6, MSG_WAITALL) != 6) {
            perror("connect");
            return 1;
        }
    }
    pause();
    return 0;
}

CC_TASK(watch, {
    CCListener *listener;
    CCNursery *nursery;
}) {
    CCServeStats stats = {0};
    long before = rss_kb();
    do cc_sleep_ms(100);
    while (cc_serve_stats(self->listener, &stats) == 0 && stats.open < (uint64_t)count && stats.pauses == 0);
    cc_sleep_ms(200);
    long more = rss_kb() - before;
    printf("%llu connections, %ld KB more, %.0f B each\n", (unsigned long long)stats.open, more,
           (double)more * 1024 / (double)(stats.open > 0 ? stats.open : 1));
    cc_nursery_cancel(self->nursery);
    return NULL;
}

static void *serve(void *arg) {
    CCListener *listener;
    CCAddr addr;
    if (cc_listen(&listener, "tcp://127.0.0.1:0", NULL) != 0) return arg;
    cc_listener_addr(listener, &addr);
    if (write(ends[1], &addr.port, sizeof addr.port) != sizeof addr.port) return arg;
    CC_NURSERY(n) {
        if (CC_GO_IN(n, watch, .listener = listener, .nursery = n) == 0)
            (void)!cc_serve(n, listener, answer_lines, NULL, NULL);
    }
    cc_listener_close(listener);
    return arg;
}

int main(int argc, char **argv) {
    count = argc > 1 ? atoi(argv[1]) : 1000;
    server_raise_limit();
    if (pipe(ends) != 0) return 1;
    pid_t child = fork();
    if (child == 0) _exit(client());
    int error = cc_run(serve, NULL, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return error;
}
