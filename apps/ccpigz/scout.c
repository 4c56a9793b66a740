/* scout.c - the parts of a stream, the tasks that decode them ahead, and the walk that puts them together; the idea and
 * the rules are in scout.h. */
#include "scout.h"
#include "check.h"
#include "find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How far a scout may read into the next part, to come to the end of a block. */
#ifndef SCOUT_OVERLAP
#define SCOUT_OVERLAP ((size_t)64 * 1024)
#endif
#define OVERLAP SCOUT_OVERLAP
#define CELLS (6 * SCOUT_PART)
#define PLACEHOLDER 0x8000u

struct scout {
    struct pool *pool;
    struct chunk chunk; /* the unused rest of a part is returned to the source as this */
    uint8_t *room;      /* DECODE_REST, the part, OVERLAP */
    uint16_t *window;   /* DECODE_WINDOW cells, and the others behind them */
    uint16_t *cells;
    size_t part, size; /* bytes; with what is there of the next part */
    bool last;         /* the input ends with `size` */
    CCTask task;
    bool scouted; /* it has had a task */
    atomic_uint users;
    size_t start; /* the bit at which it began; FIND_NONE: nowhere */
    uint16_t *out;
    enum decode_status status;
    uint8_t meaning[65536]; /* of a cell: a byte is itself, a placeholder is what the window holds */
    struct decoder decoder;
};

static void drop(void *scout) { /* SCOUT-2 */
    struct scout *s = scout;
    if (atomic_fetch_sub(&s->users, 1) == 1) pool_give(s->pool, s);
}

void *scout_make(void *context) {
    struct scout *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->pool = context;
    s->room = malloc(DECODE_REST + SCOUT_PART + OVERLAP);
    s->window = malloc((DECODE_WINDOW + CELLS) * sizeof *s->window);
    if (s->room == NULL || s->window == NULL) {
        scout_free(s);
        return NULL;
    }
    for (unsigned i = 0; i < 256; i++) s->meaning[i] = (uint8_t)i;
    s->cells = s->window + DECODE_WINDOW;
    s->chunk.data = s->room + DECODE_REST;
    s->chunk.release = drop;
    s->chunk.owner = s;
    return s;
}

void scout_free(void *item) {
    struct scout *s = item;
    free(s->room);
    free(s->window);
    free(s);
}

/* ---- the scout's own task ---- */

/* The bit at which the decoder stands, from the part's beginning. Below 0: a header that begins with the last bits of
 * what was read before the part. */
static ptrdiff_t position(const struct scout *s, const struct decoder *d) {
    return (d->in - s->chunk.data) * 8 - (ptrdiff_t)d->count;
}

/* Decodes from the current position in this part to the first block that begins at or after the byte `stop`; the cells
 * are those of `into`. */
static enum decode_status decode_to(struct scout *s, struct decoder *d, size_t stop, struct scout *into) { /* SCOUT-3 */
    d->in_end = s->chunk.data + s->size;
    d->last = s->last;
    d->stop = true;
    d->stop_at = s->chunk.data + stop;
    return decode_cells(d, into->window, &into->out, into->cells + CELLS);
}

static void *look_ahead(void *arg) {
    struct scout *s = arg;
    struct decoder *d = &s->decoder;
    size_t margin = s->size < FIND_MARGIN ? s->size : FIND_MARGIN;
    size_t to = s->size - margin < s->part ? s->size - margin : s->part;
    for (size_t i = 0; i < DECODE_WINDOW; i++) s->window[i] = (uint16_t)(PLACEHOLDER + i);
    s->start = FIND_NONE;
    for (size_t bit = 0; (bit = find_block(s->chunk.data, bit, to * 8)) != FIND_NONE; bit++) {
        decode_start_at(d, s->chunk.data + bit / 8, bit % 8);
        s->out = s->cells;
        s->status = decode_to(s, d, s->part, s);
        if (s->status == DECODE_BAD) continue;
        s->start = bit;
        break;
    }
    return NULL;
}

/* ---- cells become pieces ---- */

#define STRIDE 32

/* A fixed number of cells at a time, so that the compiler vectorises the loop; true: there are placeholders among them.
 */
static inline bool narrow(uint8_t *restrict to, const uint16_t *restrict from) {
    uint16_t any = 0;
    for (size_t k = 0; k < STRIDE; k++) any |= from[k];
    for (size_t k = 0; k < STRIDE; k++) to[k] = (uint8_t)from[k];
    return any >= PLACEHOLDER;
}

static void put_in(uint8_t *to, const uint16_t *from, size_t n, const uint8_t *meaning) {
    for (size_t k = 0; k < n; k++) to[k] = meaning[from[k]];
}

