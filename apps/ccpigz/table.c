/* table.c - builds decoding tables from canonical codes.
 *
 * The codes are assigned in order of length, so the table grows with it: while it is indexed by k bits each code of k
 * bits fills one entry, and going to k + 1 bits appends a copy of the table to itself. No entry is computed twice.
 */
#include "table.h"

#include <string.h>

#define MAX_LENGTH 15u

/* What a symbol means: extra bits in the low byte, the base, and the kind. The code's length is added to it. */
static uint32_t meaning_of(unsigned symbol, enum table_kind kind) {
    static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                             31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                             2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    if (kind == TABLE_LENGTHS) return (uint32_t)symbol << 16;
    if (kind == TABLE_DISTANCE) {
        if (symbol >= 30) return ENTRY_ODD;
        if (symbol < 2) return (uint32_t)(symbol + 1) << 16;
        uint32_t extra = symbol / 2 - 1;
        return (((2 + (symbol & 1)) << extra) + 1) << 16 | extra;
    }
    if (symbol < 256) return ENTRY_LITERAL | (uint32_t)symbol << 16;
    if (symbol == 256) return ENTRY_ODD | ENTRY_END;
    if (symbol > 285) return ENTRY_ODD;
    return (uint32_t)length_base[symbol - 257] << 16 | length_extra[symbol - 257];
}

static uint32_t entry_of(unsigned symbol, unsigned length, enum table_kind kind) {
    return meaning_of(symbol, kind) + (length << 8) + length;
}

/* The code that follows, both with their bits reversed: a carry that runs from the top bit down. */
static uint32_t next_reversed(uint32_t code, unsigned length) {
    uint32_t zeros = ~code & ((1u << length) - 1);
    if (zeros == 0) return 0;
    uint32_t bit = 1u << (31 - __builtin_clz(zeros));
    return (code & (bit - 1)) | bit;
}

/* Codes that are longer than the table's index go to second-level tables after it, one for each prefix. */
static void make_second_tables(uint32_t *table, unsigned bits, const uint16_t *symbols, const unsigned *counts,
                               uint32_t code, enum table_kind kind) {
    uint32_t begin = 0, end = 1u << bits, prefix = UINT32_MAX;
    unsigned second_bits = 0, left[MAX_LENGTH + 1];
    memcpy(left, counts, sizeof left);
    for (unsigned length = bits + 1; length <= MAX_LENGTH; length++) {
        for (; left[length] > 0; left[length]--) {
            if ((code & ((1u << bits) - 1)) != prefix) {
                prefix = code & ((1u << bits) - 1);
                begin = end;
                /* Just large enough for the remaining codes with this prefix. */
                second_bits = length - bits;
                int room = 1 << second_bits;
                while (bits + second_bits < MAX_LENGTH && (room -= (int)left[bits + second_bits]) > 0) {
                    second_bits++;
                    room <<= 1;
                }
                end = begin + (1u << second_bits);
                table[prefix] = begin << 16 | ENTRY_ODD | ENTRY_POINTER | second_bits << 8 | bits;
            }
            uint32_t entry = entry_of(*symbols++, length - bits, kind);
            for (uint32_t i = code >> bits; i < 1u << second_bits; i += 1u << (length - bits)) table[begin + i] = entry;
            code = next_reversed(code, length);
        }
    }
}

bool table_make(uint32_t *table, unsigned bits, const uint8_t *lengths, unsigned n, enum table_kind kind) {
    unsigned counts[MAX_LENGTH + 1] = {0}, offsets[MAX_LENGTH + 2];
    uint16_t sorted[288];
    for (unsigned i = 0; i < n; i++) counts[lengths[i]]++;
    unsigned unused = counts[0];
    counts[0] = 0;

    int room = 1;
    for (unsigned length = 1; length <= MAX_LENGTH; length++) {
        room = 2 * room - (int)counts[length];
        if (room < 0) return false;
    }
    bool complete = room == 0;
    if (!complete && unused < n && (kind == TABLE_LENGTHS || unused < n - 1 || counts[1] == 0)) return false;

    offsets[1] = 0;
    for (unsigned length = 1; length <= MAX_LENGTH; length++) offsets[length + 1] = offsets[length] + counts[length];
    for (unsigned i = 0; i < n; i++) {
        if (lengths[i] != 0) sorted[offsets[lengths[i]]++] = (uint16_t)i;
    }
    if (!complete) {
        for (uint32_t i = 0; i < 1u << bits; i++) {
            /* An invalid code has a length, too: it is an error only when that many bits are there. */
            table[i] = unused == n || (i & 1) != 0 ? ENTRY_ODD + (1u << 8) + 1 : entry_of(sorted[0], 1, kind);
        }
        return true;
    }

    const uint16_t *symbols = sorted;
    uint32_t code = 0;
    unsigned length = 1;
    while (counts[length] == 0) length++;
    uint32_t size = 1u << (length < bits ? length : bits);
    for (; length <= bits; length++) {
        while (size < 1u << length) {
            memcpy(table + size, table, size * sizeof *table);
            size *= 2;
        }
        for (unsigned i = 0; i < counts[length]; i++) {
            table[code] = entry_of(*symbols++, length, kind);
            code = next_reversed(code, length);
        }
        if (code == 0) break; /* that was the last code of all */
    }
    for (; size < 1u << bits; size *= 2) memcpy(table + size, table, size * sizeof *table);
    if (symbols < sorted + n - unused) make_second_tables(table, bits, symbols, counts, code, kind);
    return true;
}
