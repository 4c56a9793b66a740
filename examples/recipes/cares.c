/* cares.c - c-ares in place of the system's resolver: cc_resolve and cc_dial of names then need no thread.
 *
 * Every lookup has its own c-ares channel, a copy of one that was set up once. c-ares says which sockets it waits for
 * and how long, and cc_poll waits. A caller that times out destroys its channel.
 *
 *   cares                          asks a name server that it starts on the loopback interface
 *   cares NAME                     asks those of the system
 */
#include "recipe.h"

#include <ares.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/time.h>

/* ---- the resolver ---- */

static struct {
    ares_channel settings; /* the servers and search lists; copied under `lock` */
    pthread_mutex_t lock;
} cares = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int error_of(int status) {
    switch (status) {
    case ARES_SUCCESS:
        return 0;
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
        return ENOENT;
    case ARES_ENOMEM:
        return ENOMEM;
    case ARES_ESERVICE:
        return EPROTONOSUPPORT;
    case ARES_EBADNAME:
    case ARES_EBADFAMILY:
        return EINVAL;
    default:
        return EREMOTEIO; /* no server has answered, or not correctly */
    }
}

struct lookup {
    bool done;
    int error;
    CCAddr *list;
    size_t room, count;
};

static void take_answer(void *arg, int status, int timeouts, struct ares_addrinfo *found) {
    struct lookup *l = arg;
    (void)timeouts;
    l->done = true;
    l->error = error_of(status);
    if (found == NULL) return;
    for (struct ares_addrinfo_node *at = found->nodes; at != NULL && l->count < l->room; at = at->ai_next)
        if (cc_addr_from_sockaddr(&l->list[l->count], at->ai_addr, at->ai_addrlen) == 0) l->count++;
    ares_freeaddrinfo(found);
}

/* Waits until c-ares has something to do, and lets it run. 0, ETIMEDOUT, ECANCELED, …. */
static int wait_and_go_on(ares_channel channel, CCDeadline deadline) {
    ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
    struct pollfd fds[ARES_GETSOCK_MAXNUM];
    unsigned bits = (unsigned)ares_getsock(channel, sockets, ARES_GETSOCK_MAXNUM);
    nfds_t n = 0;
    for (int i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
        bool reads = (bits >> i & 1) != 0, writes = (bits >> (i + ARES_GETSOCK_MAXNUM) & 1) != 0;
        short events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
        if (events != 0) fds[n++] = (struct pollfd){sockets[i], events, 0};
    }
    struct timeval buffer, *wait = ares_timeout(channel, NULL, &buffer);
    CCDeadline next =
        wait == NULL ? CC_FOREVER : cc_after_ms((uint64_t)wait->tv_sec * 1000 + (uint64_t)wait->tv_usec / 1000 + 1);
    bool ours = deadline.ns != 0 && (next.ns == 0 || deadline.ns < next.ns);
    int error = cc_poll(fds, n, ours ? deadline : next, NULL);
    if (error == ETIMEDOUT && !ours) error = 0; /* c-ares asks the next server */
    if (error != 0) return error;
    for (nfds_t i = 0; i < n; i++)
        ares_process_fd(channel, fds[i].revents & ~POLLOUT ? fds[i].fd : ARES_SOCKET_BAD,
                        fds[i].revents & POLLOUT ? fds[i].fd : ARES_SOCKET_BAD);
    ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* timeouts */
    return 0;
}

/* A CCResolveUntilFn. */
static int resolve(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list, size_t *count,
                   CCDeadline deadline, void *arg) {
    struct lookup l = {.list = list, .room = *count};
    ares_channel channel;
    (void)arg;
    pthread_mutex_lock(&cares.lock);
    int error = error_of(ares_dup(&channel, cares.settings));
    pthread_mutex_unlock(&cares.lock);
    if (error != 0) return error;
    struct ares_addrinfo_hints wanted = {
        .ai_family = hints->kind == CC_ADDR_IP4   ? AF_INET
                     : hints->kind == CC_ADDR_IP6 ? AF_INET6
                                                  : AF_UNSPEC,
        .ai_socktype = hints->datagrams ? SOCK_DGRAM : SOCK_STREAM,
    };
    ares_getaddrinfo(channel, host, service, &wanted, take_answer, &l);
    while (!l.done && error == 0) error = wait_and_go_on(channel, deadline);
    ares_destroy(channel); /* calls take_answer, if nothing has yet */
    *count = l.count;
    return error != 0 ? error : l.error;
}

/* servers: "127.0.0.1:53", or NULL: those of the system. */
static bool use_cares(const char *servers) {
    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS || ares_init(&cares.settings) != ARES_SUCCESS)
        return false;
    if (servers != NULL && ares_set_servers_ports_csv(cares.settings, servers) != ARES_SUCCESS) return false;
    cc_resolve_by(resolve, NULL);
    return true;
}

