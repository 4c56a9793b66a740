/* engine.h - compresses one block: one interface for the two libraries.
 *
 * A compressor holds a library's state (zlib 264 KiB, libdeflate 0.7 MiB at level 6) and is used by one task at a time.
 */
#ifndef CCPIGZ_ENGINE_H
#define CCPIGZ_ENGINE_H

#include "options.h"
#include "wrapper.h"

#include <stdint.h>

struct compressor;

/* Input and output of an engine. The `history` bytes before data are the dictionary. */
struct block {
    const struct options *options;
    uint8_t *room; /* 32 KiB, then the data */
    uint8_t *data;
    size_t size, history;
    uint64_t number; /* from 0 */
    bool first, last;
    bool goes_on; /* zlib: the engine has just compressed what precedes it, and remembers it */
    uint8_t *out;
    size_t out_size, out_capacity;
    uint32_t check;
    struct wrapper *wrapper; /* libdeflate: what the first member's header says */
    const char *error;       /* NULL: fine */
};

struct compressor *engine_make(const struct options *options);
void engine_free(struct compressor *engine);
/* Fills out, out_size and check, or error. */
void engine_run(struct compressor *engine, struct block *block);

#endif
