/* deadlock.h - whether anything moves. */
#ifndef CC_DIAG_DEADLOCK_H
#define CC_DIAG_DEADLOCK_H

#include <stdbool.h>

/* Every worker sleeps with nothing to do, and every thread but the caller's is one of ours or waits in a call of ours. */
bool cc__deadlock_quiet(void);

#endif
