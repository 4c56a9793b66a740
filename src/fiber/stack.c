/* stack.c - arenas of stacks, the shared pool, guards, releasing memory. */
#include "fiber/stack.h"

#include "base/fatal.h"
#include "fiber/pool.h"
#include "fiber/state.h"
#include "os/signals.h"

#include <string.h>

enum {
    CLASS_MIN = 14, /* CC_STACK_SIZE_MIN */
    CLASS_MAX = 30, /* CC_STACK_SIZE_MAX */
    CLASSES = CLASS_MAX - CLASS_MIN + 1,
    ARENA_MIN_LOG2 = 24, /* the stacks of a class's first arena take 16 MiB; each is twice the last, so that */
    ARENA_MAX_LOG2 = 32, /* a million stacks of 256 KiB take some 70 mappings */
};

_Static_assert((size_t)1 << CLASS_MIN == CC_STACK_SIZE_MIN && (size_t)1 << CLASS_MAX == CC_STACK_SIZE_MAX,
               "classes span the limits");

/* Behind its stacks, in the same mapping. */
struct arena {
    struct arena *next;
    char *base;
    size_t size; /* of the stacks */
    uint32_t used, count;
    struct stack stacks[]; /* `count` of them: touched as carved */
};

struct class_pool {
    struct lock lock;
    struct stack *first_warm; /* pages kept; the last returned first */
    struct stack *last_warm;
    struct stack *first_clean; /* no pages */
    _Atomic uint32_t warm;
    uint32_t least;       /* minimum of `warm` since the last trim: this many were unused since then */
    uint32_t batch;       /* how many without pages are taken next: doubles until some are returned */
    struct arena *arenas; /* the newest first: the only one that may have room */
    uint32_t lent;        /* to hosted calls */
    uint8_t next_arena_log2;
};

/* Stacks of fibers, then of hosted calls. Hosted calls may continue after the runtime has stopped, and their stacks do
 * not count as those of fibers in lookups by address. */
static struct class_pool classes[2 * CLASSES];
static struct class_pool *const hosted_classes = &classes[CLASSES];
static uint8_t default_class;
size_t cc__stack_default_size;
_Atomic uint32_t cc__stack_cache_limit = STACK_CACHE_MAX;
_Atomic uint32_t cc__stack_moves;
static _Atomic uint32_t numbers;
static _Atomic uint32_t warned_unguarded; /* not a byte: some CPUs cannot swap one */

/* The class for `size` bytes: its log2. */
static uint8_t class_of(size_t size) {
    uint8_t log2 = CLASS_MIN;
    while (((size_t)1 << log2) < size) log2++;
    return log2;
}

void cc__stack_init(size_t size) {
    default_class = class_of(size);
    cc__stack_default_size = (size_t)1 << default_class;
    cc__set(&cc__stack_cache_limit, STACK_CACHE_MAX);
    for (size_t i = 0; i < array_len(classes); i++) {
        classes[i].next_arena_log2 = ARENA_MIN_LOG2;
        classes[i].batch = 1;
    }
}

/* The distance from one stack to the next. */
static size_t stride(const struct class_pool *pool, uint8_t log2) {
    return cc__stack_gap() + ((size_t)1 << log2) + (pool >= hosted_classes ? cc__fault_stack_size() : 0);
}

static size_t header_size(uint32_t count) {
    return (sizeof(struct arena) + count * sizeof(struct stack) + cc__vm_page() - 1) & ~(cc__vm_page() - 1);
}

static bool has_lent(struct class_pool *pool) {
    cc__lock_take(&pool->lock);
    bool lent = pool->lent > 0;
    cc__lock_release(&pool->lock);
    return lent;
}

