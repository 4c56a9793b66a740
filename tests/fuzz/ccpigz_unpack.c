/* ccpigz_unpack.c - all of ccpigz's decompression, against zlib: source, walk, scouts, decoder and writer,
 * with parts and pieces of a few kilobytes, so that every hand-over happens.
 *
 * The first byte chooses how many tasks there are, whether one stream is split among them, and what the rest is:
 *
 *   a file     zlib and ccpigz must agree on whether it is valid, and on its data
 *   a recipe   for a valid file, which must be accepted: steps of two bytes, each some data with a level, a kind of
 *              blocks, an end of a member, an extra field with wrong sizes
 *
 * tests/fuzz/run.sh builds and runs it.
 */
#include "job.h"
#include "output.h"
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum { FILE_MAX = 5 << 20, DATA_MAX = 1 << 20 };

#define REQUIRE(condition)                                                                    \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: not so: %s; %s\n", __FILE__, __LINE__, #condition, said); \
            abort();                                                                          \
        }                                                                                     \
    } while (0)

static uint8_t file[FILE_MAX], expected[DATA_MAX], got[DATA_MAX + 1];
static size_t file_size, expected_size;

/* ---- instead of say.c ---- */

static char said[400];
static bool warned;

void say_error(const char *name, const char *format, ...) {
    va_list args;
    (void)name;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
}

void say_warning(const char *name, const char *format, ...) {
    (void)name, (void)format;
    warned = true;
}

void say_line(const char *format, ...) {
    (void)format;
}

void say_quiet(bool quiet) {
    (void)quiet;
}

int say_flush(void) {
    return 0;
}

int say_status(void) {
    return 0;
}

/* ---- zlib's opinion of the file ---- */

enum verdict { VALID, INVALID, GARBAGE_BEHIND, TOO_LONG };

static enum verdict reference(void) {
    size_t used = 0;
    expected_size = 0;
    while (used < file_size) {
        if (used > 0 && (file_size - used < 2 || file[used] != 0x1f || file[used + 1] != 0x8b)) return GARBAGE_BEHIND;
        z_stream z = {.next_in = file + used,
                      .avail_in = (uInt)(file_size - used),
                      .next_out = expected + expected_size,
                      .avail_out = (uInt)(DATA_MAX - expected_size)};
        if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) abort();
        int rc = inflate(&z, Z_FINISH);
        used = file_size - z.avail_in;
        expected_size = DATA_MAX - z.avail_out;
        inflateEnd(&z);
        if (rc == Z_BUF_ERROR && z.avail_out == 0) return TOO_LONG;
        if (rc != Z_STREAM_END) return INVALID;
    }
    return file_size > 0 ? VALID : INVALID;
}

/* ---- ours ---- */

static int begin(struct job *job, const struct wrapper *first) {
    (void)job, (void)first;
    return 0;
}

/* 0: accepted, and the data are in `got`, *size of them. */
static int unpack(unsigned tasks, enum split split, bool from_pipe, size_t *size) {
    static char *names[] = {"file", NULL};
    struct options options = {
        .action = ACTION_DECOMPRESS, .workers = tasks, .cpus = tasks, .split = split, .names = names};
    struct output out = {.fd = memfd_create("out", 0), .name = "out"};
    struct job job = {.options = &options, .name = "file", .out = &out, .begin = begin, .in_size = file_size};
    int ends[2];
    if (from_pipe) { /* whose buffer has room for all of it */
        if (pipe(ends) != 0 || write(ends[1], file, file_size) != (ssize_t)file_size) abort();
        close(ends[1]);
        job.in = ends[0];
        job.in_may_block = true;
        job.in_size = 0;
    } else {
        job.in = memfd_create("in", 0);
        if (write(job.in, file, file_size) != (ssize_t)file_size || lseek(job.in, 0, SEEK_SET) != 0) abort();
    }
    said[0] = '\0';
    warned = false;
    int rc = unpack_run(&job);
    ssize_t length = pread(out.fd, got, sizeof got, 0);
    if (length < 0) abort();
    *size = (size_t)length;
    close(job.in);
    close(out.fd);
    return rc;
}

/* ---- a valid file by a recipe ---- */

static void put(const void *bytes, size_t size) {
    if (size > FILE_MAX - file_size) size = 0; /* the caller has left room */
    memcpy(file + file_size, bytes, size);
    file_size += size;
}

static void put_u32(uint32_t value) {
    uint8_t bytes[] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
    put(bytes, 4);
}

static void set_u32(size_t at, size_t value) {
    for (int i = 0; i < 4; i++) file[at + (size_t)i] = (uint8_t)(value >> 8 * i);
}

