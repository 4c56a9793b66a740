/* buf.c - buffered readers and writers.
 *
 * BUF-1  A reader returns an empty buffer to the pool before it waits for the peer. A writer returns its buffer when
 *        everything is written.
 * BUF-2  Bytes that were read and not consumed stay buffered, whatever a call returns.
 * BUF-3  A call of a reader keeps its connection, which another fiber may close between two reads of it.
 */
#include "base/error.h"
#include "net/buffers.h"
#include "net/conn.h"

#include <ccc/cc_buf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Static_assert(CC_BUF_DEFAULT == BUFFER_SIZE, "the usual ones come from the pool");

/* ---- reading ---- */

int cc_reader_init(CCReader *r, CCConn *conn, size_t most) {
    if (r == NULL) return EINVAL;
    *r = (CCReader){.conn = conn, .most = most != 0 ? most : CC_BUF_DEFAULT};
    return conn == NULL || most > CC_BUF_MAX ? EINVAL : 0;
}

static void give_back(CCReader *r) {
    cc__buffer_give(r->bytes, r->size);
    r->bytes = NULL;
    r->begin = r->end = r->size = 0;
}

void cc_reader_free(CCReader *r) {
    if (r != NULL) give_back(r);
}

size_t cc_reader_buffered(const CCReader *r) {
    return r != NULL ? r->end - r->begin : 0;
}

static bool bad(const CCReader *r) {
    return r == NULL || r->conn == NULL;
}

/* Makes room for at least one byte after the buffered ones, which are fewer than `most`. One byte stays free for the 0
 * of a line. */
static int make_room(CCReader *r) {
    size_t have = r->end - r->begin;
    if (r->bytes != NULL && r->end + 1 < r->size) return 0;
    if (have + 1 < r->size) {
        memmove(r->bytes, r->bytes + r->begin, have);
    } else {
        size_t limit = r->most + 1 > BUFFER_SIZE ? r->most + 1 : BUFFER_SIZE;
        size_t size = r->size == 0 ? BUFFER_SIZE : r->size < limit / 2 ? r->size * 2 : limit;
        unsigned char *larger = cc__buffer_take(size);
        if (larger == NULL) return ENOMEM;
        if (have > 0) memcpy(larger, r->bytes + r->begin, have);
        cc__buffer_give(r->bytes, r->size);
        r->bytes = larger;
        r->size = size;
    }
    r->begin = 0;
    r->end = have;
    return 0;
}

/* Reads once, at least a byte; ENODATA: end of stream. The reader holds fewer bytes than its limit. */
static int fill(CCReader *r) {
    for (bool drained = false;; drained = true) {
        int error = 0;
        size_t n = 0;
        if (r->begin == r->end) give_back(r); /* BUF-1 */
        if (r->bytes == NULL || drained)
            error = cc__conn_await(r->conn, drained, CC_FOREVER);
        else
            error = cc__call_check_cancel();
        if (error == 0) error = make_room(r);
        if (error != 0) return error;
        size_t room = r->size - 1 - r->end, allowed = r->most - (r->end - r->begin);
        struct iovec part = {r->bytes + r->end, room < allowed ? room : allowed};
        error = cc__conn_read(r->conn, &part, 1, &n, HOW_TRY, CC_FOREVER);
        r->end += n;
        if (error == 0) return n > 0 ? 0 : ENODATA;
        if (error != EAGAIN) return error;
    }
}

int cc_reader_peek(CCReader *r, size_t least, const void **bytes, size_t *have) {
    if (bad(r) || bytes == NULL || have == NULL) return EINVAL;
    CCConn *conn = r->conn;
    int error = least > r->most ? EMSGSIZE : 0;
    cc__conn_keep(conn); /* BUF-3 */
    while (error == 0 && r->end - r->begin < least) error = fill(r);
    *have = r->end - r->begin;
    *bytes = *have > 0 ? r->bytes + r->begin : NULL;
    cc__conn_drop(conn);
    return error;
}

int cc_reader_skip(CCReader *r, uint64_t n) {
    if (bad(r)) return EINVAL;
    CCConn *conn = r->conn;
    int error = 0;
    cc__conn_keep(conn); /* BUF-3 */
    while (error == 0) {
        size_t have = r->end - r->begin, part = have < n ? have : (size_t)n;
        r->begin += part;
        n -= part;
        if (n == 0) break;
        error = fill(r);
    }
    cc__conn_drop(conn);
    return error;
}

int cc_reader_read(CCReader *r, void *buffer, size_t size, size_t *n) {
    if (n == NULL) return EINVAL;
    *n = 0;
    if (bad(r) || (buffer == NULL && size > 0)) return EINVAL;
    if (size == 0) return 0;
    if (r->begin == r->end) {
        give_back(r);
        if (size >= BUFFER_SIZE) return cc_read(r->conn, buffer, size, n); /* avoids a copy */
        CCConn *conn = r->conn;
        cc__conn_keep(conn); /* BUF-3 */
        int error = fill(r);
        cc__conn_drop(conn);
        if (error != 0) return error == ENODATA ? 0 : error;
    }
    size_t have = r->end - r->begin;
    *n = have < size ? have : size;
    memcpy(buffer, r->bytes + r->begin, *n);
    r->begin += *n;
    return 0;
}

