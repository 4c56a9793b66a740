/* system.c - sockets of the simulated operating system: their table, which of them are ready, their addresses. */
#include "sim/system.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

struct sys cc__sys;

enum { DESCRIPTORS_MAX = 1 << 20 };

/* ---- sockets ---- */

struct sock *cc__sys_find(struct ref ref) { /* SYS-3 */
    struct sock *s = ref.serial != 0 && ref.index < cc__sys.socks_count ? cc__sys.socks[ref.index] : NULL;
    return s != NULL && s->self.serial == ref.serial ? s : NULL;
}

struct sock *cc__sys_numbered(int fd) {
    uint32_t i = (uint32_t)(fd - OS_SIMULATED);
    return i < cc__sys.socks_count ? cc__sys.socks[i] : NULL;
}

int cc__sys_number(const struct sock *s) {
    return OS_SIMULATED + (int)s->self.index;
}

static bool table_grow(void) {
    uint32_t count = cc__sys.socks_count == 0 ? 64 : cc__sys.socks_count * 2;
    struct sock **more = count <= DESCRIPTORS_MAX ? cc__mem_alloc(count * sizeof(struct sock *)) : NULL;
    if (more == NULL) return false;
    if (cc__sys.socks_count > 0) memcpy(more, cc__sys.socks, cc__sys.socks_count * sizeof(struct sock *));
    cc__mem_free(cc__sys.socks);
    cc__sys.socks = more;
    cc__sys.socks_count = count;
    return true;
}

struct sock *cc__sys_make(enum sock_kind kind, uint32_t host) {
    uint32_t i = 0;
    while (i < cc__sys.socks_count && cc__sys.socks[i] != NULL) i++;
    if (i == cc__sys.socks_count && !table_grow()) return NULL;
    struct sock *s = cc__mem_alloc_small(sizeof *s);
    if (s == NULL) return NULL;
    s->kind = kind;
    s->self = (struct ref){i, ++cc__sys.serials};
    s->host = host;
    s->incarnation = cc__sys.hosts[host].incarnation;
    s->peer_host = host;
    cc__sys.socks[i] = s;
    return s;
}

int cc__sys_may_open(void) {
    if (!cc__sys_chance(cc__sys.net.no_descriptor_ppm)) return 0;
    cc__sys.stats.no_descriptors++;
    return -EMFILE;
}

int cc__sys_open(enum sock_kind kind, struct sock **made) {
    struct sys_placement placement = cc__sys_placement();
    if (cc__sys_placement_gone(placement)) return -ECANCELED;
    int rc = kind == SOCK_SPARE ? 0 : cc__sys_may_open();
    *made = rc == 0 ? cc__sys_make(kind, placement.host) : NULL;
    if (*made == NULL) return rc != 0 ? rc : -ENOMEM;
    (*made)->is_open = true;
    return 0;
}

void cc__sys_free(struct sock *s) {
    cc__sys.socks[s->self.index] = NULL;
    cc__message_drop_all(s);
    cc__mem_free(s->bytes);
    cc__mem_free(s->waiting);
    if (s->file != NULL) cc__disk_close(s->file);
    cc__mem_free(s);
}

/* ---- readiness ---- */

void cc__sys_report(struct sock *s, unsigned sides) {
    if (!s->watched || sides == 0 || (s->once != 0 && (sides & (s->once | POLLER_HANGUP)) == 0)) return;
    s->pending |= sides;
    if (s->queued) return;
    s->queued = true;
    s->next_ready = 0;
    if (cc__sys.ready_last != 0)
        cc__sys.socks[cc__sys.ready_last - 1]->next_ready = s->self.index + 1;
    else
        cc__sys.ready_first = s->self.index + 1;
    cc__sys.ready_last = s->self.index + 1;
}

void cc__sys_unqueue(struct sock *s) {
    if (!s->queued) return;
    uint32_t *at = &cc__sys.ready_first, prev = 0;
    while (*at != s->self.index + 1) {
        prev = *at;
        at = &cc__sys.socks[*at - 1]->next_ready;
    }
    *at = s->next_ready;
    if (cc__sys.ready_last == s->self.index + 1) cc__sys.ready_last = prev;
    s->queued = false;
    s->pending = 0;
}

unsigned cc__sys_sides(const struct sock *s) {
    if (s->crashed) return POLLER_READ | POLLER_WRITE | POLLER_HANGUP;
    switch (s->kind) {
    case SOCK_LISTENER:
        return s->waiting_count > 0 ? POLLER_READ : 0;
    case SOCK_MESSAGES:
        return POLLER_WRITE | (s->first != NULL || s->error != 0 ? POLLER_READ : 0u);
    case SOCK_NEW:
        return POLLER_WRITE | POLLER_HANGUP;
    case SOCK_FILE:
        return POLLER_READ | POLLER_WRITE;
    case SOCK_NONE:
    case SOCK_SPARE:
        return 0;
    default:
        return cc__stream_sides(s);
    }
}

