/* net.c - the simulated network: streams, listeners, datagrams and names, and every fault that a seed can choose. */
#include "sim_net.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SEEDS = 20 };

/* ---- streams without faults ---- */

static void *quiet_echo(void *arg) {
    CCSimNet net = calm_net();
    (void)arg;
    use_net(net);
    CHECK_EQ(run_echo("tcp://127.0.0.1:0", 3000), 0);
    net.window = 7;
    use_net(net);
    CHECK_EQ(run_echo("tcp://[::]:7000", 500), 0);
    CHECK_EQ(run_echo("unix:/run/echo", 2000), 0);
    CCSimStats s = net_stats();
    CHECK_EQ(s.accepts, 3 * CLIENTS);
    CHECK_EQ(s.resets + s.refusals + s.black_holes + s.no_descriptors + s.shorts, 0);
    return NULL;
}

/* ---- the wait of a thread that starts the runtime, for a descriptor from before ---- */

static int read_in_time(int fd) {
    char c;
    size_t n;
    return cc_fd_read_until(fd, &c, 1, &n, cc_after_ms(20));
}

static int wait_in_time(int fd) {
    return cc_fd_wait_until(fd, CC_READABLE, NULL, cc_after_ms(20));
}

static int poll_in_time(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return cc_poll(&one, 1, cc_after_ms(20), NULL);
}

static int select_in_time(int fd) {
    int error = 0;
    size_t chosen;
    CCCase cases[] = {CC_READABLE_CASE(fd, &error)};
    CHECK_EQ(cc_select(cases, 1, cc_after_ms(20), &chosen), 0);
    return error;
}

static void starts_a_simulation(int (*wait)(int fd)) {
    int fds[2];
    setenv("CC_SIM_SEED", "7", 1);
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(wait(fds[0]), ENOTSUP);
    CHECK_EQ(cc_sim_seed(), 7);
    CHECK_EQ(wait(fds[0]), ENOTSUP);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    unsetenv("CC_SIM_SEED");
    for (int i = 0; i < 2; i++) close(fds[i]);
}

TEST(a_wait_that_starts_a_simulation) {
    starts_a_simulation(read_in_time);
}
TEST(a_wait_for_readiness_that_starts_a_simulation) {
    starts_a_simulation(wait_in_time);
}
TEST(a_poll_that_starts_a_simulation) {
    starts_a_simulation(poll_in_time);
}
TEST(a_select_that_starts_a_simulation) {
    starts_a_simulation(select_in_time);
}

/* Answered as by the kernel. */
static void *bytes_at_null(void *arg) {
    CCConn *conn[2];
    struct iovec parts[] = {{NULL, 0}, {NULL, 1}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2}, nowhere = {.msg_iov = NULL, .msg_iovlen = 1};
    size_t n;
    use_net(calm_net());
    CHECK_EQ(cc_socketpair(&conn[0], &conn[1]), 0);
    CHECK_EQ(cc_fd_sendmsg(cc_conn_fd(conn[0]), &nowhere, 0, &n), EFAULT);
    CHECK_EQ(cc_fd_recvmsg(cc_conn_fd(conn[1]), &nowhere, 0, &n), EFAULT);
    CHECK_EQ(cc_writev(conn[0], parts, 1, &n), 0);
    CHECK_EQ(cc_writev(conn[0], parts, 2, &n), EFAULT);
    CHECK_EQ(cc_fd_sendmsg(cc_conn_fd(conn[0]), &m, 0, &n), EFAULT);
    CHECK_EQ(cc_write(conn[0], "x", 1, &n), 0);
    CHECK_EQ(cc_fd_readv(cc_conn_fd(conn[1]), parts, 2, &n), EFAULT);
    CHECK_EQ(cc_fd_recvmsg(cc_conn_fd(conn[1]), &m, 0, &n), EFAULT);
    char c = 0;
    CHECK_EQ(cc_read(conn[1], &c, 1, &n), 0); /* the byte is still there */
    CHECK_EQ(c, 'x');
    for (int i = 0; i < 2; i++) cc_close(conn[i]);
    return arg;
}

TEST(bytes_at_null) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, bytes_at_null, NULL, NULL), 0);
}

static void *too_many_parts(void *arg) {
    static struct iovec parts[IOV_MAX + 1];
    CCConn *conn[2];
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = IOV_MAX + 1};
    size_t n;
    use_net(calm_net());
    CHECK_EQ(cc_socketpair(&conn[0], &conn[1]), 0);
    CHECK_EQ(cc_fd_sendmsg(cc_conn_fd(conn[0]), &m, 0, &n), EMSGSIZE);
    CHECK_EQ(cc_fd_recvmsg(cc_conn_fd(conn[1]), &m, 0, &n), EMSGSIZE);
    for (int i = 0; i < 2; i++) cc_close(conn[i]);
    return arg;
}

