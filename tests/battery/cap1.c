/* cap1.c - a channel of capacity 1, always full or empty, meets the contract of cc_channel.h. */
#define CAPACITY 1
#include "cases.h"
