/* ccpigz_inflate.c - the decoder of ccpigz against zlib's, on the fuzzer's inputs.
 *
 * The first two bytes choose the sizes of input and output portions; the rest is a raw deflate stream. Both decoders
 * have to agree on whether it is valid, on every byte of its data and on its end. The 16-bit form has to give the same
 * cells.
 *
 * tests/fuzz/run.sh builds and runs it.
 */
#include "decode.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define OUT_MAX ((size_t)1 << 20)

#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

static uint8_t expected[OUT_MAX], bytes[OUT_MAX];
static uint16_t cells[DECODE_WINDOW + OUT_MAX];

/* Z_STREAM_END: a whole stream; Z_OK: cut off; Z_MEM_ERROR: longer than OUT_MAX; else bad. */
static int reference(const uint8_t *data, size_t size, size_t *length, size_t *used) {
    z_stream z = {.next_in = (Bytef *)data, .avail_in = (uInt)size, .next_out = expected, .avail_out = OUT_MAX};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) abort();
    int rc = inflate(&z, Z_SYNC_FLUSH);
    *length = OUT_MAX - z.avail_out;
    *used = size - z.avail_in;
    inflateEnd(&z);
    if (rc == Z_OK && z.avail_out == 0) return Z_MEM_ERROR;
    return rc == Z_BUF_ERROR ? Z_OK : rc;
}

/* ccpigz's decoder, in portions. The unused rest is copied to a separate block each time, so that a sanitizer detects
 * reads beyond it. */
static enum decode_status ours(const uint8_t *data, size_t size, size_t step_in, size_t step_out, size_t *length,
                               size_t *used) {
    struct decoder *d = malloc(sizeof *d);
    uint8_t *out = bytes, *portion = NULL;
    size_t given = 0, rest = 0;
    enum decode_status status = DECODE_MORE;
    decode_start(d);
    d->in = d->in_end = NULL;
    d->last = false;
    while (status == DECODE_MORE || status == DECODE_FULL) {
        if (status == DECODE_MORE) {
            if (d->last) break;
            rest = (size_t)(d->in_end - d->in);
            REQUIRE(rest <= DECODE_REST);
            size_t more = size - given < step_in ? size - given : step_in;
            uint8_t *next = malloc(rest + more + 1);
            if (rest > 0) memcpy(next, d->in, rest);
            memcpy(next + rest, data + given, more);
            given += more;
            free(portion);
            portion = realloc(next, rest + more > 0 ? rest + more : 1);
            d->in = portion;
            d->in_end = portion + rest + more;
            d->last = given == size;
        } else if (out == bytes + OUT_MAX) {
            break;
        }
        size_t room = (size_t)(bytes + OUT_MAX - out);
        status = decode_bytes(d, bytes, &out, out + (room < step_out ? room : step_out));
    }
    *length = (size_t)(out - bytes);
    *used = given - (size_t)(d->in_end - d->in);
    if (status == DECODE_BAD) REQUIRE(d->error != NULL);
    free(portion);
    free(d);
    return status;
}

static void compare_cells(const uint8_t *data, size_t size, size_t length) {
    struct decoder *d = malloc(sizeof *d);
    for (unsigned i = 0; i < DECODE_WINDOW; i++) cells[i] = (uint16_t)(0x8000 + i);
    uint16_t *begin = cells + DECODE_WINDOW, *out = begin;
    decode_start(d);
    d->in = data;
    d->in_end = data + size;
    d->last = true;
    REQUIRE(decode_cells(d, begin, &out, begin + length + 1) == DECODE_END);
    REQUIRE((size_t)(out - begin) == length);
    for (size_t i = 0; i < length; i++) REQUIRE(begin[i] == expected[i]);
    free(d);
}

/* A stream that zlib reports as cut off, and ccpigz as invalid: it has an error that zlib detects only when it has some
 * more bits. Then it detects it whatever they are. */
static bool bad_however_it_goes_on(const uint8_t *data, size_t size) {
    enum { MORE = 8 };
    static const uint8_t fill[] = {0x00, 0x55, 0xaa, 0xff};
    uint8_t *longer = malloc(size + MORE);
    bool bad = true;
    size_t length, used;
    if (size > 0) memcpy(longer, data, size);
    for (size_t i = 0; i < sizeof fill; i++) {
        memset(longer + size, fill[i], MORE);
        if (reference(longer, size + MORE, &length, &used) != Z_DATA_ERROR) bad = false;
    }
    free(longer);
    return bad;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    size_t step_in = data[0] == 0 ? size : data[0], step_out = data[1] == 0 ? OUT_MAX : (size_t)data[1] * data[1];
    data += 2;
    size -= 2;
    size_t want_length, want_used, length, used;
    int want = reference(data, size, &want_length, &want_used);
    enum decode_status status = ours(data, size, step_in, step_out, &length, &used);
    if (want == Z_MEM_ERROR) return 0;
    if (want == Z_STREAM_END) {
        REQUIRE(status == DECODE_END);
        REQUIRE(length == want_length && memcmp(bytes, expected, length) == 0);
        REQUIRE(used == want_used);
        if (length < OUT_MAX) compare_cells(data, size, length);
    } else if (want == Z_OK) {
        REQUIRE(status == DECODE_MORE || (status == DECODE_BAD && bad_however_it_goes_on(data, size)));
    } else {
        /* Where the stream is cut off behind the mistake, or in it, either may be noticed first. */
        REQUIRE(status == DECODE_BAD || status == DECODE_MORE);
    }
    return 0;
}
