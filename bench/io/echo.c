/* echo.c - an echo server, a fiber for each connection: echo [WORKERS [TICKERS]]. Prints its port; ends when it is
 * killed. With TICKERS: that many fibers wake every 50 ms, each at its own phase; at the end of its standard
 * input the server prints how late they woke, as KEY=VALUE, and ends. */
#include "server.h"

#include <ccc/ccc.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 2048, TICK_NS = 50 * 1000 * 1000, TICKS_MAX = 100 * 1000 };

CC_TASK(echo, { int fd; }) {
    char bytes[BUFFER];
    size_t n;
    while (cc_fd_read(self->fd, bytes, sizeof bytes, &n) == 0 && n > 0)
        if (cc_fd_write(self->fd, bytes, n, NULL) != 0) break;
    cc_fd_close(self->fd);
    return NULL;
}

static int tickers;
static uint64_t late[TICKS_MAX]; /* ns */
static atomic_size_t ticks;

CC_TASK(tick, { uint64_t at; }) {
    for (uint64_t at = self->at; cc_sleep_until((CCDeadline){at}) == 0; at += TICK_NS) {
        size_t i = atomic_fetch_add(&ticks, 1);
        if (i < TICKS_MAX) late[i] = cc_now_ns() - at;
    }
    return NULL;
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void *report(void *arg) {
    char byte;
    size_t n;
    uint64_t begin = cc_now_ns() + TICK_NS;
    for (int i = 0; i < tickers; i++) (void)CC_GO(tick, .at = begin + (uint64_t)i * TICK_NS / (uint64_t)tickers);
    while (cc_fd_read(0, &byte, 1, &n) == 0 && n > 0) atomic_store(&ticks, 0); /* a byte: begin anew */
    size_t count = atomic_load(&ticks);
    if (count > TICKS_MAX) count = TICKS_MAX;
    qsort(late, count, sizeof *late, by_size);
    double us[] = {0.5, 0.99, 0.999};
    for (int i = 0; i < 3; i++) us[i] = count > 0 ? (double)late[(size_t)((double)count * us[i])] / 1e3 : 0;
    printf("ticks=%zu late_p50_us=%.1f late_p99_us=%.1f late_p999_us=%.1f\n", count, us[0], us[1], us[2]);
    fflush(stdout);
    _exit(0);
    return arg;
}

static void *serve(void *arg) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd, one = 1;
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 || cc_fd_adopt(listener) != 0) {
        perror("listen");
        return arg;
    }
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    if (tickers > 0) (void)cc_spawn(NULL, report, NULL, NULL);
    CC_NURSERY(n)
    while (cc_fd_accept(listener, &fd, NULL, NULL) == 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (CC_GO_IN(n, echo, .fd = fd) != 0) cc_fd_close(fd);
    }
    return arg;
}

int main(int argc, char **argv) {
    tickers = argc > 2 ? atoi(argv[2]) : 0;
    return server_main(argc, argv, serve);
}