/* ---- a name server: 10.0.0.N for hostN.test, silence for silent.test ---- */

enum { HEAD = 12, ANSWER_MS = 20 };

/* Appends the answer to the question in `bytes`; 0: none. */
static size_t answer(unsigned char *bytes, size_t length) {
    char label[64] = "";
    int number = -1;
    if (length < HEAD + 1 || bytes[HEAD] >= sizeof label || (size_t)HEAD + 1 + bytes[HEAD] + 5 > length) return 0;
    memcpy(label, bytes + HEAD + 1, bytes[HEAD]);
    if (strcmp(label, "silent") == 0) return 0;
    size_t end = HEAD;
    while (end < length && bytes[end] != 0) end += (size_t)bytes[end] + 1;
    end += 5; /* the last 0, type and class */
    if (end > length) return 0;
    bool known = sscanf(label, "host%d", &number) == 1 && number >= 0 && number < 256, a = bytes[end - 3] == 1;
    bytes[2] |= 0x80;                                   /* an answer */
    bytes[3] = (unsigned char)(0x80 | (known ? 0 : 3)); /* or there is no such name */
    memset(bytes + 6, 0, 6);                            /* other sections of the question are dropped */
    if (!known || !a) return end;
    unsigned char record[] = {0xc0, HEAD, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, (unsigned char)number};
    bytes[7] = 1;
    memcpy(bytes + end, record, sizeof record);
    return end + sizeof record;
}

CC_TASK(answer_later, {
    CCUdp *udp;
    CCAddr to;
    size_t length;
    unsigned char bytes[600];
}) {
    CCDatagram d = {.bytes = self->bytes, .size = self->length, .addr = self->to};
    if (cc_sleep_ms(ANSWER_MS) == 0) (void)!cc_udp_send(self->udp, &d, 1, NULL);
    return NULL;
}

CC_TASK(name_server, {
    CCUdp *udp;
    CCNursery *nursery;
}) {
    for (;;) {
        struct answer_later_args later = {.udp = self->udp};
        CCDatagram d = {.bytes = later.bytes, .size = 512};
        size_t n;
        if (cc_udp_recv(self->udp, &d, 1, &n) != 0) return NULL;
        later.to = d.addr;
        later.length = answer(later.bytes, d.length < d.size ? d.length : d.size);
        if (later.length > 0) (void)cc_nursery_go(self->nursery, answer_later_entry, &later, sizeof later);
    }
}

/* ---- a hundred fibers ---- */

static bool ask(int i) {
    char name[32], text[CC_ADDR_TEXT_MAX], expected[32];
    CCAddr list[4];
    size_t n = 4;
    snprintf(name, sizeof name, "host%d.test", i);
    snprintf(expected, sizeof expected, "10.0.0.%d:80", i);
    int error = cc_resolve(name, "80", NULL, list, &n);
    if (error != 0 || n != 1 || cc_addr_print(&list[0], text, sizeof text) != 0 || strcmp(text, expected) != 0) {
        fprintf(stderr, "%s: %s\n", name, error != 0 ? strerror(error) : text);
        return false;
    }
    if (i % 10 != 0) return true;
    n = 4;
    if (cc_resolve_until("silent.test", "80", NULL, list, &n, cc_after_ms(50)) != ETIMEDOUT) return false;
    n = 4;
    return cc_resolve("nobody.test", "80", NULL, list, &n) == ENOENT;
}

static void *run(void *name) {
    char servers[CC_ADDR_TEXT_MAX];
    int status = 1;
    CCAddr addr;
    CCUdp *udp;
    if (name != NULL) {
        CCConn *conn;
        char where[300];
        snprintf(where, sizeof where, "tcp://%s:80", (const char *)name);
        if (!use_cares(NULL)) return name;
        int error = cc_dial_until(&conn, where, NULL, cc_after_ms(5000));
        printf("%s: %s\n", where, strerror(error));
        if (error == 0) cc_close(conn);
        return error == 0 ? NULL : name;
    }
    if (cc_udp_bind(&udp, "udp://127.0.0.1:0", NULL) != 0 || cc_udp_addr(udp, &addr) != 0) return udp;
    (void)cc_addr_print(&addr, servers, sizeof servers);
    CC_NURSERY(n) {
        if (CC_GO_IN(n, name_server, .udp = udp, .nursery = n) != 0 || !use_cares(servers)) break;
        status = recipe_run(ask);
        cc_nursery_cancel(n);
    }
    cc_udp_close(udp);
    return status == 0 ? NULL : CC_ERROR(status);
}

int main(int argc, char **argv) {
    void *result = NULL;
    int error = cc_run(run, argc > 1 ? argv[1] : NULL, &result);
    cc_resolve_by(NULL, NULL);
    if (cares.settings != NULL) ares_destroy(cares.settings);
    ares_library_cleanup();
    return error != 0 || result != NULL;
}
