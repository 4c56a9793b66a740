/* samples.h - times of which the tail matters: collected one by one, sorted at the end, printed as percentiles in
 * µs. */
#ifndef CCC_BENCH_SAMPLES_H
#define CCC_BENCH_SAMPLES_H

#include "bench.h"

struct samples {
    uint32_t *ns; /* each writer has its own range; 4.2 s is the most */
    uint64_t count;
};

static inline struct samples samples_create(uint64_t count) {
    return (struct samples){bench_alloc(count, sizeof(uint32_t)), count};
}

static inline void samples_put(struct samples *s, uint64_t at, uint64_t ns) {
    s->ns[at] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static inline int samples_compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Appends " PREFIXp50_us=..." and so on to text; the samples are sorted afterwards. */
static inline void samples_print(struct samples *s, const char *prefix, char *text, size_t size) {
    static const struct {
        const char *name;
        double part;
    } points[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}, {"max", 1}};
    qsort(s->ns, s->count, sizeof *s->ns, samples_compare);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        size_t used = strlen(text);
        uint64_t at = (uint64_t)(points[i].part * (double)(s->count - 1) + 0.5);
        snprintf(text + used, size - used, "%s%s%s_us=%.2f", used > 0 ? " " : "", prefix, points[i].name,
                 s->ns[at] / 1e3);
    }
}

#endif
