/* pprof.h - sums of the values in a profile. */
#ifndef CCC_TESTS_UNIT_PPROF_H
#define CCC_TESTS_UNIT_PPROF_H

#include <stdbool.h>
#include <stdint.h>

/* Reads a number of seven bits a byte, the last one below 128. */
static inline uint64_t pprof_number(const unsigned char **at) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

/* The sum of one of the values of all samples, the first being 0: field 2 of the profile has a sample, whose field 2
 * has the values. */
static inline uint64_t pprof_sum(const unsigned char *at, const unsigned char *end, unsigned which, bool in_sample) {
    uint64_t sum = 0;
    while (at < end) {
        uint64_t key = pprof_number(&at), value = pprof_number(&at);
        if ((key & 7) == 0) continue; /* a number; else so many bytes */
        const unsigned char *next = at + value;
        if (key >> 3 == 2 && !in_sample) sum += pprof_sum(at, next, which, true);
        if (key >> 3 == 2 && in_sample) {
            for (unsigned i = 0; i < which; i++) (void)pprof_number(&at);
            sum += pprof_number(&at);
        }
        at = next;
    }
    return sum;
}

#endif
