/* policy.h - the thresholds of this room, each with its source: measured, a bound, or a guess. */
#ifndef CC_FIBER_POLICY_H
#define CC_FIBER_POLICY_H

/* Records that a worker keeps at most, and takes or gives at a time: enough for a burst of spawns to be local, few
 * enough to be shared. Guess. */
enum { POOL_CACHE_MAX = 512, POOL_BATCH = 128 };

/* A worker keeps this many warm stacks; more go to the shared pool. Guess: 64 fit into a second-level cache. Under the
 * race detector it keeps none: a stack orders its tenants, so there they change as late as possible (stack.c). */
#ifdef CC_TSAN
enum { STACK_CACHE_MAX = 0 };
#else
enum { STACK_CACHE_MAX = 64 };
#endif

/* The pool hands out the warmest stack first. Under the race detector, the one that rested longest, and only when many
 * rest: what a stack's next tenant does is ordered after its last one's end, and would hide races between the two. */
#ifdef CC_TSAN
enum { STACK_LIFO = 0, STACK_RESTING = 256 };
#else
enum { STACK_LIFO = 1, STACK_RESTING = 0 };
#endif

enum {
    STACK_RESERVE = 256, /* pooled stacks per class that keep their pages: the next burst's head start. Guess */
    /* What a worker takes at a time. New stacks are guarded, and their first pages backed, together: 2.0 us each and
     * not 2.6 (measured, of which 1.0 is what a page costs at least). */
    STACK_BATCH_MAX = STACK_CACHE_MAX > 1 ? STACK_CACHE_MAX / 2 : 1,
    STACK_TRIM_BATCH = 64, /* stacks that are given back together: 0.5 us each and not 1.6 (measured) */
};

#endif
