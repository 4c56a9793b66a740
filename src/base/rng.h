/* rng.h - small fast random numbers, for example where a thief starts. Not for secrets. */
#ifndef CC_BASE_RNG_H
#define CC_BASE_RNG_H

#include "base/attr.h"

/* xorshift64*; the state must not be 0. Always inline: some callers are hidden from the race detector. */
CC_INLINE uint64_t cc__rng_next(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

#endif
