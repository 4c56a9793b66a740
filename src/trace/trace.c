/* trace.c - which categories are on, and the times that were added up. */
#include "trace/trace.h"

#include "os/clock.h"
#include "sync/lock.h"

#include <string.h>

struct trace cc__trace;

static struct {
    struct lock lock;
    uint32_t environment, program, simulation;
} wanted;

/* seq_cst: who changes the categories looks next whether the runtime runs, and the other way round (sched/watch.c). */
static void apply_locked(void) {
    if (cc__get(&cc__trace.since) == 0) cc__set(&cc__trace.since, cc__clock_now());
    cc__set_seq(&cc__trace.on, wanted.environment | wanted.program | wanted.simulation);
}

void cc__trace_set(uint32_t categories) {
    cc__lock_take(&wanted.lock);
    wanted.environment = categories;
    apply_locked();
    cc__lock_release(&wanted.lock);
}

void cc__trace_add(uint32_t categories) {
    cc__lock_take(&wanted.lock);
    wanted.program |= categories;
    apply_locked();
    cc__lock_release(&wanted.lock);
}

void cc__trace_simulated(bool on) {
    cc__lock_take(&wanted.lock);
    wanted.simulation = on ? TRACE_SIM : 0;
    apply_locked();
    cc__lock_release(&wanted.lock);
}

void cc__trace_clear(void) {
    cc__lock_take(&wanted.lock);
    wanted.environment &= ~(uint32_t)TRACE_ALL;
    wanted.program = 0;
    apply_locked();
    cc__lock_release(&wanted.lock);
}

/* ---- names ---- */

const char cc__trace_known[] =
    "park, wake, join, inbox, sysmon, chan, chan-verbose, spawn, steal, timer, nursery, panic, timing, all";

uint32_t cc__trace_parse(const char *list, const char **unknown, int *length) {
    static const struct {
        const char *name;
        uint32_t categories;
    } names[] = {
        {"park", TRACE_PARK},     {"wake", TRACE_WAKE},     {"join", TRACE_JOIN},
        {"inbox", TRACE_INBOX},   {"sysmon", TRACE_SYSMON}, {"chan", TRACE_CHAN},
        {"spawn", TRACE_SPAWN},   {"steal", TRACE_STEAL},   {"chan-verbose", TRACE_CHAN | TRACE_CHAN_VERBOSE},
        {"timer", TRACE_TIMER},   {"panic", TRACE_PANIC},   {"nursery", TRACE_NURSERY},
        {"timing", TRACE_TIMING}, {"all", TRACE_ALL},
    };
    uint32_t categories = 0;
    *unknown = NULL;
    for (const char *at = list; *at != '\0'; at += *at == ',') {
        size_t n = strcspn(at, ","), i = 0;
        while (i < array_len(names) && (strlen(names[i].name) != n || memcmp(names[i].name, at, n) != 0)) i++;
        if (i < array_len(names)) {
            categories |= names[i].categories;
        } else if (n > 0 && *unknown == NULL) {
            *unknown = at;
            *length = n < 64 ? (int)n : 64;
        }
        at += n;
    }
    return categories;
}

/* ---- times ---- */

enum { STRIPES = 8 }; /* guess: what two workers share is added with read-modify-writes, so it is right anyway */

static struct {
    _Alignas(CC_LINE) _Atomic uint64_t count;
    _Atomic uint64_t sum;
    _Atomic uint64_t most;
    _Atomic uint64_t shortest; /* ~least: 0 is the start for both */
    _Atomic uint64_t bucket[TIMING_BUCKETS];
} times[STRIPES][TIMED_KINDS];

static void raise_to(_Atomic uint64_t *most, uint64_t value) {
    uint64_t seen = cc__get(most);
    while (seen < value && !cc__cas_relaxed(most, &seen, value)) {
    }
}

static unsigned bucket_of(uint64_t ns) {
    unsigned log2 = 63 - (unsigned)__builtin_clzll(ns | 1);
    return log2 < TIMING_BUCKETS ? log2 : TIMING_BUCKETS - 1;
}

void cc__timing_add(enum timed kind, unsigned stripe, uint64_t ns) {
    stripe %= STRIPES;
    cc__add_relaxed(&times[stripe][kind].count, 1);
    cc__add_relaxed(&times[stripe][kind].sum, ns);
    cc__add_relaxed(&times[stripe][kind].bucket[bucket_of(ns)], 1);
    raise_to(&times[stripe][kind].most, ns);
    raise_to(&times[stripe][kind].shortest, ~ns);
}

void cc__timing_take(enum timed kind, struct timing *timing) {
    *timing = (struct timing){.least = UINT64_MAX};
    for (unsigned i = 0; i < STRIPES; i++) {
        uint64_t most = cc__swap(&times[i][kind].most, 0), least = ~cc__swap(&times[i][kind].shortest, 0);
        timing->count += cc__swap(&times[i][kind].count, 0);
        timing->sum += cc__swap(&times[i][kind].sum, 0);
        if (most > timing->most) timing->most = most;
        if (least < timing->least) timing->least = least;
        for (unsigned k = 0; k < TIMING_BUCKETS; k++) timing->bucket[k] += cc__swap(&times[i][kind].bucket[k], 0);
    }
}

void cc__timing_forget(void) {
    struct timing forgotten;
    for (int kind = 0; kind < TIMED_KINDS; kind++) cc__timing_take((enum timed)kind, &forgotten);
}
