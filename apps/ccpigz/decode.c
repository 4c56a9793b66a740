/* decode.c - block headers, stored blocks, and the careful half of the decoder; the fast half is in decode_body.h. */
#include "decode.h"
#include "table.h"

#include <endian.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

void decode_start(struct decoder *d) {
    d->bits = 0;
    d->count = 0;
    d->where = AT_HEADER;
    d->final = d->fixed = d->stop = false;
    d->stop_at = NULL;
    d->stored_left = d->match_left = d->match_distance = 0;
    d->error = NULL;
}

void decode_start_at(struct decoder *d, const uint8_t *in, unsigned bit) {
    decode_start(d);
    d->in = in;
    if (bit != 0) {
        d->bits = (uint64_t)*d->in++ >> bit;
        d->count = 8 - bit;
    }
}

static enum decode_status fail(struct decoder *d, const char *error) {
    d->error = error;
    return DECODE_BAD;
}

/* Fills the bit buffer as far as the input goes, byte by byte. */
static inline void refill_carefully(struct decoder *d) { /* DECODE-1 */
    while (d->count <= 56 && d->in < d->in_end) {
        d->bits |= (uint64_t)*d->in++ << d->count;
        d->count += 8;
    }
}

/* Gives whole bytes back to the input: DECODE-2. */
static inline void give_back(struct decoder *d) {
    d->in -= d->count / 8;
    d->count %= 8;
    d->bits &= (1u << d->count) - 1;
}

static inline uint64_t load_word(const uint8_t *from) {
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return le64toh(word);
}

/* ---- headers ---- */

/* Reads n bits, at most 16; zeros where the input has ended, which `short_of` then remembers. */
static inline uint32_t take(struct decoder *d, unsigned n, bool *short_of) {
    if (d->count < n) {
        refill_carefully(d);
        if (d->count < n) {
            *short_of = true;
            d->count = n;
        }
    }
    uint32_t value = (uint32_t)(d->bits & ((1u << n) - 1));
    d->bits >>= n;
    d->count -= n;
    return value;
}

static void make_fixed_tables(struct decoder *d) {
    uint8_t lengths[288];
    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    memset(lengths + 280, 8, 8);
    table_make(d->litlen, LITLEN_BITS, lengths, 288, TABLE_LITLEN);
    memset(lengths, 5, 32);
    table_make(d->distance, DISTANCE_BITS, lengths, 32, TABLE_DISTANCE);
    d->fixed = true;
}

/* The code lengths of both codes, themselves coded. NULL: fine. */
static const char *read_lengths(struct decoder *d, uint8_t *lengths, unsigned n, unsigned length_codes,
                                bool *short_of) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t coded[19] = {0};
    uint32_t table[128];
    for (unsigned i = 0; i < length_codes; i++) coded[order[i]] = (uint8_t)take(d, 3, short_of);
    if (*short_of) return NULL;
    if (!table_make(table, 7, coded, 19, TABLE_LENGTHS)) return "a block's code lengths are malformed";

    for (unsigned i = 0; i < n;) {
        if (d->count < 14) refill_carefully(d);
        uint32_t entry = table[d->bits & 127];
        take(d, ENTRY_DROP(entry), short_of);
        unsigned symbol = ENTRY_BASE(entry);
        if (*short_of) return NULL;
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        uint8_t value = 0;
        unsigned repeat;
        if (symbol == 16) {
            if (i == 0) return "a block repeats a code length that does not exist";
            value = lengths[i - 1];
            repeat = 3 + take(d, 2, short_of);
        } else {
            repeat = symbol == 17 ? 3 + take(d, 3, short_of) : 11 + take(d, 7, short_of);
        }
        if (repeat > n - i) return "a block has too many code lengths";
        memset(lengths + i, value, repeat);
        i += repeat;
    }
    return NULL;
}

static enum decode_status read_dynamic(struct decoder *d, bool *short_of) {
    unsigned literals = 257 + take(d, 5, short_of);
    unsigned distances = 1 + take(d, 5, short_of);
    unsigned length_codes = 4 + take(d, 4, short_of);
    uint8_t lengths[288 + 32];
    if (*short_of) return DECODE_MORE;
    if (literals > 286 || distances > 30) return fail(d, "a block has more symbols than there are");
    const char *error = read_lengths(d, lengths, literals + distances, length_codes, short_of);
    if (*short_of) return DECODE_MORE;
    if (error != NULL) return fail(d, error);
    if (lengths[256] == 0) return fail(d, "a block has no end");
    d->fixed = false;
    if (!table_make(d->litlen, LITLEN_BITS, lengths, literals, TABLE_LITLEN)) {
        return fail(d, "a block's code for literals and lengths is malformed");
    }
    if (!table_make(d->distance, DISTANCE_BITS, lengths + literals, distances, TABLE_DISTANCE)) {
        return fail(d, "a block's code for distances is malformed");
    }
    return DECODE_FULL;
}

