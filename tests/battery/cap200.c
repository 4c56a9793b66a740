/* cap200.c - a channel that is larger than what most cases send at once keeps every promise of cc_channel.h. */
#define CAPACITY 200
#include "cases.h"
