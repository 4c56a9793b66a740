/* names.c - name resolution: numeric addresses at once, names by the system's resolver, on a thread of the blocking
 * pool.
 *
 * NAME-1  One lookup per question at a time: callers that ask the same while it is in progress wait for it. The caller
 *         that started it may leave; it then continues for the others.
 * NAME-2  A lookup that was given up before it ran, or that panicked, is ABANDONED: its waiters retry. So is a lookup
 *         that its caller runs itself (cc_resolve_by), if that caller leaves.
 * NAME-3  `refs` counts the table, every waiter, and the runner (a pool thread or the caller); the last one frees it.
 *         `lock` guards everything except what the runner writes before it sets DONE.
 */
#include "base/mem.h"
#include "net/addr.h"
#include "net/conn.h"
#include "net/net.h"
#include "net/where.h"
#include "os/resolver.h"
#include "sim/sim.h"
#include "sync/list.h"

#include <ccc/cc_blocking.h>
#include <ccc/cc_dns.h>
#include <ccc/cc_panic.h>
#include <ccc/cc_sync.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

enum { KEPT = 64, KEEP_MS = 5000, BUCKETS = 1024 };

enum lookup_state { RUNNING, DONE, ABANDONED };

struct lookup {
    struct link link; /* in its bucket of the table */
    struct link aged; /* kept: among those that are, oldest first */
    bool linked, kept;
    unsigned bucket;
    unsigned refs; /* NAME-3 */
    enum lookup_state state;
    char host[HOST_MAX], service[SERVICE_MAX];
    bool has_service;
    CCResolveHints hints;
    CCResolveFn fn;      /* the hook that resolves it; NULL: `by`, or the system */
    CCResolveUntilFn by; /* the hook that runs in the caller's own context */
    void *arg;
    CCEvent ended;
    uint64_t until; /* DONE: how long it may be used */
    int error;
    size_t count;
    CCAddr list[WHERE_ADDRS];
};

static struct {
    struct lock lock;
    bool begun;                   /* the lists are initialised */
    struct link buckets[BUCKETS]; /* by host */
    struct link kept;             /* those in the table that are DONE */
    unsigned kept_count;
    CCResolveFn fn;
    CCResolveUntilFn by;
    void *arg;
} names;

/* A port by its number; NULL is 0. */
static bool parse_port(const char *service, uint16_t *port) {
    unsigned value = 0;
    *port = 0;
    if (service == NULL) return true;
    if (*service == 0) return false;
    for (; *service != 0; service++) {
        if (*service < '0' || *service > '9') return false;
        value = value * 10 + (unsigned)(*service - '0');
        if (value > UINT16_MAX) return false;
    }
    *port = (uint16_t)value;
    return true;
}

/* Not a port, and not to be looked up: the C library accepts signs, space and any number of digits, and truncates the
 * number. */
static bool is_no_service(const char *service) {
    uint16_t port;
    if (service == NULL || parse_port(service, &port)) return false;
    return service[strspn(service, "0123456789")] == 0 || strchr(" \t\n\v\f\r+-", *service) != NULL;
}

static size_t add(CCAddr *list, size_t room, size_t count, const CCAddr *addr, int kind) {
    if ((kind == CC_ADDR_NONE || kind == addr->kind) && count < room) list[count++] = *addr;
    return count;
}

/* Resolves numeric addresses at once: 0 with *count, or EAGAIN: it is a name. */
static int resolve_numbers(const char *host, const char *service, int kind, CCAddr *list, size_t *count) {
    struct host_port parts = {.host = host, .host_length = strlen(host)};
    CCAddr addr = {.kind = CC_ADDR_IP6, .length = 16}, addr4 = {.kind = CC_ADDR_IP4, .length = 4};
    size_t n = 0;
    if (!parse_port(service, &addr.port)) return EAGAIN;
    addr4.port = addr.port;
    if (*host == 0) {
        n = add(list, *count, n, &addr, kind);
        n = add(list, *count, n, &addr4, kind);
    } else {
        int error = cc__addr_parse_ip(&addr, &parts);
        if (error != 0) return error == EINVAL ? EAGAIN : error;
        addr.port = addr4.port;
        n = add(list, *count, n, &addr, kind);
    }
    if (n == 0) return ENOENT;
    *count = n;
    return 0;
}

