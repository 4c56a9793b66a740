/* dwarf.c - numbers and pointers as DWARF encodes them. */
#include "inspect/linux/dwarf.h"

#include "os/safe_copy.h"

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
        if (!cc__safe_copy(r->window, (const void *)r->at, size)) size = 1; /* the next page may be unmapped */
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
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++) value |= (uint64_t)next_byte(r) << 8 * i; /* all our CPUs are little-endian */
    return value;
}

/* A LEB128 number and its width in bits. */
static uint64_t read_leb(struct dwarf_reader *r, unsigned *bits, bool *negative) {
    uint64_t value = 0;
    unsigned byte, shift = 0;
    do {
        byte = next_byte(r);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (shift > 70) r->bad = true; /* longer than 64 bits need */
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

/* The low four bits of an encoding are the form (a word, LEB128, or 2, 4 or 8 bytes; from 8 on signed), the rest is the
 * base it is relative to. */
static uint64_t read_form(struct dwarf_reader *r, unsigned form) {
    unsigned bytes = form == 0 ? sizeof(void *) : 1u << (form & 7) >> 1;
    if (form == 0x01) return cc__dwarf_uleb(r);
    if (form == 0x09) return (uint64_t)cc__dwarf_sleb(r);
    if (form == 0x08 || (form & 7) > 4) r->bad = true;
    if (r->bad) return 0;
    uint64_t value = cc__dwarf_fixed(r, bytes);
    unsigned unused = form > 8 ? 64 - 8 * bytes : 0;
    return unused > 0 ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

uintptr_t cc__dwarf_pointer(struct dwarf_reader *r, unsigned encoding, uintptr_t table) {
    if (encoding == DWARF_OMITTED) return 0;
    uintptr_t place = r->at, value;
    if ((encoding & 0x70) == 0x50) cc__dwarf_skip(r, -place & (sizeof(void *) - 1)); /* aligned */
    value = (uintptr_t)read_form(r, encoding & 0x0f);
    if (value == 0) return 0;
    unsigned relative = encoding & 0x70;
    if (relative == 0x10) value += place;
    if (relative == 0x30) value += table;
    /* Text- or function-relative encodings are not used on our CPUs. */
    if (relative != 0x00 && relative != 0x10 && relative != 0x30 && relative != 0x50) r->bad = true;
    if ((encoding & 0x80) && !r->bad) {
        struct dwarf_reader indirect = cc__dwarf_reader(value, value + sizeof(void *));
        value = (uintptr_t)cc__dwarf_fixed(&indirect, sizeof(void *));
        if (indirect.bad) r->bad = true;
    }
    return value;
}