TEST(too_many_parts) {
    CHECK_EQ(cc_sim_run(1, too_many_parts, NULL, NULL), 0);
}

/* The sum of the lengths is 1. */
static void *lengths_that_overflow(void *arg) {
    CCConn *conn[2];
    CCUdp *udp;
    char bytes[2] = {'a', 'b'};
    struct iovec parts[] = {{bytes, SIZE_MAX}, {bytes, 2}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    size_t n;
    use_net(calm_net());
    CHECK_EQ(cc_socketpair(&conn[0], &conn[1]), 0);
    CHECK_EQ(cc_writev(conn[0], parts, 2, &n), EINVAL);
    CHECK_EQ(cc_fd_sendmsg(cc_conn_fd(conn[0]), &m, 0, &n), EINVAL);
    CHECK_EQ(cc_write(conn[0], "x", 1, &n), 0);
    CHECK_EQ(cc_fd_readv(cc_conn_fd(conn[1]), parts, 2, &n), EINVAL);
    CHECK_EQ(cc_fd_recvmsg(cc_conn_fd(conn[1]), &m, 0, &n), EINVAL);
    for (int i = 0; i < 2; i++) cc_close(conn[i]);
    CHECK_EQ(cc_udp_dial(&udp, "udp://127.0.0.1:53", NULL), 0);
    CHECK_EQ(cc_fd_sendmsg(cc_udp_fd(udp), &m, 0, &n), EINVAL);
    cc_udp_close(udp);
    return arg;
}

TEST(lengths_that_overflow) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, lengths_that_overflow, NULL, NULL), 0);
}

TEST(echo_without_faults) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, quiet_echo, NULL, NULL), 0);
}

/* ---- streams as the seed has them ---- */

static void *seeds_echo(void *arg) {
    unsigned failed = run_echo("tcp://127.0.0.1:0", 700);
    note("%u failed, %llu packets\n", failed, (unsigned long long)net_stats().packets);
    return arg;
}

TEST(same_seed_same_bytes) {
    same_twice(seeds_echo, SEEDS);
}

/* ---- faults: each is seen to happen, and survived ---- */

/* Retries until it succeeds. */
static unsigned insist(const char *where, size_t size) {
    unsigned attempts = 0;
    for (int error = -1; error != 0; attempts++) {
        CCConn *conn;
        error = cc_dial_until(&conn, where, NULL, cc_after_ms(5000));
        if (error != 0) continue;
        error = exchange(conn, attempts, size);
        cc_close(conn);
    }
    return attempts;
}

static CCSimNet faults; /* of the test; written before the run */

static void *insisting_client(void *arg) {
    CCNursery *server = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    CCListener *l = listen_at("tcp://127.0.0.1:99");
    CHECK(server != NULL);
    use_net(faults);
    CHECK_EQ(cc_serve(server, l, echo, NULL, NULL), 0);
    for (int i = 0; i < 8; i++) (void)insist("tcp://127.0.0.1:99", 300);
    CHECK_EQ(cc_nursery_cancel(server), 0);
    (void)cc_nursery_free(server);
    cc_listener_close(l);
    *(CCSimStats *)arg = net_stats();
    return NULL;
}

static CCSimStats survive(void) {
    CCSimStats s;
    CHECK_EQ(cc_sim_run(11, insisting_client, &s, NULL), 0);
    return s;
}

TEST(short_reads_and_writes) {
    faults = calm_net();
    faults.short_ppm = 700000;
    CHECK(survive().shorts > 50);
}

TEST(connections_that_are_reset) {
    faults = calm_net();
    faults.reset_ppm = 100000;
    CHECK(survive().resets > 2);
}

TEST(connections_that_are_half_open) {
    faults = calm_net();
    faults.half_open_ppm = 100000;
    CHECK(survive().half_opens > 2);
}

TEST(connects_that_are_refused) {
    faults = calm_net();
    faults.refuse_ppm = 500000;
    CHECK(survive().refusals > 2);
}

TEST(connects_that_nobody_answers) {
    faults = calm_net();
    faults.black_hole_ppm = 500000;
    CHECK(survive().black_holes > 2);
}

TEST(out_of_descriptors_for_children) {
    faults = calm_net();
    faults.no_descriptor_ppm = 300000;
    CHECK(survive().no_descriptors > 1);
}

TEST(packets_that_are_late) {
    faults = calm_net();
    faults.slow_ppm = 100000;
    CHECK(survive().packets > 50);
}

/* ---- how long things take ---- */

static uint64_t seconds_since(uint64_t start) {
    return (cc_now_ns() - start) / 1000000000;
}