CC_TASK(resolve, {
    struct scout *scout;
    const uint16_t *cells;
    struct piece *piece;
}) {
    struct piece *piece = self->piece;
    const uint8_t *meaning = self->scout->meaning;
    size_t i = 0;
    for (; i + STRIDE <= piece->size; i += STRIDE) {
        if (narrow(piece->data + i, self->cells + i)) put_in(piece->data + i, self->cells + i, STRIDE, meaning);
    }
    put_in(piece->data + i, self->cells + i, piece->size - i, meaning);
    drop(self->scout);
    return unpack_check(piece);
}

/* Sends the cells to the writer; afterwards `window` holds the last bytes. */
static int send_cells(struct unpack *u, struct scout *s, enum format format, uint8_t *window) {
    size_t total = (size_t)(s->out - s->cells);
    memcpy(s->meaning + PLACEHOLDER, window, DECODE_WINDOW);
    for (size_t at = 0; at < total;) {
        struct piece *piece = unpack_take(&u->pieces, format);
        if (piece == NULL) return unpack_why_none();
        piece->size = total - at < piece->capacity ? total - at : piece->capacity;
        struct resolve_args args = {.scout = s, .cells = s->cells + at, .piece = piece};
        CCTask task;
        atomic_fetch_add(&s->users, 1);
        int rc =
            cc_nursery_spawn_ex(u->nursery, &task, resolve_entry, &args, &(CCSpawnOptions){.arg_size = sizeof args});
        if (rc != 0) {
            atomic_fetch_sub(&s->users, 1);
            return rc;
        }
        at += piece->size; /* The task may have ended, and the piece been returned, when the next call returns. */
        rc = cc_chan_send_task(u->line, &task);
        if (rc != 0) return rc;
    }
    size_t n = total < DECODE_WINDOW ? total : DECODE_WINDOW;
    memmove(window, window + n, DECODE_WINDOW - n);
    for (size_t i = 0; i < n; i++) {
        window[DECODE_WINDOW - n + i] = s->meaning[s->out[(ptrdiff_t)i - (ptrdiff_t)n]];
    }
    return 0;
}

/* ---- the walk ---- */

struct walk {
    struct unpack *u;
    enum format format;
    struct scout **queue; /* in the order of the input */
    size_t count, started;
    bool ended;               /* the source has no more */
    uint64_t began_ns, bytes; /* when the walk began, and what it has gone through since */
    unsigned parts, used;     /* that had a scout, and those of them whose scout was right */
    uint8_t window[DECODE_WINDOW];
};

/* SCOUT-4: scouts are wrong more often than right, or the walk is hardly faster than the decoder alone. */
static bool is_in_vain(const struct walk *w) {
    if (w->parts < SCOUT_TRIAL) return false;
    if (w->used < w->parts / 2) return true;
    double took = (double)(cc_now_ns() - w->began_ns), alone = (double)w->u->alone_ns / (double)w->u->alone_bytes;
    return w->parts % SCOUT_TRIAL == 0 && took > 0.9 * alone * (double)w->bytes;
}

/* Reads parts ahead, and starts the scout of every part whose successor has been read. The first has no scout: where it
 * begins is known. */
static int read_ahead(struct walk *w, size_t most, bool first) {
    while (!w->ended && w->count < most) {
        struct scout *s = pool_take(&w->u->scouts);
        if (s == NULL) return unpack_why_none();
        s->part = s->size = source_read(&w->u->source, s->chunk.data, SCOUT_PART);
        w->ended = s->part < SCOUT_PART;
        s->last = w->ended;
        s->task = (CCTask){0};
        s->scouted = false;
        s->start = FIND_NONE;
        atomic_store(&s->users, 1);
        if (w->count > 0) {
            struct scout *before = w->queue[w->count - 1];
            size_t n = s->part < OVERLAP ? s->part : OVERLAP;
            memcpy(before->chunk.data + before->part, s->chunk.data, n);
            before->size = before->part + n;
            before->last = w->ended && n == s->part;
        }
        w->queue[w->count++] = s;
    }
    size_t ready = w->ended ? w->count : w->count > 0 ? w->count - 1 : 0;
    if (first && w->started == 0) w->started = 1;
    for (; w->started < ready; w->started++) {
        struct scout *s = w->queue[w->started];
        int rc = cc_nursery_spawn_ex(w->u->nursery, &s->task, look_ahead, s, NULL);
        if (rc != 0) return rc;
        s->scouted = true;
    }
    return 0;
}

static int join_scout(struct scout *s) {
    if (s->task.id == 0) return 0;
    bool shield = cc_shield_begin(); /* Its memory must not be freed before it has ended. */
    int rc = cc_task_join(&s->task, NULL);
    cc_shield_end(shield);
    return rc;
}

/* Decodes the part from the current position up to the byte `stop`, with the true window. The part's own cells may hold
 * what its scout has found; so others are filled, as many as it takes. */