void cc__stack_destroy(void) {
    for (size_t i = 0; i < array_len(classes); i++) {
        struct class_pool *pool = &classes[i];
        if (has_lent(pool)) continue; /* freed at the next shutdown */
        for (struct arena *arena = pool->arenas; arena != NULL;) {
            struct arena *next = arena->next;
            for (uint32_t k = 0; k < arena->used; k++) cc__san_stack_unmap(arena->stacks[k].san_handle);
            cc__san_range_unmap(arena->base, arena->size);
            cc__vm_release(arena->base, arena->size + header_size(arena->count));
            arena = next;
        }
        memset(pool, 0, sizeof *pool);
    }
    cc__set(&warned_unguarded, 0);
}

/* A new arena; tries smaller ones when the system refuses (RLIMIT_AS, strict overcommit). */
static struct arena *arena_new_locked(struct class_pool *pool, uint8_t log2) {
    uint8_t size_log2 = pool->next_arena_log2 > log2 ? pool->next_arena_log2 : log2;
    char *base;
    size_t size;
    uint32_t count;
    for (;; size_log2--) {
        count = (uint32_t)1 << (size_log2 - log2);
        size = count * stride(pool, log2);
        if ((base = cc__vm_reserve(size + header_size(count))) != NULL) break;
        if (size_log2 == log2) return NULL;
    }
    struct arena *arena = (struct arena *)(void *)(base + size);
    *arena = (struct arena){.next = pool->arenas, .base = base, .size = size, .count = count};
    if (size_log2 < ARENA_MAX_LOG2) pool->next_arena_log2 = (uint8_t)(size_log2 + 1);
    cc__san_range_map(base, size);
    pool->arenas = arena;
    return arena;
}

/* Sets what never changes. Hidden from the race detector: the fibers that use the stack read it, and it sees no order
 * after this write. */
static CC_NOINLINE CC_NO_TSAN void describe(struct stack *s, char *base, uint8_t log2) {
    s->base = base;
    s->log2 = log2;
    s->number = cc__add_relaxed(&numbers, 1);
    cc__set(&s->cold, cc__stack_own_cold(s));
    s->san_handle = cc__san_stack_map(base, (size_t)1 << log2);
}

/* Carves a stack that was never used. */
static struct stack *carve_locked(struct class_pool *pool, uint8_t log2) {
    struct arena *arena = pool->arenas;
    if (arena == NULL || arena->used == arena->count) arena = arena_new_locked(pool, log2);
    if (arena == NULL) return NULL;
    struct stack *s = &arena->stacks[arena->used];
    describe(s, arena->base + arena->used * stride(pool, log2) + cc__stack_gap(), log2);
    arena->used++;
    return s;
}

static struct stack *take_warm_locked(struct class_pool *pool, int resting) {
    struct stack *s = pool->first_warm;
    if (s == NULL || (int)cc__get(&pool->warm) <= resting) return NULL;
    pool->first_warm = cc__get(&s->next);
    if (pool->first_warm == NULL) pool->last_warm = NULL;
    uint32_t warm = cc__get(&pool->warm) - 1;
    cc__set(&pool->warm, warm);
    if (warm < pool->least) pool->least = warm;
    return s;
}

static void give_locked(struct class_pool *pool, struct stack *s) { /* STACK-1 */
    if (STACK_LIFO || pool->last_warm == NULL) {
        cc__set(&s->next, pool->first_warm);
        if (pool->first_warm == NULL) pool->last_warm = s;
        pool->first_warm = s;
    } else {
        cc__set(&s->next, NULL);
        cc__set(&pool->last_warm->next, s);
        pool->last_warm = s;
    }
    cc__set(&pool->warm, cc__get(&pool->warm) + 1);
}

/* Outside the lock, because the system call is slow. */
static void guard(struct stack *s) { /* STACK-2 */
    struct vm_range range = cc__stack_guard(s);
    s->guarded = cc__vm_guard(range.at, range.size);
    if (s->guarded || cc__swap(&warned_unguarded, 1) != 0) return;
    cc__warn(
        "no more guard pages after %u stacks, which would use up vm.max_map_count; from here on a stack overflow is not caught. "
        "Raise vm.max_map_count, use fewer fibers, or a kernel with MADV_GUARD_INSTALL (6.13)",
        cc__get(&numbers));
}

