/* hall.h - what all but the mutex have in common: a word that says most, a lock, and a line.
 *
 * C++ has no _Atomic, so the public structs have plain fields; this is how the library sees their beginning.
 *
 * HALL-1  HALL_WAITERS in the word is set and cleared under the lock: set before somebody stands in line,
 *         cleared when the line is empty. While it is set, the word gives nothing away without the lock.
 */
#ifndef CC_LOCK_HALL_H
#define CC_LOCK_HALL_H

#include "lock/line.h"

#include <ccc/cc_sync.h>

struct hall {
    _Atomic uint32_t word;
    struct lock lock;
    struct line line;
};

_Static_assert(sizeof(struct hall) == sizeof(CCSem) && offsetof(struct hall, lock) == offsetof(CCSem, lock) &&
                   offsetof(struct hall, line) == offsetof(CCSem, first),
               "the public structs");

#define HALL_WAITERS UINT32_C(0x80000000)

CC_INLINE struct hall *cc__hall_of(void *object) {
    return object;
}

/* Under the lock, after somebody left the line: the mark goes with the last. */
CC_INLINE void cc__hall_left_locked(struct hall *h) {
    if (!cc__line_empty(&h->line)) return;
    uint32_t word = cc__get(&h->word);
    while ((word & HALL_WAITERS) && !cc__cas_weak(&h->word, &word, word & ~HALL_WAITERS)) {
    }
}

#endif
