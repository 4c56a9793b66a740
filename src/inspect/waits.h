/* waits.h - the objects of waits, looked at from outside. */
#ifndef CC_INSPECT_WAITS_H
#define CC_INSPECT_WAITS_H

#include "inspect/view.h"

/* Which fiber holds a mutex (a CCMutex) or is the writer of a CCRWLock; NULL: none, or it is no fiber: *thread. */
struct fiber *cc__wait_holder(struct wait_what what, bool *thread);

/* What a select waits for, copied: how many arms there are. */
uint32_t cc__wait_arms(struct wait_what what, struct arm *arms, uint32_t max);

#endif