static enum decode_status decode_part(struct walk *w, struct scout *s, struct decoder *d, size_t stop, int *rc) {
    enum decode_status status;
    do {
        struct scout *into = pool_take(&w->u->scouts);
        if (into == NULL) {
            *rc = unpack_why_none();
            return DECODE_BAD;
        }
        atomic_store(&into->users, 1);
        for (size_t i = 0; i < DECODE_WINDOW; i++) into->window[i] = w->window[i];
        into->out = into->cells;
        status = decode_to(s, d, stop, into);
        *rc = send_cells(w->u, into, w->format, w->window);
        drop(into);
    } while (*rc == 0 && status == DECODE_FULL);
    return status;
}

/* Processes one part. The decoder starts at `d` in it, and stays where it stopped. */
static enum decode_status walk_part(struct walk *w, struct scout *s, struct decoder *d, int *rc) {
    enum decode_status status = DECODE_STOP;
    if (s->start != FIND_NONE && (ptrdiff_t)s->start > position(s, d) && d->where != AT_END) {
        status = decode_part(w, s, d, s->start / 8, rc);
        if (*rc != 0 || status != DECODE_STOP) return status;
    }
    if (s->start != FIND_NONE && d->where == AT_HEADER && position(s, d) == (ptrdiff_t)s->start) { /* SCOUT-1 */
        w->used++;
        *rc = send_cells(w->u, s, w->format, w->window);
        memcpy(d, &s->decoder, sizeof *d);
        status = s->status;
        if (*rc != 0 || status != DECODE_FULL) return status;
    }
    if (position(s, d) >= (ptrdiff_t)s->part * 8 && d->where == AT_HEADER) return DECODE_STOP;
    return decode_part(w, s, d, s->part, rc);
}

/* Unused input is returned to the source. `end` is where the stream ended, in the memory of the first part;
 * that may be in its overlap, which is the beginning of the second one. */
static int give_back(struct walk *w, const uint8_t *end) {
    struct chunk **chunks = calloc(w->count + 1, sizeof *chunks);
    int rc = chunks == NULL ? ENOMEM : 0;
    size_t used = w->count > 0 && end != NULL ? (size_t)(end - w->queue[0]->chunk.data) : 0;
    for (size_t i = 0; i < w->count; i++) {
        struct scout *s = w->queue[i];
        int joined = join_scout(s);
        if (rc == 0) rc = joined;
        size_t here = used < s->part ? used : s->part;
        used -= here;
        s->chunk.begin = s->chunk.data + here;
        s->chunk.size = s->part;
        if (rc == 0) chunks[i] = &s->chunk;
    }
    if (rc == 0) rc = source_unread(&w->u->source, chunks, w->count);
    free(chunks);
    return rc;
}

const char *scout_expand(struct unpack *u, enum format format, const uint8_t *window, struct piece **last, bool *ended,
                         int *rc) {
    size_t most = (size_t)u->job->options->workers + 1;
    struct walk w = {.u = u, .format = format, .began_ns = cc_now_ns()};
    struct decoder *d = u->decoder;
    const char *error = NULL;
    enum decode_status status = DECODE_STOP;
    memcpy(w.window, window, DECODE_WINDOW);
    w.queue = calloc(most + 1, sizeof *w.queue);
    *rc = w.queue == NULL ? ENOMEM : read_ahead(&w, most, true);
    if (*rc == 0) d->in = w.queue[0]->chunk.data;
    while (*rc == 0) {
        struct scout *s = w.queue[0];
        *rc = join_scout(s);
        if (*rc == 0) status = walk_part(&w, s, d, rc);
        if (*rc != 0) break;
        if (status == DECODE_BAD) error = d->error;
        if (status == DECODE_MORE && s->last) error = unpack_why_short(u);
        if (error != NULL || status == DECODE_END) break;
        w.bytes += s->part;
        w.parts += s->scouted;
        if (status == DECODE_STOP && w.count > 1 && is_in_vain(&w)) break;
        if (w.count < 2) { /* A block begins where the input ends. */
            error = unpack_why_short(u);
            break;
        }
        /* The same byte, in the next part's own memory. */
        d->in = w.queue[1]->chunk.data + (d->in - (s->chunk.data + s->part));
        drop(s);
        memmove(w.queue, w.queue + 1, --w.count * sizeof *w.queue);
        w.started--;
        *rc = read_ahead(&w, most, false);
    }
    bool stands = *rc == 0 && error == NULL; /* The stream has ended at d->in, or a single decoder continues there. */
    int back = give_back(&w, stands ? d->in : NULL);
    if (*rc == 0) *rc = back;
    free(w.queue);
    *last = *rc == 0 ? unpack_take(&u->pieces, format) : NULL;
    if (*rc == 0 && *last == NULL) *rc = unpack_why_none();
    *ended = error != NULL || status == DECODE_END;
    if (*rc == 0) memcpy((*last)->data - DECODE_WINDOW, w.window, DECODE_WINDOW);
    d->stop = false;
    return error;
}
