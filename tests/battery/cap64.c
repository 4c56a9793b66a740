/* cap64.c - a channel of capacity 64 meets the contract of cc_channel.h. */
#define CAPACITY 64
#include "cases.h"
