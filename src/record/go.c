/* go.c - a history as an execution trace of Go, in the format of Go 1.22, which all later tools read.
 *
 * A fiber is a goroutine, a worker a P and its M, a nursery a task. A fiber that was started in a nursery is in a
 * region of that task as long as it lives. The threads that are not workers are one goroutine, on a P of its own.
 *
 * A trace is a header and batches. A batch has events of one thread, with times as differences; others hold the clock's
 * frequency, the stacks and the strings. The reader orders events of different threads by each goroutine's sequence
 * numbers, not by their times, and rejects inconsistent traces.
 */
#include "record/record.h"

#include "base/mem.h"
#include "fiber/state.h"
#include "record/go_events.h"

#include <errno.h>
#include <string.h>

enum { GO_RUNNABLE = 1, GO_RUNNING = 2, GO_WAITING = 4, PROC_RUNNING = 1 };
enum { GENERATION = 1, BATCH_MAX = 60000 };
#define NO_THREAD UINT64_MAX

struct writer {
    struct history *h;
    struct vec *out, batch;
    struct vec stacks;            /* of struct stack_entry */
    uint64_t thread, begin, time; /* of the batch: its thread, its start, its last event */
    uint32_t lane;
    uint32_t *by_frames; /* RECORD_STACKS + 1: stack number by the recorder's number; 0: not assigned yet */
};

/* The frames of one stack: places. */
struct stack_entry {
    unsigned count;
    uint32_t places[RECORD_FRAMES];
};

static uint64_t goroutine(uint32_t number) {
    return number + 1; /* 0 is no goroutine */
}

static uint64_t processor(struct history *h, uint32_t lane) {
    int worker = cc__lane(h, lane)->worker;
    return worker >= 0 ? (uint64_t)worker : RECORDER_OTHERS;
}

/* ---- batches ---- */

static void put_batch(struct writer *w, uint64_t thread, uint64_t time, const struct vec *data) {
    cc__bytes_byte(w->out, EV_EVENT_BATCH);
    cc__bytes_varint(w->out, GENERATION);
    cc__bytes_varint(w->out, thread);
    cc__bytes_varint(w->out, time);
    cc__bytes_varint(w->out, data->count);
    cc__bytes_add(w->out, data->at, data->count);
    w->out->failed |= data->failed;
}

static void flush(struct writer *w) {
    if (w->batch.count > 0) put_batch(w, w->thread, w->begin, &w->batch);
    w->batch.count = 0;
}

static void event(struct writer *w, uint64_t time, unsigned type, unsigned n, const uint64_t *args) {
    if (w->batch.count > BATCH_MAX) flush(w);
    if (w->batch.count == 0) w->begin = w->time = time;
    cc__bytes_byte(&w->batch, type);
    cc__bytes_varint(&w->batch, time - w->time);
    w->time = time;
    for (unsigned i = 0; i < n; i++) cc__bytes_varint(&w->batch, args[i]);
}
#define EVENT_ARGS(...)                                                                          \
    (unsigned)(sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)), (const uint64_t[]) { \
        __VA_ARGS__                                                                              \
    }

/* ---- stacks ---- */

static uint32_t add_stack(struct writer *w, const uint32_t *places, unsigned n) {
    if (n == 0) return 0;
    for (size_t i = 0; i < w->stacks.count; i++) {
        const struct stack_entry *e = cc__vec_at(struct stack_entry, &w->stacks, i);
        if (e->count == n && memcmp(e->places, places, n * sizeof *places) == 0) return (uint32_t)i + 1;
    }
    struct stack_entry *e = cc__vec_add(&w->stacks, sizeof *e);
    if (e == NULL) return 0;
    e->count = n;
    memcpy(e->places, places, n * sizeof *places);
    return (uint32_t)w->stacks.count;
}

static uint32_t stack_of_place(struct writer *w, uint32_t place) {
    return place != NOBODY ? add_stack(w, &place, 1) : 0;
}

