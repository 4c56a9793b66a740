/* dwarf.h - reads DWARF encodings from memory that may be unmapped or damaged. */
#ifndef CC_INSPECT_LINUX_DWARF_H
#define CC_INSPECT_LINUX_DWARF_H

#include <stdbool.h>
#include <stdint.h>

/* Reads [at, end) by os/safe_copy.h, a window at a time. After a failed read it is bad and yields zeroes. */
struct dwarf_reader {
    uintptr_t at, end;
    bool bad;
    unsigned have;  /* bytes in the window */
    uintptr_t from; /* the window's first address */
    unsigned char window[64];
};

struct dwarf_reader cc__dwarf_reader(uintptr_t at, uintptr_t end);

/* 1, 2, 4 or 8 bytes. */
uint64_t cc__dwarf_fixed(struct dwarf_reader *r, unsigned size);
uint64_t cc__dwarf_uleb(struct dwarf_reader *r);
int64_t cc__dwarf_sleb(struct dwarf_reader *r);

/* A pointer in one of the encodings of .eh_frame (DW_EH_PE_*); `table`: the base of data-relative ones. */
enum { DWARF_OMITTED = 0xff };
uintptr_t cc__dwarf_pointer(struct dwarf_reader *r, unsigned encoding, uintptr_t table);

void cc__dwarf_skip(struct dwarf_reader *r, uint64_t bytes);

#endif
