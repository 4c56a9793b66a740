/* dial.c - connecting: one address, or several in parallel (RFC 8305).
 *
 * DIAL-1  At most one attempt wins: the first that takes `lock` with a connection. All others close their connections.
 * DIAL-2  The attempts are children of a nursery that ends before cc_dial returns, so their shared state is on its
 *         stack.
 */
#include "base/error.h"
#include "net/addr.h"
#include "net/conn.h"
#include "net/where.h"
#include "nursery/nursery.h"
#include "os/socket.h"

#include <ccc/cc_nursery.h>
#include <ccc/cc_sync.h>
#include <errno.h>
#include <sys/un.h>

enum { FALLBACK_MS = 250 }; /* RFC 8305, section 8 */

struct dial {
    const CCDialOptions *options;
    const CCConnOptions *conn;
    CCDeadline deadline;
};

/* ---- one address ---- */

static int set_up(int fd, const CCAddr *addr, const struct dial *d) {
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
        struct sockaddr_un un;
    } name;
    socklen_t length = sizeof name;
    int error = cc__conn_set(fd, addr->kind != CC_ADDR_UNIX, d->conn);
    if (error == 0 && d->options->local.kind != CC_ADDR_NONE) {
        error = cc_addr_to_sockaddr(&d->options->local, &name.any, &length);
        if (error == 0) error = -cc__os_bind(fd, &name.any, length);
    }
    length = sizeof name;
    if (error == 0) error = cc_addr_to_sockaddr(addr, &name.any, &length);
    if (error == 0) error = cc__fd_adopt(fd, true);
    if (error != 0) return error;
    return cc_fd_connect_until(fd, &name.any, length, d->deadline);
}

/* *fd is connected and adopted. */
static int connect_one(const CCAddr *addr, const struct dial *d, int *fd) {
    const CCAddr *local = &d->options->local;
    if (local->kind != CC_ADDR_NONE && local->kind != addr->kind) return EAFNOSUPPORT;
    *fd = cc__os_socket(cc__addr_family(addr), SOCK_STREAM);
    if (*fd < 0) return -*fd;
    int error = set_up(*fd, addr, d);
    if (error != 0) (void)cc__fd_close(*fd);
    return error;
}

/* ---- several ---- */

/* How far an attempt got: of two errors the higher one is reported. */
static int error_rank(int error) {
    static const int order[] = {EAFNOSUPPORT, EADDRNOTAVAIL, ENETUNREACH, EHOSTUNREACH, ENETDOWN,    EHOSTDOWN,
                                EACCES,       EPERM,         ETIMEDOUT,   ECONNRESET,   ECONNREFUSED};
    for (int i = 0; i < (int)array_len(order); i++)
        if (order[i] == error) return i;
    return error == 0 ? -1 : (int)array_len(order); /* local errors: no descriptors, no memory */
}

struct race {
    const struct dial *dial;
    struct lock lock;
    CCEvent changed;
    int winner;      /* a descriptor, or -1; lock */
    unsigned failed; /* how many attempts have failed; lock */
    int error;       /* lock */
    bool late;       /* the deadline has ended an attempt; lock */
};

struct attempt {
    struct race *race;
    CCAddr addr;
};

static void note_failure(struct race *race, int error) {
    uint64_t until = race->dial->deadline.ns;
    bool late = error == ETIMEDOUT && until != 0 && cc_now_ns() >= until;
    cc__lock_take(&race->lock);
    race->failed++;
    race->late = race->late || late;
    if (error_rank(error) > error_rank(race->error)) race->error = error;
    cc__lock_release(&race->lock);
}

static void *attempt_in_race(void *arg) {
    const struct attempt *a = arg;
    struct race *race = a->race;
    int fd = -1, error = connect_one(&a->addr, race->dial, &fd);
    if (error == 0) {
        cc__lock_take(&race->lock);
        bool won = race->winner < 0; /* DIAL-1 */
        if (won) race->winner = fd;
        cc__lock_release(&race->lock);
        if (!won) (void)cc__fd_close(fd);
    } else {
        note_failure(race, error);
    }
    (void)cc_event_set(&race->changed);
    return NULL;
}

/* No stack could be allocated for the attempt. */
static void fail_unstarted(void *arg) {
    const struct attempt *a = arg;
    note_failure(a->race, ENOMEM);
    (void)cc_event_set(&a->race->changed);
}

static int start(CCNursery *n, struct race *race, const CCAddr *addr) {
    struct attempt attempt = {race, *addr};
    CCSpawnOptions options = {.name = "cc_dial", .arg_size = sizeof attempt};
    return cc_nursery_spawn_ex(n, NULL, attempt_in_race, &attempt, &options);
}

static bool has_winner(struct race *race) {
    cc__lock_take(&race->lock);
    bool won = race->winner >= 0;
    cc__lock_release(&race->lock);
    return won;
}

