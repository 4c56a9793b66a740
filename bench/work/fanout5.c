/* fanout5.c - see fanout_body.h: jobs of 5 us. */
#define NAME "fanout5"
#define JOB_US 5u
#define JOBS 100000
#include "fanout_body.h"
