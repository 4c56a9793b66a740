/* hosts.c - simulated hosts: names and addresses of their own, partitions, crashes, starts; a client, a proxy and a
 * server in one process. */
#include "sim_net.h"

enum { SEEDS = 15 };

static CCSimHost host_named(const char *name) {
    CCSimHost host;
    CHECK_EQ(cc_sim_host(&host, name), 0);
    return host;
}

/* ---- a server that is a host's ---- */

static atomic_uint serving, ended;

static void *echo_host(void *arg) {
    CCListener *l = listen_at(arg != NULL ? arg : "tcp://[::]:7");
    atomic_fetch_add(&serving, 1);
    CHECK_EQ(cc_serve(NULL, l, echo, NULL, NULL), 0);
    cc_listener_close(l);
    atomic_fetch_add(&ended, 1);
    return NULL;
}

static void start_echo(CCSimHost host) {
    unsigned before = atomic_load(&serving);
    CHECK_EQ(cc_sim_start(host, echo_host, NULL), 0);
    while (atomic_load(&serving) == before) CHECK_EQ(cc_sleep_ms(1), 0);
}

static int talk(const char *where, size_t size) {
    CCConn *conn;
    int error = cc_dial_until(&conn, where, NULL, cc_after_ms(20000));
    if (error != 0) return error;
    error = exchange(conn, 1, size);
    cc_close(conn);
    return error;
}

/* ---- where one is ---- */

static void *where_am_i(void *arg) {
    *(CCSimHost *)arg = cc_sim_host_self();
    return NULL;
}

static void *children(void *arg) {
    CCSimHost seen[3] = {99, 99, 99};
    CHECK_EQ(cc_sim_host_self(), *(CCSimHost *)arg);
    CC_NURSERY(n) {
        CHECK_EQ(cc_nursery_spawn(n, where_am_i, &seen[0]), 0);
        CHECK_EQ(cc_nursery_spawn(n, where_am_i, &seen[1]), 0);
    }
    cc_block_on(cc_fiber_spawn_task(where_am_i, &seen[2]));
    for (int i = 0; i < 3; i++) CHECK_EQ(seen[i], *(CCSimHost *)arg);
    CHECK(cc_sim_fibers(cc_sim_host_self()) >= 1);
    *(CCSimHost *)arg = 1000;
    return NULL;
}

static void *membership(void *arg) {
    CCSimHost a = host_named("a"), here = 77, run = a;
    CHECK_EQ(host_named("a"), a);
    CHECK(host_named("b") != a);
    CHECK_EQ(cc_sim_host_self(), 0);
    CHECK(cc_sim_is_up(0) && !cc_sim_is_up(a));
    CHECK_EQ(cc_sim_start(a, children, &run), 0);
    CHECK_EQ(cc_sim_start(a, children, &run), EALREADY);
    CHECK(cc_sim_is_up(a));
    while (cc_sim_fibers(a) > 0) CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(run, 1000);
    cc_block_on(cc_fiber_spawn_task(where_am_i, &here));
    CHECK_EQ(here, 0);
    return arg;
}

TEST(fibers_are_where_they_were_started) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, membership, NULL, NULL), 0);
}

static CCEvent may_end;

static void *waits_to_end(void *arg) {
    *(_Atomic bool *)arg = true;
    MAY_FAIL(cc_event_wait(&may_end));
    return NULL;
}

/* The first fiber of a host counts from its start on, whether it has run or not; so does one that a crash cancels. */
static void *first_fiber(void *arg) {
    CCSimHost a = host_named("a");
    _Atomic bool begun = false, again = false;
    may_end = (CCEvent){0};
    CHECK_EQ(cc_sim_start(a, waits_to_end, &begun), 0);
    CHECK_EQ(cc_sim_fibers(a), 1);
    CHECK_EQ(cc_event_set(&may_end), 0);
    while (cc_sim_fibers(a) > 0) CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK(begun);
    CHECK_EQ(cc_sim_crash(a), 0);
    CHECK_EQ(cc_event_reset(&may_end), 0);
    CHECK_EQ(cc_sim_start(a, waits_to_end, &again), 0);
    CHECK_EQ(cc_sim_crash(a), 0);
    while (cc_sim_fibers(a) > 0) CHECK_EQ(cc_sleep_ms(1), 0);
    if (!again) *(int *)arg += 1; /* it crashed before it had begun */
    return NULL;
}

TEST(the_first_fiber_counts_at_once) {
    int unstarted = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, first_fiber, &unstarted, NULL), 0);
    CHECK(unstarted > 0);
}

