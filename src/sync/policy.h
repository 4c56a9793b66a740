/* policy.h - the thresholds of this room, each with its source: measured, a bound, or a guess. */
#ifndef CC_SYNC_POLICY_H
#define CC_SYNC_POLICY_H

/* The internal lock (lock.c). Every check takes the line away from the holder, which needs it again at once: checking
 * less and less often lets one CPU do many operations in a row on what the lock guards. Measured on 2 cores with 4
 * producers and 4 consumers on one channel: 123 ns per value when checking every time, 36 ns like this. */
enum {
    LOCK_PAUSES = 64,    /* between two checks, at most: 2.5 us */
    LOCK_PATIENCE = 200, /* pauses in all: 8 us, longer than any section takes unless its holder lost the CPU. Guess */
    LOCK_YIELDS = 20,    /* then it yields its CPU this often ... Guess */
    LOCK_NAP_NS = 50 * 1000,        /* ... then it naps: decision 006. Guess */
    LOCK_LONG_NAP_NS = 1000 * 1000, /* for one that is held during a write. Guess */
};

/* The back-off (backoff.c). */
enum {
    BACKOFF_SPINS = 100,        /* a few times the expected wait */
    BACKOFF_YIELDS = 20,        /* guess: enough for the other thread to get one turn */
    BACKOFF_NAP_NS = 50 * 1000, /* the first; each is twice as long as the one before ... */
    BACKOFF_NAP_DOUBLES = 4,    /* ... up to 0.8 ms, about a scheduler's time slice */
    /* After a lost compare-and-swap, at most: 10 us. Measured in the model of bench/cpus: with 64 a word that 128
     * CPUs write takes 14 % of all time in a tree of tasks, with 256 it takes 5. */
    BACKOFF_PAUSES = 256,
};

/* The biased lock (bias.c): a few times the longest section of the owner (handing out half a queue: microseconds).
 * Guess. */
enum { BIAS_SPINS = 4000 };

#endif
