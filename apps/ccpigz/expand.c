/* expand.c - the fiber that walks through the compressed input: headers, members, what comes behind them.
 *
 * A member that tells its size is copied out and decoded by a task of its own, while the walk goes on to the next one.
 * Any other is decoded here, piece by piece, and only its check value is computed by tasks.
 */
#include "scout.h"
#include "unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char cannot_read[] = "cannot read";

static int tell(struct unpack *u, const char *error, const char *warning, bool damaged) {
    struct piece *piece = unpack_take(u, &u->pieces, FORMAT_RAW);
    if (piece == NULL) return unpack_why_none();
    piece->error = error;
    piece->warning = warning;
    piece->damaged = damaged;
    if (error == cannot_read) piece->system_error = u->source.error;
    return unpack_send(u, piece, unpack_check);
}

int unpack_tell_error(struct unpack *u, const char *error) {
    return tell(u, error, NULL, false);
}

int unpack_tell_damage(struct unpack *u, const char *error) {
    return tell(u, error, NULL, true);
}

int unpack_tell_warning(struct unpack *u, const char *warning) {
    return tell(u, NULL, warning, false);
}

const char *unpack_why_short(const struct unpack *u) {
    return u->source.error != 0 ? cannot_read : wrapper_cut_off;
}

/* Reads the trailer into the piece that ends the member. NULL: fine. */
static const char *read_trailer(struct unpack *u, struct piece *piece) {
    uint8_t bytes[WRAPPER_TRAILER_MAX];
    size_t n = piece->format == FORMAT_GZIP ? 8 : piece->format == FORMAT_ZLIB ? 4 : 0;
    if (source_read(&u->source, bytes, n) < n) return unpack_why_short(u);
    for (size_t i = 0; i < 4 && n > 0; i++) {
        unsigned place = piece->format == FORMAT_GZIP ? 8 * (unsigned)i : 24 - 8 * (unsigned)i;
        piece->want_check = (i == 0 ? 0 : piece->want_check) | (uint32_t)bytes[i] << place;
    }
    piece->want_length = 0;
    for (size_t i = 4; i < n; i++) piece->want_length |= (uint32_t)bytes[i] << (8 * (i - 4));
    piece->ends = true;
    return NULL;
}

/* A piece that goes on where another one ends: the other's last bytes become its window. *history is moved. */
static struct piece *continue_piece(struct unpack *u, const struct piece *piece, const uint8_t *out,
                                    const uint8_t **history) {
    struct piece *next = unpack_take(u, &u->pieces, piece->format);
    if (next == NULL) return NULL;
    size_t n = (size_t)(out - *history);
    if (n > DECODE_WINDOW) n = DECODE_WINDOW;
    memcpy(next->data - n, out - n, n);
    *history = next->data - n;
    return next;
}

/* Whether a stream that has used up so many bytes is worth several tasks. One that has not may end soon, and what was read
 * ahead would have to go back. */
static bool is_long(const struct unpack *u, size_t used) {
    const struct job *job = u->job;
    return used >= SCOUT_PART && job->options->split == SPLIT_ALWAYS && !job->in_may_block &&
           job->in_size >= atomic_load(&job->bytes_in) + 2 * SCOUT_PART;
}

/* Decodes one stream, whose header has been read, and its trailer. 0, or ECANCELED; ENODATA: there was an error, and
 * it was sent. */
static int expand_stream(struct unpack *u, enum format format) {
    struct source *s = &u->source;
    struct decoder *d = u->decoder;
    struct piece *piece = unpack_take(u, &u->pieces, format);
    if (piece == NULL) return unpack_why_none();
    piece->begins = true;
    const uint8_t *history = piece->data;
    uint8_t *out = piece->data;
    const char *error = NULL;
    enum decode_status status;
    size_t used = 0;
    int rc;
    decode_start(d);
    do {
        d->in = s->at;
        d->in_end = s->end;
        d->last = s->ended;
        status = decode_bytes(d, history, &out, piece->data + piece->capacity);
        used += (size_t)(d->in - s->at);
        s->at = d->in;
        piece->size = (size_t)(out - piece->data);
        if (status == DECODE_BAD) {
            error = d->error;
        } else if (status == DECODE_MORE && d->last) {
            error = unpack_why_short(u);
        }
        /* From a pipe that is slow what is there goes on at once. */
        bool wait = status == DECODE_MORE && u->job->in_may_block && piece->size > 0 && source_is_dry(s);
        if (error == NULL && (status == DECODE_FULL || wait)) {
            struct piece *next = continue_piece(u, piece, out, &history);
            if (next == NULL) return unpack_why_none();
            rc = unpack_send(u, piece, unpack_check);
            if (rc != 0) return rc;
            piece = next;
            out = piece->data;
        }
        if (status == DECODE_MORE && out - history >= DECODE_WINDOW && is_long(u, used)) {
            uint8_t window[DECODE_WINDOW];
            memcpy(window, out - DECODE_WINDOW, DECODE_WINDOW);
            rc = unpack_send(u, piece, unpack_check);
            if (rc == 0) error = scout_expand(u, format, window, &piece, &rc);
            if (rc != 0) return rc;
            status = error != NULL && error == d->error ? DECODE_BAD : DECODE_END;
        } else if (status == DECODE_MORE) {
            source_next(s);
        }
    } while (error == NULL && status != DECODE_END);

    if (error == NULL) error = read_trailer(u, piece);
    rc = unpack_send(u, piece, unpack_check);
    if (rc == 0 && error != NULL)
        rc = status == DECODE_BAD ? unpack_tell_damage(u, error) : unpack_tell_error(u, error);
    return rc != 0 ? rc : error != NULL ? ENODATA : 0;
}

