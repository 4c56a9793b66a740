/* layer.h - layers on top of TCP connections, looked up by the prefix of an address string. */
#ifndef CC_NET_LAYER_H
#define CC_NET_LAYER_H

#include <ccc/cc_net.h>

/* The layer of a text that begins with NAME://; *rest: what follows. NULL: none. Valid forever. */
const CCConnLayer *cc__layer_find(const char *text, const char **rest);

#endif
