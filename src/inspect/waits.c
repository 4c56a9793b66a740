/* waits.c - reads locks and selects. */
#include "inspect/waits.h"

#include "lock/mutex.h"
#include "os/safe_copy.h"

uint32_t cc__wait_arms(struct wait_what what, struct arm *arms, uint32_t max) {
    struct arms all;
    if (what.reason != PARK_SELECT || !cc__safe_copy(&all, what.object, sizeof all) || all.count > CC_SELECT_MAX)
        return 0;
    uint32_t n = all.count < max ? all.count : max;
    return n == 0 || cc__safe_copy(arms, all.first, n * sizeof *arms) ? all.count : 0;
}

/* The holder as it was written down (lock/holder.h). */
static struct fiber *resolve(uint64_t owner, bool *thread) {
    *thread = false;
    if (owner == 0) return NULL;
#ifdef CC_DEBUG
    *thread = (owner >> 63) != 0;
    struct fiber *f = *thread ? NULL : cc__pool_find(owner);
    return f != NULL && cc__pool_id(f) == owner ? f : NULL;
#else
    struct fiber *f = cc__view_owner((uintptr_t)owner);
    *thread = f == NULL;
    return f;
#endif
}

struct fiber *cc__wait_holder(struct wait_what what, bool *thread) {
    struct mutex mutex;
    CCRWLock rw;
    *thread = false;
    if (what.reason == PARK_MUTEX && cc__safe_copy(&mutex, what.object, sizeof mutex))
        return cc__get(&mutex.word) != 0 ? resolve(cc__get(&mutex.owner), thread) : NULL;
    if (what.reason == PARK_RWLOCK && cc__safe_copy(&rw, what.object, sizeof rw))
        return rw.word & 1 ? resolve(rw.owner, thread) : NULL; /* readers leave no names */
    return NULL;
}
