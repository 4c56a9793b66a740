/* freed.h - detects a double free: a small table with the addresses of freed objects.
 *
 * An entry is added before the memory is freed, and removed when the memory becomes such an object again. The freed
 * memory is neither read nor kept. A double free can go unnoticed if another object's address has the same slot; there
 * are no false reports.
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

/* Whether it was freed and not allocated again. */
CC_INLINE bool cc__freed_is(struct freed *f, const void *object) {
    return cc__get(cc__freed_slot(f, object)) == object;
}
/* Before it is freed. */
CC_INLINE void cc__freed_mark(struct freed *f, const void *object) {
    cc__set(cc__freed_slot(f, object), object);
}
/* When its memory is an object again. */
CC_INLINE void cc__freed_unmark(struct freed *f, const void *object) {
    if (cc__freed_is(f, object)) cc__set(cc__freed_slot(f, object), NULL);
}

#endif
