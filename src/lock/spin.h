/* spin.h - retrying a lock for a few microseconds before waiting for it. */
#ifndef CC_LOCK_SPIN_H
#define CC_LOCK_SPIN_H

#include "sync/atomic.h"

/* Calls try(lock, arg) after growing pauses, `pauses` before the first time, until it succeeds (true) or SPIN_ROUNDS
 * are over. Does nothing if no other thread could release the lock meanwhile, or, on a fiber, while the holder, if it
 * is known (holder.h), does not run; and mostly nothing after failed spins: *failures counts them, for one or for
 * several locks. */
bool cc__spin(_Atomic uint32_t *failures, unsigned pauses, _Atomic uint64_t *holder,
              bool (*try)(void *lock, uint32_t arg), void *lock, uint32_t arg);

#endif
