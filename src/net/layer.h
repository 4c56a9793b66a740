/* layer.h - layers on top of TCP connections, by the name that a string begins with. */
#ifndef CC_NET_LAYER_H
#define CC_NET_LAYER_H

#include <ccc/cc_net.h>

/* The layer of a text that begins with NAME://; *rest: what follows. NULL: none. It stays for ever. */
const CCConnLayer *cc__layer_find(const char *text, const char **rest);

#endif
