/* dwarf.h - reads the encodings of DWARF out of memory that may be gone, or be damaged. */
#ifndef CC_INSPECT_LINUX_DWARF_H
#define CC_INSPECT_LINUX_DWARF_H

#include <stdbool.h>
#include <stdint.h>

/* Reads [at, end) by os/safe_copy.h, a window at a time. Once something could not be read it is bad and reads
 * zeroes. */
struct dwarf_reader {
    uintptr_t at, end;
    bool bad;
    unsigned have;  /* bytes in the window, up to... */
    uintptr_t from; /* ...the window's first address */
    unsigned char window[64];
};

struct dwarf_reader cc__dwarf_reader(uintptr_t at, uintptr_t end);

/* 1, 2, 4 or 8 bytes. */
uint64_t cc__dwarf_fixed(struct dwarf_reader *r, unsigned size);
uint64_t cc__dwarf_uleb(struct dwarf_reader *r);
int64_t cc__dwarf_sleb(struct dwarf_reader *r);

/* A pointer in one of the encodings of .eh_frame (DW_EH_PE_*); `table`: what those relative to data begin at. */
enum { DWARF_OMITTED = 0xff };
uintptr_t cc__dwarf_pointer(struct dwarf_reader *r, unsigned encoding, uintptr_t table);

void cc__dwarf_skip(struct dwarf_reader *r, uint64_t bytes);

#endif
