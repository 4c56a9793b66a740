/* fanout0.c - see fanout_body.h: jobs of 0 us. */
#define NAME "fanout0"
#define JOB_US 0u
#define JOBS 1000000
#include "fanout_body.h"