/* Guards and backs new stacks, and those whose pages were released. */
static void prepare(struct stack **stacks, uint32_t n) {
    struct vm_range ranges[STACK_BATCH_MAX];
    uint32_t unguarded = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!stacks[i]->guarded) ranges[unguarded++] = cc__stack_guard(stacks[i]);
    bool all = unguarded > 1 && cc__vm_guard_is_free() && cc__vm_guard_all(ranges, unguarded);
    for (uint32_t i = 0; i < n && unguarded > 0; i++) {
        if (stacks[i]->guarded) continue;
        if (all)
            stacks[i]->guarded = true;
        else
            guard(stacks[i]);
    }
    if (n == 1) return; /* it is used at once, which backs it */
    for (uint32_t i = 0; i < n; i++) {
        char *end = stacks[i]->base + cc__stack_size(stacks[i]);
        ranges[i] = (struct vm_range){end - cc__vm_page(), cc__vm_page()};
    }
    cc__vm_populate_all(ranges, n);
}

/* After the counts have been set. */
static void moved_locked(void) {
    cc__set_release(&cc__stack_moves, cc__get(&cc__stack_moves) + 1); /* pairs with wait_for_stack in worker.c */
}

/* Takes up to `most` warm stacks; if there are none, up to the pool's batch of stacks without pages. */
CC_INLINE uint32_t take_locked(struct class_pool *pool, uint8_t log2, uint32_t most, struct stack **stacks,
                               bool *warm) {
    uint32_t n = 0;
    while (n < most && (stacks[n] = take_warm_locked(pool, STACK_RESTING)) != NULL) n++;
    *warm = n > 0;
    if (n > 0) return n;
    uint32_t wanted = pool->batch < most ? pool->batch : most;
    for (struct stack *s; n < wanted && (s = pool->first_clean) != NULL; stacks[n++] = s)
        pool->first_clean = cc__get(&s->next);
    if (n == 0)
        while (n < wanted && (stacks[n] = carve_locked(pool, log2)) != NULL) n++;
    pool->batch = wanted < STACK_BATCH_MAX ? wanted * 2 : STACK_BATCH_MAX;
    if (n == 0 && (stacks[0] = take_warm_locked(pool, 0)) != NULL) {
        *warm = true;
        n = 1;
    }
    return n;
}

struct stack *cc__stack_take(struct stack_cache *cache, size_t size) {
    uint8_t log2 = size == 0 ? default_class : class_of(size);
    struct class_pool *pool = &classes[log2 - CLASS_MIN];
    struct stack *stacks[STACK_BATCH_MAX];
    uint32_t most = 1;
    if (log2 == default_class) {
        struct stack *s = cc__stack_take_cached(cache);
        if (s != NULL) return s;
        most = cc__stack_short() ? 1 : STACK_BATCH_MAX;
    }
    bool warm;
    cc__san_ignore(true); /* these frames reuse the addresses of frames of fibers that have ended */
    cc__lock_take(&pool->lock);
    uint32_t n = take_locked(pool, log2, most, stacks, &warm);
    if (n > 1) cc__set(&cache->count, n - 1); /* the cache was empty */
    if (n > 1) moved_locked();
    cc__lock_release(&pool->lock);
    if (n > 0 && !warm) prepare(stacks, n);
    cc__san_ignore(false);
    if (n == 0) {
        if (log2 == default_class) cc__set(&cc__stack_cache_limit, 0);
        return NULL;
    }
    for (uint32_t i = n; i-- > 1;) { /* the first is handed out next */
        cc__set(&stacks[i]->next, cc__get(&cache->first));
        cc__set(&cache->first, stacks[i]);
    }
    return stacks[0];
}

bool cc__stack_cacheable(size_t size) {
    return size == 0 || class_of(size) == default_class;
}

