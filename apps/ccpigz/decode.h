/* decode.h - the DEFLATE decoder (RFC 1951): bits in, bytes out; it can stop and resume at any symbol.
 *
 * Why not a library's: zlib's takes 2.4 times as long, libdeflate's needs a whole stream in memory, and neither can
 * start in the middle of a stream with a history that is still unknown (scout.h). It is compared with zlib's by
 * tests/fuzz/ccpigz_inflate.c.
 *
 * DECODE-1  Nothing outside of [in, in_end) is read, nothing outside of [out, end) is written, and no distance
 *           reaches in front of `history`, whatever the input says.
 * DECODE-2  Between two calls fewer than 8 bits are in the bit buffer: all other input that was not used lies in
 *           [in, in_end), and the caller presents it again in front of what follows, at most DECODE_REST bytes.
 * DECODE-3  A symbol is decoded wholly or not at all; of a match that does not fit the rest is remembered.
 */
#ifndef CCPIGZ_DECODE_H
#define CCPIGZ_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECODE_WINDOW 32768u /* no match reaches further back */
#define DECODE_REST 1024u    /* bound: the longest block header has 562 bytes */

/* Sizes of the tables: bounds for 288 and 32 symbols of at most 15 bits, found by enumerating all complete codes. */
#define LITLEN_BITS 11u
#define LITLEN_ENTRIES 2342u
#define DISTANCE_BITS 8u
#define DISTANCE_ENTRIES 402u

enum decode_status {
    DECODE_MORE, /* needs more input; with `last` set: the stream is cut off */
    DECODE_FULL, /* needs more space */
    DECODE_STOP, /* is at a block's header and was to stop there */
    DECODE_END,  /* the final block has ended */
    DECODE_BAD   /* `error` says what is wrong */
};

enum decode_where { AT_HEADER, IN_STORED, IN_CODES, AT_END };

struct decoder {
    const uint8_t *in, *in_end;
    bool last; /* no input follows in_end */

    uint64_t bits;
    unsigned count; /* of valid bits in `bits` */
    enum decode_where where;
    bool final; /* the current block is the last one */
    bool fixed; /* the tables are those of the fixed code */
    bool stop;  /* stop before the next header that begins at or after stop_at */
    const uint8_t *stop_at;
    uint32_t stored_left;
    uint32_t match_left, match_distance;
    const char *error;

    uint32_t litlen[LITLEN_ENTRIES];
    uint32_t distance[DISTANCE_ENTRIES];
};

/* At the beginning of a stream; the caller then sets in, in_end and last. */
void decode_start(struct decoder *d);
/* The same `bit` bits (0 to 7) into the byte at `in`; `in` must be below in_end if bit is not 0. */
void decode_start_at(struct decoder *d, const uint8_t *in, unsigned bit);

/* Decodes until it needs something. *out is advanced; matches may reach back to `history`. */
enum decode_status decode_bytes(struct decoder *d, const uint8_t *history, uint8_t **out, uint8_t *end);
/* The same with cells of 16 bits: the history may hold bytes or placeholders. */
enum decode_status decode_cells(struct decoder *d, const uint16_t *history, uint16_t **out, uint16_t *end);

/* Reads the header of the next block, and makes its tables. DECODE_FULL: done. The decoder stands AT_HEADER. */
enum decode_status decode_header(struct decoder *d);

#endif
