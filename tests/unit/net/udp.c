/* udp.c - datagrams: one and many, addresses, joined ones, errors of a peer. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net.h"

enum { MANY = 40 };

/* Lets a socket refuse what comes from others: it is connected to itself. If it was closed, another program could take
 * its port. */
static void stop_receiving(CCUdp *u, const CCAddr *own) {
    struct sockaddr_storage at;
    socklen_t length = sizeof at;
    CHECK_EQ(cc_addr_to_sockaddr(own, (struct sockaddr *)&at, &length), 0);
    CHECK_EQ(connect(cc_udp_fd(u), (struct sockaddr *)&at, length), 0);
}

static void *echo(void *arg) {
    const char *const *where = arg;
    CCUdp *server, *client;
    CCAddr addr, own;
    char bytes[MANY][32], text[CC_ADDR_TEXT_MAX], dial_text[CC_ADDR_TEXT_MAX + 8];
    CCDatagram list[MANY];
    size_t n;
    int error = cc_udp_bind(&server, where[0], NULL);
    if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) return NULL; /* no IPv6 here */
    CHECK_EQ(error, 0);
    CHECK_EQ(cc_udp_addr(server, &addr), 0);
    memset(list, 0, sizeof list);
    for (int i = 0; i < MANY; i++) list[i].bytes = bytes[i], list[i].size = sizeof bytes[i];
    CHECK_EQ(cc_udp_recv_try(server, list, MANY, &n), EAGAIN);
    CHECK_EQ(cc_udp_recv_until(server, list, MANY, &n, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_udp_bind(&client, where[0], NULL), 0);
    CHECK_EQ(cc_udp_addr(client, &own), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(bytes[i], sizeof bytes[i], "message %d", i);
        list[i].size = strlen(bytes[i]) + 1;
        list[i].addr = addr;
    }
    CHECK_EQ(cc_udp_send(client, list, MANY, &n), 0);
    CHECK_EQ(n, MANY);
    memset(bytes, 0, sizeof bytes);
    for (int i = 0; i < MANY; i++) list[i].size = sizeof bytes[i], list[i].addr = (CCAddr){0};
    for (size_t got = 0; got < MANY; got += n) CHECK_EQ(cc_udp_recv(server, list + got, MANY - got, &n), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "message %d", i);
        CHECK(strcmp(bytes[i], text) == 0);
        CHECK_EQ(list[i].length, strlen(text) + 1);
        CHECK_EQ(cc_addr_compare(&list[i].addr, &own), 0);
    }
    memset(&list[0], 0xff, sizeof list[0]); /* what is for the answer may be anything before */
    list[0].bytes = bytes[0];
    list[0].size = 4; /* less room than there are bytes */
    CHECK_EQ(cc_udp_send(client, &(CCDatagram){.bytes = "too long", .size = 8, .addr = addr}, 1, NULL), 0);
    CHECK_EQ(cc_udp_recv(server, list, 1, &n), 0);
    CHECK(n == 1 && list[0].length == 8 && list[0].segment == 0);
    CHECK_EQ(cc_addr_compare(&list[0].addr, &own), 0);
    CHECK_EQ(cc_udp_send(client, &(CCDatagram){.addr = addr}, 1, NULL), 0); /* an empty one */
    list[0].length = 9;
    CHECK_EQ(cc_udp_recv(server, list, 1, &n), 0);
    CHECK(n == 1 && list[0].length == 0);
    cc_udp_close(client);
    CHECK_EQ(cc_addr_print(&addr, text, sizeof text), 0);
    snprintf(dial_text, sizeof dial_text, "udp://%s", text);
    CHECK_EQ(cc_udp_dial(&client, dial_text, NULL), 0);
    CHECK_EQ(cc_udp_send(client, &(CCDatagram){.bytes = "x", .size = 1}, 1, NULL), 0);
    CHECK_EQ(cc_udp_recv(server, list, 1, &n), 0);
    CHECK_EQ(cc_udp_send(server, &(CCDatagram){.bytes = "back", .size = 4, .addr = list[0].addr}, 1, NULL), 0);
    CHECK_EQ(cc_udp_recv(client, list, MANY, &n), 0);
    CHECK_EQ(n, 1);
    stop_receiving(server, &addr);
    CHECK_EQ(cc_udp_send(client, &(CCDatagram){.bytes = "x", .size = 1}, 1, NULL), 0);
    CHECK_EQ(cc_udp_recv(client, list, 1, &n), ECONNREFUSED);
    cc_udp_close(client);
    cc_udp_close(server);
    return NULL;
}

TEST_WORKERS(datagrams_there_and_back) {
    static const char *const where[] = {"udp://127.0.0.1:0", "udp://[::1]:0"};
    CHECK_EQ(cc_run(echo, (void *)&where[0], NULL), 0);
    CHECK_EQ(cc_run(echo, (void *)&where[1], NULL), 0);
}

static void joined(bool gro, size_t segment, size_t size) {
    static char sent[80000], got[65536];
    CCUdp *server, *client;
    CCAddr addr;
    size_t n;
    CHECK_EQ(cc_udp_bind(&server, gro ? "udp://127.0.0.1:0?gro" : "udp://127.0.0.1:0",
                         &(CCUdpOptions){.receive_buffer = 200000}),
             0);
    CHECK_EQ(cc_udp_addr(server, &addr), 0);
    CHECK_EQ(cc_udp_bind(&client, "udp://127.0.0.1:0", NULL), 0);
    CHECK(size <= sizeof sent);
    for (size_t i = 0; i < size; i++) sent[i] = (char)(i * 5 % 127);
    CCDatagram d = {.bytes = sent, .size = size, .segment = segment, .addr = addr};
    CHECK_EQ(cc_udp_send(client, &d, 1, &n), 0);
    CHECK_EQ(n, 1);
    for (size_t have = 0; have < size;) {
        CCDatagram in = {.bytes = got, .size = sizeof got};
        CHECK_EQ(cc_udp_recv(server, &in, 1, &n), 0);
        CHECK(in.length == segment || have + in.length == size || (gro && in.segment == segment));
        CHECK(memcmp(got, sent + have, in.length) == 0);
        have += in.length;
    }
    cc_udp_close(client);
    cc_udp_close(server);
}

