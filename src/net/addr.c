/* addr.c - addresses: parse, print, compare, convert from and to sockaddr. No allocation, no name lookups. */
#include "net/addr.h"
#include "base/attr.h"

#include "base/attr.h"
#include "base/error.h"
#include "os/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

enum { SUN_PATH_MAX = sizeof((struct sockaddr_un *)0)->sun_path };

_Static_assert(sizeof((CCAddr *)0)->bytes >= SUN_PATH_MAX + 1, "a path and its 0");
_Static_assert(CC_ADDR_TEXT_MAX >= sizeof "unix:@" + 3 * SUN_PATH_MAX, "every byte as %XX");
_Static_assert(sizeof(CCAddr) == 128, "part of the ABI");

/* ---- parse ---- */

/* Parses a decimal number up to `most` that is the whole text. */
static bool parse_number(const char *text, size_t length, uint32_t most, uint32_t *number) {
    uint64_t value = 0;
    if (length == 0 || length > 10) return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *number = (uint32_t)value;
    return value <= most;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int cc__addr_parse_unix(CCAddr *addr, const char *text, size_t length) {
    size_t used = 0;
    bool abstract = length > 0 && text[0] == '@';
    *addr = (CCAddr){.kind = CC_ADDR_UNIX};
    if (abstract) used = 1;
    for (size_t i = abstract; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte == '%') {
            int high = i + 2 < length ? hex_digit(text[i + 1]) : -1, low = high < 0 ? -1 : hex_digit(text[i + 2]);
            if (low < 0) return EINVAL;
            byte = (unsigned char)(high << 4 | low);
            i += 2;
        }
        if (byte == 0 && !abstract) return EINVAL;
        if (used == SUN_PATH_MAX) return ENAMETOOLONG;
        addr->bytes[used++] = byte;
    }
    addr->length = (uint8_t)used;
    return used > 0 ? 0 : EINVAL;
}

/* An address without its brackets and its port. */
static int parse_ip(CCAddr *addr, const char *text, size_t length) {
    char copy[INET6_ADDRSTRLEN + 1];
    *addr = (CCAddr){0};
    const char *zone = memchr(text, '%', length);
    size_t size = zone != NULL ? (size_t)(zone - text) : length;
    if (size == 0 || size >= sizeof copy) return EINVAL;
    memcpy(copy, text, size);
    copy[size] = 0;
    if (memchr(copy, ':', size) == NULL) {
        if (zone != NULL || inet_pton(AF_INET, copy, addr->bytes) != 1) return EINVAL;
        addr->kind = CC_ADDR_IP4;
        addr->length = 4;
        return 0;
    }
    if (inet_pton(AF_INET6, copy, addr->bytes) != 1) return EINVAL;
    addr->kind = CC_ADDR_IP6;
    addr->length = 16;
    if (zone == NULL) return 0;
    size_t zone_size = length - size - 1;
    if (parse_number(zone + 1, zone_size, UINT32_MAX, &addr->zone)) return addr->zone != 0 ? 0 : EINVAL;
    if (zone_size == 0 || zone_size >= sizeof copy) return EINVAL;
    memcpy(copy, zone + 1, zone_size);
    copy[zone_size] = 0;
    addr->zone = cc__os_interface(copy);
    return addr->zone != 0 ? 0 : ENODEV;
}

int cc__addr_split(const char *text, size_t length, struct host_port *parts) {
    const char *end = text + length;
    *parts = (struct host_port){.host = text, .host_length = length};
    if (length > 0 && text[0] == '[') {
        const char *close = memchr(text, ']', length);
        if (close == NULL || close == text + 1 || (close + 1 != end && close[1] != ':')) return EINVAL;
        parts->host = text + 1;
        parts->host_length = (size_t)(close - text - 1);
        parts->bracketed = true;
        if (close + 1 == end) return 0;
        parts->port = close + 2;
    } else {
        const char *colon = memchr(text, ':', length);
        if (colon == NULL || memchr(colon + 1, ':', (size_t)(end - colon - 1)) != NULL) return 0; /* or IPv6 */
        parts->host_length = (size_t)(colon - text);
        parts->port = colon + 1;
    }
    parts->port_length = (size_t)(end - parts->port);
    return parts->port_length > 0 ? 0 : EINVAL;
}

int cc__addr_parse_ip(CCAddr *addr, const struct host_port *parts) {
    uint32_t port = 0;
    int error = parse_ip(addr, parts->host, parts->host_length);
    if (error == 0 && parts->bracketed && addr->kind != CC_ADDR_IP6) error = EINVAL;
    if (error == 0 && parts->port != NULL && !parse_number(parts->port, parts->port_length, UINT16_MAX, &port))
        error = EINVAL;
    addr->port = (uint16_t)port;
    return error;
}

int cc_addr_parse(CCAddr *addr, const char *text) {
    CCAddr parsed = {0};
    struct host_port parts;
    if (addr == NULL || text == NULL) return EINVAL;
    int error = strncmp(text, "unix:", 5) == 0 ? cc__addr_parse_unix(&parsed, text + 5, strlen(text + 5))
                : (error = cc__addr_split(text, strlen(text), &parts)) != 0 ? error
                                                                            : cc__addr_parse_ip(&parsed, &parts);
    *addr = error == 0 ? parsed : (CCAddr){0};
    return error;
}

/* ---- print ---- */

