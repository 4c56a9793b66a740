/* sem.h - a semaphore inside another object. */
#ifndef CC_LOCK_SEM_H
#define CC_LOCK_SEM_H

#include "fiber/state.h"

#include <ccc/cc_sync.h>

/* As cc_sem_acquire, but reports show the given reason. */
int cc__sem_acquire_for(CCSem *s, enum park_reason reason);

#endif
