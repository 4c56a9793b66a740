/* stages.c - items pass four stages, of which one takes half of the time, over channels of capacity 32. Two workers
 * could share the work; waking one for every batch of a short stage costs more than it gains. */
#define NAME "stages"
#define AMOUNT 200000
#define PIPELINES 1
#define CAPACITY 32
#define STEPS 150, 675, 75, 375
#include "pipeline_body.h"
