/* bytes.c - growable arrays, a hash map, and the encodings of the output formats. */
#include "record/record.h"

#include "base/mem.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool reserve(struct vec *v, size_t more, size_t size) {
    if (v->failed) return false;
    if (v->room - v->count >= more) return true;
    size_t room = v->room != 0 ? v->room * 2 : 64;
    while (room - v->count < more) room *= 2;
    void *at = cc__mem_alloc(room * size);
    if (at == NULL) {
        v->failed = true;
        return false;
    }
    if (v->count > 0) memcpy(at, v->at, v->count * size);
    cc__mem_free(v->at);
    v->at = at;
    v->room = room;
    return true;
}

void *cc__vec_add(struct vec *v, size_t size) {
    if (!reserve(v, 1, size)) return NULL;
    return (unsigned char *)v->at + v->count++ * size;
}

void cc__vec_free(struct vec *v) {
    cc__mem_free(v->at);
    *v = (struct vec){0};
}

/* ---- hash map ---- */

/* The entry of the key, or the free one where it belongs. */
static struct map_entry *entry_of(const struct map *map, uint64_t key) {
    size_t at = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (map->room - 1);
    while (map->at[at].key != 0 && map->at[at].key != key) at = (at + 1) & (map->room - 1);
    return &map->at[at];
}

uint32_t cc__map_find(const struct map *map, uint64_t key) {
    return map->room != 0 ? entry_of(map, key)->number : 0;
}

static bool make_room(struct map *map) {
    struct map larger = {.room = map->room != 0 ? 2 * map->room : 256};
    larger.at = cc__mem_alloc(larger.room * sizeof *larger.at);
    if (larger.at == NULL) return false;
    for (size_t i = 0; i < map->room; i++)
        if (map->at[i].key != 0) *entry_of(&larger, map->at[i].key) = map->at[i];
    larger.count = map->count;
    cc__map_free(map);
    *map = larger;
    return true;
}

bool cc__map_set(struct map *map, uint64_t key, uint32_t number) {
    if (2 * map->count >= map->room && !make_room(map)) return false;
    struct map_entry *e = entry_of(map, key);
    map->count += e->key == 0;
    *e = (struct map_entry){key, number};
    return true;
}

void cc__map_free(struct map *map) {
    cc__mem_free(map->at);
    *map = (struct map){0};
}

/* ---- bytes ---- */

void cc__bytes_add(struct vec *bytes, const void *data, size_t n) {
    if (n == 0 || !reserve(bytes, n, 1)) return;
    memcpy((unsigned char *)bytes->at + bytes->count, data, n);
    bytes->count += n;
}

void cc__bytes_byte(struct vec *bytes, unsigned value) {
    unsigned char byte = (unsigned char)value;
    cc__bytes_add(bytes, &byte, 1);
}

void cc__bytes_varint(struct vec *bytes, uint64_t value) {
    unsigned char text[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) text[n++] = (unsigned char)(value | 0x80);
    text[n++] = (unsigned char)value;
    cc__bytes_add(bytes, text, n);
}

void cc__bytes_text(struct vec *bytes, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n > 0) cc__bytes_add(bytes, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

void cc__bytes_field(struct vec *bytes, unsigned number, uint64_t value) {
    cc__bytes_varint(bytes, number << 3 | WIRE_VARINT);
    cc__bytes_varint(bytes, value);
}

void cc__bytes_field_bytes(struct vec *bytes, unsigned number, const void *data, size_t n) {
    cc__bytes_varint(bytes, number << 3 | WIRE_BYTES);
    cc__bytes_varint(bytes, n);
    cc__bytes_add(bytes, data, n);
}

/* Waits until fd is writable. ETIMEDOUT: it is not within patience_ms. */
static int await_room(int fd, unsigned patience_ms) {
    uint64_t now = cc__clock_real(), until = now + patience_ms * UINT64_C(1000000);
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    for (; now < until; now = cc__clock_real()) {
        int ready = cc__os_wait_any(&one, 1, (int)((until - now) / 1000000 + 1));
        if (ready != 0) return ready < 0 ? -ready : 0; /* the write reports an error of the descriptor */
    }
    return ETIMEDOUT;
}

int cc__bytes_write(const struct vec *bytes, int fd, unsigned patience_ms) {
    enum { PIECE = 1 << 20 };
    if (bytes->failed) return ENOMEM;
    for (size_t at = 0; at < bytes->count;) {
        size_t n = bytes->count - at < PIECE ? bytes->count - at : PIECE;
        struct iovec part = {(unsigned char *)bytes->at + at, n};
        ssize_t written = cc__os_file_write(fd, &part, 1, OS_POSITION);
        if (written == -EINTR) continue;
        if (written == -EAGAIN && patience_ms != 0) {
            int rc = await_room(fd, patience_ms);
            if (rc != 0) return rc;
            continue;
        }
        if (written <= 0) return written < 0 ? (int)-written : EIO;
        at += (size_t)written;
    }
    return 0;
}
