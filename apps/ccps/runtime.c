/* runtime.c - reads the runtime's data, by offsets that the library's table has. */
#include "runtime.h"

#include "base/utf8.h"
#include "modules.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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
        layout.process_name_max == 0 || layout.worker_size > 1 << 20 || layout.stack_base > STACK_HEAD_MAX - 8 ||
        layout.stack_log2 > STACK_HEAD_MAX - 8 || layout.stack_cold > STACK_HEAD_MAX - 8)
        fail("%s: the table of its libccc is damaged", target_name());
}

/* ---- workers ---- */

uint64_t runtime_worker_at(unsigned index) {
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
        target_text(runtime_worker_at((unsigned)worker) + layout.worker_island, name, layout.island_name_max);
}

unsigned runtime_open(void) {
    return (unsigned)target_word(layout.sched + layout.sched_open, 4);
}

static uint32_t count_entries(uint64_t heap) {
    uint64_t heaps = target_word(target_word(layout.timers + layout.timers_heaps, 8), 8);
    uint64_t size = target_word(layout.timers + layout.timers_size, 8);
    return heaps == 0
               ? 0
               : (uint32_t)target_word(heaps + heap * size + target_word(layout.timers + layout.timers_count, 8), 4);
}

/* An island has a second heap. */
static uint32_t count_timers(unsigned index) {
    bool island = index >= target_word(layout.sched + layout.sched_max, 4);
    uint64_t alarms = index + target_word(layout.timers + layout.timers_alarms, 8);
    return count_entries(index) + (island ? count_entries(alarms) : 0);
}

struct worker_seen runtime_worker(unsigned index) {
    uint64_t at = runtime_worker_at(index);
    return (struct worker_seen){
        .current = target_word(at + layout.worker_current, 8),
        .turns = target_word(at + layout.worker_turns, 8),
        .polled_at = target_word(at + layout.worker_polled_at, 8),
        .queued = (uint32_t)target_word(at + layout.worker_queued, 4),
        .inbox = (uint32_t)target_word(at + layout.worker_inbox_len, 4),
        .timers = count_timers(index),
        .asleep = target_word(at + layout.worker_asleep, 1) != 0,
        .open = target_word(at + layout.worker_status, 4) == layout.worker_is_open,
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
    uint64_t at = runtime_worker_at(index);
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

/* ---- scopes, and threads that wait ---- */

static int by_address(const void *a, const void *b) {
    const struct piece *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

struct scope_seen runtime_scope(uint64_t at, bool *found) {
    struct scope_seen s = {.at = at};
    uint32_t cancelled = 0;
    uint8_t nursery = 0;
    struct piece pieces[] = {
        {.to = &s.parent, .from = at + layout.scope_parent, .size = 8},
        {.to = &s.deadline, .from = at + layout.scope_deadline, .size = 8},
        {.to = &s.children, .from = at + layout.scope_children, .size = 4},
        {.to = &cancelled, .from = at + layout.scope_cancelled, .size = 4},
        {.to = &nursery, .from = at + layout.scope_nursery, .size = 1},
        {.to = s.name, .from = at + layout.nursery_name, .size = layout.name_max}, /* if it is one */
    };
    qsort(pieces, array_len(pieces), sizeof pieces[0], by_address);
    target_read_many(pieces, array_len(pieces));
    *found = pieces[0].read;
    if (!*found) return s;
    s.nursery = nursery != 0;
    s.cancelled = cancelled != 0;
    s.name[s.nursery ? layout.name_max - 1 : 0] = '\0';
    cc__utf8_cut(s.name);
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