/* Extra fields promise a member's size and length (CP), or its size (BC): as they are, or not. */
enum promise { NO_PROMISE, KEPT = 4, TWO_IN_ONE, WRONG_LENGTH, WRONG_SIZE, PROMISES };

static void put_header(enum promise promise) {
    static const uint8_t plain[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3}, extra[] = {0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3};
    static const uint8_t cp[] = {12, 0, 'C', 'P', 8, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                         bc[] = {6, 0, 'B', 'C', 2, 0, 0x34, 0x12};
    if (promise < KEPT)
        put(plain, sizeof plain);
    else
        put(extra, sizeof extra);
    if (promise >= KEPT && promise != WRONG_SIZE) put(cp, sizeof cp);
    if (promise == WRONG_SIZE) put(bc, sizeof bc);
}

/* A member that began at `from` has ended, or the next one has. */
static void promise_sizes(size_t from, size_t length) {
    set_u32(from + 16, file_size - from);
    set_u32(from + 20, length);
}

/* `size` bytes of a kind: noise, text, one byte. */
static void make_data(uint8_t *to, size_t size, unsigned kind, uint32_t seed) {
    static const char words[] = "the quick brown fox jumps over the lazy dog and runs away, again and again, ";
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        uint8_t noise = (uint8_t)(seed >> 24);
        to[i] = kind == 0   ? noise
                : kind == 1 ? (uint8_t)words[(i + (noise < 20 ? noise : 0)) % (sizeof words - 1)]
                            : (uint8_t)kind;
    }
}

static void end_member(z_stream *z, size_t member) {
    deflateEnd(z);
    put_u32((uint32_t)crc32(0, expected + member, (uInt)(expected_size - member)));
    put_u32((uint32_t)(expected_size - member));
}

static void follow_recipe(const uint8_t *data, size_t size) {
    static const int flushes[] = {Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK};
    z_stream z = {0};
    size_t member = 0, header = 0, before = 0, member_before = 0; /* where data and headers begin */
    enum promise promise = NO_PROMISE, promise_before = NO_PROMISE;
    bool ends = true;
    file_size = expected_size = 0;
    for (size_t i = 0; i + 1 < size && (!ends || expected_size < DATA_MAX / 2); i += 2) {
        uint8_t how = data[i], what = data[i + 1];
        if (ends) {
            before = header, member_before = member, promise_before = promise;
            header = file_size, member = expected_size, promise = (enum promise)(what % PROMISES);
            put_header(promise);
            if (deflateInit2(&z, how % 10, Z_DEFLATED, -MAX_WBITS, 1 + how % 9, how / 10 % 5) != Z_OK) abort();
        }
        size_t length = (size_t)(what & 63) * (what & 64 ? 700 : 37);
        make_data(expected + expected_size, length, what >> 7 ? 0 : how & 3, (uint32_t)(how << 8 | what));
        z.next_in = expected + expected_size;
        z.avail_in = (uInt)length;
        expected_size += length;
        ends = how >= 192 || i + 3 >= size || expected_size > DATA_MAX - 50000;
        z.next_out = file + file_size;
        z.avail_out = (uInt)(FILE_MAX - 64 - file_size);
        if (deflate(&z, ends ? Z_FINISH : flushes[how >> 5 & 3]) == Z_STREAM_ERROR || z.avail_out == 0) abort();
        file_size = FILE_MAX - 64 - z.avail_out;
        if (!ends) continue;
        end_member(&z, member);
        if (promise == KEPT) promise_sizes(header, expected_size - member);
        if (promise == WRONG_LENGTH) promise_sizes(header, expected_size - member + how);
        if (promise_before == TWO_IN_ONE) promise_sizes(before, expected_size - member_before);
    }
}

/* ---- what the fuzzer calls ---- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const unsigned tasks[] = {1, 2, 3, 8};
    size_t length;
    if (size < 3) return 0;
    bool recipe = data[0] & 1, from_pipe = data[0] & 16;
    enum verdict verdict = VALID;
    if (recipe) {
        follow_recipe(data + 1, size - 1);
    } else {
        file_size = size - 1 < FILE_MAX ? size - 1 : FILE_MAX;
        memcpy(file, data + 1, file_size);
        verdict = reference();
    }
    if (verdict == TOO_LONG) return 0;
    if (file_size > 60000) from_pipe = false;
    int rc = unpack(tasks[data[0] >> 1 & 3], data[0] & 8 ? SPLIT_NEVER : SPLIT_ALWAYS, from_pipe, &length);
    if (verdict == VALID) REQUIRE(rc == 0);
    if (verdict == INVALID) REQUIRE(rc != 0 || warned);
    if (rc == 0) REQUIRE(length == expected_size && memcmp(got, expected, length) == 0);
    if (rc != 0 && !recipe) REQUIRE(length <= DATA_MAX);
    return 0;
}