static enum decode_status read_stored(struct decoder *d, bool *short_of) {
    take(d, d->count % 8, short_of); /* the rest of the byte is padding */
    uint32_t length = take(d, 16, short_of), inverted = take(d, 16, short_of);
    if (*short_of) return DECODE_MORE;
    if (length != (inverted ^ 0xffffu)) return fail(d, "a stored block's length is malformed");
    give_back(d);
    d->stored_left = length;
    d->where = IN_STORED;
    return DECODE_FULL;
}

static enum decode_status read_header(struct decoder *d, bool *short_of) {
    d->final = take(d, 1, short_of) != 0;
    switch (take(d, 2, short_of)) {
    case 0:
        return read_stored(d, short_of);
    case 1:
        if (*short_of) return DECODE_MORE;
        if (!d->fixed) make_fixed_tables(d);
        break;
    case 2: {
        enum decode_status status = read_dynamic(d, short_of);
        if (status != DECODE_FULL) return status;
        break;
    }
    default:
        return *short_of ? DECODE_MORE : fail(d, "a block is of an unknown kind");
    }
    give_back(d);
    d->where = IN_CODES;
    return DECODE_FULL;
}

enum decode_status decode_header(struct decoder *d) {
    const uint8_t *in = d->in;
    uint64_t bits = d->bits;
    unsigned count = d->count;
    bool short_of = false;
    enum decode_status status = read_header(d, &short_of);
    if (!short_of) return status;
    d->in = in; /* It is read again from its beginning, when there is more. */
    d->bits = bits;
    d->count = count;
    d->error = NULL;
    return DECODE_MORE;
}

/* ---- symbols, one at a time ---- */

/* Looks a code up in both stages; false: it is longer than the bits that are there. *used counts the bits. */
static inline bool look_up(const uint32_t *table, unsigned index_bits, uint64_t bits, unsigned count, unsigned *used,
                           uint32_t *entry) {
    uint32_t e = table[bits & ((1u << index_bits) - 1)];
    if (e & ENTRY_POINTER) {
        *used += index_bits;
        bits >>= index_bits;
        e = table[ENTRY_BASE(e) + (bits & ((1u << ENTRY_CODE(e)) - 1))];
    }
    *entry = e;
    *used += ENTRY_DROP(e);
    return *used <= count;
}

/* A base and its extra bits, of which the last was the used-th. */
static inline uint32_t value_of(uint32_t entry, uint64_t bits, unsigned used) {
    unsigned extra = ENTRY_DROP(entry) - ENTRY_CODE(entry);
    return ENTRY_BASE(entry) + (uint32_t)((bits >> (used - extra)) & ((1u << extra) - 1));
}

enum symbol_kind { SYMBOL_LITERAL, SYMBOL_MATCH, SYMBOL_END, SYMBOL_SHORT, SYMBOL_BAD };

/* One symbol: a literal in *value, or a match whose length and distance are left in the decoder. */
static enum symbol_kind read_symbol(struct decoder *d, uint8_t *value) { /* DECODE-3 */
    refill_carefully(d);
    unsigned used = 0;
    uint32_t entry, far;
    if (!look_up(d->litlen, LITLEN_BITS, d->bits, d->count, &used, &entry)) return SYMBOL_SHORT;
    if (entry & ENTRY_LITERAL) {
        *value = (uint8_t)ENTRY_BASE(entry);
    } else if (entry & ENTRY_ODD) {
        if (!(entry & ENTRY_END)) return SYMBOL_BAD;
    } else {
        uint32_t length = value_of(entry, d->bits, used);
        unsigned used_far = 0;
        if (!look_up(d->distance, DISTANCE_BITS, d->bits >> used, d->count - used, &used_far, &far))
            return SYMBOL_SHORT;
        if (far & ENTRY_ODD) return SYMBOL_BAD;
        d->match_distance = value_of(far, d->bits >> used, used_far);
        d->match_left = length;
        used += used_far;
    }
    d->bits >>= used;
    d->count -= used;
    if (entry & ENTRY_LITERAL) return SYMBOL_LITERAL;
    return entry & ENTRY_ODD ? SYMBOL_END : SYMBOL_MATCH;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define DECODE_BMI2 1
/* The compiler's own check queries all features of a CPU, at every start, and on a virtual machine each query takes
 * microseconds. */
static bool has_bmi2(void) {
    static atomic_int known; /* 1: it has; -1: it has not */
    int answer = atomic_load(&known);
    if (answer == 0) {
        unsigned a, b = 0, c, d;
        answer = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_BMI2) ? 1 : -1;
        atomic_store(&known, answer);
    }
    return answer > 0;
}
#endif

#define CELL uint8_t
#define DECODE decode_bytes
#define COPY_STORED copy_stored_bytes
#define COPY_MATCH copy_match_bytes
#define FAST fast_bytes
#define FAST_BMI2 fast_bytes_bmi2
#define SLOW slow_bytes
#include "decode_body.h"

#define CELL uint16_t
#define DECODE decode_cells
#define COPY_STORED copy_stored_cells
#define COPY_MATCH copy_match_cells
#define FAST fast_cells
#define FAST_BMI2 fast_cells_bmi2
#define SLOW slow_cells
#include "decode_body.h"
