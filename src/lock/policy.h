/* policy.h - the thresholds of this room, each with its source: measured, a bound, or a guess. */
#ifndef CC_LOCK_POLICY_H
#define CC_LOCK_POLICY_H

/* Which waiter gets a mutex or a rwlock: MUTEX-3, RW-3. */
enum {
    STARVING_NS = 1000 * 1000, /* as in Go: long beside a wake-up, short beside what a person notices */
    PASSED_MAX = 16,           /* guess: a bound where nobody looks at the clock */
};

/* Spinning for a mutex.
 *
 * The first look comes after a pause and not at once: each look takes the cache line away from the holder's core
 * (145 ns there and back), and two cores that take turns at every operation are ten times slower than one
 * that does a hundred in a row. Measured with bench/mutex, two workers. */
enum {
    SPIN_PAUSES = 24,      /* before the first look; about 1 us */
    RW_SPIN_PAUSES = 4,    /* the same for a rwlock, whose readers take no turns; guess */
    SPIN_ROUNDS = 4,       /* looks, each after twice as long a pause */
    SPIN_FAILURES_MAX = 8, /* after so many spins that failed ... */
    SPIN_SKIPS = 64,       /* ... so many waits begin without one. Guesses */
};

/* The parking lot. */
enum {
    BUCKETS_LOG2 = 8, /* 32 KiB; two mutexes with waiters rarely share a bucket. Guess */
    /* Unlocks without a waiter after which fast_unlock is turned on: by then they have cost as much (6 ns each) as the
     * membarrier of the next waiter may (20 us). */
    FAST_UNLOCK_AFTER = 4096,
};

#endif
