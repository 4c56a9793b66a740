/* check.h - check values: CRC-32 and Adler-32, by libdeflate where it was built in, because it is several times as
 * fast; and how those of two adjacent pieces are combined, for which only zlib has a function. */
#ifndef CCPIGZ_CHECK_H
#define CCPIGZ_CHECK_H

#include "options.h"

#include <stdint.h>
#include <zlib.h>
#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

static inline uint32_t check_crc(const uint8_t *data, size_t size) {
#ifdef HAVE_LIBDEFLATE
    return libdeflate_crc32(0, data, size);
#else
    return (uint32_t)crc32_z(0, data, size);
#endif
}

static inline uint32_t check_adler(const uint8_t *data, size_t size) {
#ifdef HAVE_LIBDEFLATE
    return libdeflate_adler32(1, data, size);
#else
    return (uint32_t)adler32_z(1, data, size);
#endif
}

/* Of nothing at all; of a piece; of two pieces, the second of which has `size` bytes. */
static inline uint32_t check_empty(enum format format) {
    return format == FORMAT_ZLIB ? 1 : 0;
}
static inline uint32_t check_of(enum format format, const uint8_t *data, size_t size) {
    return format == FORMAT_ZLIB ? check_adler(data, size) : format == FORMAT_GZIP ? check_crc(data, size) : 0;
}
static inline uint32_t check_join(enum format format, uint32_t first, uint32_t second, uint64_t size) {
    if (format == FORMAT_RAW) return 0;
    return (uint32_t)(format == FORMAT_ZLIB ? adler32_combine(first, second, (z_off_t)size)
                                            : crc32_combine(first, second, (z_off_t)size));
}

#endif