static void *patience(void *arg) {
    CCSimNet net = calm_net();
    CCConn *conn;
    char byte = 1;
    size_t n;
    use_net(net);
    uint64_t start = cc_now_ns();
    CHECK_EQ(cc_dial(&conn, "tcp://127.0.0.1:9", NULL), ECONNREFUSED); /* nobody listens */
    CHECK_EQ(seconds_since(start), 0);
    CHECK_EQ(cc_dial(&conn, "tcp://10.0.0.77:9", NULL), EHOSTUNREACH);
    CHECK_EQ(seconds_since(start), 3);
    net.black_hole_ppm = 1000000;
    use_net(net);
    start = cc_now_ns();
    CHECK_EQ(cc_dial(&conn, "tcp://127.0.0.1:9", NULL), ETIMEDOUT);
    CHECK_EQ(seconds_since(start), 127);
    CHECK_EQ(cc_dial_until(&conn, "tcp://127.0.0.1:9", NULL, cc_after_ms(10)), ETIMEDOUT);
    net.black_hole_ppm = 0;
    net.half_open_ppm = 1000000;
    use_net(net);
    CCListener *l = listen_at("tcp://127.0.0.1:9");
    for (int i = 0; i < 2; i++) { /* without a time of its own, and with one */
        CCDialOptions options = {.conn = {.user_timeout_ms = i == 0 ? 0 : 7000}};
        CHECK_EQ(cc_dial(&conn, "tcp://127.0.0.1:9", &options), 0);
        start = cc_now_ns();
        CHECK_EQ(cc_write(conn, &byte, 1, NULL), 0);
        CHECK_EQ(cc_read(conn, &byte, 1, &n), ETIMEDOUT); /* what was written is not acknowledged */
        CHECK_EQ(seconds_since(start), i == 0 ? 924 : 7);
        CHECK_EQ(cc_write(conn, &byte, 1, NULL), EPIPE);
        cc_close(conn);
    }
    cc_listener_close(l);
    return arg;
}

TEST(times_of_the_system) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, patience, NULL, NULL), 0);
}

/* ---- the ends of a connection ---- */

struct pair {
    CCListener *listener;
    CCConn *client, *server;
};

static struct pair connect_pair(void) {
    struct pair p;
    use_net(calm_net());
    p.listener = listen_at("tcp://127.0.0.1:5");
    CHECK_EQ(cc_dial(&p.client, "tcp://127.0.0.1:5", NULL), 0);
    CHECK_EQ(cc_accept(p.listener, &p.server), 0);
    return p;
}

static void *ends(void *arg) {
    struct pair p = connect_pair();
    char byte = 'x', all[16];
    size_t n;
    CCAddr one, other;
    CHECK_EQ(cc_conn_local(p.client, &one), 0);
    CHECK_EQ(cc_conn_peer(p.server, &other), 0);
    CHECK_EQ(cc_addr_compare(&one, &other), 0);
    CHECK_EQ(cc_conn_alive(p.server), 0);
    CHECK_EQ(cc_read_try(p.server, all, sizeof all, &n), EAGAIN);
    CHECK_EQ(cc_read_until(p.server, all, sizeof all, &n, cc_after_ms(50)), ETIMEDOUT);
    /* a half-close */
    CHECK_EQ(cc_write(p.client, "abc", 3, NULL), 0);
    CHECK_EQ(cc_shutdown(p.client, CC_SHUT_WRITE), 0);
    CHECK_EQ(cc_write(p.client, &byte, 1, NULL), EPIPE);
    CHECK_EQ(cc_read_full(p.server, all, 3, &n), 0);
    CHECK(memcmp(all, "abc", 3) == 0);
    CHECK_EQ(cc_read(p.server, all, sizeof all, &n), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_conn_alive(p.server), ENODATA);
    CHECK_EQ(cc_write(p.server, "d", 1, NULL), 0);
    CHECK_EQ(cc_read(p.client, all, sizeof all, &n), 0);
    CHECK_EQ(n, 1);
    cc_close(p.server);
    CHECK_EQ(cc_read(p.client, all, sizeof all, &n), 0);
    CHECK_EQ(n, 0);
    cc_close(p.client);
    /* an abort */
    cc_listener_close(p.listener);
    p = connect_pair();
    cc_abort(p.client);
    CHECK_EQ(cc_read(p.server, all, sizeof all, &n), ECONNRESET);
    CHECK_EQ(cc_write(p.server, &byte, 1, NULL), EPIPE);
    cc_close(p.server);
    /* a close with bytes that were not read */
    cc_listener_close(p.listener);
    p = connect_pair();
    CHECK_EQ(cc_write(p.client, "lost", 4, NULL), 0);
    CHECK_EQ(cc_sleep_ms(10), 0);
    cc_close(p.server);
    CHECK_EQ(cc_read(p.client, all, sizeof all, &n), ECONNRESET);
    cc_close(p.client);
    /* writes after the peer's end: it answers the first one, whether anybody waits for that or not */
    cc_listener_close(p.listener);
    p = connect_pair();
    cc_close(p.server);
    CHECK_EQ(cc_sleep_ms(10), 0);
    CHECK_EQ(cc_write(p.client, &byte, 1, NULL), 0);
    CHECK_EQ(cc_sleep_ms(10), 0);
    CHECK_EQ(cc_write(p.client, &byte, 1, NULL), EPIPE);
    CHECK_EQ(cc_read(p.client, all, sizeof all, &n), 0);
    CHECK_EQ(n, 0);
    cc_close(p.client);
    /* nobody accepts */
    CHECK_EQ(cc_dial(&p.client, "tcp://127.0.0.1:5", NULL), 0);
    cc_listener_close(p.listener);
    CHECK_EQ(cc_read(p.client, all, sizeof all, &n), ECONNRESET);
    cc_close(p.client);
    return arg;
}

