/* policy.h - the thresholds of this room, each with its source: measured, a bound, or a guess. */
#ifndef CC_FIBER_POLICY_H
#define CC_FIBER_POLICY_H

/* The most records that a worker caches, and how many it takes or returns at a time: enough for a local burst of
 * spawns, few enough to be shared. Guess. */
enum { POOL_CACHE_MAX = 512, POOL_BATCH = 128 };

/* A worker keeps this many warm stacks; more go to the shared pool. Guess: 64 fit into a second-level cache. Under the
 * race detector it keeps none: a stack orders the fibers that use it, so there it is reused as late as possible
 * (stack.c). */
#ifdef CC_TSAN
enum { STACK_CACHE_MAX = 0 };
#else
enum { STACK_CACHE_MAX = 64 };
#endif

/* The pool hands out the warmest stack first. Under the race detector, the least recently used one, and only when many
 * are free: what a stack's next fiber does is ordered after the end of its last one, which would hide races between the
 * two. */
#ifdef CC_TSAN
enum { STACK_LIFO = 0, STACK_RESTING = 256 };
#else
enum { STACK_LIFO = 1, STACK_RESTING = 0 };
#endif

enum {
    STACK_RESERVE = 256, /* pooled stacks per class that keep their pages for the next burst. Guess */
    /* How many a worker takes at a time. New stacks are guarded, and their first pages backed, in one batch: 2.0 us
     * each instead of 2.6 (measured; 1.0 of it is the least that a page costs). */
    STACK_BATCH_MAX = STACK_CACHE_MAX > 1 ? STACK_CACHE_MAX / 2 : 1,
    STACK_TRIM_BATCH = 64, /* stacks that are released in one batch: 0.5 us each instead of 1.6 (measured) */
};

#endif
