/* records.h - call-frame information of an object that has no search table (.eh_frame_hdr): the records of its functions,
 * found by reading all of them once. Programs that are linked with -static have none.
 */
#ifndef CCPS_RECORDS_H
#define CCPS_RECORDS_H

#include <stddef.h>
#include <stdint.h>

struct record {
    uint64_t from, to; /* the code */
    uint64_t at;       /* the FDE */
};

/* The records in an .eh_frame, which lies at `at` in the target and was copied to `bytes`; by their code. The caller frees
 * them. */
struct record *records_list(const unsigned char *bytes, size_t size, uint64_t at, size_t *count);

/* The record of the function at pc; 0: there is none. */
uint64_t records_find(const struct record *records, size_t count, uint64_t pc);

#endif