/* Powers of two, so that a buffer grows a few times only; pages that nobody touches cost nothing. */
static bool reserve(uint8_t **buffer, size_t *capacity, size_t least) {
    size_t wanted = 65536;
    if (least <= *capacity) return true;
    while (wanted < least) wanted *= 2;
    free(*buffer);
    *buffer = malloc(wanted);
    *capacity = *buffer != NULL ? wanted : 0;
    return *buffer != NULL;
}

/* Copies a member out and gives it to a task. The header has been read. */
static int expand_member(struct unpack *u, const struct wrapper *w) {
    struct piece *piece = unpack_take(u, &u->members, FORMAT_GZIP);
    if (piece == NULL) return unpack_why_none();
    piece->begins = true;
    piece->packed_size = w->member_size - w->header_size - WRAPPER_TRAILER_MAX;
    bool have = reserve(&piece->packed, &piece->packed_capacity, piece->packed_size + 1) &&
                reserve(&piece->room, &piece->capacity, (size_t)w->member_length + 1);
    piece->data = piece->room;
    const char *error = NULL;
    if (!have)
        error = "not enough memory";
    else if (source_read(&u->source, piece->packed, piece->packed_size) < piece->packed_size)
        error = unpack_why_short(u);
    else
        error = read_trailer(u, piece);
    if (error == NULL && piece->want_length > w->member_length) error = "a member's length is wrong";
    if (error == NULL) return unpack_send(u, piece, unpack_decode_member);
    pool_give(&u->members, piece);
    int rc = unpack_tell_error(u, error);
    return rc != 0 ? rc : ENODATA;
}

/* Whether the member may be taken as a whole, and is worth it: what is hardly compressed is copied rather than decoded, and
 * would take twice the memory. */
static bool tells_its_size(const struct wrapper *w) {
    return w->member_size >= w->header_size + WRAPPER_TRAILER_MAX && w->member_size <= MEMBER_LIMIT &&
           w->member_length <= MEMBER_LIMIT && w->member_size + w->member_size / 8 <= w->member_length;
}

/* Passes on what is not compressed, as gzip -cdf does. */
static int copy_plain(struct unpack *u) {
    do {
        while (u->source.at < u->source.end) {
            struct piece *piece = unpack_take(u, &u->pieces, FORMAT_RAW);
            if (piece == NULL) return unpack_why_none();
            size_t n = (size_t)(u->source.end - u->source.at);
            if (n > piece->capacity) n = piece->capacity;
            memcpy(piece->data, u->source.at, n);
            piece->size = n;
            u->source.at += n;
            int rc = unpack_send(u, piece, unpack_check);
            if (rc != 0) return rc;
        }
    } while (source_next(&u->source));
    return u->source.error != 0 ? unpack_tell_error(u, cannot_read) : 0;
}

static int expand_gzip(struct unpack *u, bool first) {
    struct wrapper w;
    const char *error = wrapper_read_gzip(&w, source_byte, &u->source);
    if (error == wrapper_cut_off) error = unpack_why_short(u);
    if (error != NULL) {
        int rc = unpack_tell_error(u, error);
        return rc != 0 ? rc : ENODATA;
    }
    if (first) u->job->wrapper = w;
    return tells_its_size(&w) ? expand_member(u, &w) : expand_stream(u, FORMAT_GZIP);
}

/* What lies behind a stream: zeros are padding, another member is more data, anything else is said to be ignored. */
static int expand_rest(struct unpack *u) {
    struct source *s = &u->source;
    int rc = 0;
    while (rc == 0) {
        bool padding = false;
        int first = source_peek(s, 0);
        while (first == 0) {
            padding = true;
            s->at++;
            first = source_peek(s, 0);
        }
        if (first < 0) return s->error != 0 ? unpack_tell_error(u, cannot_read) : 0;
        if (padding || first != 0x1f || source_peek(s, 1) != 0x8b || u->job->wrapper.format != FORMAT_GZIP) {
            return unpack_tell_warning(u, "trailing garbage ignored");
        }
        rc = expand_gzip(u, false);
    }
    return rc;
}

static int expand_all(struct unpack *u) {
    struct source *s = &u->source;
    const struct options *o = u->job->options;
    int first = source_peek(s, 0), second = source_peek(s, 1), rc;
    if (s->error != 0 && first < 0) return unpack_tell_error(u, cannot_read);
    if (o->format == FORMAT_RAW) {
        u->job->wrapper = (struct wrapper){.format = FORMAT_RAW};
        rc = expand_stream(u, FORMAT_RAW);
    } else if (first == 0x1f && second == 0x8b) {
        rc = expand_gzip(u, true);
    } else if (wrapper_is_zlib(first, second)) {
        u->job->wrapper = (struct wrapper){.format = FORMAT_ZLIB};
        s->at += 2;
        rc = expand_stream(u, FORMAT_ZLIB);
    } else if (o->force && o->to_stdout && o->action == ACTION_DECOMPRESS) {
        return copy_plain(u);
    } else if (first < 0 || (first == 0x1f && second < 0)) {
        return unpack_tell_error(u, unpack_why_short(u));
    } else {
        return unpack_tell_error(u, "not in gzip or zlib format");
    }
    return rc != 0 ? rc : expand_rest(u);
}

void *unpack_expand(void *arg) {
    struct unpack *u = arg;
    int rc = expand_all(u);
    if (rc == 0 || rc == ENODATA)
        cc_chan_close(u->line);
    else
        cc_chan_close_err(u->line, rc);
    return NULL;
}
