/* stack.h - the stacks that fibers and hosted calls run on, pooled separately from the fiber records.
 *
 * Stacks are carved out of large reserved ranges ("arenas") of one size each, a power of two, and backed only
 * where touched. The guard is the lowest pages and an unused gap of 40 KiB below them. The top is coloured, shifted by
 * a few cache lines from stack to stack, because equally aligned tops map to the same cache sets.
 *
 *   base - gap     base                         ...            top        cold          base + size
 *    |---------- guard, no access -----|<------- grows down -----|- colour -|- 128 bytes -|
 *
 * STACK-1  A stack is in exactly one place: a worker's cache, the shared pool, or bound to one fiber or hosted call.
 * STACK-2  A stack without a guard is never handed out silently: the first one is announced on stderr.
 */
#ifndef CC_FIBER_STACK_H
#define CC_FIBER_STACK_H

#include "fiber/fiber.h"
#include "fiber/policy.h"
#include "os/vm.h"

struct stack {
    char *base;
    struct stack *_Atomic next; /* pool or cache */
    uint32_t number;            /* determines the colour */
    uint8_t log2;               /* of the size */
    bool guarded;
    uint32_t san_handle;
    struct fiber_cold *_Atomic cold; /* cached cc__stack_own_cold */
    struct san san;
};

/* A worker's own stacks, of the default size, still warm. */
struct stack_cache {
    struct stack *_Atomic first;
    _Atomic uint32_t count;
};

/* default_size: rounded up to a power of two. */
void cc__stack_init(size_t default_size);
void cc__stack_destroy(void); /* all stacks except those of hosted calls have been returned */

extern size_t cc__stack_default_size; /* constant while the runtime runs */

CC_INLINE size_t cc__stack_default(void) {
    return cc__stack_default_size;
}

CC_INLINE size_t cc__stack_size(const struct stack *s) {
    return (size_t)1 << s->log2;
}
/* The part of the guard that is inside the stack: a sixteenth of it, at least one page and at most four. */
CC_INLINE size_t cc__stack_guard_size(const struct stack *s) {
    size_t most = cc__stack_size(s) / 16;
    return most < cc__vm_page() ? cc__vm_page() : most > 4 * cc__vm_page() ? 4 * cc__vm_page() : most;
}
/* The part below the stack, which costs address space and page table entries. A function compiled without
 * -fstack-clash-protection hits the guard if its frame is not larger than both parts. The largest size with 600 bytes
 * of page tables per stack of 256 KiB. */
CC_INLINE size_t cc__stack_gap(void) {
    return ((size_t)40 * 1024 + cc__vm_page() - 1) & ~(cc__vm_page() - 1);
}

CC_INLINE struct vm_range cc__stack_guard(const struct stack *s) {
    return (struct vm_range){s->base - cc__stack_gap(), cc__stack_gap() + cc__stack_guard_size(s)};
}
CC_INLINE struct fiber_cold *cc__stack_own_cold(const struct stack *s) {
    return (struct fiber_cold *)(void *)(s->base + cc__stack_size(s) - sizeof(struct fiber_cold));
}

/* Sixteen colours, two lines apart: 2 KiB at most, so that a fiber with small frames stays within one page. */
enum { STACK_COLOURS = 16, STACK_COLOUR_STEP = 128 };

CC_INLINE void *cc__stack_top_below(const struct stack *s, struct fiber_cold *cold) {
    return (char *)cold - (s->number % STACK_COLOURS) * (size_t)STACK_COLOUR_STEP;
}
CC_INLINE void *cc__stack_top(const struct stack *s) {
    return cc__stack_top_below(s, cc__stack_own_cold(s));
}

/* A stack of the default size from the worker's cache; NULL: the cache is empty. */
CC_INLINE void cc__stack_take_first(struct stack_cache *cache, struct stack *s) {
    cc__set(&cache->first, cc__get(&s->next));
    cc__set(&cache->count, cc__get(&cache->count) - 1);
}
CC_INLINE struct stack *cc__stack_take_cached(struct stack_cache *cache) {
    struct stack *s = cc__get(&cache->first);
    if (likely(s != NULL)) cc__stack_take_first(cache, s);
    return s;
}

