/* where.c - the string that says where to listen, to dial or to bind. */
#include "net/where.h"

#include "base/attr.h"
#include "net/addr.h"
#include "net/layer.h"

#include <ccc/cc_dns.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

enum option_kind { OPTION_FLAG, OPTION_NUMBER, OPTION_OCTAL, OPTION_ADDR };

static const struct option {
    const char *name;
    unsigned with; /* transports and uses */
    enum option_kind kind;
    size_t offset;
} options[] = {
    {"backlog", TRANSPORT_TCP | TRANSPORT_UNIX | USE_LISTEN, OPTION_NUMBER, offsetof(struct where, listen.backlog)},
    {"reuseport", TRANSPORT_TCP | TRANSPORT_UDP | USE_LISTEN, OPTION_FLAG, offsetof(struct where, listen.reuseport)},
    {"v6only", TRANSPORT_TCP | TRANSPORT_UDP | USE_LISTEN, OPTION_FLAG, offsetof(struct where, listen.v6only)},
    {"unlink", TRANSPORT_UNIX | USE_LISTEN, OPTION_FLAG, offsetof(struct where, listen.unlink)},
    {"mode", TRANSPORT_UNIX | USE_LISTEN, OPTION_OCTAL, offsetof(struct where, listen.mode)},
    {"local", TRANSPORT_TCP | TRANSPORT_UDP | USE_DIAL, OPTION_ADDR, offsetof(struct where, dial.local)},
    {"fallback_ms", TRANSPORT_TCP | USE_DIAL, OPTION_NUMBER, offsetof(struct where, dial.fallback_ms)},
    {"gro", TRANSPORT_UDP | USE_LISTEN | USE_DIAL, OPTION_FLAG, offsetof(struct where, gro)},
    {"delay", TRANSPORT_TCP | USE_LISTEN | USE_DIAL, OPTION_FLAG, offsetof(struct where, conn.delay)},
    {"keepalive", TRANSPORT_TCP | USE_LISTEN | USE_DIAL, OPTION_NUMBER, offsetof(struct where, conn.keepalive)},
    {"user_timeout_ms", TRANSPORT_TCP | USE_LISTEN | USE_DIAL, OPTION_NUMBER,
     offsetof(struct where, conn.user_timeout_ms)},
    {"send_buffer", TRANSPORT_TCP | TRANSPORT_UDP | TRANSPORT_UNIX | USE_LISTEN | USE_DIAL, OPTION_NUMBER,
     offsetof(struct where, conn.send_buffer)},
    {"receive_buffer", TRANSPORT_TCP | TRANSPORT_UDP | TRANSPORT_UNIX | USE_LISTEN | USE_DIAL, OPTION_NUMBER,
     offsetof(struct where, conn.receive_buffer)},
};

/* Parses a number that is the whole text. */
static bool number(const char *text, size_t length, unsigned base, unsigned *value) {
    uint64_t sum = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned char)text[i] - (unsigned)'0';
        if (digit >= base) return false;
        sum = sum * base + digit;
        if (sum > UINT32_MAX) return false;
    }
    *value = (unsigned)sum;
    return length > 0;
}

static int set_option(struct where *where, const struct option *o, const char *value, size_t length) {
    void *field = (char *)where + o->offset;
    unsigned flag = 1;
    char text[CC_ADDR_TEXT_MAX];
    switch (o->kind) {
    case OPTION_FLAG:
        if (value != NULL && (!number(value, length, 10, &flag) || flag > 1)) return EINVAL;
        *(bool *)field = flag != 0;
        return 0;
    case OPTION_ADDR:
        if (value == NULL || length >= sizeof text) return EINVAL;
        memcpy(text, value, length);
        text[length] = 0;
        return cc_addr_parse(field, text);
    default:
        return value != NULL && number(value, length, o->kind == OPTION_OCTAL ? 8 : 10, field) ? 0 : EINVAL;
    }
}

static int parse_option(struct where *where, const char *text, size_t length, unsigned with) {
    const char *value = memchr(text, '=', length);
    size_t name = value != NULL ? (size_t)(value - text) : length;
    for (size_t i = 0; i < array_len(options); i++) {
        const struct option *o = &options[i];
        if (strlen(o->name) != name || memcmp(o->name, text, name) != 0 || (o->with & with) != with) continue;
        return set_option(where, o, value != NULL ? value + 1 : NULL, length - name - (value != NULL));
    }
    return EINVAL;
}

static int parse_options(struct where *where, const char *text, unsigned with) {
    for (;;) {
        size_t length = strcspn(text, "&");
        int error = parse_option(where, text, length, with);
        if (error != 0 || text[length] == 0) return error;
        text += length + 1;
    }
}

/* HOST:PORT. The port is required; with a host name it may be a service name. */
static int parse_host(struct where *where, const char *text, size_t length) {
    struct host_port parts;
    int error = cc__addr_split(text, length, &parts);
    if (error != 0) return error;
    if (parts.port == NULL || parts.port_length >= SERVICE_MAX || parts.host_length >= HOST_MAX) return EINVAL;
    memcpy(where->host, parts.host, parts.host_length);
    memcpy(where->service, parts.port, parts.port_length);
    if (memchr(where->host, 0, parts.host_length) != NULL) return EINVAL;
    unsigned port;
    if (number(parts.port, parts.port_length, 10, &port) && port > UINT16_MAX) return EINVAL;
    if (parts.host_length == 0) return parts.bracketed ? EINVAL : 0;
    error = cc__addr_parse_ip(&where->addr, &parts);
    if (error == 0 || error == ENODEV) return error;
    where->addr = (CCAddr){0}; /* a host name or a service name */
    return parts.bracketed && strchr(where->host, ':') == NULL ? EINVAL : 0;
}

int cc__where_parse(struct where *where, const char *text, unsigned transports, enum where_use use) {
    static const struct {
        const char *prefix;
        enum transport transport;
    } forms[] = {{"tcp://", TRANSPORT_TCP}, {"udp://", TRANSPORT_UDP}, {"unix:", TRANSPORT_UNIX}};
    if (text == NULL) return EINVAL;
    where->transport = 0;
    where->layer = NULL;
    for (size_t i = 0; i < array_len(forms) && where->transport == 0; i++) {
        size_t length = strlen(forms[i].prefix);
        if (strncmp(text, forms[i].prefix, length) != 0) continue;
        where->transport = forms[i].transport;
        text += length;
    }
    if (where->transport == 0) {
        where->layer = cc__layer_find(text, &text);
        if (where->layer != NULL) where->transport = TRANSPORT_TCP;
    }
    if ((where->transport & transports) == 0) return EINVAL;
    size_t length = strcspn(text, "?");
    int error = where->transport == TRANSPORT_UNIX ? cc__addr_parse_unix(&where->addr, text, length)
                                                   : parse_host(where, text, length);
    if (error == 0 && text[length] == '?')
        error = parse_options(where, text + length + 1, (unsigned)where->transport | use);
    return error;
}

int cc__where_addrs(const struct where *where, CCAddr *list, size_t *count, CCDeadline deadline) {
    if (where->addr.kind != CC_ADDR_NONE) {
        list[0] = where->addr;
        *count = 1;
        return 0;
    }
    CCResolveHints hints = {.datagrams = where->transport == TRANSPORT_UDP};
    *count = WHERE_ADDRS;
    return cc_resolve_until(where->host, where->service, &hints, list, count, deadline);
}