TEST(ends_of_a_connection) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, ends, NULL, NULL), 0);
}

/* ---- windows ---- */

static void *fill_window(void *arg) {
    struct pair p = connect_pair();
    static const char bytes[8192];
    char in[512];
    size_t put = 0, n, got = 0;
    CHECK_EQ(cc_write_try(p.client, bytes, sizeof bytes, &put), 0);
    CHECK_EQ(put, 4096); /* the window */
    CHECK_EQ(cc_write_try(p.client, bytes, 1, &n), EAGAIN);
    CHECK_EQ(cc_write_until(p.client, bytes, 1, &n, cc_after_ms(1000)), ETIMEDOUT);
    CHECK_EQ(cc_read_full(p.server, in, sizeof in, &got), 0);
    CHECK_EQ(cc_write_try(p.client, bytes, 1, &n), EAGAIN); /* it is not known there yet */
    CHECK_EQ(cc_write(p.client, bytes, sizeof in, &n), 0);
    for (got = 0; got < 4096; got += n) CHECK_EQ(cc_read(p.server, in, sizeof in, &n), 0);
    cc_close(p.client);
    cc_close(p.server);
    cc_listener_close(p.listener);
    return arg;
}

TEST(windows_are_bounded) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, fill_window, NULL, NULL), 0);
}

/* ---- silence ---- */

/* The peer has become silent, and this side writes into a full window, or reads with keepalive. */
static void *silence(void *arg) {
    static const struct {
        CCConnOptions options;
        uint64_t seconds;
    } cases[] = {{.seconds = 924},
                 {.options = {.user_timeout_ms = 7000}, .seconds = 7},
                 {.options = {.keepalive = 10}, .seconds = 50}};
    static char bytes[8192];
    for (int i = 0; i < 3; i++) {
        bool reads = cases[i].options.keepalive != 0;
        CCSimNet net = calm_net();
        size_t n;
        use_net(net);
        struct pair p = {.listener = listen_at("tcp://127.0.0.1:5")};
        CHECK_EQ(cc_dial(&p.client, "tcp://127.0.0.1:5", &(CCDialOptions){.conn = cases[i].options}), 0);
        CHECK_EQ(cc_accept(p.listener, &p.server), 0);
        if (!reads) CHECK_EQ(cc_write_try(p.client, bytes, sizeof bytes, &n), 0);
        CHECK_EQ(cc_sleep_ms(100), 0); /* all of it has arrived */
        net.half_open_ppm = 1000000;
        use_net(net);
        uint64_t start = cc_now_ns();
        CHECK_EQ(cc_write(p.server, bytes, 1, NULL), 0);
        if (reads)
            CHECK_EQ(cc_read(p.client, bytes, 1, &n), ETIMEDOUT);
        else
            CHECK_EQ(cc_write(p.client, bytes, 1, NULL), ETIMEDOUT);
        CHECK_EQ(seconds_since(start), cases[i].seconds);
        cc_close(p.client);
        cc_close(p.server);
        cc_listener_close(p.listener);
    }
    return arg;
}

TEST(a_full_window_and_keepalive_notice_silence) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, silence, NULL, NULL), 0);
}

/* ---- pairs, pipes, buffers, selects, polls ---- */

static void *write_later(void *conn) {
    CHECK_EQ(cc_sleep_ms(1000), 0);
    CHECK_EQ(cc_write(conn, "line\n", 5, NULL), 0);
    return NULL;
}

static void *write_until_shut(void *conn) {
    static const char bytes[8192];
    int error = 0;
    while (error == 0) error = cc_write(conn, bytes, sizeof bytes, NULL);
    CHECK_EQ(error, EPIPE);
    return NULL;
}

