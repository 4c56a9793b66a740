/* descriptor_name.c - describes a descriptor in words. */
#include "os/descriptor.h"
#include "os/simulated.h"

#include "base/attr.h"
#include "base/error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
    struct sockaddr_storage room;
};

static bool option(int fd, int name, int *value) {
    socklen_t size = sizeof *value;
    return getsockopt(fd, SOL_SOCKET, name, value, &size) == 0;
}

static void put_address(const union address *a, socklen_t length, char *text, size_t size) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (a->any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof host);
        snprintf(text, size, "%s:%u", host, ntohs(a->v4.sin_port));
    } else if (a->any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof host);
        snprintf(text, size, "[%s]:%u", host, ntohs(a->v6.sin6_port));
    } else if (a->any.sa_family == AF_UNIX && length > offsetof(struct sockaddr_un, sun_path)) {
        int most = (int)(length - offsetof(struct sockaddr_un, sun_path));
        const char *path = a->local.sun_path;
        snprintf(text, size, "%s%.*s", *path == 0 ? "@" : "", *path == 0 ? most - 1 : most,
                 *path == 0 ? path + 1 : path);
    } else {
        snprintf(text, size, "unnamed");
    }
}

static const char *protocol(int domain, int type) {
    bool internet = domain == AF_INET || domain == AF_INET6;
    if (domain == AF_UNIX) return "Unix socket";
    return internet && type == SOCK_STREAM ? "TCP" : internet && type == SOCK_DGRAM ? "UDP" : "socket";
}

/* False: it is not a socket. */
static bool describe_socket(int fd, bool out, char *text, size_t size) {
    int domain = 0, type = 0, listens = 0;
    if (!option(fd, SO_DOMAIN, &domain) || !option(fd, SO_TYPE, &type)) return false;
    (void)option(fd, SO_ACCEPTCONN, &listens);
    union address own, peer;
    socklen_t own_length = sizeof own, peer_length = sizeof peer;
    char here[128] = "?", there[128] = "";
    if (getsockname(fd, &own.any, &own_length) == 0) put_address(&own, own_length, here, sizeof here);
    bool connected = getpeername(fd, &peer.any, &peer_length) == 0;
    if (connected) put_address(&peer, peer_length, there, sizeof there);
    snprintf(text, size, "%s %s%s%s", protocol(domain, type), here,
             connected ? (out ? " -> " : " <- ")
             : listens ? ", listening"
                       : ", not connected",
             there);
    return true;
}

static void describe_file(int fd, char *text, size_t size) {
    static const char anonymous[] = "anon_inode:";
    char path[32], name[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, name, sizeof name - 1);
    if (n <= 0) {
        snprintf(text, size, cc__os_valid(fd) == 0 ? "unknown" : "not open");
        return;
    }
    name[n] = '\0';
    const char *from = strncmp(name, anonymous, sizeof anonymous - 1) == 0 ? name + sizeof anonymous - 1 : name;
    size_t length = strlen(from);
    bool brackets = from != name && length > 2 && from[0] == '[' && from[length - 1] == ']';
    snprintf(text, size, "%.*s", (int)(brackets ? length - 2 : length), brackets ? from + 1 : from);
}

void cc__os_describe(int fd, bool out, char *text, size_t size) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) {
        s->describe(fd, out, text, size);
        return;
    }
    int saved = cc__errno_get();
    if (!describe_socket(fd, out, text, size)) describe_file(fd, text, size);
    cc__errno_set(saved);
}
