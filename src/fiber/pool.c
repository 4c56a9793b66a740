/* pool.c - fiber records: slabs, the shared list, ids.
 *
 * POOL-1  A record is in exactly one place: a cache, the shared list, or in use; or it is retired.
 * POOL-2  A generation is never reused while the runtime is up: a record that has used up its generations is retired.
 *         Every start of the runtime begins at another generation.
 */
#include "fiber/pool.h"

#include "fiber/state.h"
#include "os/vm.h"

enum {
    SLAB_RECORDS =
        POOL_SLAB_RECORDS,  /* 1 MiB: one mapping per slab keeps the number of mappings low, and few are half empty */
    POPULATE_RECORDS = 512, /* 64 KiB backed at a time: 1.1 us per page instead of 1.5 (measured); the first as used */
    SLABS_MAX = 16384,      /* 134 million fibers; the table costs 128 KiB of address space, touched as used */
};

#define GENERATION_STEP 0x9e3779b1u /* odd: visits all values */

_Static_assert((CC_FIBER_GENERATION_MAX & (CC_FIBER_GENERATION_MAX + 1)) == 0 && CC_FIBER_GENERATION_MAX > 1 &&
                   CC_FIBER_GENERATION_MAX <= 0x7fffffff,
               "CC_FIBER_GENERATION_MAX is a mask of at most 31 bits: the top one is the kind");

uint32_t cc__pool_last_generation;

static struct fiber *_Atomic slabs[SLABS_MAX];

static struct {
    struct lock lock;
    struct fiber *first; /* the shared list */
    uint32_t carved;     /* records, in all slabs, that have been used at least once */
    uint32_t generation; /* the first generation of this run */
    _Atomic uint32_t size;
} pool = {.generation = (1 - GENERATION_STEP) & CC_FIBER_GENERATION_MAX}; /* the first run gets the short ids */

__attribute__((used)) const struct pool_map cc__pool_map = {slabs, &pool.size, SLAB_RECORDS};

void cc__pool_init(void) {
    pool.first = NULL;
    pool.carved = 0;
    pool.generation = (pool.generation + GENERATION_STEP) & CC_FIBER_GENERATION_MAX;
    cc__pool_last_generation = (pool.generation - 1) & CC_FIBER_GENERATION_MAX;
    cc__set(&pool.size, 0);
    /* While there is one thread: a page that is read before it is written costs an interrupt of the other CPUs. */
    cc__set(&slabs[0], NULL);
}

void cc__pool_destroy(void) {
    for (size_t i = 0; i < SLABS_MAX; i++) {
        struct fiber *slab = cc__get(&slabs[i]);
        if (slab == NULL) break;
        cc__set(&slabs[i], NULL);
        cc__vm_release(slab, SLAB_RECORDS * sizeof(struct fiber));
    }
    pool.first = NULL;
    cc__set(&pool.size, 0);
}

struct fiber *cc__pool_at(uint32_t slot) {
    if (slot / SLAB_RECORDS >= SLABS_MAX) return NULL;
    struct fiber *slab = cc__get_acquire(&slabs[slot / SLAB_RECORDS]); /* pairs with carve_locked */
    return slab == NULL ? NULL : &slab[slot % SLAB_RECORDS];
}

bool cc__pool_slab(unsigned index, uintptr_t *low, uintptr_t *high) {
    const struct fiber *slab = index < SLABS_MAX ? cc__get_acquire(&slabs[index]) : NULL; /* pairs with carve_locked */
    *low = (uintptr_t)slab;
    *high = (uintptr_t)(slab + SLAB_RECORDS);
    return slab != NULL;
}

uintptr_t cc__pool_slab_of(uintptr_t address) {
    uintptr_t low, high;
    for (unsigned i = 0; cc__pool_slab(i, &low, &high); i++)
        if (address >= low && address < high) return low;
    return 0;
}

uint32_t cc__pool_size(void) {
    return cc__get_acquire(&pool.size); /* pairs with carve_locked */
}

/* The slot never changes. Hidden from the race detector: fibers of every worker read it, and the detector sees no order
 * between those reads and this write. */
static CC_NOINLINE CC_NO_TSAN void set_slot(struct fiber *f, uint32_t slot) {
    f->slot = slot;
}

/* The index-th slab, reserved if there is none. NULL: no memory. */
static struct fiber *slab_locked(unsigned index) {
    struct fiber *slab = cc__get(&slabs[index]);
    if (slab != NULL) return slab;
    slab = cc__vm_reserve(SLAB_RECORDS * sizeof(struct fiber));
    if (slab != NULL) cc__set_release(&slabs[index], slab); /* pairs with cc__pool_at */
    return slab;
}

struct fiber *cc__pool_first(void) {
    cc__lock_take(&pool.lock);
    struct fiber *f = slab_locked(0);
    cc__lock_release(&pool.lock);
    return f;
}

/* Carves a record that was never used. */
static struct fiber *carve_locked(void) {
    uint32_t slot = pool.carved;
    if (slot / SLAB_RECORDS >= SLABS_MAX) return NULL;
    struct fiber *slab = slab_locked(slot / SLAB_RECORDS);
    if (slab == NULL) return NULL;
    pool.carved++;
    struct fiber *f = &slab[slot % SLAB_RECORDS];
    if (slot % POPULATE_RECORDS == 0 && slot != 0) cc__vm_populate(f, POPULATE_RECORDS * sizeof *f);
    set_slot(f, slot);
    cc__set(&f->generation, pool.generation);
    cc__set_release(&f->word, FIBER_IDLE);    /* pairs with cc__state_take */
    cc__set_release(&pool.size, pool.carved); /* pairs with cc__pool_size */
    return f;
}

static struct fiber *take_locked(void) {
    struct fiber *f = pool.first;
    if (f == NULL) return carve_locked();
    pool.first = cc__get(&f->free_next);
    return f;
}

static void give_locked(struct fiber *f) {
    cc__set(&f->free_next, pool.first);
    pool.first = f;
}

/* Returns all but the first `keep` records of a cache. */
static void give_cached_locked(struct fiber_cache *cache, uint32_t keep) {
    uint32_t left = cc__get(&cache->count);
    for (; left > keep; left--) {
        struct fiber *f = cc__get(&cache->first);
        cc__set(&cache->first, cc__get(&f->free_next));
        give_locked(f);
    }
    cc__set(&cache->count, left);
}

struct fiber *cc__pool_take_slow(struct fiber_cache *cache) {
    cc__lock_take(&pool.lock);
    struct fiber *f = take_locked();
    if (f != NULL && cache != NULL) {
        /* Records in slab order keep a burst of spawns sequential in memory. */
        struct fiber *_Atomic *end = &cache->first;
        uint32_t n = 0;
        for (; n < POOL_BATCH; n++) {
            struct fiber *more = take_locked();
            if (more == NULL) break;
            cc__set(end, more);
            end = &more->free_next;
        }
        cc__set(end, NULL);
        cc__set(&cache->count, n);
    }
    cc__lock_release(&pool.lock);
    return f;
}

void cc__pool_give_slow(struct fiber_cache *cache, struct fiber *f) {
    if (unlikely(cc__pool_used_up(f))) return; /* retired: its slot stays empty until the next start */
    cc__lock_take(&pool.lock);
    give_locked(f);
    if (cache != NULL) give_cached_locked(cache, POOL_CACHE_MAX - POOL_BATCH);
    cc__lock_release(&pool.lock);
}

void cc__pool_flush(struct fiber_cache *cache) {
    cc__lock_take(&pool.lock);
    give_cached_locked(cache, 0);
    cc__lock_release(&pool.lock);
}
