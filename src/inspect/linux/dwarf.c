/* dwarf.c - numbers and pointers as DWARF encodes them. */
#include "inspect/linux/dwarf.h"

#include "os/safe_copy.h"

#include <string.h>

struct dwarf_reader cc__dwarf_reader(uintptr_t at, uintptr_t end) {
    struct dwarf_reader r;
    r.at = at;
    r.end = end;
    r.bad = at > end;
    r.have = 0;
    r.from = 0;
    return r;
}

static unsigned next_byte(struct dwarf_reader *r) {
    if (r->bad || r->at >= r->end) {
        r->bad = true;
        return 0;
    }
    if (r->at - r->from >= r->have) {
        size_t size = r->end - r->at < sizeof r->window ? r->end - r->at : sizeof r->window;
        if (!cc__safe_copy(r->window, (const void *)r->at, size)) size = 1; /* what comes behind may belong to nobody */
        if (size == 1 && !cc__safe_copy(r->window, (const void *)r->at, size)) {
            r->bad = true;
            return 0;
        }
        r->from = r->at;
        r->have = (unsigned)size;
    }
    return r->window[r->at++ - r->from];
}

uint64_t cc__dwarf_fixed(struct dwarf_reader *r, unsigned size) {
    unsigned char bytes[8] = {0};
    uint64_t value;
    for (unsigned i = 0; i < size; i++) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        bytes[sizeof bytes - size + i] = (unsigned char)next_byte(r);
#else
        bytes[i] = (unsigned char)next_byte(r);
#endif
    }
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* The bits of a number in LEB128, and how many there were. */
static uint64_t read_leb(struct dwarf_reader *r, unsigned *bits, bool *negative) {
    uint64_t value = 0;
    unsigned byte, shift = 0;
    do {
        byte = next_byte(r);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (shift > 70) r->bad = true; /* longer than any number is */
    } while ((byte & 0x80) && !r->bad);
    *bits = shift;
    *negative = byte & 0x40;
    return value;
}

uint64_t cc__dwarf_uleb(struct dwarf_reader *r) {
    unsigned bits;
    bool negative;
    return read_leb(r, &bits, &negative);
}

int64_t cc__dwarf_sleb(struct dwarf_reader *r) {
    unsigned bits;
    bool negative;
    uint64_t value = read_leb(r, &bits, &negative);
    if (negative && bits < 64) value |= ~UINT64_C(0) << bits;
    return (int64_t)value;
}

void cc__dwarf_skip(struct dwarf_reader *r, uint64_t bytes) {
    if (r->bad || bytes > r->end - r->at)
        r->bad = true;
    else
        r->at += bytes;
}

/* The low half of an encoding is the form, the rest what it is relative to. */
static uint64_t read_form(struct dwarf_reader *r, unsigned form) {
    switch (form) {
    case 0x00:
        return cc__dwarf_fixed(r, sizeof(void *));
    case 0x01:
        return cc__dwarf_uleb(r);
    case 0x02:
        return cc__dwarf_fixed(r, 2);
    case 0x03:
        return cc__dwarf_fixed(r, 4);
    case 0x04:
        return cc__dwarf_fixed(r, 8);
    case 0x09:
        return (uint64_t)cc__dwarf_sleb(r);
    case 0x0a:
        return (uint64_t)(int16_t)cc__dwarf_fixed(r, 2);
    case 0x0b:
        return (uint64_t)(int32_t)cc__dwarf_fixed(r, 4);
    case 0x0c:
        return cc__dwarf_fixed(r, 8);
    default:
        r->bad = true;
        return 0;
    }
}

uintptr_t cc__dwarf_pointer(struct dwarf_reader *r, unsigned encoding, uintptr_t table) {
    if (encoding == DWARF_OMITTED) return 0;
    uintptr_t place = r->at, value;
    if ((encoding & 0x70) == 0x50) cc__dwarf_skip(r, -place & (sizeof(void *) - 1)); /* aligned */
    value = (uintptr_t)read_form(r, encoding & 0x0f);
    if (value == 0) return 0;
    switch (encoding & 0x70) {
    case 0x10:
        value += place;
        break;
    case 0x30:
        value += table;
        break;
    case 0x00:
    case 0x50:
        break;
    default:
        r->bad = true; /* relative to text or to a function: not in use on our CPUs */
    }
    if ((encoding & 0x80) && !r->bad) {
        struct dwarf_reader indirect = cc__dwarf_reader(value, value + sizeof(void *));
        value = (uintptr_t)cc__dwarf_fixed(&indirect, sizeof(void *));
        if (indirect.bad) r->bad = true;
    }
    return value;
}
