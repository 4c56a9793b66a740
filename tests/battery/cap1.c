/* cap1.c - a channel of capacity 1, always full or empty, keeps every promise of cc_channel.h. */
#define CAPACITY 1
#include "cases.h"
