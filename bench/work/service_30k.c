/* service_30k.c - see service_body.h: 30000 requests a second. */
#define NAME "service_30k"
#define RATE 30000u
#include "service_body.h"
