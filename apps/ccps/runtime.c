/* runtime.c - reads the runtime's data, by offsets that the library's table has. */
#include "runtime.h"

#include "fiber/state.h"
#include "inspect/unwind.h"
#include "modules.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FIBERS_MAX = 1 << 22, /* that are shown */
    SLOTS_MAX = 1 << 27,
    RECORD_MAX = 1024,   /* bytes of a fiber's record */
    STACK_MAX = 1 << 16, /* bytes of a stack that are copied at once; the unwinder asks for what is above */
    LOG_MAX = 1024,
    TRIES = 4,
};

struct layout layout;

/* ---- the table ---- */

static struct {
    unsigned found, other;
    uint32_t version; /* of one that we do not know */
    bool started;
} search;

/* LAYOUT-1; of several copies of the library the one that runs. */
static void consider(uint64_t at, size_t size) {
    struct layout seen;
    int32_t offset;
    if (size != sizeof offset || !target_read(&offset, at, sizeof offset)) return;
    uint64_t table = at + (uint64_t)(int64_t)offset;
    if (!target_read(&seen, table, offsetof(struct layout, size) + sizeof seen.size) || seen.magic != LAYOUT_MAGIC)
        return;
    search.found++;
    if (seen.version != LAYOUT_VERSION || seen.size != sizeof seen || !target_read(&seen, table, sizeof seen)) {
        search.other++;
        search.version = seen.version;
        return;
    }
    bool started = target_word(seen.sched + seen.sched_workers, 8) != 0;
    if (started || !search.started) layout = seen;
    search.started = search.started || started;
}

void runtime_find(void) {
    modules_find();
    modules_each_note("ccc", LAYOUT_NOTE, consider);
    if (search.found == 0) fail("%s: there is no libccc in it, or one without a table for ccps", target_name());
    if (layout.magic == 0)
        fail("%s: its libccc describes itself in version %u, and this program knows version %u: use the one that was "
             "built with that libccc",
             target_name(), search.version, (unsigned)LAYOUT_VERSION);
    if (!search.started) fail("%s: its runtime is not running", target_name());
    if (layout.fiber_size < 64 || layout.fiber_size > RECORD_MAX || layout.log_entries > LOG_MAX ||
        layout.name_max > NAME_MAX_SEEN || layout.chan_name_max > NAME_MAX_SEEN ||
        layout.process_name_max > NAME_MAX_SEEN || layout.island_name_max > NAME_MAX_SEEN ||
        layout.island_name_max == 0 || layout.name_max == 0 || layout.chan_name_max == 0 ||
        layout.process_name_max == 0 || layout.worker_size > 1 << 20)
        fail("%s: the table of its libccc is damaged", target_name());
}

/* ---- workers ---- */

static uint64_t worker_at(unsigned index) {
    return target_word(layout.sched + layout.sched_workers, 8) + index * layout.worker_size;
}

unsigned runtime_from(unsigned i) {
    uint64_t max = target_word(layout.sched + layout.sched_max, 4);
    uint64_t islands = target_word(layout.sched + layout.sched_islands, 4);
    if (i >= WORKERS_SEEN || i < target_word(layout.sched + layout.sched_count, 4)) return i;
    uint64_t next = i < max ? max : i;
    return next < max + islands && next < WORKERS_SEEN ? (unsigned)next : WORKERS_SEEN;
}

void runtime_island(int worker, char *name) {
    name[0] = '\0';
    if (worker >= 0 && worker < WORKERS_SEEN && (unsigned)worker >= target_word(layout.sched + layout.sched_max, 4))
        target_text(worker_at((unsigned)worker) + layout.worker_island, name, layout.island_name_max);
}

unsigned runtime_open(void) {
    return (unsigned)target_word(layout.sched + layout.sched_open, 4);
}

static uint32_t count_timers(unsigned index) {
    uint64_t heaps = target_word(target_word(layout.timers + layout.timers_heaps, 8), 8);
    uint64_t size = target_word(layout.timers + layout.timers_size, 8);
    return heaps == 0
               ? 0
               : (uint32_t)target_word(heaps + index * size + target_word(layout.timers + layout.timers_count, 8), 4);
}

struct worker_seen runtime_worker(unsigned index) {
    uint64_t at = worker_at(index);
    return (struct worker_seen){
        .current = target_word(at + layout.worker_current, 8),
        .turns = target_word(at + layout.worker_turns, 8),
        .polled_at = target_word(at + layout.worker_polled_at, 8),
        .queued = (uint32_t)target_word(at + layout.worker_queued, 4),
        .inbox = (uint32_t)target_word(at + layout.worker_inbox_len, 4),
        .timers = count_timers(index),
        .asleep = target_word(at + layout.worker_asleep, 1) != 0,
        .open = target_word(at + layout.worker_life, 4) == layout.worker_is_open,
        .tid = (int)target_word(at + layout.worker_tid, 4),
    };
}

