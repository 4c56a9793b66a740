/* records.c - reads .eh_frame from its beginning to its end. */
#include "records.h"

#include "target.h"

#include <stdlib.h>
#include <string.h>

/* Some bytes; what lies behind them is 0, and marked. */
struct reader {
    const unsigned char *bytes;
    size_t at, end;
    bool bad;
};

static uint64_t fixed(struct reader *r, unsigned size) {
    uint64_t value = 0; /* our CPUs are little endian */
    if (r->bad || size > r->end - r->at) {
        r->bad = true;
        return 0;
    }
    memcpy(&value, r->bytes + r->at, size);
    r->at += size;
    return value;
}

static uint64_t uleb(struct reader *r) {
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = fixed(r, 1);
        if (shift < 64) value |= (byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) != 0 && !r->bad);
    return value;
}

/* A pointer's bytes by its encoding (DW_EH_PE_*); 0: it is another kind. */
static unsigned size_of(unsigned encoding) {
    static const unsigned char sizes[16] = {
        [0x0] = 8, [0x2] = 2, [0x3] = 4, [0x4] = 8, [0xa] = 2, [0xb] = 4, [0xc] = 8};
    return sizes[encoding & 0x0f];
}

static uint64_t pointer(struct reader *r, unsigned encoding, uint64_t base) {
    enum { SIGNED = 0x08, RELATIVE = 0x10, BASES = 0x70 };
    unsigned size = size_of(encoding);
    uint64_t place = base + r->at, value = fixed(r, size);
    if (size == 0 || ((encoding & BASES) != 0 && (encoding & BASES) != RELATIVE)) r->bad = true;
    if (r->bad) return 0;
    if ((encoding & SIGNED) && size < 8 && value >> (8 * size - 1)) value |= ~UINT64_C(0) << (8 * size);
    return (encoding & BASES) == RELATIVE ? place + value : value;
}

/* How the pointers of its FDEs are written: what the letters of the CIE's augmentation announce; -1: not known. */
static int encoding_of(struct reader r) {
    char letters[8];
    unsigned n = 0;
    if (fixed(&r, 4) != 0) return -1; /* not a CIE */
    unsigned version = (unsigned)fixed(&r, 1);
    do letters[n] = (char)fixed(&r, 1);
    while (letters[n] != '\0' && ++n < sizeof letters);
    if (n == sizeof letters || (version != 1 && version != 3)) return -1;
    (void)uleb(&r); /* factors */
    (void)uleb(&r);
    (void)(version == 1 ? fixed(&r, 1) : uleb(&r));
    if (letters[0] == '\0') return r.bad ? -1 : 0;
    if (letters[0] != 'z') return -1;
    (void)uleb(&r);
    for (unsigned i = 1; letters[i] != '\0' && !r.bad; i++) {
        if (letters[i] == 'R') return (int)fixed(&r, 1);
        if (letters[i] == 'L') (void)fixed(&r, 1);
        if (letters[i] == 'P') (void)fixed(&r, size_of((unsigned)fixed(&r, 1)));
    }
    return r.bad ? -1 : 0;
}

/* Moves r to the record behind this one, and returns a reader for what is behind its length. */
static struct reader next_record(struct reader *r) {
    uint64_t length = fixed(r, 4);
    if (length == 0xffffffffu) length = fixed(r, 8);
    struct reader inside = {r->bytes, r->at, r->end, r->bad || length < 4 || length > r->end - r->at};
    if (inside.bad) {
        r->at = r->end; /* a length of 0 ends it */
        return inside;
    }
    inside.end = r->at += length;
    return inside;
}

static int by_code(const void *a, const void *b) {
    const struct record *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

struct record *records_list(const unsigned char *bytes, size_t size, uint64_t at, size_t *count) {
    struct record *records = NULL;
    struct reader all = {bytes, 0, size, false};
    *count = 0;
    while (all.at < all.end) {
        size_t start = all.at;
        struct reader r = next_record(&all);
        size_t place = r.at;
        uint64_t back = fixed(&r, 4);
        if (r.bad || back == 0 || back > place) continue; /* a CIE */
        struct reader cie = {bytes, place - back, size, false};
        cie = next_record(&cie);
        int encoding = cie.bad ? -1 : encoding_of(cie);
        if (encoding < 0) continue;
        uint64_t from = pointer(&r, (unsigned)encoding, at), length = pointer(&r, (unsigned)encoding & 0x0f, 0);
        if (r.bad || length == 0 || from > UINT64_MAX - length) continue;
        if ((*count & (*count - 1)) == 0) records = grow(records, *count != 0 ? 2 * *count : 1, sizeof *records);
        records[(*count)++] = (struct record){from, from + length, at + start};
    }
    if (*count > 1) qsort(records, *count, sizeof *records, by_code);
    return records;
}

uint64_t records_find(const struct record *records, size_t count, uint64_t pc) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (records[middle].from <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && pc < records[low - 1].to ? records[low - 1].at : 0;
}
