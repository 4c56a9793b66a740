/* fanout50.c - see fanout_body.h: jobs of 50 us. */
#define NAME "fanout50"
#define JOB_US 50u
#define JOBS 10000
#include "fanout_body.h"