/* Returns all but the first `keep` stacks of a cache. */
static void give_cached_locked(struct class_pool *pool, struct stack_cache *cache, uint32_t keep) {
    while (cc__get(&cache->count) > keep) give_locked(pool, cc__stack_take_cached(cache));
    moved_locked();
}

void cc__stack_give_slow(struct stack_cache *cache, struct stack *s) {
    struct class_pool *pool = &classes[s->log2 - CLASS_MIN];
    cc__san_stack_clean(s->base, cc__stack_size(s));
    cc__lock_take(&pool->lock);
    give_locked(pool, s);
    if (s->log2 == default_class) {
        if (cc__stack_short() && cc__get(&pool->warm) > STACK_RESERVE) cc__set(&cc__stack_cache_limit, STACK_CACHE_MAX);
        /* Also returns half of the cache, so that the next returns are local again; all of it while memory is short. */
        give_cached_locked(pool, cache, cc__get(&cc__stack_cache_limit) / 2);
    }
    cc__lock_release(&pool->lock);
}

struct stack *cc__stack_lend(void) {
    struct class_pool *pool = &hosted_classes[default_class - CLASS_MIN];
    struct stack *s;
    bool warm;
    cc__lock_take(&pool->lock);
    uint32_t n = take_locked(pool, default_class, 1, &s, &warm);
    pool->lent += n;
    cc__lock_release(&pool->lock);
    if (n > 0 && !warm) prepare(&s, 1);
    return n > 0 ? s : NULL;
}

void cc__stack_return(struct stack *s) {
    struct class_pool *pool = &hosted_classes[s->log2 - CLASS_MIN];
    cc__san_stack_clean(s->base, cc__stack_size(s));
    cc__lock_take(&pool->lock);
    give_locked(pool, s);
    pool->lent--;
    cc__lock_release(&pool->lock);
}

void cc__stack_forget(void) {
    for (int i = 0; i < CLASSES; i++) hosted_classes[i].lock = (struct lock){0};
}

void cc__stack_flush(struct stack_cache *cache) {
    struct class_pool *pool = &classes[default_class - CLASS_MIN];
    cc__lock_take(&pool->lock);
    give_cached_locked(pool, cache, 0);
    cc__lock_release(&pool->lock);
}

/* Releases the pages of up to `most` stacks, STACK_TRIM_BATCH at most. Returns how many. */
static unsigned trim_some(struct class_pool *pool, unsigned most) {
    struct stack *stacks[STACK_TRIM_BATCH];
    struct vm_range ranges[STACK_TRIM_BATCH];
    unsigned n = 0;
    cc__lock_take(&pool->lock);
    while (n < most && n < STACK_TRIM_BATCH && cc__get(&pool->warm) > STACK_RESERVE) {
        if ((stacks[n] = take_warm_locked(pool, STACK_RESTING)) == NULL) break;
        n++;
    }
    pool->batch = 1;
    cc__lock_release(&pool->lock);
    if (n == 0) return 0;
    for (unsigned i = 0; i < n; i++) {
        size_t guard_size = cc__stack_guard_size(stacks[i]);
        ranges[i] = (struct vm_range){stacks[i]->base + guard_size, cc__stack_size(stacks[i]) - guard_size};
    }
    cc__vm_discard_all(ranges, n);
    cc__lock_take(&pool->lock);
    for (unsigned i = 0; i < n; i++) {
        cc__set(&stacks[i]->next, pool->first_clean);
        pool->first_clean = stacks[i];
    }
    cc__lock_release(&pool->lock);
    return n;
}

static unsigned trim_class(struct class_pool *pool) {
    unsigned done = 0, n;
    cc__lock_take(&pool->lock);
    unsigned rested = pool->least > STACK_RESERVE ? pool->least - STACK_RESERVE : 0;
    cc__lock_release(&pool->lock);
    while (done < rested && (n = trim_some(pool, rested - done)) > 0) done += n;
    cc__lock_take(&pool->lock);
    pool->least = cc__get(&pool->warm);
    cc__lock_release(&pool->lock);
    return done;
}

