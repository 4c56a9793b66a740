/* fibers.c - reads fibers, some hundred at a time.
 *
 * A system call for each word of a fiber takes most of a minute for a million of them. So the records of many are
 * copied, then what all of these point to, each in one call, and then all the state words once more (LOOK-1). Those
 * that have changed meanwhile, or could not be read, are read again one by one. */
#include "runtime.h"

#include "base/utf8.h"
#include "fiber/state.h"
#include "inspect/unwind.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIBERS_MAX = 1 << 22, /* that are shown */
    SLOTS_MAX = 1 << 27,
    AT_ONCE = 256,         /* fibers */
    STACK_MAX = 1 << 16,   /* bytes of a stack that are copied at once; the unwinder reads more on demand */
    STACKS_MAX = 16 << 16, /* bytes of all stacks that are */
    TRIES = 4,
};

/* ---- stacks ---- */

static struct stack_seen **stacks; /* a hash table */
static size_t stack_count, stack_room;

static size_t hash_of(const void *const *frame, unsigned frames) {
    uint64_t hash = frames;
    for (unsigned i = 0; i < frames; i++) hash = (hash ^ (uintptr_t)frame[i]) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 20);
}

static bool is_same(const struct stack_seen *p, const void *const *frame, unsigned frames, struct doubt doubt) {
    return p->frames == frames && p->doubt.guessed == doubt.guessed && p->doubt.cut == doubt.cut &&
           (frames == 0 || memcmp(p->frame, frame, frames * sizeof *frame) == 0);
}

static struct stack_seen **find_same(const void *const *frame, unsigned frames, struct doubt doubt) {
    size_t i = hash_of(frame, frames) & (stack_room - 1);
    while (stacks[i] != NULL && !is_same(stacks[i], frame, frames, doubt)) i = (i + 1) & (stack_room - 1);
    return &stacks[i];
}

static void make_room(void) {
    struct stack_seen **before = stacks;
    size_t room = stack_room;
    stack_room = room != 0 ? 2 * room : 1024;
    stacks = grow(NULL, stack_room, sizeof *stacks);
    memset(stacks, 0, stack_room * sizeof *stacks);
    for (size_t i = 0; i < room; i++)
        if (before[i] != NULL) *find_same(before[i]->frame, before[i]->frames, before[i]->doubt) = before[i];
    free(before);
}

const struct stack_seen *stack_with(const void *const *frame, unsigned frames, struct doubt doubt) {
    if (2 * stack_count >= stack_room) make_room();
    struct stack_seen **at = find_same(frame, frames, doubt);
    if (*at != NULL) return *at;
    struct stack_seen *p = grow(NULL, 1, sizeof *p + frames * sizeof *frame);
    *p = (struct stack_seen){.frames = frames, .doubt = doubt};
    if (frames > 0) memcpy(p->frame, frame, frames * sizeof *frame);
    stack_count++;
    return *at = p;
}

/* ---- since when ---- */

/* The log of a worker's turns (sched/turn_log.h), read once in a round. */
struct log {
    uint64_t round, begin;
    unsigned count;
    uint64_t entry[LOG_MAX][2]; /* turns, time */
};
static struct log *logs[WORKERS_SEEN];
static uint64_t round_now;

static const struct log *log_of(unsigned worker) {
    struct log *log = logs[worker];
    if (log == NULL) {
        log = logs[worker] = grow(NULL, 1, sizeof *log);
        log->round = 0;
    }
    if (log->round == round_now) return log;
    uint64_t at = runtime_worker_at(worker);
    log->round = round_now;
    log->begin = target_word(at + layout.worker_log_begin, 8);
    log->count = 0;
    if (!target_read(log->entry, at + layout.worker_log, layout.log_entries * sizeof log->entry[0])) return log;
    for (unsigned i = 0; i < layout.log_entries; i++)
        if (log->entry[i][1] != 0) memmove(log->entry[log->count++], log->entry[i], sizeof log->entry[0]);
    return log;
}

