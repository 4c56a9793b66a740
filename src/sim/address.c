/* address.c - addresses and names of simulated hosts: 10.0.0.N and fd00::N for host N - 1, and the loopback ones. */
#include "sim/system.h"

#include "sim/sim.h"

#include <ccc/cc_dns.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

static void place_ip4(const unsigned char *ip, uint32_t from_host, struct endpoint *place) {
    static const unsigned char zero[4];
    uint32_t number = ip[3];
    place->every = memcmp(ip, zero, 4) == 0;
    place->loopback = ip[0] == 127;
    bool known = ip[0] == 10 && ip[1] == 0 && ip[2] == 0 && number >= 1 && number <= cc__sys.hosts_count;
    place->host = place->every || place->loopback ? from_host : known ? number - 1 : HOSTS_MAX;
}

static void place_ip6(const unsigned char *ip, uint32_t from_host, struct endpoint *place) {
    static const unsigned char zero[16], one[16] = {[15] = 1}, prefix[15] = {0xfd};
    if (memcmp(ip, mapped, sizeof mapped) == 0) {
        place_ip4(ip + 12, from_host, place);
        return;
    }
    place->every = memcmp(ip, zero, 16) == 0;
    place->loopback = memcmp(ip, one, 16) == 0;
    bool known = memcmp(ip, prefix, 15) == 0 && ip[15] >= 1 && ip[15] <= cc__sys.hosts_count;
    place->host = place->every || place->loopback ? from_host : known ? ip[15] - 1u : HOSTS_MAX;
}

int cc__sys_endpoint(const struct sockaddr *address, socklen_t length, uint32_t from_host, struct endpoint *place) {
    union sys_name name = {0};
    size_t path = offsetof(struct sockaddr_un, sun_path);
    memset(place, 0, sizeof *place);
    if (length < sizeof(sa_family_t) || length > sizeof name) return -EINVAL;
    memcpy(&name, address, length);
    place->family = name.any.sa_family;
    switch (place->family) {
    case AF_INET:
        if (length < sizeof name.in) return -EINVAL;
        place->port = ntohs(name.in.sin_port);
        place_ip4((const unsigned char *)&name.in.sin_addr, from_host, place);
        return 0;
    case AF_INET6:
        if (length < sizeof name.in6) return -EINVAL;
        place->port = ntohs(name.in6.sin6_port);
        place_ip6((const unsigned char *)&name.in6.sin6_addr, from_host, place);
        return 0;
    case AF_UNIX:
        if (length <= path) return -EINVAL;
        place->host = from_host;
        place->path[0] = (char)(length - path);
        memcpy(place->path + 1, name.un.sun_path, length - path);
        return 0;
    default:
        return -EAFNOSUPPORT;
    }
}

union sys_name cc__sys_name(int family, const struct endpoint *place, uint32_t host, uint16_t port) {
    union sys_name name;
    memset(&name, 0, sizeof name);
    name.any.sa_family = (sa_family_t)family;
    unsigned char number = (unsigned char)(host + 1);
    if (family == AF_INET) {
        const unsigned char ip[4] = {10, 0, 0, number}, loop[4] = {127, 0, 0, 1};
        name.in.sin_port = htons(port);
        if (!place->every) memcpy(&name.in.sin_addr, place->loopback ? loop : ip, 4);
    } else if (family == AF_INET6) {
        unsigned char *ip = (unsigned char *)&name.in6.sin6_addr;
        name.in6.sin6_port = htons(port);
        if (!place->every) {
            ip[0] = place->loopback ? 0 : 0xfd;
            ip[15] = place->loopback ? 1 : number;
        }
    } else {
        memcpy(name.un.sun_path, place->path + 1, (size_t)(unsigned char)place->path[0]);
    }
    return name;
}

socklen_t cc__sys_name_length(const union sys_name *name) {
    size_t path = offsetof(struct sockaddr_un, sun_path);
    switch (name->any.sa_family) {
    case AF_INET:
        return sizeof name->in;
    case AF_INET6:
        return sizeof name->in6;
    default:
        for (size_t n = sizeof name->un.sun_path; n > 0; n--) /* an abstract name begins with a 0 */
            if (name->un.sun_path[n - 1] != 0) return (socklen_t)(path + n + (name->un.sun_path[0] != 0));
        return (socklen_t)path;
    }
}

void cc__sys_copy_name(const union sys_name *name, struct sockaddr *address, socklen_t *length) {
    socklen_t all = cc__sys_name_length(name);
    if (all > sizeof *name) all = sizeof *name;
    memcpy(address, name, *length < all ? *length : all);
    *length = all;
}

/* ---- names ---- */

enum { LOOKUP_FAILS_NS = 1000 * 1000 * 1000 };

static void add(CCAddr *list, size_t room, size_t *count, const CCAddr *addr, int kind) {
    if ((kind == CC_ADDR_NONE || kind == addr->kind) && *count < room) list[(*count)++] = *addr;
}

int cc__sim_resolve(const char *host, uint16_t port, int kind, CCAddr *list, size_t *count, uint64_t *delay) {
    CCAddr four = {.kind = CC_ADDR_IP4, .length = 4, .port = port, .bytes = {10, 0, 0}};
    CCAddr six = {.kind = CC_ADDR_IP6, .length = 16, .port = port, .bytes = {0xfd}};
    size_t room = *count;
    int error = ENOENT;
    *count = 0;
    cc__lock_take(&cc__sys.lock);
    struct sys_placement placement = cc__sys_placement();
    *delay = 2 * cc__sys_latency(placement.host, placement.host, false);
    uint32_t number = 0;
    while (number < cc__sys.hosts_count && strcasecmp(cc__sys.hosts[number].name, host) != 0) number++;
    if (cc__sys_placement_gone(placement)) {
        error = ECANCELED;
    } else if (cc__sys_chance(cc__sys.net.name_ppm)) {
        cc__sys.stats.name_failures++;
        *delay += cc__sys_draw(LOOKUP_FAILS_NS);
        error = EREMOTEIO;
    } else if (number < cc__sys.hosts_count) {
        bool six_first = cc__sys_draw(2) == 0;
        four.bytes[3] = six.bytes[15] = (unsigned char)(number + 1);
        if (number == 0) { /* localhost */
            memcpy(four.bytes, (unsigned char[]){127, 0, 0, 1}, 4);
            six.bytes[0] = 0;
        }
        add(list, room, count, six_first ? &six : &four, kind);
        add(list, room, count, six_first ? &four : &six, kind);
        error = 0;
    }
    cc__lock_release(&cc__sys.lock);
    return error;
}
