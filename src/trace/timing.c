/* timing.c - sums of call times. */
#include "trace/timing.h"

#include "os/clock.h"
#include "trace/trace.h"

static struct {
    _Alignas(CC_LINE) _Atomic uint64_t count;
    _Atomic uint64_t sum;
    _Atomic uint64_t most;
    _Atomic uint64_t shortest; /* ~least: 0 is the start for both */
    _Atomic uint64_t bucket[TIMING_BUCKETS];
} times[TIMED_KINDS];

static void raise_to(_Atomic uint64_t *most, uint64_t value) {
    uint64_t seen = cc__get(most);
    while (seen < value && !cc__cas_relaxed(most, &seen, value)) {
    }
}

static unsigned bucket_of(uint64_t ns) {
    unsigned log2 = 63 - (unsigned)__builtin_clzll(ns | 1);
    return log2 < TIMING_BUCKETS ? log2 : TIMING_BUCKETS - 1;
}

void cc__timing_since(enum timed kind, uint64_t start) {
    if (start != 0 && cc__trace_on(TRACE_TIMING)) cc__timing_add(kind, cc__clock_now() - start);
}

void cc__timing_add(enum timed kind, uint64_t ns) {
    cc__add_relaxed(&times[kind].count, 1);
    cc__add_relaxed(&times[kind].sum, ns);
    cc__add_relaxed(&times[kind].bucket[bucket_of(ns)], 1);
    raise_to(&times[kind].most, ns);
    raise_to(&times[kind].shortest, ~ns);
}

void cc__timing_take(enum timed kind, struct timing *timing) {
    timing->count = cc__swap(&times[kind].count, 0);
    timing->sum = cc__swap(&times[kind].sum, 0);
    timing->most = cc__swap(&times[kind].most, 0);
    timing->least = ~cc__swap(&times[kind].shortest, 0);
    for (unsigned k = 0; k < TIMING_BUCKETS; k++) timing->bucket[k] = cc__swap(&times[kind].bucket[k], 0);
}

void cc__timing_forget(void) {
    struct timing forgotten;
    for (int kind = 0; kind < TIMED_KINDS; kind++) cc__timing_take((enum timed)kind, &forgotten);
}
