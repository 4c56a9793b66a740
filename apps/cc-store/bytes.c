/* bytes.c - numbers and pieces of memory, one after another. */
#include "bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void bytes_free(struct bytes *b) {
    free(b->data);
    *b = (struct bytes){0};
}

void bytes_clear(struct bytes *b) {
    b->size = 0;
    b->failed = false;
}

static bool make_room(struct bytes *b, size_t size) {
    if (b->failed || size > SIZE_MAX / 4) b->failed = true;
    if (b->failed || b->size + size <= b->room) return !b->failed;
    size_t room = b->room * 2 > b->size + size ? b->room * 2 : b->size + size + 64;
    unsigned char *more = realloc(b->data, room);
    if (more == NULL) {
        b->failed = true;
        return false;
    }
    b->data = more;
    b->room = room;
    return true;
}

void bytes_add(struct bytes *b, const void *data, size_t size) {
    if (!make_room(b, size)) return;
    if (size > 0) memcpy(b->data + b->size, data, size);
    b->size += size;
}

void bytes_add_number(struct bytes *b, uint64_t number) {
    unsigned char out[8];
    for (int i = 0; i < 8; i++) out[i] = (unsigned char)(number >> 8 * i);
    bytes_add(b, out, sizeof out);
}

void bytes_add_piece(struct bytes *b, const void *data, size_t size) {
    bytes_add_number(b, size);
    bytes_add(b, data, size);
}

struct view view_of(const struct bytes *b) {
    return (struct view){b->data, b->size, b->failed};
}

static const unsigned char *take(struct view *v, size_t size) {
    static const unsigned char none[8];
    if (v->failed || v->size < size) {
        v->failed = true;
        v->size = 0;
        return none;
    }
    const unsigned char *at = v->data;
    v->data += size;
    v->size -= size;
    return at;
}

uint64_t view_number(struct view *v) {
    const unsigned char *in = take(v, 8);
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) number |= (uint64_t)in[i] << 8 * i;
    return number;
}

struct view view_piece(struct view *v) {
    uint64_t size = view_number(v);
    if (size > v->size) v->failed = true;
    if (v->failed) return (struct view){NULL, 0, true};
    return (struct view){take(v, (size_t)size), (size_t)size, false};
}

uint32_t checksum(const void *data, size_t size) {
    const unsigned char *at = data;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~crc;
}

int message_send(CCConn *conn, const struct bytes *message, CCDeadline deadline) {
    struct bytes out = {0};
    if (message->failed) return ENOMEM;
    bytes_add_piece(&out, message->data, message->size);
    int error = out.failed ? ENOMEM : cc_write_until(conn, out.data, out.size, NULL, deadline);
    bytes_free(&out);
    return error;
}

int message_receive(CCConn *conn, struct bytes *message, CCDeadline deadline) {
    unsigned char head[8];
    bytes_clear(message);
    int error = cc_read_full_until(conn, head, sizeof head, NULL, deadline);
    if (error != 0) return error;
    struct view v = {head, sizeof head, false};
    uint64_t size = view_number(&v);
    if (size > MESSAGE_MAX) return EBADMSG;
    if (!make_room(message, (size_t)size)) return ENOMEM;
    error = cc_read_full_until(conn, message->data, (size_t)size, NULL, deadline);
    message->size = error == 0 ? (size_t)size : 0;
    return error;
}
