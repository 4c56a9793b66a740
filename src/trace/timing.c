/* timing.c - the times that were added up. */
#include "trace/timing.h"

#include "sync/atomic.h"

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
