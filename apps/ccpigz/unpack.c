/* unpack.c - the two ends of the decompressing pipeline: set-up and writer. The walk between them is in
 * expand.c; the rules are in unpack.h. */
#include "unpack.h"
#include "check.h"
#include "crew.h"
#include "output.h"
#include "say.h"
#include "scout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One is decoded, another one checked and written. Scouts fill them faster. Larger ones are handed over less often: of
 * the same memory, two are 2 % faster than three, and take 8 % less CPU time. */
#define PIECES(options) ((options)->split == SPLIT_ALWAYS ? 3u : 2u)

static void free_piece(void *item) {
    struct piece *piece = item;
    free(piece->room);
    free(piece->packed);
    free(piece->decoder);
    free(piece);
}

static void *make_piece(void *context) { /* UNPACK-2 */
    struct piece *piece = calloc(1, sizeof *piece);
    if (piece == NULL) return NULL;
    piece->pool = context;
    piece->room = aligned_alloc(UNPACK_ALIGN, DECODE_WINDOW + PIECE_SIZE);
    if (piece->room == NULL) {
        free(piece);
        return NULL;
    }
    piece->data = piece->room + DECODE_WINDOW;
    piece->capacity = PIECE_SIZE;
    return piece;
}

/* A whole member's buffers grow with the members that come. */
static void *make_member(void *context) {
    struct piece *piece = calloc(1, sizeof *piece);
    struct decoder *decoder = malloc(sizeof *decoder);
    if (piece == NULL || decoder == NULL) {
        free(piece);
        free(decoder);
        return NULL;
    }
    piece->pool = context;
    piece->decoder = decoder;
    return piece;
}

static void clear_piece(struct piece *piece, enum format format) {
    piece->size = 0;
    piece->format = format;
    piece->begins = piece->ends = false;
    piece->error = piece->warning = NULL;
    piece->damaged = false;
    piece->system_error = 0;
}

struct piece *unpack_take(struct pool *pool, enum format format) {
    struct piece *piece = pool_take(pool);
    if (piece != NULL) clear_piece(piece, format);
    return piece;
}

int unpack_why_none(void) {
    return cc_cancelled() ? ECANCELED : ENOMEM;
}

void *unpack_check(void *arg) {
    struct piece *piece = arg;
    piece->check = check_of(piece->format, piece->data, piece->size);
    return piece;
}

void *unpack_decode_member(void *arg) {
    struct piece *piece = arg;
    struct decoder *d = piece->decoder;
    uint8_t *out = piece->data;
    decode_start(d);
    d->in = piece->packed + piece->header_size;
    d->in_end = d->in + piece->packed_size;
    d->last = true;
    /* One byte more than there should be: a decoder without space does not check for the end. */
    enum decode_status status = decode_bytes(d, out, &out, piece->data + piece->want_length + 1);
    piece->size = (size_t)(out - piece->data);
    if (status == DECODE_BAD)
        piece->error = d->error;
    else if (status == DECODE_MORE)
        piece->error = "a member ends too early";
    else if (status == DECODE_FULL || piece->size != piece->want_length)
        piece->error = "a member's length is wrong";
    else if (d->in != d->in_end)
        piece->error = "a member is shorter than it says";
    piece->damaged = true;
    return unpack_check(piece);
}

/* ---- the writer ---- */

static int compare_sum(struct job *job, const struct piece *piece, struct sum *sum) {
    if (piece->format == FORMAT_RAW) return 0;
    if (piece->want_check != sum->check) {
        say_error(job->name, "invalid compressed data: the check value is wrong");
        return -1;
    }
    if (piece->format == FORMAT_GZIP && piece->want_length != (uint32_t)sum->length) {
        say_error(job->name, "invalid compressed data: the length is wrong");
        return -1;
    }
    return 0;
}

static int write_piece(struct unpack *u, const struct piece *piece) {
    struct job *job = u->job;
    struct sum *sum = &u->sum;
    if (piece->packed != NULL && piece->error != NULL) return UNPACK_AGAIN; /* EXPAND-1; the output so far is right */
    if (!u->opened && piece->error == NULL) {
        u->opened = true;
        if (job->begin(job, &job->wrapper) != 0) return -1;
    }
    if (piece->begins) *sum = (struct sum){.check = check_empty(piece->format)};
    if (piece->error != NULL) {
        if (piece->system_error != 0)
            say_error(job->name, "%s: %s", piece->error, strerror(piece->system_error));
        else
            say_error(job->name, "%s%s", piece->damaged ? "invalid compressed data: " : "", piece->error);
        return -1;
    }
    if (piece->warning != NULL) say_warning(job->name, "%s", piece->warning);
    if (piece->size > 0) {
        int error = job->out == NULL ? 0 : output_write(job->out, piece->data, piece->size);
        if (error != 0) {
            say_error(output_name(job->out), "cannot write: %s", strerror(error));
            return -1;
        }
        sum->check = check_join(piece->format, sum->check, piece->check, piece->size);
        sum->length += piece->size;
        atomic_fetch_add(&job->bytes_out, piece->size);
    }
    job->check = sum->check;
    return piece->ends ? compare_sum(job, piece, sum) : 0;
}

int unpack_write(struct unpack *u, struct piece *piece) {
    unpack_check(piece);
    uint64_t begin = cc_now_ns();
    int rc = write_piece(u, piece);
    if (u->job->out != NULL) u->writing_ns += cc_now_ns() - begin;
    clear_piece(piece, piece->format);
    return rc;
}