static void *other_ways(void *arg) {
    CCConn *a, *b, *in, *out;
    CCReader reader;
    char *line;
    size_t length, ready;
    int sides;
    use_net(calm_net());
    CHECK_EQ(cc_socketpair(&a, &b), 0);
    CHECK_EQ(cc_pipe(&in, &out), 0);
    CC_NURSERY(n) {
        CHECK_EQ(cc_nursery_spawn(n, write_later, a), 0);
        CHECK_EQ(cc_nursery_spawn(n, write_later, out), 0);
        struct pollfd fds[] = {{.fd = cc_conn_fd(b), .events = POLLIN}, {.fd = cc_conn_fd(out), .events = POLLOUT}};
        CHECK_EQ(cc_poll(fds, 1, cc_after_ms(500), &ready), ETIMEDOUT);
        CHECK_EQ(cc_poll(fds, 2, cc_after_ms(500), &ready), 0);
        CHECK_EQ(ready, 1);
        CHECK_EQ(cc_fd_wait(cc_conn_fd(b), CC_READABLE, &sides), 0);
        CHECK_EQ(sides, CC_READABLE);
        CHECK_EQ(cc_reader_init(&reader, b, 0), 0);
        CHECK_EQ(cc_reader_line(&reader, &line, &length), 0);
        CHECK_EQ(strcmp(line, "line"), 0);
        cc_reader_free(&reader);
        CHECK_EQ(cc_fd_wait(cc_conn_fd(in), CC_READABLE, &sides), 0);
        CHECK_EQ(cc_reader_init(&reader, in, 0), 0);
        CHECK_EQ(cc_reader_line(&reader, &line, &length), 0);
        CHECK_EQ(strcmp(line, "line"), 0);
        cc_reader_free(&reader);
    }
    CHECK_EQ(cc_shutdown(in, CC_SHUT_READ), EOPNOTSUPP);
    CHECK_EQ(cc_conn_alive(in), 0);
    CHECK_EQ(cc_conn_alive(out), 0);
    CHECK_EQ(cc_write(out, "x", 1, NULL), 0);
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(cc_conn_alive(in), EAGAIN);
    cc_close(in);
    CHECK_EQ(cc_conn_alive(out), ENODATA);
    CHECK_EQ(cc_write(out, "x", 1, NULL), EPIPE); /* at once, as with a pipe of the system */
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(cc_write(out, "x", 1, NULL), EPIPE);
    cc_close(out);
    CHECK_EQ(cc_pipe(&in, &out), 0);
    cc_close(out);
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(cc_conn_alive(in), ENODATA);
    cc_close(in);
    CHECK_EQ(cc_unix_send_fds(a, &(int){0}, 1, "x", 1), EOPNOTSUPP); /* not simulated */
    CC_NURSERY(n) { /* a shutdown ends a write that waits, although nobody reads */
        CCConn *full, *idle;
        CHECK_EQ(cc_socketpair(&full, &idle), 0);
        CHECK_EQ(cc_nursery_spawn(n, write_until_shut, full), 0);
        CHECK_EQ(cc_sleep_ms(10), 0);
        CHECK_EQ(cc_shutdown(full, CC_SHUT_WRITE), 0);
        CHECK_EQ(cc_nursery_wait(n), 0);
        cc_close(full);
        cc_close(idle);
    }
    CHECK_EQ(cc_shutdown(b, CC_SHUT_READ), 0);
    CHECK_EQ(cc_write(a, "x", 1, NULL), EPIPE);
    CHECK_EQ(cc_write(b, "x", 1, NULL), 0);
    cc_close(a); /* with a byte that nobody has read: a reader gets ECONNRESET, a writer does not */
    CHECK_EQ(cc_write(b, "x", 1, NULL), EPIPE);
    CHECK_EQ(cc_sleep_ms(1000), 0);
    CHECK_EQ(cc_write(b, "x", 1, NULL), EPIPE);
    cc_close(b);
    /* descriptors of the system cannot be waited for */
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(cc_fd_wait(fds[0], CC_READABLE, &sides), ENOTSUP);
    close(fds[0]);
    close(fds[1]);
    return arg;
}

TEST(pairs_pipes_buffers_and_polls) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, other_ways, NULL, NULL), 0);
}

/* ---- what poll says ---- */

/* Of connections and pipes in all of their states; the same for those of the system and for simulated ones. */
struct polled {
    short got[64];
    size_t n;
};

static void poll_one(struct polled *p, CCConn *conn) {
    static const short asked[] = {POLLIN | POLLOUT | POLLRDHUP, POLLIN, POLLOUT, 0};
    for (int i = 0; i < 4; i++) {
        struct pollfd one = {.fd = cc_conn_fd(conn), .events = asked[i]};
        int error = cc_poll(&one, 1, CC_PASSED, NULL);
        CHECK_EQ(error, one.revents != 0 ? 0 : ETIMEDOUT);
        CHECK(p->n < sizeof p->got / sizeof *p->got);
        p->got[p->n++] = one.revents;
    }
}

