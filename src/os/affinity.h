/* affinity.h - may more than one of our threads run at a time? */
#ifndef CC_OS_AFFINITY_H
#define CC_OS_AFFINITY_H

#include <stdbool.h>

/* True if the calling thread may use one CPU only. Asks the system; small enough for any stack. */
bool cc__affinity_single(void);

#endif
