/* cap200.c - a channel with a larger capacity than most cases send at once meets the contract of cc_channel.h. */
#define CAPACITY 200
#include "cases.h"
