/* pool.h - allocation of fiber records, and lookup by id.
 *
 * Records are carved out of slabs that stay mapped until shutdown, so looking up a stale id is always memory-safe. A
 * worker has a private list; the shared list is under a lock and is used in batches.
 */
#ifndef CC_FIBER_POOL_H
#define CC_FIBER_POOL_H

#include "fiber/fiber.h"
#include "fiber/policy.h"

/* A worker's cache of records. */
struct fiber_cache {
    struct fiber *_Atomic first;
    _Atomic uint32_t count;
};

void cc__pool_init(void);
void cc__pool_destroy(void); /* no record may be in use */

/* NULL: no memory. cache == NULL: an OS thread, served from the shared list. The record is IDLE. */
struct fiber *cc__pool_take_slow(struct fiber_cache *cache);
void cc__pool_give_slow(struct fiber_cache *cache, struct fiber *f);
/* Moves the whole cache to the shared list. */
void cc__pool_flush(struct fiber_cache *cache);

CC_INLINE struct fiber *cc__pool_take(struct fiber_cache *cache) {
    struct fiber *f = cc__get(&cache->first);
    if (unlikely(f == NULL)) return cc__pool_take_slow(cache);
    cc__set(&cache->first, cc__get(&f->free_next));
    cc__set(&cache->count, cc__get(&cache->count) - 1);
    return f;
}

/* The mask of a record's generation: the thread that returns a record has incremented it, modulo this mask. A build may
 * set a tiny one, so that records are retired all the time. */
#ifndef CC_FIBER_GENERATION_MAX
#define CC_FIBER_GENERATION_MAX 0x7fffffffu
#endif

/* The generation before the first of this run. No task ever has it: a record that reaches it is retired, and no id that
 * was ever handed out matches it. */
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

/* The record of a slot, NULL if there is none; any task may be using it. Any thread. */
struct fiber *cc__pool_at(uint32_t slot);
/* How many slots have been carved: a walk over all records goes from 0 to here. */
uint32_t cc__pool_size(void);

/* The record of slot 0, whether it is used or not; POOL_SLAB_RECORDS of them are one array. NULL: no memory. Any
 * thread. */
enum { POOL_SLAB_RECORDS = 8192 };
struct fiber *cc__pool_first(void);

/* Where the records of the index-th slab are; false: there are no more. Any thread. */
bool cc__pool_slab(unsigned index, uintptr_t *low, uintptr_t *high);
/* Where the slab begins that contains the address, the first record; 0: none does. */
uintptr_t cc__pool_slab_of(uintptr_t address);

/* For external inspectors (inspect/layout.def) and debuggers, which do not find static variables when the library is
 * built as one object. */
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
/* The same for the running fiber, whose generation does not change: in one load. */
CC_INLINE CCFiberId cc__pool_id_running(struct fiber *f) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !defined(CC_TSAN)
    typedef uint64_t __attribute__((may_alias)) both;
    _Static_assert(offsetof(struct fiber, generation) == offsetof(struct fiber, slot) + 4, "side by side");
    _Static_assert(offsetof(struct fiber, slot) % 8 == 0, "aligned");
    return *(const both *)(const void *)&f->slot + 1;
#else
    return cc__pool_id(f);
#endif
}
/* The record of an id, if its slot exists; the caller checks the generation, under join_lock. */
CC_INLINE struct fiber *cc__pool_find(CCFiberId id) {
    uint32_t low = (uint32_t)id;
    return low == 0 ? NULL : cc__pool_at(low - 1);
}

#endif
