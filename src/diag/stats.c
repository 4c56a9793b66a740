/* stats.c - the counters: by cc_stats and its relatives, and as a table at the end. */
#include "base/fatal.h"
#include "diag/diag.h"
#include "sched/elastic.h"
#include "sched/island.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"

#include <ccc/cc_diag.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert(CC_STATS_REASONS == COUNTED_REASONS && CC_STACK_STATS_BUCKETS == STACK_BUCKETS, "as the headers say");

enum { STACKS_LOOKED_AT = 1024 }; /* each takes about a microsecond */

/* Adds one worker's counters. */
static void add_worker(CCStats *to, struct worker *w) {
    const struct counters *p = &w->core.counters;
    to->workers++;
    to->finished += cc__get_acquire(&p->ended);
    to->spawned += cc__get(&p->spawned);
    to->switches += cc__get(&w->core.turns);
    for (unsigned i = 0; i < COUNTED_REASONS; i++) {
        uint64_t n = cc__get(&p->parks[i]);
        to->parks_by[i] += n;
        to->parks += n;
    }
    to->wakes_remote += cc__get(&w->remote.woken);
#define COUNTER(name, row) to->name += cc__get(&p->name);
#include "trace/events.def"
}

/* The counters that belong to no worker. */
static CCStats totals_of_threads(void) {
    CCStats total = {0};
    total.finished = cc__get_seq(&cc__sched.foreign_ended);
    total.spawned = cc__get_seq(&cc__sched.foreign_spawned);
    total.overflows = cc__get(&cc__sched.foreign_overflowed);
    return total;
}

/* Includes workers that had no thread yet: their counters are 0. */
static unsigned workers(void) {
    unsigned count = cc__get(&cc__sched.count);
    return count > cc__sched.asked ? count : cc__sched.asked;
}

/* All `ended` counters are read before any `spawned`, so that no more fibers have ended than were spawned. */
static CCStats totals(void) {
    CCStats total = {0};
    uint64_t finished = cc__get_seq(&cc__sched.foreign_ended);
    for (unsigned i = 0; i < workers(); i++) finished += cc__get_seq(&cc__sched.workers[i].core.counters.ended);
    unsigned islands = cc__get_seq(&cc__sched.islands);
    for (unsigned i = 0; i < islands; i++)
        finished += cc__get_seq(&cc__sched.workers[cc__sched.max + i].core.counters.ended);
    for (unsigned i = 0; i < workers(); i++) add_worker(&total, &cc__sched.workers[i]);
    for (unsigned i = 0; i < islands; i++) add_worker(&total, &cc__sched.workers[cc__sched.max + i]);
    total.workers -= islands;
    CCStats threads = totals_of_threads();
    total.finished = finished;
    total.spawned += threads.spawned;
    total.overflows += threads.overflows;
    return total;
}

/* Keeps the runtime from stopping. 0 or ESRCH. */
static int enter(void) {
    return cc__worker() != NULL || cc__upcall_enter(false) == 0 ? 0 : ESRCH;
}

static void leave(void) {
    if (cc__worker() == NULL) cc__upcall_leave();
}

static void hand_over(void *out, size_t size, const void *from, size_t known) {
    memset(out, 0, size);
    memcpy(out, from, size < known ? size : known);
}

/* NULL: of all workers. */
static int read_stats(const unsigned *index, CCStats *out, size_t size) {
    if (out == NULL) return EINVAL;
    CCStats stats = {0};
    int rc = enter();
    if (rc == 0) {
        if (index == NULL)
            stats = totals();
        else if (*index < workers())
            add_worker(&stats, &cc__sched.workers[*index]);
        else
            rc = EINVAL;
        leave();
    }
    hand_over(out, size, &stats, sizeof stats);
    return rc;
}

int cc_stats(CCStats *out, size_t size) {
    return read_stats(NULL, out, size);
}

int cc_stats_worker(unsigned index, CCStats *out, size_t size) {
    return read_stats(&index, out, size);
}

const char *cc_stats_reason(unsigned reason) {
    return reason < PARK_REASONS ? cc__park_name(reason) : NULL;
}

static CCStackStats stack_totals(void) {
    struct stack_survey survey;
    cc__stack_look(&survey, STACKS_LOOKED_AT);
    CCStackStats stats = {survey.stacks, survey.looked_at, cc__vm_page(), survey.most, {0}};
    for (unsigned i = 0; i < STACK_BUCKETS; i++) stats.up_to[i] = survey.bucket[i];
    return stats;
}

int cc_stats_stacks(CCStackStats *out, size_t size) {
    if (out == NULL) return EINVAL;
    CCStackStats stats = {0};
    int rc = enter();
    if (rc == 0) {
        stats = stack_totals();
        leave();
    }
    hand_over(out, size, &stats, sizeof stats);
    return rc;
}

/* ---- the table ---- */

enum { COLUMNS = 16, WIDTH = 11 }; /* as many as fit into a line of cc__warn, with the total and the names */

struct table {
    CCStats total, column[COLUMNS];
    unsigned columns;
};

