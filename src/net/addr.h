/* addr.h - the parts of an address's text. */
#ifndef CC_NET_ADDR_H
#define CC_NET_ADDR_H

#include <ccc/cc_net.h>

/* HOST:PORT; pointers into the text that was split. */
struct host_port {
    const char *host, *port; /* port NULL: none */
    size_t host_length, port_length;
    bool bracketed;
};
int cc__addr_split(const char *text, size_t length, struct host_port *parts);
/* EINVAL: not a numeric address; it may be a name. */
int cc__addr_parse_ip(CCAddr *addr, const struct host_port *parts);
int cc__addr_parse_unix(CCAddr *addr, const char *text, size_t length);
int cc__addr_family(const CCAddr *addr);

#endif
