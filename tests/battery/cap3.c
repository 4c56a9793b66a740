/* cap3.c - a channel whose capacity is no power of two keeps every promise of cc_channel.h. */
#define CAPACITY 3
#include "cases.h"