/* Until the peer knows what was done here. */
static void await_poll(CCConn *conn, short events) {
    struct pollfd one = {.fd = cc_conn_fd(conn), .events = events};
    CHECK_EQ(cc_poll(&one, 1, cc_after_ms(60 * 1000), NULL), 0);
}

static struct pair poll_pair(bool tcp) {
    struct pair p = {NULL, NULL, NULL};
    CCAddr addr;
    if (!tcp) {
        CHECK_EQ(cc_socketpair(&p.client, &p.server), 0);
        return p;
    }
    CHECK_EQ(cc_listen(&p.listener, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_listener_addr(p.listener, &addr), 0);
    CHECK_EQ(cc_dial_addr(&p.client, &addr, NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_accept(p.listener, &p.server), 0);
    cc_listener_close(p.listener);
    return p;
}

static void *poll_all(void *polled) {
    CCConn *in, *out;
    char byte;
    size_t n;
    if (cc_sim_seed() != 0) use_net(calm_net());
    for (int tcp = 0; tcp < 2; tcp++) {
        struct pair p = poll_pair(tcp);
        poll_one(polled, p.client);
        CHECK_EQ(cc_write(p.server, "x", 1, NULL), 0);
        await_poll(p.client, POLLIN);
        CHECK_EQ(cc_shutdown(p.server, CC_SHUT_WRITE), 0);
        await_poll(p.client, POLLRDHUP);
        CHECK_EQ(cc_read(p.client, &byte, 1, &n), 0);
        poll_one(polled, p.client);
        CHECK_EQ(cc_shutdown(p.client, CC_SHUT_WRITE), 0);
        await_poll(p.server, 0);
        poll_one(polled, p.client);
        poll_one(polled, p.server);
        cc_close(p.client);
        cc_close(p.server);
        p = poll_pair(tcp);
        cc_abort(p.server);
        await_poll(p.client, 0);
        poll_one(polled, p.client);
        cc_close(p.client);
    }
    CHECK_EQ(cc_pipe(&in, &out), 0);
    poll_one(polled, in);
    poll_one(polled, out);
    cc_close(out);
    await_poll(in, 0);
    poll_one(polled, in);
    cc_close(in);
    CHECK_EQ(cc_pipe(&in, &out), 0);
    cc_close(in);
    await_poll(out, 0);
    poll_one(polled, out);
    cc_close(out);
    return NULL;
}

TEST(polls_say_what_the_system_says) {
    struct polled real = {.n = 0};
    CHECK_EQ(cc_run(poll_all, &real, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10 * 1000), 0);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct polled simulated = {.n = 0};
        CHECK_EQ(cc_sim_run(seed, poll_all, &simulated, NULL), 0);
        CHECK_EQ(simulated.n, real.n);
        for (size_t i = 0; i < real.n; i++) CHECK_EQ(simulated.got[i], real.got[i]);
    }
}

/* ---- accepting ---- */

static void *accept_order(void *arg) {
    CCConn *clients[4], *server;
    CCAddr addr;
    size_t n;
    use_net(calm_net());
    CCListener *l = listen_at("tcp://127.0.0.1:5");
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(cc_dial(&clients[i], "tcp://127.0.0.1:5", NULL), 0);
        CHECK_EQ(cc_write(clients[i], &(char){(char)('0' + i)}, 1, NULL), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        char byte;
        CHECK_EQ(cc_accept(l, &server), 0);
        CHECK_EQ(cc_conn_peer(server, &addr), 0);
        CHECK_EQ(cc_read(server, &byte, 1, &n), 0);
        note("%c", byte);
        cc_close(server);
        cc_close(clients[i]);
    }
    cc_listener_close(l);
    return arg;
}

TEST(accepts_come_in_any_order) {
    bool differs = false;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        clear_trace();
        CHECK_EQ(cc_sim_run(seed, accept_order, NULL, NULL), 0);
        if (strcmp(trace.text, "0123") != 0) differs = true;
    }
    CHECK(differs);
    same_twice(accept_order, 5);
}