/* A stack of at least `size` bytes (0: the default) from cache or pool; NULL: no memory. May call the system. */
struct stack *cc__stack_take(struct stack_cache *cache, size_t size);

void cc__stack_give_slow(struct stack_cache *cache, struct stack *s);

/* STACK_CACHE_MAX; 0 while memory is short: then every unused stack is in the pool. */
extern _Atomic uint32_t cc__stack_cache_limit;

/* The last take of a default size failed. An idle worker then flushes its cache. */
CC_INLINE bool cc__stack_short(void) {
    return STACK_CACHE_MAX > 0 && cc__get(&cc__stack_cache_limit) == 0;
}

/* Changes whenever stacks have moved between the pool and a cache. If it is unchanged after a failed take and a read of
 * all caches' counts, which were all 0, then there is no stack. */
extern _Atomic uint32_t cc__stack_moves;

/* Whether another worker's cache could have such a stack. 0: the default. */
bool cc__stack_cacheable(size_t size);

/* Returns a stack to the cache where it came from, or to another worker's. It is no longer in use, and all but its
 * first function have returned, so what ASan has to unpoison is near the top. */
CC_INLINE void cc__stack_give_cached(struct stack_cache *cache, struct stack *s) {
    uint32_t count = cc__get(&cache->count);
    if (unlikely(count >= cc__get(&cc__stack_cache_limit))) {
        cc__stack_give_slow(cache, s);
        return;
    }
    cc__san_stack_clean(s->base + cc__stack_size(s) - 8192, 8192);
    cc__set(&s->next, cc__get(&cache->first));
    cc__set(&cache->first, s);
    cc__set(&cache->count, count + 1);
}

/* The same for a stack of any size, in any state. */
CC_INLINE void cc__stack_give(struct stack_cache *cache, struct stack *s) {
    if (unlikely(cc__stack_size(s) != cc__stack_default())) {
        cc__stack_give_slow(cache, s);
        return;
    }
    cc__san_stack_clean(s->base, cc__stack_size(s));
    cc__stack_give_cached(cache, s);
}

/* A stack of the default size for a hosted call; NULL: no memory. Called by an OS thread inside the runtime; may be
 * returned after the runtime has stopped. The cc__fault_stack_size() bytes behind its end are for signal handlers. */
struct stack *cc__stack_lend(void);
void cc__stack_return(struct stack *s);
void cc__stack_forget(void); /* in a forked child: resets the locks, whose holders no longer exist */

/* Moves the whole cache to the shared pool. */
void cc__stack_flush(struct stack_cache *cache);

/* Releases to the system the pages of pooled stacks that were unused since the last call, except for a reserve that
 * stays warm. Returns how many. Any thread, called periodically. */
unsigned cc__stack_trim(void);
/* Whether there are more than the reserve, which further calls would release if they stay unused. Any thread. */
bool cc__stack_spare(void);

/* Releases the pages of the calling fiber's stack that hold no frames. */
void cc__stack_discard_unused(const struct stack *s);

/* How deep stacks have been used since their pages were last released to the system, according to their resident
 * pages. */
enum { STACK_BUCKETS = 20 };
struct stack_survey {
    uint32_t stacks, looked_at;     /* all that exist; those in an evenly spread sample */
    size_t most;                    /* bytes, in whole pages */
    uint32_t bucket[STACK_BUCKETS]; /* [0]: up to a page; [k]: up to 2^k pages; the last one takes the rest */
};
/* Samples up to `max` stacks, at least 1, with a system call for each. Any thread, while the runtime runs. */
void cc__stack_look(struct stack_survey *survey, uint32_t max);

/* The address range of the index-th arena of fiber stacks; false: there are no more. Any thread. */
bool cc__stack_arena(unsigned index, uintptr_t *low, uintptr_t *high);

/* True if `addr` lies in the guard of s. Signal-safe. */
bool cc__stack_in_guard(const struct stack *s, const void *addr);

#endif