static uint32_t stack_of_wait(struct writer *w, const struct step *s) {
    if (s->stack == 0 || s->stack > RECORD_STACKS) return 0;
    if (w->by_frames[s->stack] == 0) {
        uint32_t places[RECORD_FRAMES];
        unsigned n = cc__history_frames(w->h, s, places);
        w->by_frames[s->stack] = add_stack(w, places, n) + 1;
    }
    return w->by_frames[s->stack] - 1;
}

static void put_stacks(struct writer *w) {
    struct vec data = {0};
    for (size_t i = 0; i < w->stacks.count; i++) {
        const struct stack_entry *e = cc__vec_at(struct stack_entry, &w->stacks, i);
        if (data.count == 0) cc__bytes_byte(&data, EV_STACKS);
        cc__bytes_byte(&data, EV_STACK);
        cc__bytes_varint(&data, i + 1);
        cc__bytes_varint(&data, e->count);
        for (unsigned k = 0; k < e->count; k++) {
            const struct code_place *p = cc__names_place_at(&w->h->names, e->places[k]);
            cc__bytes_varint(&data, e->places[k] + 1); /* instead of the address, which differs from run to run */
            cc__bytes_varint(&data, p->function);
            cc__bytes_varint(&data, p->file);
            cc__bytes_varint(&data, p->line);
        }
        if (data.count > BATCH_MAX || i + 1 == w->stacks.count) {
            put_batch(w, NO_THREAD, w->h->begin, &data);
            data.count = 0;
        }
    }
    cc__vec_free(&data);
}

static void put_strings(struct writer *w) {
    struct vec data = {0};
    size_t n = w->h->names.strings.count;
    for (size_t i = 1; i < n; i++) {
        const char *text = cc__names_text(&w->h->names, (uint32_t)i);
        if (data.count == 0) cc__bytes_byte(&data, EV_STRINGS);
        cc__bytes_byte(&data, EV_STRING);
        cc__bytes_varint(&data, i);
        cc__bytes_varint(&data, strlen(text));
        cc__bytes_add(&data, text, strlen(text));
        if (data.count > BATCH_MAX || i + 1 == n) {
            put_batch(w, NO_THREAD, w->h->begin, &data);
            data.count = 0;
        }
    }
    cc__vec_free(&data);
}

/* ---- events ---- */

static uint32_t string(struct writer *w, const char *text) {
    return cc__names_string(&w->h->names, text);
}

/* The states at the beginning of the trace: all fibers that exist, on the first thread; and that this P runs. */
static void put_status(struct writer *w) {
    struct history *h = w->h;
    event(w, h->begin, EV_PROC_STATUS, EVENT_ARGS(processor(h, w->lane), PROC_RUNNING));
    for (uint32_t i = 0; i < h->strands.count; i++) {
        const struct strand *s = cc__strand(h, i);
        bool threads = i == 0;
        if (!s->existed || (threads ? cc__lane(h, w->lane)->worker >= 0 : w->lane != 0)) continue;
        unsigned status = s->initial == STRAND_WAITING ? GO_WAITING : GO_RUNNABLE;
        if (threads)
            event(w, h->begin, EV_GO_STATUS, EVENT_ARGS(goroutine(i), w->thread, GO_RUNNING));
        else
            event(w, h->begin, EV_GO_STATUS, EVENT_ARGS(goroutine(i), NO_THREAD, status));
    }
}

/* Why a fiber waits, in the strings by which Go's tools classify blocking. */
static const char *reason_text(unsigned reason) {
    switch (reason) {
    case PARK_QUEUE:
        return "channel";
    case PARK_SLEEP:
    case PARK_IO:
    case PARK_FILE:
    case PARK_SELECT:
    case PARK_PROCESS:
        return cc__park_name(reason);
    case PARK_NONE:
        return "wait";
    default: {
        static const char *const names[] = {
#define REASON(id, name, object) "sync " name,
#include "fiber/reasons.def"
        };
        return reason < array_len(names) ? names[reason] : "wait";
    }
    }
}

