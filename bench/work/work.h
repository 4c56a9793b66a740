/* work.h - what the programs of bench/work share: they do work as programs do it, where bench/ measures single
 * operations.
 *
 *   NAME [WORKERS] [SCALE]
 *
 * The output is that of bench.h, and has cpu_ns: CPU time of the whole process in the measured region, for one
 * operation. The library runs with its default settings, the elastic pool included.
 */
#ifndef CCC_BENCH_WORK_WORK_H
#define CCC_BENCH_WORK_WORK_H

#include "../samples.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>

struct work {
    struct bench bench;
    uint64_t wall, cpu; /* when the measured region began; how much it took after work_stop */
    char extras[512];
};

static inline uint64_t work_cpu_ns(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * 1000000000 +
           ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000;
}

static inline struct work work_begin(int argc, char **argv, const char *name) {
    struct work w = {.bench = {.name = name, .scale = 1}};
    if (argc > 3) bench_fail("usage: %s [WORKERS] [SCALE]", argv[0]);
    CCRuntimeConfig config = {0};
    if (argc > 1) config.workers = (unsigned)bench_number(argv[1], "a number of workers");
    if (argc > 2) w.bench.scale = bench_number(argv[2], "a scale");
    bench_check(cc_runtime_init(&config), "cc_runtime_init");
    w.bench.workers = config.workers != 0 ? config.workers : cc_worker_count();
    return w;
}

static inline void work_start(struct work *w) {
    w->cpu = work_cpu_ns();
    w->wall = cc_now_ns();
}

static inline void work_stop(struct work *w) {
    w->wall = cc_now_ns() - w->wall;
    w->cpu = work_cpu_ns() - w->cpu;
}

static inline int work_end(struct work *w, uint64_t n) {
    char text[640];
    snprintf(text, sizeof text, "cpu_ns=%.1f%s%s", (double)w->cpu / (double)n, *w->extras ? " " : "", w->extras);
    return bench_end(&w->bench, n, (double)w->wall, text);
}

/* Runs body as the first fiber: that is the measured region. */
static inline void work_run(struct work *w, CCTaskFn body, void *arg) {
    work_start(w);
    bench_run(body, arg);
    work_stop(w);
}

static inline CCChan *work_chan(size_t size, size_t capacity) {
    CCChan *ch = cc_chan_create(size, capacity);
    if (ch == NULL) bench_fail("no channel");
    return ch;
}

static inline uint64_t work_random(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* A chain of multiplications that no compiler shortens; about 1.3 ns for each step. */
static inline uint64_t work_compute(uint64_t x, uint64_t steps) {
    for (uint64_t i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

enum { STEPS_PER_US = 750 };

#endif