static int ask_system(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list, size_t *count) {
    struct addrinfo *found;
    CCAddr addr;
    size_t n = 0;
    int family = hints->kind == CC_ADDR_IP4 ? AF_INET : hints->kind == CC_ADDR_IP6 ? AF_INET6 : AF_UNSPEC;
    int error = cc__os_resolve(host, service, family, hints->datagrams, &found);
    if (error != 0) return error;
    for (const struct addrinfo *a = found; a != NULL; a = a->ai_next)
        if (cc_addr_from_sockaddr(&addr, a->ai_addr, a->ai_addrlen) == 0) n = add(list, *count, n, &addr, CC_ADDR_NONE);
    cc__os_resolved_free(found);
    if (n == 0) return ENOENT;
    *count = n;
    return 0;
}

/* ---- one lookup ---- */

/* deadline: that of the caller that runs the lookup; other callers may wait for it too. */
static int ask(struct lookup *l, CCDeadline deadline) {
    const char *service = l->has_service ? l->service : NULL;
    l->count = WHERE_ADDRS;
    int error = l->fn != NULL   ? l->fn(l->host, service, &l->hints, l->list, &l->count, l->arg)
                : l->by != NULL ? l->by(l->host, service, &l->hints, l->list, &l->count, deadline, l->arg)
                                : ask_system(l->host, service, &l->hints, l->list, &l->count);
    if (error != 0 || l->count > WHERE_ADDRS) l->count = 0;
    return error != 0 ? error : l->count > 0 ? 0 : ENOENT;
}

static void unlink_locked(struct lookup *l) {
    if (!l->linked) return;
    cc__list_remove(&l->link);
    l->linked = false;
    l->refs--;
    if (!l->kept) return;
    cc__list_remove(&l->aged);
    l->kept = false;
    names.kept_count--;
}

/* Only successful lookups are kept. */
static void keep_locked(struct lookup *l) {
    if (!l->linked) return;
    cc__list_push_back(&names.kept, &l->aged);
    l->kept = true;
    if (++names.kept_count <= KEPT) return;
    struct lookup *oldest = container_of(cc__get(&names.kept.next), struct lookup, aged);
    unlink_locked(oldest);
    if (oldest->refs == 0) cc__mem_free(oldest);
}

/* Drops one reference and releases the lock. */
static void drop_and_unlock(struct lookup *l) {
    bool last = --l->refs == 0;
    cc__lock_release(&names.lock);
    if (last) cc__mem_free(l);
}

static void say_done(struct lookup *l, int error) {
    cc__lock_take(&names.lock);
    l->error = error;
    l->state = DONE;
    l->until = cc_after_ms(KEEP_MS).ns;
    if (error == 0)
        keep_locked(l);
    else
        unlink_locked(l);
    cc__lock_release(&names.lock);
    (void)cc_event_set(&l->ended);
    cc__lock_take(&names.lock);
    drop_and_unlock(l);
}

/* Runs on the pool thread. Returns l: it has run. */
static void *run(void *arg) {
    struct lookup *l = arg;
    say_done(l, ask(l, CC_FOREVER));
    return l;
}

/* NAME-2. */
static void abandon(struct lookup *l) {
    cc__lock_take(&names.lock);
    l->state = ABANDONED;
    unlink_locked(l);
    cc__lock_release(&names.lock);
    (void)cc_event_set(&l->ended);
    cc__lock_take(&names.lock);
    drop_and_unlock(l);
}

/* Called after the caller that started the lookup has left. */
static void clean_up(void *arg, void *result) {
    if (result == NULL) abandon(arg);
}

/* For a caller that runs the lookup itself. */
struct own_run {
    struct lookup *lookup;
    bool returned, answered;
};

