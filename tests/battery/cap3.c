/* cap3.c - a channel whose capacity is not a power of two meets the contract of cc_channel.h. */
#define CAPACITY 3
#include "cases.h"