uint64_t runtime_global_queue(void) {
    uint64_t n = target_word(layout.sched + layout.sched_overflow, 8);
    uint64_t count = target_word(layout.sched + layout.sched_ring_count, 4);
    for (uint64_t i = 0; i < count && i < 64; i++) {
        uint64_t ring = layout.sched + layout.sched_rings + i * layout.ring_size;
        uint64_t head = target_word(ring + layout.ring_head, 8), tail = target_word(ring + layout.ring_tail, 8);
        if (tail > head) n += tail - head;
    }
    return n;
}

struct counts runtime_counts(unsigned index) {
    uint64_t at = worker_at(index);
    struct counts c = {
        .switches = target_word(at + layout.worker_turns, 8),
        .spawned = target_word(at + layout.worker_spawned, 8),
        .ended = target_word(at + layout.worker_ended, 8),
        .wakes_local = target_word(at + layout.worker_wakes_local, 8),
        .wakes_remote = target_word(at + layout.worker_wakes_remote, 8),
        .timers_fired = target_word(at + layout.worker_timers_fired, 8),
        .steals = target_word(at + layout.worker_steals, 8),
        .shared = target_word(at + layout.worker_shared, 8),
        .sleeps = target_word(at + layout.worker_sleeps, 8),
    };
    if (!target_read(c.parks, at + layout.worker_parks, sizeof c.parks)) memset(c.parks, 0, sizeof c.parks);
    return c;
}

uint64_t runtime_foreign_spawned(void) {
    return target_word(layout.sched + layout.sched_foreign_spawned, 8);
}

uint64_t runtime_active(void) {
    uint64_t ended = target_word(layout.sched + layout.sched_foreign_ended, 8), spawned = runtime_foreign_spawned();
    for_workers(i) {
        struct counts c = runtime_counts(i);
        ended += c.ended;
        spawned += c.spawned;
    }
    return spawned > ended ? spawned - ended : 0;
}

/* ---- time ---- */

bool runtime_now_is_exact(void) {
    return target_pid() != 0 && target_word(layout.sched + layout.sched_simulated, 1) == 0;
}

uint64_t runtime_now(void) {
    struct timespec now;
    uint64_t last = 0;
    if (runtime_now_is_exact()) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
    for_workers(i) {
        uint64_t polled = runtime_worker(i).polled_at;
        if (polled > last) last = polled;
    }
    return last;
}

/* When turn number `turn` of a worker ended (sched/turn_log.h). */
static void find_time(unsigned worker, uint64_t turn, uint64_t *from, uint64_t *to) {
    static uint64_t log[LOG_MAX][2];
    uint64_t at = worker_at(worker);
    *from = target_word(at + layout.worker_log_begin, 8);
    *to = UINT64_MAX;
    if (!target_read(log, at + layout.worker_log, layout.log_entries * sizeof log[0])) return;
    for (unsigned i = 0; i < layout.log_entries; i++) {
        uint64_t turns = log[i][0], time = log[i][1];
        if (time == 0) continue;
        if (turns <= turn && time > *from) *from = time;
        if (turns > turn && time < *to) *to = time;
    }
}

/* ---- fibers ---- */

static uint64_t field(const unsigned char *record, uint64_t offset, unsigned size) {
    uint64_t value = 0;
    if (offset <= layout.fiber_size - size) memcpy(&value, record + offset, size);
    return value;
}

static void find_stack(struct fiber_seen *f, uint64_t stack) {
    char name[NAME_MAX_SEEN];
    uint64_t log2 = target_word(stack + layout.stack_log2, 1), base = target_word(stack + layout.stack_base, 8);
    uint64_t cold = target_word(stack + layout.stack_cold, 8);
    if (base == 0 || log2 < 12 || log2 > 40 || base > UINT64_MAX - (UINT64_C(1) << log2)) return;
    f->started = true;
    f->low = base;
    f->high = base + (UINT64_C(1) << log2);
    if (cold < f->low || cold > f->high - layout.name_max) return;
    target_text(cold + layout.cold_name, name, layout.name_max);
    f->name = strdup(name);
}

/* Unwinds from there; the part of the stack that it will need is copied first, so that all of it is of one moment. */
static void find_frames(struct fiber_seen *f, const struct registers *regs) {
    static uintptr_t words[STACK_MAX / sizeof(uintptr_t)];
    const void *frames[FRAMES_SEEN];
    uintptr_t sp = regs->value[CC_REGISTER_SP] & ~(uintptr_t)7;
    if (sp < f->low || sp >= f->high) return;
    size_t size = f->high - sp < sizeof words ? f->high - sp : sizeof words;
    struct picture p = {.regs = *regs, .low = f->low, .top = f->high, .copied_at = sp, .words = words};
    if (target_read(words, sp, size)) p.count = size / sizeof words[0];
    f->frames = cc__unwind(&p, frames, FRAMES_SEEN, &f->doubt);
    f->frame = grow(NULL, f->frames + 1, sizeof *f->frame);
    memcpy(f->frame, frames, f->frames * sizeof frames[0]);
}

