/* policy.h - the thresholds of this room, each with its source: measured, a bound, or a guess. */
#ifndef CC_LOCK_POLICY_H
#define CC_LOCK_POLICY_H

/* Which waiter gets a mutex or a rwlock: MUTEX-3, RW-3. */
enum {
    STARVING_NS = 1000 * 1000, /* as in Go: long compared with a wake, too short for a person to notice */
    PASSED_MAX = 16,           /* guess: a bound that needs no clock */
};

/* Spinning for a mutex.
 *
 * The first check comes after a pause: each check takes the cache line away from the holder's core (145 ns there and
 * back), and two cores that alternate at every operation are ten times slower than one that does a hundred in a row.
 * Measured with bench/mutex, two workers. */
enum {
    SPIN_PAUSES = 24,      /* before the first check; about 1 us */
    RW_SPIN_PAUSES = 4,    /* the same for a rwlock, whose readers do not alternate; guess */
    SPIN_ROUNDS = 4,       /* checks, the pause doubles each time */
    SPIN_FAILURES_MAX = 8, /* after this many failed spins ...... */
    SPIN_SKIPS = 64,       /* ... this many waits skip the spin. Guesses */
};

/* The parking lot. */
enum {
    BUCKETS_LOG2 = 8, /* 32 KiB; two busy mutexes rarely share a bucket. Guess */
    /* Unlocks without a waiter after which fast_unlock is turned on: together they have cost as much (6 ns each) as the
     * membarrier of the next waiter may (20 us). */
    FAST_UNLOCK_AFTER = 4096,
};

#endif