/* When turn number `turn` of a worker ended. */
static void find_time(unsigned worker, uint64_t turn, uint64_t *from, uint64_t *to) {
    const struct log *log = log_of(worker);
    *from = log->begin;
    *to = UINT64_MAX;
    for (unsigned i = 0; i < log->count; i++) {
        uint64_t turns = log->entry[i][0], time = log->entry[i][1];
        if (turns <= turn && time > *from) *from = time;
        if (turns > turn && time < *to) *to = time;
    }
}

/* ---- some fibers ---- */

/* Fibers that are read together. */
struct look {
    struct fiber_seen *fiber[AT_ONCE];
    const unsigned char *record[AT_ONCE]; /* copied */
    uint64_t word[AT_ONCE];               /* of the state, before and after */
    uint64_t after[AT_ONCE];
    unsigned count;
    struct piece piece[AT_ONCE];
    unsigned of[AT_ONCE]; /* whose piece it is */
    unsigned pieces;
};

static uint64_t field(const unsigned char *record, uint64_t offset, unsigned size) {
    uint64_t value = 0;
    if (offset <= layout.fiber_size - size) memcpy(&value, record + offset, size);
    return value;
}

static bool is_live(const struct fiber_seen *f) {
    return f->state != IS_IDLE && f->state != IS_DONE;
}

static void forget(struct fiber_seen *f) {
    free(f->name);
    free(f->line);
    f->name = f->line = NULL;
    f->stack = NULL;
}

static void ask(struct look *l, unsigned fiber, void *to, uint64_t from, size_t size) {
    l->of[l->pieces] = fiber;
    l->piece[l->pieces++] = (struct piece){.to = to, .from = from, .size = size};
}

static void read_asked(struct look *l) {
    if (l->pieces > 0) target_read_many(l->piece, l->pieces);
}

static void read_record(struct fiber_seen *f, const unsigned char *record) {
    uint64_t word = field(record, layout.fiber_word, 8);
    forget(f);
    *f = (struct fiber_seen){
        .at = f->at,
        .slot = (uint32_t)field(record, layout.fiber_slot, 4),
        .generation = (uint32_t)field(record, layout.fiber_generation, 4) & 0x7fffffffu,
        .state = (enum fiber_is)(word & WORD_STATE),
        .worker = (int)cc__word_owner(word) - 1,
        .site = field(record, layout.fiber_site, 8),
        .fn = field(record, layout.fiber_fn, 8),
        .scope = field(record, layout.fiber_scope, 8) & ~(uint64_t)FIBER_SCOPE_BITS,
        .to = UINT64_MAX,
    };
    if (f->state != IS_PARKED) return;
    f->reason = cc__word_reason(word);
    f->object = field(record, layout.fiber_object, 8);
    if (f->worker >= 0 && f->worker < WORKERS_SEEN)
        find_time((unsigned)f->worker, field(record, layout.fiber_turn, 8), &f->from, &f->to);
}

/* Where the stacks are; the addresses of what else their owners have there are stored. */
static void find_stacks(struct look *l, uint64_t *cold) {
    static unsigned char head[AT_ONCE][STACK_HEAD_MAX];
    uint64_t most = layout.stack_base > layout.stack_log2 ? layout.stack_base : layout.stack_log2;
    size_t size = (layout.stack_cold > most ? layout.stack_cold : most) + 8;
    l->pieces = 0;
    for (unsigned i = 0; i < l->count; i++) {
        uint64_t stack = is_live(l->fiber[i]) ? field(l->record[i], layout.fiber_stack, 8) : 0;
        cold[i] = 0;
        if (stack != 0) ask(l, i, head[i], stack, size);
    }
    read_asked(l);
    for (unsigned k = 0; k < l->pieces; k++) {
        struct fiber_seen *f = l->fiber[l->of[k]];
        const unsigned char *bytes = head[l->of[k]];
        uint64_t base, log2 = bytes[layout.stack_log2];
        memcpy(&base, bytes + layout.stack_base, 8);
        if (!l->piece[k].read || base == 0 || log2 < 12 || log2 > 40 || base > UINT64_MAX - (UINT64_C(1) << log2))
            continue;
        f->started = true;
        f->low = base;
        f->high = base + (UINT64_C(1) << log2);
        memcpy(&cold[l->of[k]], bytes + layout.stack_cold, 8);
    }
}