int cc_reader_read_full(CCReader *r, void *buffer, size_t size, size_t *n) {
    size_t ignored, got = 0;
    if (n == NULL) n = &ignored;
    *n = 0;
    if (bad(r) || (buffer == NULL && size > 0)) return EINVAL;
    CCConn *conn = r->conn;
    int error = 0;
    cc__conn_keep(conn); /* BUF-3 */
    while (error == 0 && *n < size) {
        error = cc_reader_read(r, (char *)buffer + *n, size - *n, &got);
        if (error == 0 && got == 0) error = ENODATA;
        *n += got;
    }
    cc__conn_drop(conn);
    return error;
}

static int until(CCReader *r, unsigned char delimiter, const void **bytes, size_t *n) {
    for (size_t seen = 0;;) {
        size_t have = r->end - r->begin;
        unsigned char *at = have > seen ? memchr(r->bytes + r->begin + seen, delimiter, have - seen) : NULL;
        if (at != NULL) {
            *bytes = r->bytes + r->begin;
            *n = (size_t)(at + 1 - (r->bytes + r->begin));
            r->begin += *n;
            return 0;
        }
        seen = have;
        int error = have >= r->most ? EMSGSIZE : fill(r);
        if (error != 0) {
            *n = r->end - r->begin;
            *bytes = NULL;
            return error;
        }
    }
}

int cc_reader_until(CCReader *r, unsigned char delimiter, const void **bytes, size_t *n) {
    if (bad(r) || bytes == NULL || n == NULL) return EINVAL;
    CCConn *conn = r->conn;
    cc__conn_keep(conn); /* BUF-3 */
    int error = until(r, delimiter, bytes, n);
    cc__conn_drop(conn);
    return error;
}

int cc_reader_line(CCReader *r, char **line, size_t *n) {
    const void *bytes = NULL;
    if (line == NULL) return EINVAL;
    int error = cc_reader_until(r, '\n', &bytes, n);
    *line = (char *)(uintptr_t)bytes;
    if (error != 0) return error;
    --*n;
    if (*n > 0 && (*line)[*n - 1] == '\r') --*n;
    (*line)[*n] = 0;
    return 0;
}

/* ---- writing ---- */

int cc_writer_init(CCWriter *w, CCConn *conn, size_t most) {
    if (w == NULL) return EINVAL;
    *w = (CCWriter){.conn = conn, .most = most != 0 ? most : CC_BUF_DEFAULT};
    return conn == NULL || most > CC_BUF_MAX ? EINVAL : 0;
}

void cc_writer_free(CCWriter *w) {
    if (w == NULL) return;
    cc__buffer_give(w->bytes, w->size);
    w->bytes = NULL;
    w->used = w->size = 0;
}

size_t cc_writer_buffered(const CCWriter *w) {
    return w != NULL ? w->used : 0;
}

/* Makes room for n more bytes, within the high-water mark. */
static int make_writer_room(CCWriter *w, size_t n) {
    if (w->size - w->used >= n) return 0;
    size_t size = w->size != 0 ? w->size : BUFFER_SIZE;
    while (size - w->used < n) size *= 2;
    if (size > BUFFER_SIZE && size > w->most) size = w->most;
    unsigned char *larger = cc__buffer_take(size);
    if (larger == NULL) return ENOMEM;
    if (w->used > 0) memcpy(larger, w->bytes, w->used);
    cc__buffer_give(w->bytes, w->size);
    w->bytes = larger;
    w->size = size;
    return 0;
}

/* Writes what is buffered and then `bytes`; *n: how many of `bytes` were written. */
static int put(CCWriter *w, const void *bytes, size_t size, size_t *n) {
    struct iovec parts[2] = {{w->bytes, w->used}, {(void *)(uintptr_t)bytes, size}};
    size_t done = 0;
    int first = w->used == 0;
    int error = cc__conn_write(w->conn, parts + first, 2 - first - (size == 0), &done, HOW_WAIT, CC_FOREVER);
    size_t old = done < w->used ? done : w->used;
    if (old > 0) memmove(w->bytes, w->bytes + old, w->used - old);
    w->used -= old;
    *n = done - old;
    if (w->used == 0) cc_writer_free(w); /* BUF-1 */
    return error;
}

int cc_writer_write(CCWriter *w, const void *bytes, size_t size, size_t *n) {
    size_t ignored;
    if (n == NULL) n = &ignored;
    *n = 0;
    if (w == NULL || w->conn == NULL || (bytes == NULL && size > 0)) return EINVAL;
    if (size == 0) return 0;
    if (size > w->most || w->used > w->most - size) return put(w, bytes, size, n);
    int error = make_writer_room(w, size);
    if (error != 0) return error;
    memcpy(w->bytes + w->used, bytes, size);
    w->used += size;
    *n = size;
    return 0;
}

int cc_writer_print(CCWriter *w, const char *format, ...) {
    CC_KEEP_ERRNO;
    char text[256];
    va_list args;
    if (w == NULL || w->conn == NULL || format == NULL) return EINVAL;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0) return EINVAL;
    size_t size = (size_t)length;
    if (size < sizeof text) return cc_writer_write(w, text, size, NULL);
    size_t room = size + 1 > BUFFER_SIZE ? size + 1 : BUFFER_SIZE;
    char *all = cc__buffer_take(room);
    if (all == NULL) return ENOMEM;
    va_start(args, format);
    (void)vsnprintf(all, room, format, args);
    va_end(args);
    int error = cc_writer_write(w, all, size, NULL);
    cc__buffer_give(all, room);
    return error;
}

int cc_writer_flush(CCWriter *w) {
    size_t none;
    if (w == NULL || w->conn == NULL) return EINVAL;
    return w->used == 0 ? 0 : put(w, NULL, 0, &none);
}
