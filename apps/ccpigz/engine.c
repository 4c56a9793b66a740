/* engine.c - a block becomes a piece of a deflate stream (zlib), or a gzip member of its own (libdeflate).
 *
 * zlib's pieces are joined into one stream, so each ends at a byte: with as few bits as the format allows. An empty
 * block of the fixed code has 10 bits, so an even number of bits is filled up to whole bytes by at most three of them;
 * only an odd number needs an empty stored block, which has 35 bits and more.
 *
 * libdeflate's cannot be joined, because the last block of each says that it is the last one. Each becomes a member;
 * why, and the alternatives: docs/decisions/013-ccpigz-members.md.
 */
#include "engine.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

struct compressor {
    z_stream zlib;
#ifdef HAVE_LIBDEFLATE
    struct libdeflate_compressor *fast;
    int fast_level; /* what it was made for */
#endif
};

static const char no_memory[] = "not enough memory";

struct compressor *engine_make(const struct options *options) {
    struct compressor *engine = calloc(1, sizeof *engine);
    if (engine == NULL) return NULL;
#ifdef HAVE_LIBDEFLATE
    if (options->engine == ENGINE_LIBDEFLATE) {
        engine->fast_level = options->level;
        engine->fast = libdeflate_alloc_compressor(options->level);
        if (engine->fast != NULL) return engine;
        free(engine);
        return NULL;
    }
#endif
    if (deflateInit2(&engine->zlib, options->level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK)
        return engine;
    free(engine);
    return NULL;
}

void engine_free(struct compressor *engine) {
#ifdef HAVE_LIBDEFLATE
    libdeflate_free_compressor(engine->fast);
#endif
    if (engine->zlib.state != NULL) deflateEnd(&engine->zlib);
    free(engine);
}

static bool reserve(struct block *b, size_t capacity) {
    if (capacity <= b->out_capacity) return true;
    uint8_t *larger = realloc(b->out, capacity);
    if (larger == NULL) return false;
    b->out = larger;
    b->out_capacity = capacity;
    return true;
}

/* ---- zlib ---- */

/* Runs deflate until it has no more output; out_size is advanced. */
static bool deflate_all(z_stream *z, struct block *b, int flush) {
    do {
        if (b->out_capacity - b->out_size < 64 && !reserve(b, b->out_capacity + b->out_capacity / 4 + 4096))
            return false;
        z->next_out = b->out + b->out_size;
        z->avail_out = (uInt)(b->out_capacity - b->out_size);
        int rc = deflate(z, flush);
        b->out_size = b->out_capacity - z->avail_out;
        if (rc == Z_STREAM_END) return true;
        if (rc != Z_OK && rc != Z_BUF_ERROR) return false;
    } while (z->avail_out == 0);
    return true;
}

/* Ends the piece at a whole byte. */
static bool fill_byte(z_stream *z, struct block *b) {
    int bits = 0;
    if (!deflate_all(z, b, Z_BLOCK)) return false;
    deflatePending(z, Z_NULL, &bits);
    if (bits % 2 != 0) return deflate_all(z, b, Z_SYNC_FLUSH);
    if (bits == 0) return true;
    do {
        deflatePrime(z, 10, 2); /* not the last block, fixed code, end of block */
        deflatePending(z, Z_NULL, &bits);
    } while (bits % 8 != 0);
    return deflate_all(z, b, Z_BLOCK);
}

static void run_zlib(z_stream *z, struct block *b) {
    if (!b->goes_on) deflateReset(z);
    b->out_size = 0;
    b->error = no_memory;
    if (!reserve(b, deflateBound(z, b->size) + 64)) return;
    if (b->history > 0 && !b->goes_on) deflateSetDictionary(z, b->data - b->history, (uInt)b->history);
    z->next_in = b->data;
    z->avail_in = (uInt)b->size;
    if (b->last ? deflate_all(z, b, Z_FINISH) : fill_byte(z, b)) b->error = NULL;
    b->check = check_of(b->options->format, b->data, b->size);
}

/* ---- libdeflate ---- */

#ifdef HAVE_LIBDEFLATE
/* Text has no control characters except for layout; every 61st byte is checked. */
static bool is_text(const uint8_t *data, size_t size) {
    size_t odd = 0;
    for (size_t i = 0; i < size; i += 61) odd += data[i] < 32 && (data[i] < 8 || data[i] > 13) && data[i] != 27;
    return odd * 61 <= size / 128;
}

/* At levels 5 and 6 libdeflate finds less in text than zlib does (measured: 1.5 to 3 % more bytes), and one level up it
 * is not much faster than zlib. Two thirds of the blocks go one level up: that is as small as zlib's and half as fast
 * again. The first ones do, so that small files are small. */
static int level_for(const struct block *b) {
    int level = b->options->level;
    bool harder = (level == 5 || level == 6) && b->number % 12 < 8 && is_text(b->data, b->size);
    return harder ? level + 1 : level;
}

/* There is one at a time, because each has 0.7 MiB; it is created again when the level changes, which does not happen
 * within data of one kind. NULL: no memory. */
static struct libdeflate_compressor *compressor_for(struct compressor *engine, int level) {
    if (engine->fast != NULL && engine->fast_level == level) return engine->fast;
    libdeflate_free_compressor(engine->fast);
    engine->fast_level = level;
    engine->fast = libdeflate_alloc_compressor(level);
    return engine->fast;
}

static void run_libdeflate(struct compressor *engine, struct block *b) {
    struct libdeflate_compressor *fast = compressor_for(engine, level_for(b));
    if (fast == NULL) {
        b->error = no_memory;
        return;
    }
    struct wrapper plain = {.format = FORMAT_GZIP, .level = b->options->level};
    struct wrapper *wrapper = b->first ? b->wrapper : &plain;
    bool with_sizes = !(b->first && b->last);
    size_t bound = libdeflate_deflate_compress_bound(fast, b->size);
    if (!reserve(b, WRAPPER_HEADER_MAX + bound + WRAPPER_TRAILER_MAX)) {
        b->error = no_memory;
        return;
    }
    size_t n = wrapper_write_header(b->out, wrapper, with_sizes);
    n += libdeflate_deflate_compress(fast, b->data, b->size, b->out + n, bound);
    b->check = check_crc(b->data, b->size);
    n += wrapper_write_trailer(b->out + n, FORMAT_GZIP, b->check, b->size);
    if (with_sizes) wrapper_set_sizes(b->out, (uint32_t)n, (uint32_t)b->size);
    b->out_size = n;
    b->error = NULL;
}
#endif

void engine_run(struct compressor *engine, struct block *block) {
#ifdef HAVE_LIBDEFLATE
    if (block->options->engine == ENGINE_LIBDEFLATE) {
        run_libdeflate(engine, block);
        return;
    }
#endif
    run_zlib(&engine->zlib, block);
}
