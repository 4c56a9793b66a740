/* spin.h - looking at a lock again for a few microseconds before one waits for it. */
#ifndef CC_LOCK_SPIN_H
#define CC_LOCK_SPIN_H

#include "sync/atomic.h"

/* Calls try(lock, arg) after pauses that grow, `pauses` before the first time, until it succeeds (true) or
 * SPIN_ROUNDS are over. Does nothing where no other thread could free the lock meanwhile, and rarely anything where
 * spins have failed: *failures counts them, for one or for several locks. */
bool cc__spin(_Atomic uint32_t *failures, unsigned pauses, bool (*try)(void *lock, uint32_t arg), void *lock,
              uint32_t arg);

#endif
