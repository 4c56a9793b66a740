/* echo.c - an echo server, a fiber for each connection: echo [WORKERS]. Prints its port; ends when it is killed. */
#include <ccc/ccc.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { BUFFER = 2048 };

CC_TASK(echo, { int fd; }) {
    char bytes[BUFFER];
    size_t n;
    while (cc_fd_read(self->fd, bytes, sizeof bytes, &n) == 0 && n > 0)
        if (cc_fd_write(self->fd, bytes, n, NULL) != 0) break;
    cc_fd_close(self->fd);
    return NULL;
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
    CC_NURSERY(n)
    while (cc_fd_accept(listener, &fd, NULL, NULL) == 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (CC_GO_IN(n, echo, .fd = fd) != 0) cc_fd_close(fd);
    }
    return arg;
}

int main(int argc, char **argv) {
    CCRuntimeConfig config = {.workers = argc > 1 ? (unsigned)atoi(argv[1]) : 0};
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return cc_runtime_init(&config) != 0 || cc_run(serve, NULL, NULL) != 0;
}
