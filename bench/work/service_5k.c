/* service_5k.c - see service_body.h: 5000 requests a second. */
#define NAME "service_5k"
#define RATE 5000u
#include "service_body.h"
