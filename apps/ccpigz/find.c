/* find.c - tries every bit; most are ruled out by a check of 17 bits, nearly all others by a sum.
 *
 * Fixed and stored blocks are not searched for: their headers have 3 bits, which match anywhere.
 */
#include "find.h"

#include <endian.h>
#include <string.h>

static uint64_t bits_at(const uint8_t *in, size_t bit) {
    uint64_t word;
    memcpy(&word, in + bit / 8, sizeof word);
    return le64toh(word) >> (bit % 8); /* at least 57 of them */
}

/* Whether n code lengths of 3 bits are those of a complete code: each takes 2^-length of the room. */
static int is_complete(const uint8_t *in, size_t bit, unsigned n) {
    static const uint8_t share[8] = {0, 64, 32, 16, 8, 4, 2, 1};
    uint64_t lengths = bits_at(in, bit);
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        if (i == 16) lengths = bits_at(in, bit + 48);
        sum += share[lengths & 7];
        lengths >>= 3;
    }
    return sum == 128;
}

size_t find_block(const uint8_t *in, size_t from, size_t to) {
    while (from < to) {
        uint64_t word = bits_at(in, from);
        /* 40 positions from one load: each needs 17 bits. */
        for (unsigned i = 0; i < 40 && from + i < to; i++, word >>= 1) {
            if ((word & 7) != 4 || ((word >> 3) & 31) > 29 || ((word >> 8) & 31) > 29) continue;
            if (is_complete(in, from + i + 17, 4 + ((word >> 13) & 15))) return from + i;
        }
        from += 40;
    }
    return FIND_NONE;
}
