/* cap0.c - a rendezvous channel keeps every promise of cc_channel.h. */
#define CAPACITY 0
#include "cases.h"