int unpack_send(struct unpack *u, struct piece *piece, void *(*task_fn)(void *piece)) { /* UNPACK-1 */
    CCTask task;
    if (u->alone) {
        task_fn(piece);
        int rc = write_piece(u, piece);
        if (rc != UNPACK_AGAIN) pool_give(piece->pool, piece);
        return rc;
    }
    int rc = cc_nursery_spawn_ex(u->nursery, &task, task_fn, piece, NULL);
    return rc != 0 ? rc : cc_chan_send_task(u->line, &task);
}

/* 0; -1: failed, with a message; or an error that is not reported yet. */
static int write_pieces(struct unpack *u) {
    for (;;) {
        void *result;
        int rc = cc_chan_recv_task(u->line, &result);
        if (rc == EPIPE) return 0;
        if (rc != 0) return rc;
        struct piece *piece = result;
        rc = write_piece(u, piece);
        if (rc != 0) return rc;
        bool member = piece->packed != NULL;
        pool_give(piece->pool, piece);
        if (!member) continue;
        u->right_count++;
        cc_wait_group_done(&u->unverified);
    }
}

/* ---- all of it ---- */

static void *walk_on(void *arg) {
    struct unpack *u = arg;
    int rc = unpack_walk(u);
    if (rc == 0 || rc == ENODATA)
        cc_chan_close(u->line);
    else
        cc_chan_close_err(u->line, rc);
    return NULL;
}

/* Leaves in u->status 0; -1: failed, with a message; or an error that is not reported yet. */
static void *unpack_together(void *arg) {
    struct unpack *u = arg;
    size_t capacity = u->members.capacity + u->pieces.capacity;
    int rc;
    u->alone = false;
    u->line = cc_chan_create_ex(&(CCChanConfig){.ordered = true, .capacity = capacity, .name = "line"});
    u->status = u->line == NULL ? ENOMEM : 0;
    if (u->status != 0) return NULL;
    CC_NURSERY(nursery, .name = "unpack", .result = &rc) {
        u->nursery = nursery;
        u->status = source_read_ahead(&u->source, nursery);
        if (u->status == 0) u->status = cc_nursery_spawn(nursery, walk_on, u);
        if (u->status == 0) u->status = write_pieces(u);
        cc_nursery_cancel(nursery); /* What follows the end of the data need not be read. */
    }
    if (u->status >= 0 && rc != 0 && rc != ECANCELED) u->status = rc;
    cc_chan_free(u->line);
    return NULL;
}

/* 0, or an errno value. */
static int prepare(struct unpack *u) {
    /* With one worker the next member is decoded while one is written. With several it is better to wait: each member
     * takes memory for itself and its data. */
    const struct options *o = u->job->options;
    size_t workers = o->workers, members = workers > 1 ? workers : 2;
    int rc = pool_open(&u->pieces, PIECES(o), make_piece, free_piece, &u->pieces, "pieces");
    if (rc == 0) rc = pool_open(&u->members, members, make_member, free_piece, &u->members, "members");
    /* A walk through a stream has one more than it has workers, and what it returns may be read by the next walk. */
    if (rc == 0) rc = pool_open(&u->scouts, 2 * workers + 5, scout_make, scout_free, &u->scouts, "scouts");
    if (rc == 0) rc = source_open(&u->source, u->job);
    u->decoder = malloc(sizeof *u->decoder);
    u->taken = calloc(members, sizeof(struct piece *));
    return rc == 0 && (u->taken == NULL || u->decoder == NULL) ? ENOMEM : rc;
}

/* The sizes in a member's header were wrong: returns what was read after that header (EXPAND-2). 0, or an errno
 * value. */
static int go_back(struct unpack *u) {
    size_t capacity = u->members.capacity, count = 0;
    struct iovec *parts = calloc(capacity + 1, sizeof *parts);
    int rc = parts == NULL ? ENOMEM : source_resume(&u->source);
    for (size_t i = u->right_count; i < u->taken_count; i++) {
        const struct piece *piece = u->taken[i % capacity];
        size_t skip = i == u->right_count ? piece->header_size : 0;
        if (rc == 0) parts[count++] = (struct iovec){piece->packed + skip, piece->read - skip};
    }
    if (rc == 0) parts[count++] = (struct iovec){u->header, u->header_size};
    if (rc == 0) rc = source_return(&u->source, parts, count);
    free(parts);
    u->alone = u->no_hints = u->in_member = true;
    u->member.member_size = 0;
    u->taken_count = u->right_count;
    u->unverified = (CCWaitGroup){0};
    return rc;
}

/* Leaves in u->status what unpack_together does. */
static void unpack_once(struct unpack *u) {
    u->status = unpack_walk(u);
    if (u->status == ENODATA) u->status = 0;
    if (u->status == UNPACK_ON && crew_run(u->job->options, unpack_together, u) != 0) u->status = -1;
}

int unpack_run(struct job *job) {
    struct unpack u = {.job = job, .alone = true, .began_ns = cc_now_ns()};
    u.status = prepare(&u);
    if (u.status == 0) unpack_once(&u);
    if (u.status == UNPACK_AGAIN && u.taken_count > u.right_count) {
        u.status = go_back(&u);
        if (u.status == 0) unpack_once(&u);
    }
    free(u.decoder);
    free(u.taken);
    source_close(&u.source);
    pool_close(&u.scouts);
    pool_close(&u.members);
    pool_close(&u.pieces);
    if (u.status > 0) say_error(job->name, "%s", strerror(u.status));
    return u.status == 0 ? 0 : -1;
}
