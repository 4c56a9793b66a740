/* cap0.c - a rendezvous channel meets the contract of cc_channel.h. */
#define CAPACITY 0
#include "cases.h"
