/* pool.h - where fiber records come from and go to; from an id to its record.
 *
 * Records are carved out of slabs that stay mapped until shutdown, so looking at a stale id is always memory-safe.
 * A worker keeps a private list; the shared one is under a lock and serves in batches.
 */
#ifndef CC_FIBER_POOL_H
#define CC_FIBER_POOL_H

#include "fiber/fiber.h"
#include "fiber/policy.h"

/* A worker's own records. */
struct fiber_cache {
    struct fiber *_Atomic first;
    _Atomic uint32_t count;
};

void cc__pool_init(void);
void cc__pool_destroy(void); /* nothing may use a record any more */

/* NULL: no memory. cache == NULL: an OS thread, served from the shared list. The record is IDLE. */
struct fiber *cc__pool_take_slow(struct fiber_cache *cache);
void cc__pool_give_slow(struct fiber_cache *cache, struct fiber *f);
/* All of the cache goes to the shared list. */
void cc__pool_flush(struct fiber_cache *cache);

CC_INLINE struct fiber *cc__pool_take(struct fiber_cache *cache) {
    struct fiber *f = cc__get(&cache->first);
    if (unlikely(f == NULL)) return cc__pool_take_slow(cache);
    cc__set(&cache->first, cc__get(&f->free_next));
    cc__set(&cache->count, cc__get(&cache->count) - 1);
    return f;
}

/* The generations of a record: whoever gives it back has raised its own by one, modulo this mask. A build may set a
 * tiny one, so that records are retired all the time. */
#ifndef CC_FIBER_GENERATION_MAX
#define CC_FIBER_GENERATION_MAX 0x7fffffffu
#endif

/* The one before the first of this run. No tenant ever has it: a record that arrives there is retired, and no id that
 * was ever given out matches it. */
extern uint32_t cc__pool_last_generation;

CC_INLINE bool cc__pool_used_up(const struct fiber *f) {
    return cc__get(&f->generation) == cc__pool_last_generation;
}

CC_INLINE void cc__pool_give(struct fiber_cache *cache, struct fiber *f) {
    if (unlikely(cc__get(&cache->count) >= POOL_CACHE_MAX || cc__pool_used_up(f))) {
        cc__pool_give_slow(cache, f);
        return;
    }
    cc__set(&f->free_next, cc__get(&cache->first));
    cc__set(&cache->first, f);
    cc__set(&cache->count, cc__get(&cache->count) + 1);
}

/* The record of a slot, NULL if there is none; it may have any tenant. Any thread. */
struct fiber *cc__pool_at(uint32_t slot);
/* How many slots have ever been carved: a walk over all records goes from 0 to here. */
uint32_t cc__pool_size(void);

/* Where the records of the index-th slab are; false: there are no more. Any thread. */
bool cc__pool_slab(unsigned index, uintptr_t *low, uintptr_t *high);

/* For who looks from outside (inspect/layout.def), and for a debugger: when the library is one object, it does not find
 * what is static. */
struct pool_map {
    struct fiber *_Atomic *slabs;
    _Atomic uint32_t *size;
    uint32_t records; /* of a slab */
};
extern const struct pool_map cc__pool_map;

/* Ids: generation << 32 | slot + 1. Bit 63 is the kind: 0 regular, 1 hosted. */
CC_INLINE CCFiberId cc__pool_id(struct fiber *f) {
    return (uint64_t)(cc__get(&f->generation) & 0x7fffffffu) << 32 | (f->slot + 1);
}
/* The record that the id names if its slot exists; the generation is the caller's check, under join_lock. */
CC_INLINE struct fiber *cc__pool_find(CCFiberId id) {
    uint32_t low = (uint32_t)id;
    return low == 0 ? NULL : cc__pool_at(low - 1);
}

#endif