/* What can be printed of it. */
static void take_name(struct fiber_seen *f, const char *text) {
    char name[NAME_MAX_SEEN];
    memcpy(name, text, layout.name_max);
    name[layout.name_max - 1] = '\0';
    cc__utf8_cut(name);
    if (name[0] != '\0') f->name = strdup(name);
}

static void find_names(struct look *l, const uint64_t *cold) {
    static char name[AT_ONCE][NAME_MAX_SEEN];
    l->pieces = 0;
    for (unsigned i = 0; i < l->count; i++) {
        const struct fiber_seen *f = l->fiber[i];
        if (f->started && cold[i] >= f->low && cold[i] <= f->high - layout.name_max)
            ask(l, i, name[i], cold[i] + layout.cold_name, layout.name_max);
    }
    read_asked(l);
    for (unsigned k = 0; k < l->pieces; k++)
        if (l->piece[k].read) take_name(l->fiber[l->of[k]], name[l->of[k]]);
}

/* Where it stopped. False: it is not known. */
static bool find_registers(const struct fiber_seen *f, const unsigned char *record, struct registers *regs) {
    if (f->state == IS_RUNNING || f->state == IS_PARKING) {
        int tid = f->worker >= 0 && f->worker < WORKERS_SEEN ? runtime_worker((unsigned)f->worker).tid : 0;
        if (tid == 0 || !target_registers(tid, regs)) return false;
    } else {
        if (!layout.context_is_plain) return false;
        *regs = cc__registers_at(field(record, layout.fiber_context + 8, 8), field(record, layout.fiber_context, 8));
        cc__registers_set(regs, CC_REGISTER_FP, field(record, layout.fiber_context + 16, 8));
    }
    uintptr_t sp = regs->value[CC_REGISTER_SP] & ~(uintptr_t)7;
    return sp >= f->low && sp < f->high;
}

static void unwind(struct fiber_seen *f, const struct registers *regs, const struct piece *stack) {
    const void *frames[FRAMES_SEEN];
    struct doubt doubt;
    struct picture p = {.regs = *regs, .low = f->low, .top = f->high, .copied_at = stack->from, .words = stack->to};
    if (stack->read) p.count = stack->size / sizeof p.words[0];
    unsigned n = cc__unwind(&p, frames, FRAMES_SEEN, &doubt);
    f->stack = stack_with(frames, n, doubt);
}

/* The name, which lies at the top of the stack, if that was copied; *cold: it need not be read any more. */
static void find_name_in(struct fiber_seen *f, const struct piece *stack, uint64_t *cold) {
    uint64_t at = *cold + layout.cold_name - stack->from;
    if (!stack->read || *cold < stack->from || at > stack->size || stack->size - at < layout.name_max) return;
    take_name(f, (const char *)stack->to + at);
    *cold = 0;
}

/* Unwinds them; the part of each stack that it will need is copied first. */
static void find_frames(struct look *l, uint64_t *cold) {
    static uintptr_t words[STACKS_MAX / sizeof(uintptr_t)];
    static struct registers regs[AT_ONCE];
    for (unsigned i = 0; i < l->count;) {
        size_t used = 0;
        l->pieces = 0;
        for (; i < l->count && used + STACK_MAX <= sizeof words; i++) {
            const struct fiber_seen *f = l->fiber[i];
            if (!f->started || !find_registers(f, l->record[i], &regs[i])) continue;
            uintptr_t sp = regs[i].value[CC_REGISTER_SP] & ~(uintptr_t)7;
            size_t size = f->high - sp < STACK_MAX ? f->high - sp : STACK_MAX;
            ask(l, i, (char *)words + used, sp, size & ~(size_t)7);
            used += size & ~(size_t)7;
        }
        read_asked(l);
        for (unsigned k = 0; k < l->pieces; k++) {
            unwind(l->fiber[l->of[k]], &regs[l->of[k]], &l->piece[k]);
            find_name_in(l->fiber[l->of[k]], &l->piece[k], &cold[l->of[k]]);
        }
    }
}

/* Whether the state words are the same as before. */
static void check_words(struct look *l) {
    l->pieces = 0;
    for (unsigned i = 0; i < l->count; i++) {
        l->after[i] = ~l->word[i];
        ask(l, i, &l->after[i], l->fiber[i]->at + layout.fiber_word, 8);
    }
    read_asked(l);
}

