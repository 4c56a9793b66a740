/* cap64.c - a channel of capacity 64 keeps every promise of cc_channel.h. */
#define CAPACITY 64
#include "cases.h"
