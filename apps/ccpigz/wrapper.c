/* wrapper.c - writes and reads headers and trailers; the layout of both formats is in this file only. */
#include "wrapper.h"

#include <string.h>
#include <zlib.h>

#define FLAG_HEADER_CRC 0x02
#define FLAG_EXTRA 0x04
#define FLAG_NAME 0x08
#define FLAG_COMMENT 0x10
#define FLAGS_UNKNOWN 0xe0
#define SIZE_FIELD 12 /* CP, the length 8, two numbers */
#define BGZIP_LENGTH_MAX 65536
#define OS_UNIX 3

const char wrapper_cut_off[] = "unexpected end of file";

static void put_le(uint8_t *to, uint32_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> (8 * i));
}

static void put_be32(uint8_t *to, uint32_t value) {
    for (unsigned i = 0; i < 4; i++) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

size_t wrapper_write_header(uint8_t *to, struct wrapper *w, bool with_sizes) {
    size_t n = 0;
    if (w->format == FORMAT_ZLIB) {
        unsigned grade = w->level >= 9 ? 3 : w->level == 0 || w->level == 1 ? 0 : w->level == 6 ? 2 : 1;
        unsigned head = 0x7800 | grade << 6;
        head += 31 - head % 31;
        to[0] = (uint8_t)(head >> 8);
        to[1] = (uint8_t)head;
        n = 2;
    } else if (w->format == FORMAT_GZIP) {
        to[0] = 0x1f;
        to[1] = 0x8b;
        to[2] = 8;
        to[3] = (uint8_t)((with_sizes ? FLAG_EXTRA : 0) | (w->name[0] != '\0' ? FLAG_NAME : 0));
        put_le(to + 4, w->time, 4);
        to[8] = w->level >= 9 ? 2 : w->level == 1 ? 4 : 0;
        to[9] = OS_UNIX;
        n = 10;
        if (with_sizes) {
            put_le(to + n, SIZE_FIELD, 2);
            memcpy(to + n + 2, "CP\x8\0\0\0\0\0\0\0\0", 12);
            n += 14;
        }
        if (w->name[0] != '\0') {
            size_t length = strlen(w->name) + 1;
            memcpy(to + n, w->name, length);
            n += length;
        }
    }
    w->header_size = (uint32_t)n;
    return n;
}

void wrapper_set_sizes(uint8_t *header, uint32_t member_size, uint32_t member_length) {
    put_le(header + 16, member_size, 4);
    put_le(header + 20, member_length, 4);
}

size_t wrapper_write_trailer(uint8_t *to, enum format format, uint32_t check, uint64_t length) {
    if (format == FORMAT_RAW) return 0;
    if (format == FORMAT_ZLIB) {
        put_be32(to, check);
        return 4;
    }
    put_le(to, check, 4);
    put_le(to + 4, (uint32_t)length, 4);
    return 8;
}

/* ---- reading ---- */

struct header_reader {
    int (*next)(void *context);
    void *context;
    uLong crc;
    uint32_t bytes;
    bool short_of;
};

static unsigned get(struct header_reader *r) {
    int value = r->short_of ? -1 : r->next(r->context);
    if (value < 0) {
        r->short_of = true;
        return 0;
    }
    uint8_t byte = (uint8_t)value;
    r->crc = crc32(r->crc, &byte, 1);
    r->bytes++;
    return byte;
}

static uint32_t get_le(struct header_reader *r, unsigned bytes) {
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++) value |= (uint32_t)get(r) << (8 * i);
    return value;
}

/* Searches the extra fields for ccpigz's and bgzip's; malformed ones are ignored. */
static void read_extra(struct header_reader *r, struct wrapper *w) {
    uint32_t left = get_le(r, 2);
    while (left >= 4 && !r->short_of) {
        unsigned first = get(r), second = get(r);
        uint32_t length = get_le(r, 2);
        left -= 4;
        if (length > left) break;
        left -= length;
        if (first == 'C' && second == 'P' && length == 8) {
            w->member_size = get_le(r, 4);
            w->member_length = get_le(r, 4);
        } else if (first == 'B' && second == 'C' && length == 2) {
            w->member_size = get_le(r, 2) + 1;
            w->member_length = BGZIP_LENGTH_MAX;
        } else {
            while (length-- > 0 && !r->short_of) get(r);
        }
    }
    while (left-- > 0 && !r->short_of) get(r);
}

static void read_name(struct header_reader *r, char *to) {
    size_t length = 0;
    unsigned c;
    while ((c = get(r)) != 0) {
        if (length < WRAPPER_NAME_MAX - 1) to[length++] = (char)c;
    }
    to[length] = '\0';
}

const char *wrapper_read_gzip(struct wrapper *w, int (*next)(void *context), void *context) {
    struct header_reader r = {.next = next, .context = context, .crc = crc32(0, NULL, 0)};
    *w = (struct wrapper){.format = FORMAT_GZIP};
    get_le(&r, 2);
    unsigned method = get(&r), flags = get(&r);
    if (r.short_of) return wrapper_cut_off;
    if (method != 8) return "compressed by an unknown method";
    if (flags & FLAGS_UNKNOWN) return "the header has unknown flags";
    w->time = get_le(&r, 4);
    get_le(&r, 2);
    if (flags & FLAG_EXTRA) read_extra(&r, w);
    if (flags & FLAG_NAME) read_name(&r, w->name);
    if (flags & FLAG_COMMENT) {
        while (get(&r) != 0) continue;
    }
    if (flags & FLAG_HEADER_CRC) {
        uint32_t expected = (uint32_t)r.crc & 0xffff;
        if (get_le(&r, 2) != expected && !r.short_of) return "the header is damaged: its check value is wrong";
    }
    w->header_size = r.bytes;
    return r.short_of ? wrapper_cut_off : NULL;
}

bool wrapper_is_zlib(int first, int second) {
    return first >= 0 && second >= 0 && (first & 15) == 8 && first >> 4 <= 7 && (first * 256 + second) % 31 == 0 &&
           !(second & 0x20);
}
