/* pipeline.c - items pass four stages of 1 us each, over channels of capacity 16; eight such pipelines. */
#define NAME "pipeline"
#define AMOUNT 80000
#define PIPELINES 8
#define CAPACITY 16
#define STEPS STEPS_PER_US, STEPS_PER_US, STEPS_PER_US, STEPS_PER_US
#include "pipeline_body.h"
