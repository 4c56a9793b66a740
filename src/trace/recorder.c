/* recorder.c - rings of records: on, off, write, copy; and the table of stacks. */
#include "trace/recorder.h"

#include "arch/cpu.h"
#include "base/mem.h"
#include "os/clock.h"
#include "sync/lock.h"
#include "trace/trace.h"

#include <errno.h>
#include <string.h>

struct recorder cc__recorder;

static struct lock changing; /* start and stop, one at a time; and rings that are added */
static struct lock others;   /* of the last ring */

/* ---- write ---- */

uint64_t cc__record_time(uint64_t turn) {
    bool turns = cc__get(&cc__recorder.recorded) == 1;
    if (turns && turn != RECORD_NO_TURN) return turn;
    if (likely(!turns && cc__get(&cc__recorder.cycles))) return cc__cpu_cycles();
    uint64_t time = cc__clock_now();
    if (!cc__clock_is_simulated()) return time;
    uint64_t last = cc__get(&cc__recorder.last); /* one thread runs at a time */
    if (time <= last) time = last + 1;
    cc__set(&cc__recorder.last, time);
    return time;
}

void cc__record(struct record_ring *r, uint64_t turn, enum record_kind kind, unsigned arg, uint64_t body) {
    cc__record_at(r, cc__record_time(turn), kind, arg, body);
}

void cc__record_text(struct record_ring *r, const char *text) {
    size_t left = strlen(text);
    if (left > UINT8_MAX) left = UINT8_MAX;
    while (left > 0) {
        size_t n = left < RECORD_TEXT ? left : RECORD_TEXT, first = n < 6 ? n : 6;
        uint64_t head = 0, body = 0;
        memcpy(&head, text, first);
        memcpy(&body, text + first, n - first);
        cc__record_write(r, head << RECORD_TIME_SHIFT | (uint64_t)n << RECORD_ARG_SHIFT | REC_TEXT, body);
        text += n;
        left -= n;
    }
}

struct record_ring *cc__recorder_take_others(void) {
    if (!cc__recorder_on()) return NULL;
    cc__lock_take(&others);
    struct record_ring *r = cc__get_acquire(&cc__recorder.ring[RECORDER_OTHERS]); /* pairs with add */
    if (r == NULL) cc__lock_release(&others);
    return r;
}

void cc__recorder_release_others(void) {
    cc__lock_release(&others);
}

/* ---- read ---- */

uint64_t cc__record_copy(struct record_ring *r, struct record_copy *to, uint64_t max, uint64_t *lost) {
    uint64_t begin = cc__get_acquire(&r->begin), end = cc__get_acquire(&r->next), from = begin; /* begin <= end */
    if (end - from > r->size) from = end - r->size;
    if (end - from > max) from = end - max;
    for (uint64_t i = from; i != end; i++) {
        struct record *at = &r->at[i & (r->size - 1)];
        to[i - from] = (struct record_copy){cc__get_acquire(&at->head), cc__get_acquire(&at->body)};
    }
    uint64_t next = cc__get_acquire(&r->next); /* RECORDER-1: record `next` may be half written, over an old one */
    uint64_t valid = next - begin >= r->size ? next - r->size + 1 : begin;
    uint64_t torn = valid > from ? valid - from : 0;
    if (torn > end - from) torn = end - from;
    memmove(to, to + torn, (end - from - torn) * sizeof *to);
    *lost = from + torn - begin;
    return end - from - torn;
}

/* ---- on and off ---- */

/* Sets the ring up if there is none, or a smaller one. */
static bool add_locked(unsigned index, uint64_t size) { /* RECORDER-2 */
    struct record_ring *before = cc__get(&cc__recorder.ring[index]), *r;
    if (before != NULL && before->size >= size) return true;
    r = cc__mem_alloc_stack(sizeof *r + size * sizeof r->at[0]);
    if (r == NULL) return false;
    memset(r, 0, sizeof *r);
    r->size = size;
    r->mask = (uint32_t)((size - 1) * sizeof r->at[0]);
    r->replaced = before;
    cc__set_release(&cc__recorder.ring[index], r); /* pairs with the loads that look it up */
    return true;
}

static int grow_locked(unsigned workers, uint64_t size) {
    if (size < cc__recorder.size) size = cc__recorder.size;
    bool ok = add_locked(RECORDER_OTHERS, size);
    for (unsigned i = 0; ok && i < workers; i++) ok = add_locked(i, size);
    if (ok) cc__recorder.size = size;
    return ok ? 0 : ENOMEM;
}

static void begin_ring(struct record_ring *r, unsigned level) {
    cc__set_release(&r->begin, cc__get_acquire(&r->next)); /* a reader that sees it sees at least that many records */
    cc__set(&r->turns, level == 0 ? RECORD_NEAR : 0);
}

static void begin_locked(unsigned level) {
    for (unsigned i = 0; i < RECORDER_RINGS; i++) {
        struct record_ring *r = cc__get(&cc__recorder.ring[i]);
        if (r != NULL) begin_ring(r, level);
    }
    cc__set(&cc__recorder.cycles, cc__clock_counts_cycles());
    cc__set(&cc__recorder.since_ns, cc__clock_now());
    cc__set(&cc__recorder.since_cycles, cc__cpu_cycles());
    cc__set(&cc__recorder.until_ns, 0);
    cc__set(&cc__recorder.last, 0);
    cc__set(&cc__recorder.recorded, level + 1);
    cc__set_release(&cc__recorder.level, level + 1);
}