static void end_own_run(void *arg) {
    struct own_run *r = arg;
    if (r->answered) return;
    abandon(r->lookup);
    if (r->returned) return;
    cc__lock_take(&names.lock); /* a panic: resolve_name, which has the other two references, does not continue */
    r->lookup->refs--;
    drop_and_unlock(r->lookup);
}

static int run_here(struct lookup *l, CCDeadline deadline) {
    struct own_run r = {.lookup = l};
    CC_DEFER(end_own_run, &r);
    int error = ask(l, deadline);
    r.returned = true;
    if (error == ETIMEDOUT || error == ECANCELED) return error;
    r.answered = true;
    say_done(l, error);
    return 0;
}

/* ---- the table ---- */

static bool is_same(const struct lookup *l, const struct lookup *wanted) {
    return l->fn == wanted->fn && l->by == wanted->by && l->arg == wanted->arg &&
           l->has_service == wanted->has_service && l->hints.kind == wanted->hints.kind &&
           l->hints.datagrams == wanted->hints.datagrams && strcasecmp(l->host, wanted->host) == 0 &&
           strcmp(l->service, wanted->service) == 0;
}

/* Names do not depend on case. */
static unsigned bucket_of(const char *host) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *host != 0; host++) {
        unsigned char byte = (unsigned char)*host;
        hash = (hash ^ (byte >= 'A' && byte <= 'Z' ? byte + 32u : byte)) * 16777619u;
    }
    return (hash ^ hash >> 16) % BUCKETS;
}

static void begin_table_locked(void) {
    if (names.begun) return;
    for (unsigned i = 0; i < BUCKETS; i++) cc__list_init(&names.buckets[i]);
    cc__list_init(&names.kept);
    names.kept_count = 0;
    names.begun = true;
}

/* Finds a lookup that can be used or waited for. Removes an expired one. */
static struct lookup *find_locked(const struct lookup *wanted) {
    begin_table_locked();
    struct link *bucket = &names.buckets[wanted->bucket];
    for (struct link *at = cc__get(&bucket->next); at != bucket; at = cc__get(&at->next)) {
        struct lookup *l = container_of(at, struct lookup, link);
        if (!is_same(l, wanted)) continue;
        if (l->state == RUNNING || (l->until > cc_now_ns() && !wanted->hints.fresh)) return l;
        unlink_locked(l); /* it is done, so it has no waiters */
        if (l->refs == 0) cc__mem_free(l);
        return NULL;
    }
    return NULL;
}

static void add_locked(struct lookup *l) {
    cc__list_push_back(&names.buckets[l->bucket], &l->link);
    l->linked = true;
}

static void answer_by(CCResolveFn fn, CCResolveUntilFn by, void *arg) {
    cc__lock_take(&names.lock);
    names.fn = fn;
    names.by = by;
    names.arg = arg;
    for (unsigned i = 0; i < BUCKETS && names.begun; i++) {
        while (!cc__list_empty(&names.buckets[i])) {
            struct lookup *l = container_of(cc__get(&names.buckets[i].next), struct lookup, link);
            unlink_locked(l);
            if (l->refs == 0) cc__mem_free(l);
        }
    }
    cc__lock_release(&names.lock);
}

void cc_resolve_hook(CCResolveFn fn, void *arg) {
    answer_by(fn, NULL, arg);
}
void cc_resolve_by(CCResolveUntilFn fn, void *arg) {
    answer_by(NULL, fn, arg);
}

void cc__names_forget(void) {
    names.lock = (struct lock){0};
    names.begun = false; /* the threads and waiters of lookups do not exist in the child */
}

/* ---- resolving ---- */

/* Starts a lookup and waits for it. The caller holds the lock, which is released, and a reference to l. */
static int begin_locked(struct lookup *l, CCDeadline deadline) {
    CCBlockingOptions options = {.pool = CC_POOL_SLOW, .may_abandon = true, .cleanup = clean_up};
    l->refs += 2; /* the table's and the thread's */
    add_locked(l);
    cc__lock_release(&names.lock);
    if (l->by != NULL) return run_here(l, deadline);
    int error = cc_blocking_ex(run, l, NULL, &options, deadline);
    if (error != 0 && error != ECANCELED && error != ETIMEDOUT) abandon(l); /* clean_up was not called */
    return error;
}