static void print_unix(const CCAddr *addr, char *text) {
    static const char digits[] = "0123456789ABCDEF";
    bool abstract = addr->length > 0 && addr->bytes[0] == 0;
    text += sprintf(text, abstract ? "unix:@" : "unix:");
    for (size_t i = abstract; i < addr->length; i++) {
        unsigned char byte = addr->bytes[i];
        bool plain = byte > ' ' && byte < 127 && byte != '%' && byte != '?' && (byte != '@' || i > 0);
        if (plain) {
            *text++ = (char)byte;
        } else {
            *text++ = '%';
            *text++ = digits[byte >> 4];
            *text++ = digits[byte & 15];
        }
    }
    *text = 0;
}

int cc_addr_print(const CCAddr *addr, char *text, size_t size) {
    CC_KEEP_ERRNO;
    char all[CC_ADDR_TEXT_MAX], ip[INET6_ADDRSTRLEN], zone[16] = "";
    if (text != NULL && size > 0) text[0] = 0;
    if (addr == NULL || text == NULL || cc__reserved_used(addr)) return EINVAL;
    switch (addr->kind) {
    case CC_ADDR_IP4:
        (void)inet_ntop(AF_INET, addr->bytes, ip, sizeof ip);
        (void)snprintf(all, sizeof all, addr->port != 0 ? "%s:%u" : "%s", ip, addr->port);
        break;
    case CC_ADDR_IP6:
        (void)inet_ntop(AF_INET6, addr->bytes, ip, sizeof ip);
        if (addr->zone != 0) (void)snprintf(zone, sizeof zone, "%%%u", addr->zone);
        (void)snprintf(all, sizeof all, addr->port != 0 ? "[%s%s]:%u" : "%s%s", ip, zone, addr->port);
        break;
    case CC_ADDR_UNIX:
        if (addr->length > SUN_PATH_MAX) return EINVAL;
        print_unix(addr, all);
        break;
    default:
        return EINVAL;
    }
    if (strlen(all) >= size) return ENOSPC;
    memcpy(text, all, strlen(all) + 1);
    return 0;
}

/* ---- sockaddr ---- */

int cc_addr_from_sockaddr(CCAddr *addr, const struct sockaddr *from, CCSockLen length) {
    if (addr == NULL || from == NULL || length < sizeof from->sa_family) return EINVAL;
    *addr = (CCAddr){0};
    if (from->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof in);
        addr->kind = CC_ADDR_IP4;
        addr->length = 4;
        addr->port = ntohs(in.sin_port);
        memcpy(addr->bytes, &in.sin_addr, 4);
    } else if (from->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 in;
        memcpy(&in, from, sizeof in);
        addr->kind = CC_ADDR_IP6;
        addr->length = 16;
        addr->port = ntohs(in.sin6_port);
        addr->zone = in.sin6_scope_id;
        memcpy(addr->bytes, &in.sin6_addr, 16);
    } else if (from->sa_family == AF_UNIX) {
        size_t size = length - offsetof(struct sockaddr_un, sun_path);
        const char *path = ((const struct sockaddr_un *)(const void *)from)->sun_path;
        if (size > SUN_PATH_MAX) size = SUN_PATH_MAX;
        if (size > 0 && path[0] != 0) size = strnlen(path, size); /* abstract names may contain 0 bytes */
        addr->kind = CC_ADDR_UNIX;
        addr->length = (uint8_t)size;
        memcpy(addr->bytes, path, size);
    } else {
        return EAFNOSUPPORT;
    }
    return 0;
}

int cc_addr_to_sockaddr(const CCAddr *addr, struct sockaddr *to, CCSockLen *length) {
    union {
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    } all;
    socklen_t used;
    if (addr == NULL || to == NULL || length == NULL || cc__reserved_used(addr)) return EINVAL;
    memset(&all, 0, sizeof all);
    switch (addr->kind) {
    case CC_ADDR_IP4:
        all.in.sin_family = AF_INET;
        all.in.sin_port = htons(addr->port);
        memcpy(&all.in.sin_addr, addr->bytes, 4);
        used = sizeof all.in;
        break;
    case CC_ADDR_IP6:
        all.in6.sin6_family = AF_INET6;
        all.in6.sin6_port = htons(addr->port);
        all.in6.sin6_scope_id = addr->zone;
        memcpy(&all.in6.sin6_addr, addr->bytes, 16);
        used = sizeof all.in6;
        break;
    case CC_ADDR_UNIX:
        if (addr->length > SUN_PATH_MAX) return EINVAL;
        all.un.sun_family = AF_UNIX;
        memcpy(all.un.sun_path, addr->bytes, addr->length);
        used = (socklen_t)offsetof(struct sockaddr_un, sun_path) + addr->length;
        if (addr->length > 0 && addr->length < SUN_PATH_MAX && addr->bytes[0] != 0)
            used++; /* a path is terminated by a
                                                                                             * 0 */
        break;
    default:
        return EAFNOSUPPORT;
    }
    if (*length < used) return ENOSPC;
    memcpy(to, &all, used);
    *length = used;
    return 0;
}

/* ---- order ---- */

int cc_addr_compare(const CCAddr *a, const CCAddr *b) {
    if (a == NULL || b == NULL) return (a != NULL) - (b != NULL);
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    size_t size = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, size < sizeof a->bytes ? size : sizeof a->bytes);
    if (order != 0) return order < 0 ? -1 : 1;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    if (a->zone != b->zone) return a->zone < b->zone ? -1 : 1;
    return (a->port > b->port) - (a->port < b->port);
}

int cc__addr_family(const CCAddr *addr) {
    return addr->kind == CC_ADDR_IP4 ? AF_INET : addr->kind == CC_ADDR_IP6 ? AF_INET6 : AF_UNIX;
}
