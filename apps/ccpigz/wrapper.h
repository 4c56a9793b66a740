/* wrapper.h - what encloses the deflate data: gzip's header and trailer (RFC 1952), zlib's (RFC 1950), or nothing.
 *
 * A member that libdeflate made says in an extra field, CP, how long it is and how long its data are; bgzip's have such
 * a field too, BC. Such members are decompressed in parallel.
 */
#ifndef CCPIGZ_WRAPPER_H
#define CCPIGZ_WRAPPER_H

#include "options.h"

#include <stdint.h>

#define WRAPPER_NAME_MAX 1024 /* of a longer name in a header the rest is dropped */
#define WRAPPER_TRAILER_MAX 8
#define WRAPPER_HEADER_MAX (10 + 14 + WRAPPER_NAME_MAX)

struct wrapper {
    enum format format;
    int level;
    uint32_t time;          /* 0: none */
    uint32_t member_size;   /* header and trailer included; 0: not known */
    uint32_t member_length; /* of its data; for bgzip's a bound */
    uint32_t header_size;   /* what was read, or will be written */
    char name[WRAPPER_NAME_MAX];
};

/* Writes the header and returns its length. with_sizes: room for the sizes, which wrapper_set_sizes fills in later. */
size_t wrapper_write_header(uint8_t *to, struct wrapper *wrapper, bool with_sizes);
void wrapper_set_sizes(uint8_t *header, uint32_t member_size, uint32_t member_length);
size_t wrapper_write_trailer(uint8_t *to, enum format format, uint32_t check, uint64_t length);

/* Reads a gzip header (all of it, the two magic bytes included) byte by byte from next(context), which returns -1 at
 * the end. NULL: fine; else what is wrong. */
const char *wrapper_read_gzip(struct wrapper *wrapper, int (*next)(void *context), void *context);
/* True: these two bytes may begin a zlib stream without a preset dictionary. */
bool wrapper_is_zlib(int first, int second);

extern const char wrapper_cut_off[]; /* the error for input that ends too early */

#endif