static void put_step(struct writer *w, const struct step *s) {
    struct history *h = w->h;
    const struct strand *f = s->fiber != NOBODY ? cc__strand(h, s->fiber) : NULL;
    uint64_t t = s->time;
    switch ((enum step_kind)s->kind) {
    case STEP_CREATE:
        event(w, t, EV_GO_CREATE,
              EVENT_ARGS(goroutine(s->fiber), stack_of_place(w, f->fn), stack_of_place(w, f->site)));
        break;
    case STEP_START:
        event(w, t, EV_GO_START, EVENT_ARGS(goroutine(s->fiber), s->sequence));
        if (s->text != 0) event(w, t, EV_GO_LABEL, EVENT_ARGS(s->text));
        if (s->sequence == 1 && f->scope != 0) event(w, t, EV_USER_REGION_BEGIN, EVENT_ARGS(f->scope, f->label, 0));
        break;
    case STEP_BLOCK:
        event(w, t, EV_GO_BLOCK, EVENT_ARGS(string(w, reason_text(s->reason)), stack_of_wait(w, s)));
        break;
    case STEP_STOP:
        event(w, t, EV_GO_STOP, EVENT_ARGS(string(w, "yield"), 0));
        break;
    case STEP_UNBLOCK:
        event(w, t, EV_GO_UNBLOCK, EVENT_ARGS(goroutine(s->fiber), s->sequence, 0));
        break;
    case STEP_END:
        if (f->scope != 0 && f->depth == 0) event(w, t, EV_USER_REGION_END, EVENT_ARGS(f->scope, f->label, 0));
        event(w, t, EV_GO_DESTROY, 0, NULL);
        break;
    case STEP_NOTE:
    case STEP_EVENT:
        if (f == NULL) break; /* the event needs a goroutine */
        event(w, t, EV_USER_LOG, EVENT_ARGS(f->scope, string(w, s->kind == STEP_NOTE ? "note" : "ccc"), s->text, 0));
        break;
    case STEP_LOST:
        event(w, t, EV_USER_LOG, EVENT_ARGS(0, string(w, "ccc"), s->text, 0));
        break;
    case STEP_RUNS:
        event(w, t, EV_USER_LOG, EVENT_ARGS(f->scope, string(w, "ccc"), string(w, "still runs"), 0));
        break;
    case STEP_REGION:
        event(w, t, EV_USER_REGION_BEGIN, EVENT_ARGS(s->object, s->text, 0));
        break;
    case STEP_REGION_END:
        event(w, t, EV_USER_REGION_END, EVENT_ARGS(s->object, s->text, 0));
        break;
    case STEP_SCOPE:
        if (f != NULL)
            event(w, t, EV_USER_TASK_BEGIN,
                  EVENT_ARGS(s->object, cc__scope_named(h, s->object)->parent, cc__scope_named(h, s->object)->name, 0));
        break;
    case STEP_SCOPE_END:
        if (f != NULL) event(w, t, EV_USER_TASK_END, EVENT_ARGS(s->object, 0));
        break;
    }
}

int cc__record_go(struct history *h, struct vec *out) {
    static const char header[16] = "go 1.22 trace";
    struct writer w = {.h = h, .out = out};
    struct vec frequency = {0};
    w.by_frames = cc__mem_alloc((RECORD_STACKS + 1) * sizeof *w.by_frames); /* too large for a fiber's stack */
    if (w.by_frames == NULL) return ENOMEM;
    cc__bytes_add(out, header, sizeof header);
    for (w.lane = 0; w.lane < h->lanes.count; w.lane++) {
        w.thread = processor(h, w.lane) + 1;
        put_status(&w);
        for (size_t i = 0; i < h->steps.count; i++) {
            struct step s = *cc__step(h, i);
            if (s.lane == w.lane) put_step(&w, &s);
        }
        flush(&w);
    }
    cc__bytes_byte(&frequency, EV_FREQUENCY);
    cc__bytes_varint(&frequency, UINT64_C(1000000000));
    put_batch(&w, NO_THREAD, h->begin, &frequency);
    put_stacks(&w);
    put_strings(&w);
    bool failed = w.batch.failed || w.stacks.failed || h->names.strings.failed;
    cc__vec_free(&frequency);
    cc__vec_free(&w.batch);
    cc__vec_free(&w.stacks);
    cc__mem_free(w.by_frames);
    return failed || out->failed ? ENOMEM : 0;
}