static void find_place(struct fiber_seen *f, const unsigned char *record) {
    struct registers regs;
    if (f->state == IS_RUNNING || f->state == IS_PARKING) {
        int tid = f->worker >= 0 && f->worker < WORKERS_SEEN ? runtime_worker((unsigned)f->worker).tid : 0;
        if (tid != 0 && target_registers(tid, &regs)) find_frames(f, &regs);
    } else if (layout.context_is_plain) {
        regs = cc__registers_at(field(record, layout.fiber_context + 8, 8), field(record, layout.fiber_context, 8));
        cc__registers_set(&regs, CC_REGISTER_FP, field(record, layout.fiber_context + 16, 8));
        find_frames(f, &regs);
    }
}

static void forget(struct fiber_seen *f) {
    free(f->name);
    free(f->line);
    free(f->frame);
    f->name = f->line = NULL;
    f->frame = NULL;
    f->frames = 0;
}

/* One look. False: it moved meanwhile. */
static bool look(struct fiber_seen *f, bool frames) {
    unsigned char record[RECORD_MAX];
    if (!target_read(record, f->at, layout.fiber_size)) return false;
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
    if (f->state == IS_IDLE || f->state == IS_DONE) return true;
    uint64_t stack = field(record, layout.fiber_stack, 8);
    if (stack != 0) find_stack(f, stack);
    if (f->state == IS_PARKED) {
        f->reason = cc__word_reason(word);
        f->object = field(record, layout.fiber_object, 8);
        if (f->worker >= 0) find_time((unsigned)f->worker, field(record, layout.fiber_turn, 8), &f->from, &f->to);
    }
    if (frames && f->started) find_place(f, record);
    return target_word(f->at + layout.fiber_word, 8) == word;
}

bool runtime_look(struct fiber_seen *f, bool frames) { /* LOOK-1 */
    for (int tries = 0; tries < TRIES; tries++)
        if (look(f, frames)) return f->state != IS_IDLE && f->state != IS_DONE;
    if (f->state == IS_IDLE || f->state == IS_DONE) return false;
    f->moves = true;
    f->frames = 0;
    f->object = f->scope = 0;
    return true;
}

static uint64_t unread;

uint64_t runtime_unread(void) {
    return unread;
}

/* The fibers of one slab. */
static void take_slab(uint64_t slab, uint32_t records, bool frames, struct fiber_seen **fibers, size_t *count) {
    enum { AT_ONCE = 256 };
    unsigned char *memory = grow(NULL, AT_ONCE, layout.fiber_size);
    for (uint32_t first = 0; first < records; first += AT_ONCE) {
        uint32_t n = records - first < AT_ONCE ? records - first : AT_ONCE;
        if (!target_read(memory, slab + first * layout.fiber_size, n * layout.fiber_size)) {
            unread += n;
            continue;
        }
        for (uint32_t i = 0; i < n && *count < FIBERS_MAX; i++) {
            uint64_t state = field(memory + i * layout.fiber_size, layout.fiber_word, 8) & WORD_STATE;
            if (state == IS_IDLE || state >= IS_DONE) continue;
            if ((*count & (*count - 1)) == 0) *fibers = grow(*fibers, *count != 0 ? 2 * *count : 1, sizeof **fibers);
            struct fiber_seen *f = &(*fibers)[*count];
            *f = (struct fiber_seen){.at = slab + (first + i) * layout.fiber_size};
            if (runtime_look(f, frames))
                ++*count;
            else
                forget(f);
        }
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

/* ---- scopes, and threads that wait ---- */

struct scope_seen runtime_scope(uint64_t at, bool *found) {
    struct scope_seen s = {.at = at};
    *found = target_read(&s.parent, at + layout.scope_parent, 8);
    if (!*found) return s;
    s.deadline = target_word(at + layout.scope_deadline, 8);
    s.children = (uint32_t)target_word(at + layout.scope_children, 4);
    s.nursery = target_word(at + layout.scope_nursery, 1) != 0;
    s.cancelled = target_word(at + layout.scope_cancelled, 4) != 0;
    if (s.nursery) target_text(at + layout.nursery_name, s.name, layout.name_max);
    return s;
}

unsigned runtime_blocked(struct blocked_seen *seen, unsigned max) {
    uint64_t list = target_word(layout.blocked + layout.blocked_list, 8), map = layout.blocked;
    uint64_t reason = target_word(map + layout.blocked_reason, 8), object = target_word(map + layout.blocked_object, 8);
    uint64_t since = target_word(map + layout.blocked_since, 8), tid = target_word(map + layout.blocked_tid, 8);
    uint64_t at = target_word(list, 8);
    unsigned n = 0;
    for (; at != 0 && at != list && n < max; at = target_word(at, 8), n++)
        seen[n] = (struct blocked_seen){
            .reason = (unsigned)target_word(at + reason, 4),
            .object = target_word(at + object, 8),
            .since = target_word(at + since, 8),
            .tid = (int)target_word(at + tid, 4),
        };
    return n;
}