/* Reads all of them once; afterwards `word` and `after` differ for those that have changed. */
static void look_at_all(struct look *l, bool frames) {
    static uint64_t cold[AT_ONCE];
    round_now++;
    for (unsigned i = 0; i < l->count; i++) {
        l->word[i] = field(l->record[i], layout.fiber_word, 8);
        read_record(l->fiber[i], l->record[i]);
    }
    find_stacks(l, cold);
    if (frames) find_frames(l, cold);
    find_names(l, cold);
    check_words(l);
}

bool runtime_look(struct fiber_seen *f, bool frames) { /* LOOK-1 */
    static struct look l;
    unsigned char record[RECORD_MAX];
    bool same = false;
    for (int tries = 0; tries < TRIES && !same; tries++) {
        if (!target_read(record, f->at, layout.fiber_size)) continue;
        l.fiber[0] = f;
        l.record[0] = record;
        l.count = 1;
        look_at_all(&l, frames);
        same = l.word[0] == l.after[0] || !is_live(f);
    }
    if (!is_live(f)) return false;
    if (same) return true;
    f->moves = true;
    f->stack = NULL;
    f->object = f->scope = 0;
    return true;
}

/* ---- all fibers ---- */

static uint64_t unread;

uint64_t runtime_unread(void) {
    return unread;
}

/* Those among some records: `from` is where the first of these is. */
static size_t take_some(const unsigned char *memory, uint64_t from, uint32_t n, bool frames,
                        struct fiber_seen *fibers) {
    static struct look l;
    size_t kept = 0;
    l.count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const unsigned char *record = memory + i * layout.fiber_size;
        uint64_t state = field(record, layout.fiber_word, 8) & WORD_STATE;
        if (state == IS_IDLE || state >= IS_DONE) continue;
        fibers[l.count] = (struct fiber_seen){.at = from + i * layout.fiber_size};
        l.fiber[l.count] = &fibers[l.count];
        l.record[l.count++] = record;
    }
    look_at_all(&l, frames);
    for (unsigned i = 0; i < l.count; i++) {
        bool lives = l.word[i] == l.after[i] || runtime_look(&fibers[i], frames);
        if (lives)
            fibers[kept++] = fibers[i];
        else
            forget(&fibers[i]);
    }
    return kept;
}

/* The fibers of one slab. */
static void take_slab(uint64_t slab, uint32_t records, bool frames, struct fiber_seen **fibers, size_t *count) {
    static size_t room;
    unsigned char *memory = grow(NULL, AT_ONCE, layout.fiber_size);
    if (*count == 0) room = 0;
    for (uint32_t first = 0; first < records && *count < FIBERS_MAX; first += AT_ONCE) {
        uint32_t n = records - first < AT_ONCE ? records - first : AT_ONCE;
        uint64_t from = slab + first * layout.fiber_size;
        if (room - *count < AT_ONCE) *fibers = grow(*fibers, room = 2 * room + AT_ONCE, sizeof **fibers);
        if (target_read(memory, from, n * layout.fiber_size))
            *count += take_some(memory, from, n, frames, *fibers + *count);
        else
            unread += n;
    }
    free(memory);
}

struct fiber_seen *runtime_fibers(size_t *count, bool frames) {
    struct fiber_seen *fibers = NULL;
    uint64_t slabs = target_word(layout.pool + layout.pool_slabs, 8);
    uint64_t size = target_word(target_word(layout.pool + layout.pool_size, 8), 4);
    uint64_t records = target_word(layout.pool + layout.pool_records, 4);
    *count = 0;
    unread = 0;
    if (records == 0 || size > SLOTS_MAX) return NULL;
    for (uint64_t first = 0; first < size; first += records) {
        uint64_t slab = target_word(slabs + first / records * 8, 8);
        if (slab == 0) break;
        take_slab(slab, (uint32_t)(size - first < records ? size - first : records), frames, &fibers, count);
    }
    return fibers;
}

void runtime_free(struct fiber_seen *fibers, size_t count) {
    for (size_t i = 0; i < count; i++) forget(&fibers[i]);
    free(fibers);
}