/* Every counter is read once: the columns add up to the total although the workers run on, except for what OS threads
 * and islands have done. */
static struct table read_table(void) {
    struct table t = {.total = totals_of_threads()};
    for_all_workers(i, w) {
        CCStats one = {0};
        add_worker(&one, w);
        for (size_t k = 0; k < sizeof one / sizeof(uint64_t); k++)
            ((uint64_t *)(void *)&t.total)[k] += ((const uint64_t *)(const void *)&one)[k];
        if (i < COLUMNS && !cc__worker_is_island(w)) t.column[t.columns++] = one;
    }
    return t;
}

static int put(char *line, size_t size, int at, uint64_t value) {
    return at + snprintf(line + at, size - (size_t)at, " %*llu", WIDTH - 1, (unsigned long long)value);
}

/* offset: of the counter in CCStats. */
static void say_row(const struct table *t, const char *name, size_t offset) {
    char line[24 + (COLUMNS + 1) * (WIDTH + 12)];
    int at = snprintf(line, sizeof line, "%-18s", name);
    for (unsigned i = 0; i <= t->columns; i++) {
        const CCStats *stats = i == 0 ? &t->total : &t->column[i - 1];
        at = put(line, sizeof line, at, *(const uint64_t *)(const void *)((const char *)stats + offset));
    }
    cc__warn("stats: %s", line);
}

static void say_head(const struct table *t) {
    char line[24 + (COLUMNS + 1) * (WIDTH + 12)];
    int at = snprintf(line, sizeof line, "%-18s %*s", "", WIDTH - 1, "total");
    for (unsigned i = 0; i < t->columns; i++)
        at += snprintf(line + at, sizeof line - (size_t)at, " %*s%*u", WIDTH - 1 - 3, "worker", 3, i);
    cc__warn("stats: %s", line);
}

static void say_stacks(void) {
    CCStackStats s = stack_totals();
    char shares[400] = "";
    int at = 0;
    for (unsigned k = 0; k < STACK_BUCKETS && at < (int)sizeof shares - 40; k++)
        if (s.up_to[k] != 0)
            at += snprintf(shares + at, sizeof shares - (size_t)at, "%s%llu: %llu", at > 0 ? ", " : "",
                           (unsigned long long)(s.page << k) / 1024, (unsigned long long)s.up_to[k]);
    cc__warn("stats: stacks: %llu, %llu sampled; maximum used %llu KiB; histogram by KiB (upper bounds): %s",
             (unsigned long long)s.stacks, (unsigned long long)s.looked_at, (unsigned long long)s.most / 1024, shares);
}

void cc__diag_stats(void) {
    static const struct row {
        const char *name;
        size_t offset;
    } rows[] = {
        {"wakes, remote", offsetof(CCStats, wakes_remote)},
#define COUNTER(name, row) {row, offsetof(CCStats, name)},
#include "trace/events.def"
    };
    struct table t = read_table();
    cc__warn("stats: %u workers, %llu spawned, %llu finished%s", cc__sched_open(), (unsigned long long)t.total.spawned,
             (unsigned long long)t.total.finished,
             t.columns < cc__get(&cc__sched.count) ? "; of the workers the first 16:" : "");
    say_head(&t);
    say_row(&t, "spawned", offsetof(CCStats, spawned));
    say_row(&t, "finished", offsetof(CCStats, finished));
    say_row(&t, "switches", offsetof(CCStats, switches));
    say_row(&t, "parks", offsetof(CCStats, parks));
    for (unsigned i = 1; i < PARK_REASONS; i++) {
        char name[32];
        snprintf(name, sizeof name, "  %s", cc__park_name(i));
        if (t.total.parks_by[i] != 0) say_row(&t, name, offsetof(CCStats, parks_by) + i * sizeof(uint64_t));
    }
    for (size_t i = 0; i < array_len(rows); i++) say_row(&t, rows[i].name, rows[i].offset);
    say_stacks();
}

/* ---- when workers were added, and why others were not ---- */

void cc__diag_pressure(void) {
    struct sysmon_stats s;
    cc__sysmon_stats(&s);
    cc__warn("pressure: positive_samples %llu, negative_samples %llu, current_pressure %lld, neg_streak_max %llu",
             (unsigned long long)s.positive_samples, (unsigned long long)s.negative_samples,
             (long long)s.current_pressure, (unsigned long long)s.neg_streak_max);
    cc__warn("pressure: gate_passes %llu, promoted %llu, retired %llu, workers %u of %u to %u",
             (unsigned long long)s.gates[GATE_PASSED], (unsigned long long)s.promoted,
             (unsigned long long)cc__elastic_retired(), cc__sched_open(), cc__get(&cc__sched.base), cc__sched.max);
    char text[400];
    int at = 0;
    for (int gate = GATE_PASSED + 1; gate < GATE_KINDS; gate++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s %llu", at > 0 ? ", " : "",
                       cc__gate_name((enum gate)gate), (unsigned long long)s.gates[gate]);
    cc__warn("pressure: gate_blocks: %s", text);
}
