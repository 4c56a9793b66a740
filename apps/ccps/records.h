/* records.h - call-frame information of an object without a search table (.eh_frame_hdr), such as a statically linked
 * program: a table of its FDEs, built by reading all of .eh_frame once.
 */
#ifndef CCPS_RECORDS_H
#define CCPS_RECORDS_H

#include <stddef.h>
#include <stdint.h>

struct record {
    uint64_t from, to; /* the code */
    uint64_t at;       /* the FDE */
};

/* The FDEs in an .eh_frame that is at address `at` in the target and was copied to `bytes`, sorted by code address. The
 * caller frees them. */
struct record *records_list(const unsigned char *bytes, size_t size, uint64_t at, size_t *count);

/* The record of the function at pc; 0: there is none. */
uint64_t records_find(const struct record *records, size_t count, uint64_t pc);

#endif