static int take_answer(const struct lookup *l, CCAddr *list, size_t *count) {
    if (l->error != 0) return l->error;
    if (*count > l->count) *count = l->count;
    memcpy(list, l->list, *count * sizeof *list);
    return 0;
}

/* own: the lookup to start if no equal one is in progress; dropped in any case. */
static int resolve_name(struct lookup *own, CCAddr *list, size_t *count, CCDeadline deadline) {
    int error = 0;
    struct lookup *l;
    for (bool answered = false; !answered && error == 0;) {
        cc__lock_take(&names.lock);
        own->fn = names.fn;
        own->by = names.by;
        own->arg = names.arg;
        l = find_locked(own);
        if (l == NULL) {
            own->refs++;
            l = own;
            error = begin_locked(l, deadline);
        } else {
            l->refs++;
            bool running = l->state == RUNNING;
            cc__lock_release(&names.lock);
            if (running) error = cc_event_wait_until(&l->ended, deadline); /* NAME-1 */
        }
        cc__lock_take(&names.lock);
        if (error == 0 && l->state == DONE) {
            error = take_answer(l, list, count);
            answered = true;
        }
        drop_and_unlock(l);
    }
    cc__lock_take(&names.lock);
    drop_and_unlock(own);
    return error;
}

/* Looks up a simulated host by name; services must be numbers. */
static int ask_simulated(struct lookup *l, CCDeadline deadline) {
    uint16_t port;
    uint64_t delay;
    l->count = WHERE_ADDRS;
    if (!parse_port(l->has_service ? l->service : NULL, &port)) return EPROTONOSUPPORT;
    int error = cc__sim_resolve(l->host, port, l->hints.kind, l->list, &l->count, &delay);
    CCDeadline then = cc_after_ns(delay);
    bool late = deadline.ns != 0 && deadline.ns < then.ns;
    int slept = cc_sleep_until(late ? deadline : then);
    return slept != 0 ? slept : late ? ETIMEDOUT : error;
}

/* The fiber calls the hook itself, and nothing is cached: a run depends only on its seed. */
static int resolve_simulated(struct lookup *own, CCAddr *list, size_t *count, CCDeadline deadline) {
    own->fn = names.fn;
    own->arg = names.arg;
    own->error = own->fn != NULL ? ask(own, deadline) : ask_simulated(own, deadline);
    int error = take_answer(own, list, count);
    cc__mem_free(own);
    return error;
}

int cc_resolve_until(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list, size_t *count,
                     CCDeadline deadline) {
    static const CCResolveHints none;
    if (list == NULL || count == NULL || *count == 0) return EINVAL;
    if (hints == NULL) hints = &none;
    if (host == NULL) host = "";
    if (cc__reserved_used(hints) || hints->kind < CC_ADDR_NONE || hints->kind > CC_ADDR_IP6) return EINVAL;
    if (strlen(host) >= HOST_MAX || (service != NULL && strlen(service) >= SERVICE_MAX)) return EINVAL;
    if (is_no_service(service)) return EPROTONOSUPPORT;
    int error = resolve_numbers(host, service, hints->kind, list, count);
    if (error != EAGAIN) return error;
    struct lookup *own = cc__mem_alloc_small(sizeof *own);
    if (own == NULL) return ENOMEM;
    strcpy(own->host, host);
    if (service != NULL) strcpy(own->service, service);
    own->has_service = service != NULL;
    own->hints = *hints;
    own->bucket = bucket_of(host);
    own->refs = 1;
    return cc__sim_on() ? resolve_simulated(own, list, count, deadline) : resolve_name(own, list, count, deadline);
}

int cc_resolve(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list, size_t *count) {
    return cc_resolve_until(host, service, hints, list, count, CC_FOREVER);
}