bool cc__stack_spare(void) {
    for (size_t i = 0; i < array_len(classes); i++)
        if (cc__get(&classes[i].warm) > STACK_RESERVE) return true;
    return false;
}

CC_NOINLINE void cc__stack_discard_unused(const struct stack *s) {
    enum { STILL_USED = 2048 }; /* by the calls made here, and by a signal handler that runs meanwhile */
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), low = (uintptr_t)s->base + cc__stack_guard_size(s);
    uintptr_t high = (here - STILL_USED) & ~(uintptr_t)(cc__vm_page() - 1);
    if (here >= (uintptr_t)s->base + cc__stack_size(s) || high <= low) return; /* or the caller runs on another stack */
    cc__vm_discard_all(&(struct vm_range){(char *)low, high - low}, 1);
}

unsigned cc__stack_trim(void) {
    unsigned done = 0;
    for (size_t i = 0; i < array_len(classes); i++) {
        if (cc__get(&classes[i].warm) <= STACK_RESERVE) continue;
        cc__san_ignore(true); /* as in cc__stack_take */
        done += trim_class(&classes[i]);
        cc__san_ignore(false);
    }
    return done;
}

/* ---- how much of them is used ---- */

static void look_at(struct stack_survey *survey, const struct stack *s) {
    size_t guard_size = cc__stack_guard_size(s);
    size_t used = cc__vm_touched(s->base + guard_size, cc__stack_size(s) - guard_size);
    unsigned k = 0;
    while (k < STACK_BUCKETS - 1 && cc__vm_page() << k < used) k++;
    survey->bucket[k]++;
    survey->looked_at++;
    if (used > survey->most) survey->most = used;
}

/* The newest arena of a class and how much of it is in use. Arenas live as long as the runtime, and what is below
 * `used` does not change, so callers need no lock afterwards. */
static const struct arena *arenas_of(struct class_pool *pool, uint32_t *used) {
    cc__lock_take(&pool->lock);
    const struct arena *arena = pool->arenas;
    *used = arena != NULL ? arena->used : 0;
    cc__lock_release(&pool->lock);
    return arena;
}

void cc__stack_look(struct stack_survey *survey, uint32_t max) {
    *survey = (struct stack_survey){0};
    const struct arena *first[array_len(classes)];
    uint32_t used[array_len(classes)];
    for (size_t i = 0; i < array_len(classes); i++) {
        first[i] = arenas_of(&classes[i], &used[i]);
        survey->stacks += used[i];
        if (first[i] == NULL) continue;
        for (const struct arena *a = first[i]->next; a != NULL; a = a->next) survey->stacks += a->count;
    }
    uint32_t step = (survey->stacks + max - 1) / max, at = 0;
    for (size_t i = 0; i < array_len(classes); i++)
        for (const struct arena *a = first[i]; a != NULL; a = a->next) {
            uint32_t n = a == first[i] ? used[i] : a->count;
            for (; at < n; at += step) look_at(survey, &a->stacks[at]);
            at -= n;
        }
}

bool cc__stack_in_guard(const struct stack *s, const void *addr) {
    struct vm_range guard = cc__stack_guard(s);
    return (uintptr_t)addr - (uintptr_t)guard.at < guard.size;
}

bool cc__stack_arena(unsigned index, uintptr_t *low, uintptr_t *high) {
    for (int i = 0; i < CLASSES; i++) {
        struct class_pool *pool = &classes[i];
        bool found = false;
        cc__lock_take(&pool->lock);
        for (struct arena *arena = pool->arenas; arena != NULL && !found; arena = arena->next) {
            found = index-- == 0;
            *low = (uintptr_t)arena->base;
            *high = *low + arena->size;
        }
        cc__lock_release(&pool->lock);
        if (found) return true;
    }
    return false;
}