static void *misuse(void *arg) {
    CCSimHost host;
    char name[80];
    memset(name, 'n', sizeof name);
    name[64] = 0;
    CHECK_EQ(cc_sim_host(&host, name), EINVAL);
    CHECK_EQ(cc_sim_host(&host, ""), EINVAL);
    CHECK_EQ(cc_sim_host(&host, NULL), EINVAL);
    name[63] = 0;
    CHECK_EQ(cc_sim_host(&host, name), 0);
    CHECK_EQ(cc_sim_start(0, where_am_i, NULL), EALREADY);
    CHECK_EQ(cc_sim_start(33, where_am_i, NULL), EINVAL);
    CHECK_EQ(cc_sim_start(host, NULL, NULL), EINVAL);
    CHECK_EQ(cc_sim_crash(0), EINVAL);
    CHECK_EQ(cc_sim_crash(33), EINVAL);
    CHECK_EQ(cc_sim_crash(host), EALREADY);
    CHECK_EQ(cc_sim_partition(0, 0, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_sim_partition(0, 33, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_sim_heal(33, 0), EINVAL);
    for (int i = 0; i < 62; i++) {
        snprintf(name, sizeof name, "h%d", i);
        CHECK_EQ(cc_sim_host(&host, name), 0);
    }
    CHECK_EQ(cc_sim_host(&host, "one too many"), ENOSPC);
    CHECK_EQ(cc_sim_host(&host, "localhost"), 0);
    CHECK_EQ(host, 0);
    return arg;
}

TEST(hosts_that_cannot_be) {
    CHECK_EQ(cc_sim_run(1, misuse, NULL, NULL), 0);
}

/* ---- between hosts ---- */

static void *between(void *arg) {
    CCSimHost server = host_named("server");
    use_net(calm_net());
    start_echo(server);
    CHECK_EQ(talk("tcp://server:7", 1000), 0); /* by name: both addresses, one wins */
    CHECK_EQ(talk("tcp://10.0.0.2:7", 1000), 0);
    CHECK_EQ(talk("tcp://[fd00::2]:7", 1000), 0);
    CHECK_EQ(talk("tcp://127.0.0.1:7", 1000), ECONNREFUSED); /* that is here */
    CHECK_EQ(cc_sim_crash(server), 0);
    return arg;
}

TEST(hosts_talk) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, between, NULL, NULL), 0);
}

static void *partitions(void *arg) {
    CCSimHost server = host_named("server");
    CCConn *conn;
    char byte = 1;
    size_t n;
    use_net(calm_net());
    start_echo(server);
    CHECK_EQ(cc_dial(&conn, "tcp://server:7", NULL), 0);
    uint64_t start = cc_now_ns();
    CHECK_EQ(cc_sim_partition(0, server, cc_after_ms(5000)), 0); /* a stall */
    CHECK_EQ(cc_write(conn, &byte, 1, NULL), 0);
    CHECK_EQ(cc_read_until(conn, &byte, 1, &n, cc_after_ms(4000)), ETIMEDOUT);
    CHECK_EQ(cc_read(conn, &byte, 1, &n), 0);
    CHECK_EQ(n, 1);
    CHECK((cc_now_ns() - start) / 1000000 >= 5000);
    CHECK_EQ(cc_sim_partition(server, 0, CC_FOREVER), 0); /* until it is healed */
    CHECK_EQ(cc_write(conn, "ab", 2, NULL), 0);
    CHECK_EQ(cc_write(conn, "cd", 2, NULL), 0);
    CHECK_EQ(talk("tcp://server:7", 10), ETIMEDOUT);
    CHECK_EQ(cc_sim_heal(0, server), 0);
    char all[4];
    CHECK_EQ(cc_read_full(conn, all, 4, NULL), 0);
    CHECK(memcmp(all, "abcd", 4) == 0); /* in their order */
    CHECK(net_stats().held > 0);
    CHECK_EQ(net_stats().partitions, 2);
    cc_close(conn);
    CHECK_EQ(cc_sim_crash(server), 0);
    return arg;
}

/* A partition that has an end is healed, or made shorter, before that: what it held up goes before what is sent now. */
static void *ends_early(void *arg) {
    CCSimHost server = host_named("server");
    CCConn *conn;
    char all[8];
    use_net(calm_net());
    start_echo(server);
    CHECK_EQ(cc_dial(&conn, "tcp://server:7", NULL), 0);
    for (int healed = 0; healed < 2; healed++) {
        uint64_t start = cc_now_ns();
        CHECK_EQ(cc_sim_partition(0, server, cc_after_ms(50000)), 0);
        CHECK_EQ(cc_write(conn, "abcd", 4, NULL), 0);
        CHECK_EQ(cc_sleep_ms(1000), 0);
        CHECK_EQ(healed ? cc_sim_heal(0, server) : cc_sim_partition(0, server, cc_after_ms(1000)), 0);
        CHECK_EQ(cc_write(conn, "efgh", 4, NULL), 0);
        CHECK_EQ(cc_read_full(conn, all, 8, NULL), 0);
        CHECK(memcmp(all, "abcdefgh", 8) == 0);
        CHECK((cc_now_ns() - start) / 1000000 < 10000);
    }
    cc_close(conn);
    CHECK_EQ(cc_sim_crash(server), 0);
    return arg;
}