/* ---- addresses ---- */

/* both: the place includes IPv4. */
static bool overlaps(const struct sock *s, const struct endpoint *place, bool both) {
    const struct endpoint *own = &s->local_place;
    if (place->family == AF_UNIX || own->family == AF_UNIX)
        return place->family == own->family && memcmp(place->path, own->path, sizeof own->path) == 0;
    if (own->port != place->port) return false;
    /* [::] includes IPv4 unless the socket is IPv6-only. */
    bool families = own->family == place->family || (own->family == AF_INET6 && own->every && !s->v6only) || both;
    return families && (own->every || place->every || own->loopback == place->loopback);
}

static bool in_use(const struct sock *s, const struct endpoint *place) {
    bool both = place->family == AF_INET6 && place->every && !s->v6only;
    for (uint32_t i = 0; i < cc__sys.socks_count; i++) {
        const struct sock *other = cc__sys.socks[i];
        if (other == NULL || other == s || !other->bound || other->crashed || other->host != s->host) continue;
        if (other->type != s->type || other->kind == SOCK_CONNECTED || !overlaps(other, place, both)) continue;
        if (!(other->reuseport && s->reuseport)) return true;
    }
    return false;
}

static uint16_t next_port(struct sock *s, struct endpoint *place) {
    struct host *h = &cc__sys.hosts[s->host];
    for (unsigned i = 0; i < 28000; i++) {
        place->port = h->next_port++;
        if (h->next_port >= 60999) h->next_port = 32768;
        if (!in_use(s, place)) return place->port;
    }
    return 0;
}

int cc__sys_bind(struct sock *s, const struct endpoint *place) {
    struct endpoint own = *place;
    if (s->bound) return -EINVAL;
    if (own.host != s->host && !own.every) return -EADDRNOTAVAIL;
    own.host = s->host;
    if (own.family != AF_UNIX && own.port == 0 && next_port(s, &own) == 0) return -EADDRINUSE;
    if (in_use(s, &own)) return -EADDRINUSE;
    s->bound = true;
    s->local_place = own;
    s->local = cc__sys_name(s->family, &own, s->host, own.port);
    return 0;
}

int cc__sys_bind_any(struct sock *s, uint32_t to_host, bool loopback) {
    struct endpoint own = {.family = s->family, .host = s->host, .loopback = loopback && to_host == s->host};
    if (s->bound && !s->local_place.every) return 0;
    if (s->bound) {
        s->local = cc__sys_name(s->family, &own, s->host, s->local_place.port);
        return 0;
    }
    if (s->family == AF_UNIX) {
        memset(&s->local, 0, sizeof s->local);
        s->local.any.sa_family = AF_UNIX;
        return 0;
    }
    return cc__sys_bind(s, &own);
}

struct sock *cc__sys_at(enum sock_kind kind, uint32_t host, const struct endpoint *place) {
    struct sock *found = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < cc__sys.socks_count; i++) {
        struct sock *s = cc__sys.socks[i];
        if (s == NULL || s->kind != kind || s->crashed || !s->bound || s->host != host) continue;
        if (overlaps(s, place, false) && cc__sys_draw(++n) == 0) found = s; /* one of several is drawn */
    }
    return found;
}

/* ---- entering and leaving ---- */

struct sock *cc__sys_enter(int fd, int *error) {
    cc__lock_take(&cc__sys.lock);
    cc__sys_deliver_due();
    struct sys_placement placement = cc__sys_placement();
    struct sock *s = cc__sys_numbered(fd);
    *error = s == NULL || !s->is_open ? -EBADF : s->crashed || cc__sys_placement_gone(placement) ? -ECANCELED : 0;
    if (*error == 0) return s;
    cc__lock_release(&cc__sys.lock);
    return NULL;
}

void cc__sys_leave(void) {
    cc__lock_release(&cc__sys.lock);
}

bool cc__sys_enter_alone(void) {
    cc__lock_take(&cc__sys.lock);
    cc__sys_deliver_due();
    return true;
}

/* ---- on and off ---- */

void cc__sys_reset(void) {
    for (uint32_t i = 0; i < cc__sys.socks_count; i++)
        if (cc__sys.socks[i] != NULL) cc__sys_free(cc__sys.socks[i]);
    for (uint32_t i = 0; i < cc__sys.hosts_count; i++)
        if (cc__sys.hosts[i].files != NULL) cc__disk_free(cc__sys.hosts[i].files);
    cc__sys_free_packets();
    cc__mem_free(cc__sys.socks);
    cc__mem_free(cc__sys.placements);
    memset(&cc__sys, 0, sizeof cc__sys);
}