static void *addresses(void *arg) {
    CCListener *l, *second;
    CCAddr addr;
    use_net(calm_net());
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    CHECK(addr.port >= 32768);
    CHECK_EQ(cc_listen(&second, "tcp://10.0.0.9:5", NULL), EADDRNOTAVAIL);
    cc_listener_close(l);
    CHECK_EQ(cc_listen(&l, "tcp://0.0.0.0:80", NULL), 0);
    CHECK_EQ(cc_listen(&second, "tcp://127.0.0.1:80", NULL), EADDRINUSE);
    CHECK_EQ(cc_listen(&second, "tcp://[::]:80", NULL), EADDRINUSE); /* that is IPv4 as well */
    CHECK_EQ(cc_listen(&second, "tcp://:80", NULL), EADDRINUSE);
    CHECK_EQ(cc_listen(&second, "tcp://[::]:80?v6only", NULL), 0);
    cc_listener_close(second);
    CHECK_EQ(cc_listen(&second, "tcp://[::1]:80", NULL), 0);
    cc_listener_close(second);
    cc_listener_close(l);
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:80?reuseport", NULL), 0);
    CHECK_EQ(cc_listen(&second, "tcp://127.0.0.1:80?reuseport", NULL), 0);
    cc_listener_close(second);
    cc_listener_close(l);
    CHECK_EQ(cc_listen(&l, "unix:/a", NULL), 0);
    CHECK_EQ(cc_listen(&second, "unix:/a", NULL), EADDRINUSE);
    CHECK_EQ(cc_listen(&second, "unix:/b", NULL), 0);
    cc_listener_close(second);
    cc_listener_close(l);
    return arg;
}

TEST(addresses_that_are_taken) {
    CHECK_EQ(cc_sim_run(1, addresses, NULL, NULL), 0);
}

/* ---- datagrams ---- */

enum { MESSAGES = 200 };

static void *messages(void *arg) {
    CCUdp *to, *from;
    CCSimNet net = calm_net();
    unsigned seen[MESSAGES] = {0}, late = 0, last = 0;
    net.loss_ppm = net.duplicate_ppm = 200000;
    use_net(net);
    CHECK_EQ(cc_udp_bind(&to, "udp://127.0.0.1:53", NULL), 0);
    CHECK_EQ(cc_udp_dial(&from, "udp://127.0.0.1:53", NULL), 0);
    for (unsigned i = 0; i < MESSAGES; i++) {
        CCDatagram d = {.bytes = &i, .size = sizeof i};
        CHECK_EQ(cc_udp_send(from, &d, 1, NULL), 0);
    }
    for (int error = 0; error == 0;) {
        unsigned number[2];
        CCDatagram list[2] = {{.bytes = &number[0], .size = 4}, {.bytes = &number[1], .size = 4}};
        size_t n;
        error = cc_udp_recv_until(to, list, 2, &n, cc_after_ms(1000));
        CHECK(error == 0 || error == ETIMEDOUT);
        for (size_t i = 0; i < n; i++) {
            CHECK(list[i].length == 4 && number[i] < MESSAGES);
            seen[number[i]]++;
            late += number[i] < last;
            last = number[i];
        }
    }
    unsigned lost = 0, doubled = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        lost += seen[i] == 0;
        doubled += seen[i] > 1;
        CHECK(seen[i] <= 2);
    }
    CHECK(lost > 0 && doubled > 0 && late > 0);
    note("%u lost, %u twice, %u late\n", lost, doubled, late);
    CHECK_EQ(cc_udp_send(from, &(CCDatagram){.bytes = trace.text, .size = 65508}, 1, NULL), EMSGSIZE);
    /* nobody is there */
    net = calm_net();
    use_net(net);
    cc_udp_close(to);
    CCDatagram d = {.bytes = &last, .size = 4};
    size_t n;
    CHECK_EQ(cc_udp_send(from, &d, 1, NULL), 0);
    CHECK_EQ(cc_udp_recv(from, &d, 1, &n), ECONNREFUSED);
    CHECK_EQ(cc_udp_send(from, &d, 1, NULL), 0);
    CHECK_EQ(cc_sleep_ms(10), 0);
    CHECK_EQ(cc_udp_send(from, &d, 1, NULL), ECONNREFUSED); /* of the one before */
    /* IPv4 through an IPv6 socket, and back */
    CHECK_EQ(cc_udp_bind(&to, "udp://[::]:54", NULL), 0);
    cc_udp_close(from);
    CHECK_EQ(cc_udp_dial(&from, "udp://127.0.0.1:54", NULL), 0);
    CHECK_EQ(cc_udp_send(from, &d, 1, NULL), 0);
    CHECK_EQ(cc_udp_recv(to, &d, 1, &n), 0);
    CHECK_EQ(n, 1);
    CHECK_EQ(cc_udp_send(to, &d, 1, NULL), 0); /* to where it came from */
    CHECK_EQ(cc_udp_recv(from, &d, 1, &n), 0);
    CHECK_EQ(cc_udp_send(from, &d, 1, NULL), 0);
    d.size = 1; /* less room than there are bytes */
    CHECK_EQ(cc_udp_recv(to, &d, 1, &n), 0);
    CHECK(n == 1 && d.length == 4);
    cc_udp_close(to);
    cc_udp_close(from);
    return arg;
}

TEST(datagrams) {
    same_twice(messages, 5);
}