TEST(partitions_that_end_early_keep_the_order) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, ends_early, NULL, NULL), 0);
}

TEST(partitions_stall_and_heal) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, partitions, NULL, NULL), 0);
}

/* ---- crashes ---- */

static void *crashes(void *arg) {
    CCSimHost server = host_named("server");
    CCConn *conn, *kept;
    char byte = 1;
    size_t n;
    unsigned before = atomic_load(&ended);
    use_net(calm_net());
    start_echo(server);
    CHECK_EQ(cc_dial(&conn, "tcp://server:7", NULL), 0);
    CCDialOptions probing = {.conn = {.keepalive = 10}};
    CHECK_EQ(cc_dial(&kept, "tcp://server:7", &probing), 0);
    CHECK_EQ(cc_sleep_ms(100), 0);
    CHECK(cc_sim_fibers(server) >= 3);
    uint64_t start = cc_now_ns();
    CHECK_EQ(cc_sim_crash(server), 0);
    CHECK_EQ(cc_sim_crash(server), EALREADY);
    CHECK(!cc_sim_is_up(server));
    CHECK_EQ(cc_read_until(conn, &byte, 1, &n, cc_after_ms(1000)), ETIMEDOUT); /* no word of it */
    CHECK_EQ(cc_read(kept, &byte, 1, &n), ETIMEDOUT);
    CHECK_EQ((cc_now_ns() - start) / 1000000000, 50); /* five probes */
    CHECK_EQ(talk("tcp://server:7", 10), ETIMEDOUT);
    start_echo(server);
    CHECK_EQ(atomic_load(&ended), before + 1); /* its fibers were waited for */
    CHECK_EQ(cc_write(conn, &byte, 1, NULL), 0);
    CHECK_EQ(cc_read(conn, &byte, 1, &n), ECONNRESET); /* that connection is unknown there */
    CHECK_EQ(talk("tcp://server:7", 500), 0);
    cc_close(conn);
    cc_close(kept);
    CHECK_EQ(cc_sim_crash(server), 0);
    return arg;
}

TEST(crashes_and_starts) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, crashes, NULL, NULL), 0);
}

/* The server crashes, and in the second round starts again, while the client waits for room in the window. */
static void *crash_behind_a_full_window(void *arg) {
    static char bytes[8192];
    CCSimHost server = host_named("server");
    use_net(calm_net());
    for (int restarts = 0; restarts < 2; restarts++) {
        CCConn *conn;
        start_echo(server);
        CHECK_EQ(cc_dial(&conn, "tcp://server:7", NULL), 0);
        while (cc_write_until(conn, bytes, sizeof bytes, NULL, cc_after_ms(1000)) == 0) {
        } /* no echo is read */
        uint64_t start = cc_now_ns();
        CHECK_EQ(cc_sim_crash(server), 0);
        if (restarts) start_echo(server);
        CHECK_EQ(cc_write(conn, bytes, 1, NULL), restarts ? ECONNRESET : ETIMEDOUT);
        CHECK_EQ((cc_now_ns() - start) / 1000000000, restarts ? 120 : 924);
        cc_close(conn);
    }
    CHECK_EQ(cc_sim_crash(server), 0);
    return arg;
}

TEST(a_full_window_notices_a_crash) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        CHECK_EQ(cc_sim_run(seed, crash_behind_a_full_window, NULL, NULL), 0);
}

/* ---- how the fibers of a host end ---- */

static void *sleeper(void *arg) {
    (void)arg;
    CHECK_EQ(cc_sleep_ms(100000000), ECANCELED);
    return NULL;
}

static void *stubborn(void *arg) {
    CCChan *c = cc_chan_create(sizeof(int), 0);
    int value;
    CCListener *l;
    CCConn *conn;
    (void)arg;
    CCTask detached = cc_fiber_spawn_task(sleeper, NULL);
    bool shielded = cc_shield_begin();
    CHECK_EQ(cc_chan_recv(c, &value, sizeof value), ECANCELED); /* a crash pierces shields */
    cc_shield_end(shielded);
    CHECK_EQ(cc_listen(&l, "tcp://[::]:8", NULL), ECANCELED);
    CHECK_EQ(cc_dial(&conn, "tcp://localhost:8", NULL), ECANCELED);
    CCTask late = cc_fiber_spawn_task(sleeper, NULL); /* one that is started too late */
    cc_block_on(detached);
    cc_block_on(late);
    cc_chan_free(c);
    atomic_fetch_add(&ended, 1);
    return NULL;
}

