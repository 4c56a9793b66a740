/* freed.h - detects a double free: a small table with the addresses of freed objects.
 *
 * An entry is made before the memory is freed, and taken away when the memory is such an object again. Nothing of the
 * freed memory is read or kept. One of the two frees may go unnoticed where another object's address has the same slot;
 * none is reported that was not one.
 */
#ifndef CC_SYNC_FREED_H
#define CC_SYNC_FREED_H

#include "sync/atomic.h"

enum { FREED_LOG2 = 6 };

struct freed {
    const void *_Atomic slots[1 << FREED_LOG2];
};

CC_INLINE const void *_Atomic *cc__freed_slot(struct freed *f, const void *object) {
    return &f->slots[(uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15) >> (64 - FREED_LOG2)];
}

/* Has it been freed, and is it no object again? */
CC_INLINE bool cc__freed_is(struct freed *f, const void *object) {
    return cc__get(cc__freed_slot(f, object)) == object;
}
/* It is about to be freed. */
CC_INLINE void cc__freed_mark(struct freed *f, const void *object) {
    cc__set(cc__freed_slot(f, object), object);
}
/* Its memory is an object again. */
CC_INLINE void cc__freed_unmark(struct freed *f, const void *object) {
    if (cc__freed_is(f, object)) cc__set(cc__freed_slot(f, object), NULL);
}

#endif
