/* where.h - the string that says where to listen, to dial or to bind: TRANSPORT, HOST, PORT and options. */
#ifndef CC_NET_WHERE_H
#define CC_NET_WHERE_H

#include <ccc/cc_net.h>

enum transport { TRANSPORT_TCP = 1, TRANSPORT_UNIX = 2, TRANSPORT_UDP = 4 };
enum where_use { USE_LISTEN = 8, USE_DIAL = 16 };

enum { HOST_MAX = 254, SERVICE_MAX = 32, WHERE_ADDRS = 16 };

struct where {
    enum transport transport;
    const CCConnLayer *layer;  /* on top of it, or NULL */
    CCAddr addr;               /* kind CC_ADDR_NONE: use `host` */
    char host[HOST_MAX];       /* "": none, every address of this machine */
    char service[SERVICE_MAX]; /* a port, by number or name */
    CCListenOptions listen;    /* without `conn` */
    CCDialOptions dial;        /* the same */
    CCConnOptions conn;
    bool gro;
};

/* *where has the options on entry, and the string overrides them. transports: those that are allowed. */
int cc__where_parse(struct where *where, const char *text, unsigned transports, enum where_use use);

/* All addresses, at most WHERE_ADDRS; waits for the lookup of a name. */
int cc__where_addrs(const struct where *where, CCAddr *list, size_t *count, CCDeadline deadline);

#endif
