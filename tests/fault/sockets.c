/* sockets.c - the network while system calls fail: every call of os/linux/socket.c that can, each time. The caller gets
 * the error, and nothing is left open. */
#include "fail.h"
#include "harness.h"
#include "lowest_fd.h"

#include <ccc/ccc.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum kind { SOCKET, BIND, LISTEN, SET, GET, OWN_NAME, PEER_NAME, SHUTDOWN, PAIR, SEND_MANY, RECEIVE_MANY, KINDS };

/* The n-th call of that kind fails. */
static struct { _Atomic int kind, nth, error; } next = {KINDS, 0, 0};

static bool fails(enum kind kind) {
    if (atomic_load(&next.kind) != (int)kind || atomic_fetch_sub(&next.nth, 1) != 1) return false;
    cc__errno_set(atomic_load(&next.error));
    return true;
}

#define WRAP(name, kind, parameters, arguments)            \
    int __real_##name parameters;                          \
    int __wrap_##name parameters;                          \
    int __wrap_##name parameters {                         \
        return fails(kind) ? -1 : __real_##name arguments; \
    }
WRAP(socket, SOCKET, (int family, int type, int protocol), (family, type, protocol))
WRAP(bind, BIND, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(listen, LISTEN, (int fd, int backlog), (fd, backlog))
WRAP(setsockopt, SET, (int fd, int l, int o, const void *v, socklen_t n), (fd, l, o, v, n))
WRAP(getsockopt, GET, (int fd, int l, int o, void *v, socklen_t *n), (fd, l, o, v, n))
WRAP(getsockname, OWN_NAME, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
WRAP(getpeername, PEER_NAME, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
WRAP(shutdown, SHUTDOWN, (int fd, int how), (fd, how))
WRAP(socketpair, PAIR, (int family, int type, int protocol, int *fds), (family, type, protocol, fds))
WRAP(sendmmsg, SEND_MANY, (int fd, struct mmsghdr *list, unsigned n, int f), (fd, list, n, f))
WRAP(recvmmsg, RECEIVE_MANY, (int fd, struct mmsghdr *list, unsigned n, int f, struct timespec *t), (fd, list, n, f, t))

/* ---- what the program does ---- */

static CCListener *listener;

static int listen_to_tcp(void) {
    CCListener *l;
    CCAddr addr;
    CCListenOptions options = {
        .backlog = 5,
        .reuseport = true,
        .conn = {.keepalive = 7, .user_timeout_ms = 9000, .send_buffer = 8192, .receive_buffer = 8192}};
    int error = cc_listen(&l, "tcp://[::1]:0?v6only", &options);
    CHECK((l != NULL) == (error == 0));
    if (error == 0) error = cc_listener_addr(l, &addr);
    cc_listener_close(l);
    return error;
}

static int listen_to_unix(void) {
    char where[64];
    CCListener *l;
    snprintf(where, sizeof where, "unix:/tmp/ccc-sockets-%d?unlink&mode=0600", getpid());
    int error = cc_listen(&l, where, NULL);
    CHECK((l != NULL) == (error == 0));
    cc_listener_close(l);
    snprintf(where, sizeof where, "/tmp/ccc-sockets-%d", getpid());
    struct stat status;
    CHECK(stat(where, &status) != 0); /* nothing is left there either */
    return error;
}

static int dial(void) {
    CCConn *here, *there = NULL;
    CCAddr to, addr;
    CCDialOptions options = {.conn = {.keepalive = 7, .user_timeout_ms = 9000, .send_buffer = 8192}};
    int error = cc_listener_addr(listener, &to);
    if (error != 0) return error;
    options.local = (CCAddr){.kind = CC_ADDR_IP4, .length = 4, .bytes = {127, 0, 0, 1}};
    error = cc_dial_addr(&here, &to, &options, CC_FOREVER);
    CHECK((here != NULL) == (error == 0));
    if (error == 0) CHECK_EQ(cc_accept(listener, &there), 0);
    if (error == 0) error = cc_conn_peer(here, &addr);
    if (error == 0) error = cc_conn_local(here, &addr);
    if (error == 0) error = cc_shutdown(here, CC_SHUT_WRITE);
    cc_abort(there);
    cc_close(here);
    if (there == NULL && cc_accept_try(listener, &there) == 0) cc_close(there); /* it was given up later */
    return error;
}

static int pair(void) {
    CCConn *one, *other;
    int error = cc_socketpair(&one, &other);
    CHECK((one != NULL) == (error == 0) && (other != NULL) == (error == 0));
    cc_close(one);
    cc_close(other);
    return error;
}

static int datagrams(void) {
    CCUdp *one, *other = NULL;
    CCUdpOptions options = {.gro = true, .send_buffer = 65536, .receive_buffer = 65536, .reuseport = true};
    char bytes[64] = "", room[64], text[CC_ADDR_TEXT_MAX], where[CC_ADDR_TEXT_MAX + 8];
    CCDatagram out = {.bytes = bytes, .size = sizeof bytes, .segment = 16}, in = {.bytes = room, .size = sizeof room};
    CCAddr addr;
    size_t n;
    /* The system may choose a port that another such socket has at that address: so no other has that address. */
    snprintf(where, sizeof where, "udp://127.1.%d.%d:0", getpid() / 250 % 250 + 1, getpid() % 250 + 1);
    int error = cc_udp_bind(&one, where, &options);
    CHECK((one != NULL) == (error == 0));
    if (error == 0) error = cc_udp_addr(one, &addr);
    if (error == 0) {
        CHECK_EQ(cc_addr_print(&addr, text, sizeof text), 0);
        snprintf(where, sizeof where, "udp://%s", text);
        options.reuseport = false;
        error = cc_udp_dial(&other, where, &options);
        CHECK((other != NULL) == (error == 0));
    }
    if (error == 0) error = cc_udp_send(other, &out, 1, &n);
    if (error == 0) error = cc_udp_recv(one, &in, 1, &n);
    cc_udp_close(one);
    cc_udp_close(other);
    return error;
}

/* ---- in turn ---- */

static const struct {
    const char *name;
    int (*fn)(void);
} calls[] = {
    {"listen", listen_to_tcp}, {"unix", listen_to_unix}, {"dial", dial}, {"pair", pair}, {"datagrams", datagrams},
};

/* Each call that is made, of each kind. An error is returned, unless the library can do without: queries about a
 * socket, and whether it lingers; GRO; the wish to reset the peer. */
static void fail_each(int error) {
    int count = 0, ignored = 0;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        CHECK_EQ(calls[c].fn(), 0);
        for (int kind = 0; kind < KINDS; kind++) {
            for (int nth = 1;; nth++) {
                int before = lowest_fd();
                atomic_store(&next.error, error);
                atomic_store(&next.nth, nth);
                atomic_store(&next.kind, kind);
                int result = calls[c].fn();
                atomic_store(&next.kind, KINDS);
                if (atomic_load(&next.nth) > 0) break;
                count++;
                if (result == 0 && (kind == GET || kind == SET))
                    ignored++;
                else if (result != error)
                    test_fail(__FILE__, __LINE__, "%s, kind %d, call %d: %d", calls[c].name, kind, nth, result);
                CHECK_EQ(lowest_fd(), before);
            }
        }
    }
    CHECK(count > 40 && ignored < count / 2);
}

static void *each(void *arg) {
    CHECK_EQ(cc_listen(&listener, "tcp://127.0.0.1:0", NULL), 0);
    fail_each(ENOBUFS);
    fail_each(EACCES);
    cc_listener_close(listener);
    return arg;
}

TEST(each_call_of_the_system, .timeout = 120) {
    CHECK_EQ(cc_run(each, NULL, NULL), 0);
}