static void *dying(void *arg) {
    CCSimHost host = host_named("stubborn");
    unsigned before = atomic_load(&ended);
    use_net(calm_net());
    CHECK_EQ(cc_sim_start(host, stubborn, NULL), 0);
    CHECK_EQ(cc_sleep_ms(10), 0);
    CHECK_EQ(cc_sim_crash(host), 0);
    while (cc_sim_fibers(host) > 0) CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(atomic_load(&ended), before + 1);
    return arg;
}

TEST(a_crash_cancels_whatever_its_fibers_do) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, dying, NULL, NULL), 0);
}

static void *kills_itself(void *arg) {
    CHECK_EQ(cc_sim_crash(cc_sim_host_self()), 0);
    CHECK_EQ(cc_sleep_ms(1), ECANCELED);
    atomic_fetch_add(&ended, 1);
    return arg;
}

static void *suicide(void *arg) {
    CCSimHost host = host_named("h");
    unsigned before = atomic_load(&ended);
    CHECK_EQ(cc_sim_start(host, kills_itself, NULL), 0);
    while (cc_sim_is_up(host) || cc_sim_fibers(host) > 0) CHECK_EQ(cc_sleep_ms(1), 0);
    while (atomic_load(&ended) == before) CHECK_EQ(cc_sleep_ms(1), 0);
    return arg;
}

TEST(a_host_crashes_itself) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, suicide, NULL, NULL), 0);
}

/* ---- a client, a proxy and a server, with all that the seed has for them ---- */

static void *one_way(void *arg) {
    CCConn **ends = arg;
    uint64_t n;
    int error = cc_copy(ends[1], ends[0], UINT64_MAX, &n);
    if (error == 0) error = cc_shutdown(ends[1], CC_SHUT_WRITE);
    if (error != 0) (void)cc_shutdown(ends[1], CC_SHUT_BOTH);
    return NULL;
}

static int proxy(CCConn *conn, void *arg) {
    CCConn *server;
    (void)arg;
    int error = cc_dial_until(&server, "tcp://server:7", NULL, cc_after_ms(3000));
    if (error != 0) return error;
    CCConn *there[2] = {conn, server}, *back[2] = {server, conn};
    CC_NURSERY(n) {
        CHECK_EQ(cc_nursery_spawn(n, one_way, there), 0);
        CHECK_EQ(cc_nursery_spawn(n, one_way, back), 0);
    }
    cc_close(server);
    return 0;
}

static void *proxy_host(void *arg) {
    CCListener *l = listen_at("tcp://[::]:8");
    (void)arg;
    CHECK_EQ(cc_serve(NULL, l, proxy, NULL, NULL), 0);
    cc_listener_close(l);
    return NULL;
}

/* Requests until three were answered; the server and the proxy crash meanwhile. */
static void *client_host(void *arg) {
    unsigned attempts = 0;
    for (unsigned good = 0; good < 3 && attempts < 200; attempts++) {
        int error = talk("tcp://proxy:8", 300);
        note("%u: %d at %llu\n", attempts, error, (unsigned long long)cc_now_ns());
        good += error == 0;
        if (error != 0 && cc_sleep_ms(500) != 0) break;
    }
    CHECK(attempts < 200);
    atomic_store((atomic_uint *)arg, 1);
    return NULL;
}

static void *whole_program(void *arg) {
    CCSimHost client = host_named("client"), middle = host_named("proxy"), server = host_named("server");
    atomic_uint done = 0;
    CHECK_EQ(cc_sim_start(server, echo_host, NULL), 0);
    CHECK_EQ(cc_sim_start(middle, proxy_host, NULL), 0);
    CHECK_EQ(cc_sim_start(client, client_host, &done), 0);
    CHECK_EQ(cc_sleep_ms(40), 0);
    CHECK_EQ(cc_sim_partition(middle, server, cc_after_ms(200)), 0);
    CHECK_EQ(cc_sim_crash(server), 0);
    CHECK_EQ(cc_sim_start(server, echo_host, NULL), 0);
    CHECK_EQ(cc_sleep_ms(40), 0);
    CHECK_EQ(cc_sim_crash(middle), 0);
    CHECK_EQ(cc_sim_start(middle, proxy_host, NULL), 0);
    while (atomic_load(&done) == 0) CHECK_EQ(cc_sleep_ms(10), 0);
    note("%llu packets, %llu bytes\n", (unsigned long long)net_stats().packets, (unsigned long long)net_stats().bytes);
    CHECK_EQ(cc_sim_crash(server), 0);
    CHECK_EQ(cc_sim_crash(middle), 0);
    CHECK_EQ(cc_sim_crash(client), 0);
    return arg;
}

TEST(client_proxy_and_server) {
    same_twice(whole_program, 25);
}