static void *joined_both(void *arg) {
    for (int gro = 0; gro < 2; gro++) {
        joined(gro, 700, 7050);
        joined(gro, 100, 15010);  /* more than the system splits at a time: messages, */
        joined(gro, 1000, 70050); /* and bytes */
    }
    return arg;
}

TEST(several_of_one_length) {
    CHECK_EQ(cc_run(joined_both, NULL, NULL), 0);
}

/* ---- an error between two system calls of one receive ---- */

static int fails_after = -1; /* calls; negative: never */

/* Replaces the C library's. */
int recvmmsg(int fd, struct mmsghdr *list, unsigned count, int flags, struct timespec *timeout) {
    if (fails_after >= 0 && fails_after-- == 0) {
        errno = ECONNREFUSED;
        return -1;
    }
    return (int)syscall(SYS_recvmmsg, fd, list, count, flags, timeout);
}

static void *receives_before_an_error(void *arg) {
    enum { FULL = 16 }; /* as many as one system call takes */
    char bytes[MANY];
    CCDatagram list[MANY] = {{0}};
    CCUdp *u;
    CCAddr addr;
    size_t n;
    CHECK_EQ(cc_udp_bind(&u, "udp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_udp_addr(u, &addr), 0);
    for (int i = 0; i < MANY; i++) list[i] = (CCDatagram){.bytes = &bytes[i], .size = 1, .addr = addr};
    CHECK_EQ(cc_udp_send(u, list, FULL, NULL), 0);
    fails_after = 1;
    CHECK_EQ(cc_udp_recv(u, list, MANY, &n), 0);
    CHECK_EQ(n, FULL);
    CHECK_EQ(cc_udp_recv(u, list, MANY, &n), ECONNREFUSED); /* the system does not report it again */
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_udp_recv_try(u, list, MANY, &n), EAGAIN);
    cc_udp_close(u);
    return arg;
}

TEST(an_error_behind_datagrams_is_not_lost) {
    CHECK_EQ(cc_run(receives_before_an_error, NULL, NULL), 0);
}

CC_TASK(receive_fails, {
    CCUdp *u;
    int expected;
}) {
    CCDatagram d = {0};
    size_t n;
    CHECK_EQ(cc_udp_recv(self->u, &d, 1, &n), self->expected);
    return NULL;
}

static void *ends(void *arg) {
    CCUdp *u, *six;
    CCAddr addr;
    size_t n = 7;
    static char huge[70000];
    CHECK_EQ(cc_udp_bind(&u, "udp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_udp_addr(u, &addr), 0);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, receive_fails, .u = u, .expected = ECANCELED), 0);
        await_waiters(1);
        cc_nursery_cancel(nursery);
    }
    CCDatagram two[2] = {{.bytes = "x", .size = 1, .addr = addr}, {.bytes = huge, .size = sizeof huge, .addr = addr}};
    CHECK_EQ(cc_udp_send(u, two, 2, &n), EMSGSIZE);
    CHECK_EQ(n, 1); /* the first one went out */
    CHECK_EQ(cc_addr_parse(&two[0].addr, "unix:@x"), 0);
    CHECK_EQ(cc_udp_send(u, two, 1, &n), EAFNOSUPPORT);
    CHECK_EQ(cc_udp_send(u, NULL, 1, &n), EINVAL);
    two[1] = two[0] = (CCDatagram){.bytes = "x", .size = 1, .addr = addr};
    two[1].reserved[1] = 1; /* a field of a later version: nothing is sent */
    CHECK_EQ(cc_udp_send(u, two, 2, &n), EINVAL);
    CHECK_EQ(n, 0);
    two[1].reserved[1] = 0;
    two[1].addr.reserved[0] = 1;
    CHECK_EQ(cc_udp_send(u, two, 2, &n), EINVAL);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_udp_dial(&six, "udp://127.0.0.1:9", &(CCUdpOptions){.local = two[1].addr}), EINVAL);
    CHECK_EQ(cc_udp_recv(u, NULL, 1, &n), EINVAL);
    CHECK_EQ(cc_udp_recv(u, NULL, 0, &n), 0);
    if (cc_udp_bind(&six, "udp://:0", NULL) == 0) { /* IPv4 addresses are mapped */
        two[0].addr = addr;
        CHECK_EQ(cc_udp_send(six, two, 1, &n), 0);
        cc_udp_close(six);
    }
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, receive_fails, .u = u, .expected = 0), 0); /* what was sent above */
    }
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, receive_fails, .u = u, .expected = 0), 0);
    }
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, receive_fails, .u = u, .expected = EBADF), 0);
        await_waiters(1);
        cc_udp_close(u);
    }
    CHECK_EQ(cc_udp_bind(&u, "tcp://127.0.0.1:0", NULL), EINVAL);
    CHECK_EQ(cc_udp_bind(&u, "udp://127.0.0.1:0?delay", NULL), EINVAL);
    CHECK_EQ(cc_udp_dial(&u, "udp://:53", NULL), EINVAL);
    CHECK_EQ(cc_udp_fd(NULL), -1);
    cc_udp_close(NULL);
    return arg;
}

TEST_WORKERS(errors_and_ends) {
    CHECK_EQ(cc_run(ends, NULL, NULL), 0);
}