/* Waits until an attempt has won or all that were started have failed (0), or it is time for the next one (EAGAIN). */
static int await_attempts(struct race *race, unsigned started, CCDeadline next) {
    CCDeadline until = cc__earlier(next.ns, race->dial->deadline);
    for (;;) {
        cc__lock_take(&race->lock);
        bool over = race->winner >= 0 || race->failed == started;
        cc__lock_release(&race->lock);
        if (over) return 0;
        int error = cc_event_wait_until(&race->changed, until);
        if (error == ETIMEDOUT) return until.ns == next.ns ? EAGAIN : ETIMEDOUT;
        if (error != 0) return error;
        (void)cc_event_reset(&race->changed);
    }
}

/* Starts attempts one after the other until one has won, or all have failed (0). */
static int run_race(CCNursery *n, struct race *race, const CCAddr *list, size_t count) {
    unsigned fallback = race->dial->options->fallback_ms != 0 ? race->dial->options->fallback_ms : FALLBACK_MS;
    for (unsigned i = 0; i < count && !has_winner(race); i++) {
        int error = start(n, race, &list[i]);
        if (error != 0) note_failure(race, error);
        error = await_attempts(race, i + 1, i + 1 < count ? cc_after_ms(fallback) : CC_FOREVER);
        if (error != 0 && error != EAGAIN) return error;
    }
    return 0;
}

/* Alternates IPv6 and IPv4, beginning with the kind of the first address; otherwise keeps the order. */
static void interleave(CCAddr *list, size_t count) {
    for (size_t i = 1; i < count; i++) {
        if (list[i].kind != list[i - 1].kind) continue;
        size_t other = i + 1;
        while (other < count && list[other].kind == list[i].kind) other++;
        if (other == count) return;
        CCAddr moved = list[other];
        for (; other > i; other--) list[other] = list[other - 1];
        list[i] = moved;
    }
}

static int connect_first(CCAddr *list, size_t count, const struct dial *d, int *fd) {
    if (count == 1) return connect_one(&list[0], d, fd);
    struct race race = {.dial = d, .winner = -1};
    CCNursery *n = NULL;
    int error = cc__cancel_nursery(&(CCNurseryConfig){.mode = CC_NURSERY_KEEP_GOING, .name = "cc_dial"}, &n);
    if (error != 0) return error;
    n->unstarted = fail_unstarted;
    interleave(list, count);
    error = run_race(n, &race, list, count);
    (void)cc_nursery_cancel(n);
    (void)cc_nursery_wait(n); /* the only possible error, an attempt without a stack, is already recorded */
    (void)cc_nursery_free(n); /* DIAL-2 */
    *fd = race.winner;
    if (race.winner >= 0 && error != 0) (void)cc__fd_close(race.winner);
    return error != 0 ? error : race.winner >= 0 ? 0 : race.late ? ETIMEDOUT : race.error;
}

/* ---- the calls ---- */

static int finish(CCConn **conn, CCAddr *list, size_t count, const struct dial *d) {
    int fd = -1, error = count == 0 ? ENOENT : connect_first(list, count, d, &fd);
    if (error != 0) return error;
    error = cc__conn_open(conn, fd, true);
    if (error != 0) (void)cc__fd_close(fd);
    return error;
}

static bool bad_options(const CCDialOptions *o) {
    return o != NULL && (cc__reserved_used(o) || cc__reserved_used(&o->conn) || cc__reserved_used(&o->local));
}

int cc_dial_until(CCConn **conn, const char *where_text, const CCDialOptions *options, CCDeadline deadline) {
    struct where where = {0};
    CCAddr list[WHERE_ADDRS];
    size_t count = 0;
    if (conn == NULL) return EINVAL;
    *conn = NULL;
    if (bad_options(options)) return EINVAL;
    if (options != NULL) {
        where.dial = *options;
        where.conn = options->conn;
    }
    int error = cc__where_parse(&where, where_text, TRANSPORT_TCP | TRANSPORT_UNIX, USE_DIAL);
    if (error == 0 && where.addr.kind == CC_ADDR_NONE && where.host[0] == 0) error = EINVAL;
    if (error == 0 && where.layer != NULL && where.layer->dialled == NULL) error = EOPNOTSUPP;
    if (error == 0) error = cc__where_addrs(&where, list, &count, deadline);
    if (error != 0) return error;
    error = finish(conn, list, count, &(struct dial){&where.dial, &where.conn, deadline});
    if (error != 0 || where.layer == NULL) return error;
    error = where.layer->dialled(conn, where.host, deadline, where.layer->arg);
    if (error == 0) return 0;
    cc_close(*conn);
    *conn = NULL;
    return error;
}

int cc_dial(CCConn **conn, const char *where, const CCDialOptions *options) {
    return cc_dial_until(conn, where, options, CC_FOREVER);
}

int cc_dial_addr(CCConn **conn, const CCAddr *addr, const CCDialOptions *options, CCDeadline deadline) {
    static const CCDialOptions none;
    if (conn == NULL) return EINVAL;
    *conn = NULL;
    if (addr == NULL || addr->kind == CC_ADDR_NONE || addr->kind > CC_ADDR_UNIX || cc__reserved_used(addr))
        return EINVAL;
    if (bad_options(options)) return EINVAL;
    CCAddr copy = *addr;
    if (options == NULL) options = &none;
    return finish(conn, &copy, 1, &(struct dial){options, &options->conn, deadline});
}
