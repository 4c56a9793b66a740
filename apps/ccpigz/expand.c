/* expand.c - the walk through the compressed input: headers, members, what follows them.
 *
 * A member whose header has its size is copied out and decoded by a task, while the walk continues with the next one.
 * Any other is decoded here, piece by piece, and only its check value is computed by tasks.
 *
 * EXPAND-1  An extra field is a hint: a file is not rejected because the field is wrong. The walk checks whether a
 *           member may end there; if a task finds out that it does not, the walk starts again after that member's
 *           header, without hints (go_back in unpack.c).
 * EXPAND-2  A pipe cannot be read twice. Until the writer has verified all members that were taken as a whole, the walk
 *           consumes only headers and further such members, and keeps both; before it does anything else it waits for
 *           the writer (settle). */
#include "scout.h"
#include "unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char cannot_read[] = "cannot read";

static int tell(struct unpack *u, const char *error, const char *warning, bool damaged) {
    struct piece *piece = unpack_take(&u->pieces, FORMAT_RAW);
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

static size_t trailer_size(const struct piece *piece) {
    return piece->format == FORMAT_GZIP ? 8 : piece->format == FORMAT_ZLIB ? 4 : 0;
}

/* What the trailer says, into the piece that ends the member. */
static void take_trailer(struct piece *piece, const uint8_t *bytes) {
    size_t n = trailer_size(piece);
    for (size_t i = 0; i < 4 && n > 0; i++) {
        unsigned place = piece->format == FORMAT_GZIP ? 8 * (unsigned)i : 24 - 8 * (unsigned)i;
        piece->want_check = (i == 0 ? 0 : piece->want_check) | (uint32_t)bytes[i] << place;
    }
    piece->want_length = 0;
    for (size_t i = 4; i < n; i++) piece->want_length |= (uint32_t)bytes[i] << (8 * (i - 4));
    piece->ends = true;
}

/* Reads the trailer. NULL: fine. */
static const char *read_trailer(struct unpack *u, struct piece *piece) {
    uint8_t bytes[WRAPPER_TRAILER_MAX];
    size_t n = trailer_size(piece);
    if (source_read(&u->source, bytes, n) < n) return unpack_why_short(u);
    take_trailer(piece, bytes);
    return NULL;
}

/* Sends the stream's piece, and continues in another one: the last bytes become the window. Alone there is only one,
 * which is reused. 0, or an error. */
static int next_piece(struct unpack *u) {
    struct stream *st = &u->stream;
    struct piece *piece = st->piece, *next = piece;
    size_t n = (size_t)(st->out - st->history);
    if (n > DECODE_WINDOW) n = DECODE_WINDOW;
    int rc = 0;
    if (u->alone)
        rc = unpack_write(u, piece);
    else
        next = unpack_take(&u->pieces, piece->format);
    if (next == NULL) return unpack_why_none();
    memmove(next->data - n, st->out - n, n);
    st->piece = next;
    st->history = next->data - n;
    st->out = next->data;
    return u->alone ? rc : unpack_send(u, piece, unpack_check);
}

/* Whether the remaining input is worth a pipeline. A pipe that has delivered that much will deliver more. */
static bool has_much(const struct unpack *u) {
    const struct job *job = u->job;
    if (job->options->workers == 1) return false;
    uint64_t so_far = atomic_load(&job->bytes_in);
    return job->in_may_block ? so_far >= UNPACK_MUCH : job->in_size >= so_far + UNPACK_MUCH;
}

/* Whether a stream that has consumed that many bytes is worth several tasks. A shorter one may end soon, and what was
 * read ahead would have to be returned. */
static bool is_long(const struct unpack *u, size_t used) {
    const struct job *job = u->job;
    return !u->alone && !u->stream.no_scouts && used >= SCOUT_PART && job->options->split == SPLIT_ALWAYS &&
           !job->in_may_block && job->in_size >= atomic_load(&job->bytes_in) + 2 * SCOUT_PART;
}

/* Whether others can help with a stream. Until something was written it is not known whether that takes time. */
static bool can_be_shared(const struct unpack *u) {
    if (u->job->in_may_block || u->job->options->split == SPLIT_ALWAYS) return true;
    return u->writing_ns > (cc_now_ns() - u->began_ns) / 16;
}

static uint8_t *end_of_piece(const struct unpack *u) {
    return u->stream.piece->data + (u->alone ? PIECE_ALONE : PIECE_SIZE);
}

/* In a stored block that continues after the bytes that were read: the rest is read directly to its destination. */
static bool fill_stored(struct unpack *u) {
    struct stream *st = &u->stream;
    struct decoder *d = u->decoder;
    size_t n = (size_t)(end_of_piece(u) - st->out);
    if (n > d->stored_left) n = d->stored_left;
    if (d->where != IN_STORED || n == 0) return false;
    n = source_fill(&u->source, st->out, n);
    st->out += n;
    st->used += n;
    d->stored_left -= (uint32_t)n;
    return n > 0;
}

/* The stream's piece is full, or all input is consumed: continues with the next. 0, or an error. */
static int move_on(struct unpack *u, enum decode_status status) {
    struct stream *st = &u->stream;
    /* Data from a slow pipe is passed on at once. */
    bool wait = status == DECODE_MORE && u->job->in_may_block && st->piece->size > 0 && source_is_dry(&u->source);
    int rc = status == DECODE_FULL || wait ? next_piece(u) : 0;
    if (rc != 0 || status != DECODE_MORE || fill_stored(u)) return rc;
    if (u->alone && u->decoder->where == IN_CODES && has_much(u) && can_be_shared(u)) return UNPACK_ON;
    source_next(&u->source);
    return 0;
}

/* Ends the stream; error: what is wrong with it, or NULL. */
static int end_stream(struct unpack *u, enum decode_status status, const char *error) {
    struct piece *piece = u->stream.piece;
    u->stream.piece = NULL;
    if (error == NULL) error = read_trailer(u, piece);
    int rc = unpack_send(u, piece, unpack_check);
    if (rc == 0 && error != NULL)
        rc = status == DECODE_BAD ? unpack_tell_damage(u, error) : unpack_tell_error(u, error);
    return rc != 0 ? rc : error != NULL ? ENODATA : 0;
}

/* Gives the rest of the stream to the scouts. */
static const char *scout_rest(struct unpack *u, bool *ended, int *rc) {
    struct stream *st = &u->stream;
    uint8_t window[DECODE_WINDOW];
    enum format format = st->piece->format;
    u->alone_ns = cc_now_ns() - st->began_ns;
    u->alone_bytes = st->used;
    memcpy(window, st->out - DECODE_WINDOW, DECODE_WINDOW);
    *rc = unpack_send(u, st->piece, unpack_check);
    const char *error = *rc == 0 ? scout_expand(u, format, window, &st->piece, ended, rc) : NULL;
    if (*rc != 0) return error;
    st->history = st->piece->data - DECODE_WINDOW;
    st->out = st->piece->data;
    st->no_scouts = true;
    return error;
}

/* Decodes the stream from where it is, and its trailer. The same results as of the walk. */
static int expand_stream(struct unpack *u) {
    struct source *s = &u->source;
    struct stream *st = &u->stream;
    struct decoder *d = u->decoder;
    for (;;) {
        d->in = s->at;
        d->in_end = s->end;
        d->last = s->ended;
        enum decode_status status = decode_bytes(d, st->history, &st->out, end_of_piece(u));
        st->used += (size_t)(d->in - s->at);
        s->at = d->in;
        st->piece->size = (size_t)(st->out - st->piece->data);
        int rc = 0;
        if (status == DECODE_BAD || status == DECODE_END)
            return end_stream(u, status, status == DECODE_BAD ? d->error : NULL);
        if (status == DECODE_MORE && d->last) return end_stream(u, status, unpack_why_short(u));
        if (status == DECODE_MORE && st->out - st->history >= DECODE_WINDOW && is_long(u, st->used)) {
            bool ended;
            const char *error = scout_rest(u, &ended, &rc);
            if (rc != 0) return rc;
            if (ended) return end_stream(u, error != NULL && error == d->error ? DECODE_BAD : DECODE_END, error);
            source_next(s);
            continue;
        }
        rc = move_on(u, status);
        if (rc != 0) return rc;
    }
}

/* Begins a stream, whose header has been read. */
static int start_stream(struct unpack *u, enum format format) {
    struct piece *piece = unpack_take(&u->pieces, format);
    if (piece == NULL) return unpack_why_none();
    piece->begins = true;
    u->stream = (struct stream){.piece = piece, .history = piece->data, .out = piece->data, .began_ns = cc_now_ns()};
    decode_start(u->decoder);
    return expand_stream(u);
}

/* Powers of two, so that a buffer grows a few times only; untouched pages cost nothing. */
static bool reserve(uint8_t **buffer, size_t *capacity, size_t least) {
    size_t wanted = 65536;
    if (least <= *capacity) return true;
    while (wanted < least) wanted *= 2;
    free(*buffer);
    *buffer = aligned_alloc(UNPACK_ALIGN, wanted);
    *capacity = *buffer != NULL ? wanted : 0;
    return *buffer != NULL;
}

/* Whether a member may end here: what follows is another one, padding, or nothing. */
static bool something_fits_behind(struct source *s) {
    int first = source_peek(s, 0);
    return first <= 0 || (first == 0x1f && source_peek(s, 1) == 0x8b);
}

/* Waits until the writer has verified all members (EXPAND-2). 0, or ECANCELED: one was wrong, or no more output is
 * needed. */
static int settle(struct unpack *u) {
    return cc_wait_group_wait(&u->unverified);
}

/* The size in the header is wrong, or more than there is memory for: what was copied out, `piece->read` bytes with the
 * header, is returned, and the member is decoded as any other (EXPAND-1). */
static int distrust(struct unpack *u, struct piece *piece) {
    int rc = settle(u);
    if (rc == 0 && piece->read > 0) {
        struct iovec part = {piece->packed + piece->header_size, piece->read - piece->header_size};
        u->taken_count--;
        rc = source_return(&u->source, &part, 1);
    }
    if (rc != 0) return rc;
    pool_give(&u->members, piece);
    return start_stream(u, FORMAT_GZIP);
}

/* Copies a member out, with its header, which has been read. false: the sizes in the header are wrong. */
static bool read_member(struct unpack *u, struct piece *piece) {
    const struct wrapper *w = &u->member;
    piece->header_size = w->header_size;
    piece->packed_size = w->member_size - w->header_size - WRAPPER_TRAILER_MAX;
    piece->read = 0;
    if (!reserve(&piece->packed, &piece->packed_capacity, w->member_size) ||
        !reserve(&piece->room, &piece->capacity, (size_t)w->member_length + 1))
        return false;
    piece->data = piece->room;
    u->taken[u->taken_count++ % u->members.capacity] = piece; /* EXPAND-2 */
    memcpy(piece->packed, u->header, w->header_size);
    u->header_size = 0;
    piece->read = w->header_size;
    piece->read += source_read(&u->source, piece->packed + piece->read, w->member_size - w->header_size);
    if (piece->read < w->member_size) return false;
    take_trailer(piece, piece->packed + piece->header_size + piece->packed_size);
    return piece->want_length <= w->member_length && something_fits_behind(&u->source);
}

/* Copies a member out and gives it to a task. The header has been read. */
static int expand_member(struct unpack *u) {
    if (u->alone && has_much(u)) return UNPACK_ON;
    struct piece *piece = unpack_take(&u->members, FORMAT_GZIP);
    if (piece == NULL) return unpack_why_none();
    piece->begins = true;
    bool fits = read_member(u, piece);
    u->member.member_size = 0;
    if (!fits) return distrust(u, piece);
    if (!u->alone) cc_wait_group_add(&u->unverified, 1);
    int rc = unpack_send(u, piece, unpack_decode_member);
    if (u->alone && rc == UNPACK_AGAIN) return distrust(u, piece);
    if (u->alone) u->right_count++;
    return rc;
}

/* Whether the member may be taken as a whole, and is worth it: hardly compressed data are mostly copied, and would take
 * twice the memory. */
static bool tells_its_size(const struct wrapper *w) {
    return w->header_size <= HEADER_KEPT && w->member_size >= w->header_size + WRAPPER_TRAILER_MAX &&
           w->member_size <= MEMBER_LIMIT && w->member_length <= MEMBER_LIMIT &&
           w->member_size + w->member_size / 8 <= w->member_length;
}

/* Passes on what is not compressed, as gzip -cdf does. */
static int copy_plain(struct unpack *u) {
    do {
        while (u->source.at < u->source.end) {
            struct piece *piece = unpack_take(&u->pieces, FORMAT_RAW);
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
    int rc = u->source.error != 0 ? unpack_tell_error(u, cannot_read) : 0;
    return rc != 0 ? rc : ENODATA; /* Nothing follows. */
}

/* A byte of a header, of which a copy is kept. */
static int header_byte(void *context) {
    struct unpack *u = context;
    if (u->header_size == HEADER_KEPT && settle(u) != 0) return -1;
    int byte = source_byte(&u->source);
    if (byte >= 0 && u->header_size < HEADER_KEPT) u->header[u->header_size++] = (uint8_t)byte;
    return byte;
}

static int expand_gzip(struct unpack *u, bool first) {
    struct wrapper w;
    u->header_size = 0;
    const char *error = wrapper_read_gzip(&w, header_byte, u);
    bool whole = error == NULL && !u->no_hints && tells_its_size(&w);
    int settled = whole ? 0 : settle(u);
    if (settled != 0) return settled;
    if (error == wrapper_cut_off) error = unpack_why_short(u);
    if (error != NULL) {
        int rc = unpack_tell_error(u, error);
        return rc != 0 ? rc : ENODATA;
    }
    if (first) u->job->wrapper = w;
    if (!whole) return start_stream(u, FORMAT_GZIP);
    u->member = w;
    return expand_member(u);
}

/* What follows a stream: zeros are padding, another member is more data, anything else is ignored with a warning. */
static int expand_rest(struct unpack *u) {
    struct source *s = &u->source;
    int rc = 0;
    while (rc == 0) {
        bool padding = false;
        int first = source_peek(s, 0);
        if (first != 0x1f || source_peek(s, 1) != 0x8b) rc = settle(u);
        if (rc != 0) return rc;
        while (first == 0) {
            padding = true;
            s->at++;
            first = source_peek(s, 0);
        }
        if (first < 0) return s->error != 0 ? unpack_tell_error(u, cannot_read) : 0;
        if (!padding && first == 0x1f && source_peek(s, 1) < 0 && u->job->wrapper.format == FORMAT_GZIP)
            return unpack_tell_error(u, unpack_why_short(u)); /* of a member there is the first byte, as gzip has it */
        if (padding || first != 0x1f || source_peek(s, 1) != 0x8b || u->job->wrapper.format != FORMAT_GZIP) {
            return unpack_tell_warning(u, "trailing garbage ignored");
        }
        rc = expand_gzip(u, false);
    }
    return rc;
}

/* The first member, whatever it is. */
static int expand_first(struct unpack *u) {
    struct source *s = &u->source;
    const struct options *o = u->job->options;
    int first = source_peek(s, 0), second = source_peek(s, 1);
    const char *error = "not in gzip or zlib format";
    if (s->error != 0 && first < 0) {
        error = cannot_read;
    } else if (o->format == FORMAT_RAW) {
        u->job->wrapper = (struct wrapper){.format = FORMAT_RAW};
        return start_stream(u, FORMAT_RAW);
    } else if (first == 0x1f && second == 0x8b) {
        return expand_gzip(u, true);
    } else if (wrapper_is_zlib(first, second)) {
        u->job->wrapper = (struct wrapper){.format = FORMAT_ZLIB};
        s->at += 2;
        return start_stream(u, FORMAT_ZLIB);
    } else if (o->force && o->to_stdout && o->action == ACTION_DECOMPRESS) {
        return copy_plain(u);
    } else if (first < 0 || (first == 0x1f && second < 0)) {
        error = unpack_why_short(u);
    }
    int rc = unpack_tell_error(u, error);
    return rc != 0 ? rc : ENODATA;
}

int unpack_walk(struct unpack *u) {
    int rc;
    if (u->in_member) {
        u->in_member = false;
        rc = start_stream(u, FORMAT_GZIP);
    } else if (u->stream.piece != NULL)
        rc = expand_stream(u);
    else if (u->member.member_size != 0)
        rc = expand_member(u);
    else
        rc = expand_first(u);
    return rc != 0 ? rc : expand_rest(u);
}