int cc__recorder_start(unsigned level, unsigned workers, uint64_t size) {
    cc__lock_take(&changing);
    int rc = cc__recorder_on() ? EALREADY : grow_locked(workers, size);
    if (rc == 0) begin_locked(level);
    if (rc == 0) cc__trace_recording(true); /* under the lock, so ordered with another thread's stop */
    cc__lock_release(&changing);
    return rc;
}

int cc__recorder_restart(unsigned workers) {
    cc__lock_take(&changing);
    int rc = cc__recorder_on() ? grow_locked(workers, 0) : 0;
    if (rc == 0 && cc__recorder_on()) begin_locked(cc__recorder_level());
    cc__lock_release(&changing);
    return rc;
}

bool cc__recorder_stop(void) {
    cc__lock_take(&changing);
    bool was_on = cc__swap(&cc__recorder.level, 0) != 0;
    if (was_on) cc__set(&cc__recorder.until_ns, cc__clock_now());
    cc__trace_recording(false);
    cc__lock_release(&changing);
    return was_on;
}

struct record_ring *cc__recorder_ring(unsigned worker) {
    if (!cc__recorder_on()) return NULL;
    cc__lock_take(&changing);
    bool there = cc__get(&cc__recorder.ring[worker]) != NULL;
    if (!there && add_locked(worker, cc__recorder.size))
        begin_ring(cc__get(&cc__recorder.ring[worker]), cc__recorder_level());
    struct record_ring *r = cc__recorder_on() ? cc__get(&cc__recorder.ring[worker]) : NULL;
    cc__lock_release(&changing);
    return r;
}

void cc__record_ring_name(struct record_ring *r, const char *island) {
    uint64_t words[2] = {0};
    memcpy(words, island, strnlen(island, sizeof words - 1));
    for (unsigned i = 0; i < array_len(words); i++) cc__set(&r->island[i], words[i]);
}

void cc__record_ring_named(struct record_ring *r, char island[RECORD_ISLAND_NAME]) {
    for (unsigned i = 0; i < 2; i++) {
        uint64_t word = cc__get(&r->island[i]);
        memcpy(island + 8 * i, &word, sizeof word);
    }
    island[RECORD_ISLAND_NAME - 1] = '\0';
}

/* ---- stacks ---- */

struct recorded_stack {
    unsigned count;
    const void *frame[RECORD_FRAMES];
};

/* An entry of `bucket` is set once, with a release, when the stack is complete. So a stack that is in the table is
 * found without the lock. */
static struct {
    struct lock lock;
    unsigned count;
    _Atomic uint16_t bucket[2 * RECORD_STACKS]; /* open addressing; 0: free */
    struct recorded_stack *_Atomic stack;       /* RECORD_STACKS + 1 of them */
} stacks;

/* The number of the stack; 0: it is not in the table. *at: where it was found, or belongs. */
static unsigned find_stack(const struct recorded_stack *table, const void *const *frames, unsigned count, size_t *at) {
    for (;; ++*at) {
        *at %= array_len(stacks.bucket);
        unsigned number = cc__get_acquire(&stacks.bucket[*at]); /* pairs with add_stack */
        const struct recorded_stack *s = &table[number];
        if (number == 0 || (s->count == count && memcmp(s->frame, frames, count * sizeof frames[0]) == 0))
            return number;
    }
}

static CC_NOINLINE unsigned add_stack(const void *const *frames, unsigned count, size_t at) {
    unsigned number = 0;
    cc__lock_take(&stacks.lock);
    struct recorded_stack *table = cc__get(&stacks.stack);
    if (table == NULL) {
        table = cc__mem_alloc((RECORD_STACKS + 1) * sizeof *table);
        cc__set_release(&stacks.stack, table); /* pairs with cc__record_stack */
    }
    if (table != NULL) number = find_stack(table, frames, count, &at);
    if (table != NULL && number == 0 && stacks.count < RECORD_STACKS) {
        number = ++stacks.count;
        table[number].count = count;
        memcpy(table[number].frame, frames, count * sizeof frames[0]);
        cc__set_release(&stacks.bucket[at], (uint16_t)number); /* pairs with find_stack */
    }
    cc__lock_release(&stacks.lock);
    return number;
}

unsigned cc__record_stack(const void *const *frames, unsigned count) {
    uint64_t hash = count;
    for (unsigned i = 0; i < count; i++) hash = (hash ^ (uintptr_t)frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32);
    const struct recorded_stack *table = cc__get_acquire(&stacks.stack); /* pairs with add_stack */
    unsigned number = table != NULL ? find_stack(table, frames, count, &at) : 0;
    return number != 0 ? number : add_stack(frames, count, at);
}

unsigned cc__record_stack_frames(unsigned number, const void **frames) {
    unsigned count = 0;
    cc__lock_take(&stacks.lock);
    if (number != 0 && number <= stacks.count) {
        const struct recorded_stack *s = &cc__get(&stacks.stack)[number];
        count = s->count;
        memcpy(frames, s->frame, count * sizeof frames[0]);
    }
    cc__lock_release(&stacks.lock);
    return count;
}

void cc__recorder_forget(void) {
    changing = others = stacks.lock = (struct lock){0};
}
