/* echo_server.c - a TCP server with a fiber for each connection, and clients that talk to it: echo_server [CLIENTS]
 * [ROUNDS].
 *
 * The clients run in the same program, so that it ends by itself. The server is cancelled when they are done: its
 * accept loop and the remaining connections end with ECANCELED. */
#include <ccc/ccc.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static _Atomic long served;

CC_TASK(echo, { int fd; }) {
    char bytes[4096];
    size_t n;
    while (cc_fd_read(self->fd, bytes, sizeof bytes, &n) == 0 && n > 0) {
        if (cc_fd_write(self->fd, bytes, n, NULL) != 0) break;
        atomic_fetch_add(&served, 1);
    }
    cc_fd_close(self->fd);
    return NULL;
}

CC_TASK(server, { int listener; }) {
    CC_NURSERY(connections, .mode = CC_NURSERY_KEEP_GOING) {
        int fd, error;
        while ((error = cc_fd_accept(self->listener, &fd, NULL, NULL)) == 0)
            if (CC_GO_IN(connections, echo, .fd = fd) != 0) cc_fd_close(fd);
        if (error != ECANCELED) fprintf(stderr, "accept: %s\n", strerror(error));
    }
    return NULL;
}

CC_CHILD(client, {
    struct sockaddr_in address;
    int rounds;
}) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int error = cc_fd_adopt(fd);
    CC_WITH_DEADLINE(cc_after_ms(60000)) {
        if (error == 0) error = cc_fd_connect(fd, (struct sockaddr *)&self->address, sizeof self->address);
        for (int i = 0; i < self->rounds && error == 0; i++) {
            char sent[32], got[32];
            size_t have = 0, n = 1;
            snprintf(sent, sizeof sent, "message %d", i);
            error = cc_fd_write(fd, sent, sizeof sent, NULL);
            while (error == 0 && have < sizeof got && n > 0) {
                error = cc_fd_read(fd, got + have, sizeof got - have, &n);
                have += n;
            }
            if (error == 0 && (have < sizeof got || memcmp(sent, got, sizeof got) != 0)) error = EPROTO;
        }
    }
    cc_fd_close(fd);
    return error;
}

struct options {
    int clients, rounds;
};

static void *run(void *arg) {
    const struct options *o = arg;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), failed = 0;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 128) != 0 || getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        cc_fd_adopt(listener) != 0) {
        perror("listen");
        return NULL;
    }
    printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    CC_NURSERY(servers) {
        if (CC_GO_IN(servers, server, .listener = listener) != 0) break;
        CC_NURSERY(clients, .result = &failed)
        for (int i = 0; i < o->clients; i++)
            if (CC_GO_IN(clients, client, .address = address, .rounds = o->rounds) != 0) break;
        cc_nursery_cancel(servers);
    }
    cc_fd_close(listener);
    printf("%d clients, %ld messages echoed%s%s\n", o->clients, (long)served, failed ? ": " : "",
           failed ? strerror(failed) : "");
    return failed ? NULL : arg;
}

int main(int argc, char **argv) {
    struct options o = {argc > 1 ? atoi(argv[1]) : 50, argc > 2 ? atoi(argv[2]) : 100};
    void *ok = NULL;
    int error = cc_run(run, &o, &ok);
    if (error != 0) fprintf(stderr, "cc_run: %s\n", strerror(error));
    return ok != NULL ? 0 : 1;
}