/* ---- names ---- */

static void *names(void *arg) {
    CCSimNet net = calm_net();
    CCSimHost host;
    CCAddr list[4];
    size_t count = 4;
    unsigned failed = 0, six_first = 0;
    use_net(net);
    CHECK_EQ(cc_sim_host(&host, "store"), 0);
    CHECK_EQ(cc_resolve("nowhere", "80", NULL, list, &count), ENOENT);
    count = 4;
    CHECK_EQ(cc_resolve("store", "http", NULL, list, &count), EPROTONOSUPPORT);
    for (int i = 0; i < 20; i++) {
        uint64_t start = cc_now_ns();
        count = 4;
        CHECK_EQ(cc_resolve("STORE", "80", NULL, list, &count), 0);
        CHECK_EQ(count, 2);
        CHECK(list[0].port == 80 && list[0].kind != list[1].kind);
        CHECK(cc_now_ns() > start + 100000);
        six_first += list[0].kind == CC_ADDR_IP6;
    }
    CHECK(six_first > 0 && six_first < 20);
    count = 4;
    CHECK_EQ(cc_resolve("store", NULL, &(CCResolveHints){.kind = CC_ADDR_IP4}, list, &count), 0);
    CHECK_EQ(count, 1);
    count = 4;
    CHECK_EQ(cc_resolve_until("store", NULL, NULL, list, &count, cc_after_ns(1)), ETIMEDOUT);
    net.name_ppm = 500000;
    use_net(net);
    for (int i = 0; i < 40; i++) {
        count = 4;
        int error = cc_resolve("store", "80", NULL, list, &count);
        CHECK(error == 0 || error == EREMOTEIO);
        failed += error != 0;
    }
    CHECK(failed > 0 && failed < 40);
    CHECK_EQ(net_stats().name_failures, failed);
    return arg;
}

TEST(names_of_hosts) {
    for (uint64_t seed = 1; seed <= 5; seed++) CHECK_EQ(cc_sim_run(seed, names, NULL, NULL), 0);
}

/* ---- what nobody will ever end ---- */

static void *wait_for_nothing(void *arg) {
    struct pair p = connect_pair();
    char byte;
    size_t n;
    CHECK_EQ(cc_read(p.client, &byte, 1, &n), 0);
    return arg;
}

TEST_DIES(a_read_that_nobody_answers_is_a_deadlock, "deadlock") {
    (void)cc_sim_run(1, wait_for_nothing, NULL, NULL);
}

/* ---- misuse ---- */

TEST(outside_of_a_simulation) {
    CCSimHost host = 5;
    CCSimNet net;
    CCSimStats s;
    CHECK_EQ(cc_sim_host(&host, "a"), ENOTSUP);
    CHECK_EQ(cc_sim_host(NULL, "a"), EINVAL);
    CHECK_EQ(cc_sim_start(1, wait_for_nothing, NULL), ENOTSUP);
    CHECK_EQ(cc_sim_crash(1), ENOTSUP);
    CHECK_EQ(cc_sim_partition(0, 1, CC_FOREVER), ENOTSUP);
    CHECK_EQ(cc_sim_heal(0, 1), ENOTSUP);
    CHECK_EQ(cc_sim_net(&net), ENOTSUP);
    CHECK_EQ(cc_sim_net(NULL), EINVAL);
    CHECK_EQ(cc_sim_net_set(&net), ENOTSUP);
    CHECK_EQ(cc_sim_stats(&s), ENOTSUP);
    CHECK_EQ(cc_sim_stats(NULL), EINVAL);
    CHECK_EQ(cc_sim_host_self(), 0);
    CHECK(!cc_sim_is_up(0));
    CHECK_EQ(cc_sim_fibers(0), 0);
}

static void *bad_nets(void *arg) {
    CCSimNet net = calm_net(), bad = net;
    bad.window = 0;
    CHECK_EQ(cc_sim_net_set(&bad), EINVAL);
    bad = net;
    bad.latency_max_us = 0;
    CHECK_EQ(cc_sim_net_set(&bad), EINVAL);
    bad = net;
    bad.loss_ppm = 1000001;
    CHECK_EQ(cc_sim_net_set(&bad), EINVAL);
    bad = net;
    bad.reserved[3] = 1;
    CHECK_EQ(cc_sim_net_set(&bad), EINVAL);
    CHECK_EQ(cc_sim_net_set(NULL), EINVAL);
    CHECK_EQ(cc_sim_net_set(&net), 0);
    CHECK_EQ(cc_sim_net(&bad), 0);
    CHECK_EQ(bad.window, net.window);
    return arg;
}

TEST(networks_that_cannot_be) {
    CHECK_EQ(cc_sim_run(1, bad_nets, NULL, NULL), 0);
}
