/* yield_body.h - a number of fibers that yield in turn: what yield.c and yield1k.c have in common.
 *
 * One operation is one cc_yield. With several workers the fibers spread, and a fiber that is alone on its
 * worker has no other fiber to run.
 */
#ifndef CCC_BENCH_YIELD_BODY_H
#define CCC_BENCH_YIELD_BODY_H

#include "bench.h"

struct yielding {
    unsigned fibers;
    uint64_t each; /* yields of one fiber */
    uint64_t ns;
};

static void *yielder(void *arg) {
    const struct yielding *y = arg;
    uint64_t done = 0;
    while (done < y->each) {
        cc_yield();
        done++;
    }
    return (void *)(uintptr_t)done;
}

static void *spawn_and_join_yielders(void *arg) {
    struct yielding *y = arg;
    CCTask *tasks = bench_alloc(y->fibers, sizeof *tasks);
    uint64_t yields = 0, start = cc_now_ns();
    for (unsigned i = 0; i < y->fibers; i++) bench_check(cc_spawn(&tasks[i], yielder, y, NULL), "cc_spawn");
    for (unsigned i = 0; i < y->fibers; i++) {
        void *done;
        bench_check(cc_task_join(&tasks[i], &done), "cc_task_join");
        yields += (uint64_t)(uintptr_t)done;
    }
    y->ns = cc_now_ns() - start;
    if (yields != y->each * y->fibers) bench_fail("%llu yields were counted", (unsigned long long)yields);
    free(tasks);
    return NULL;
}

static int measure_yields(int argc, char **argv, const char *name, unsigned fibers) {
    struct bench b = bench_begin(argc, argv, name);
    struct yielding y = {.fibers = fibers, .each = bench_scaled(&b, 5000000 / fibers)};
    bench_run(spawn_and_join_yielders, &y);
    return bench_end(&b, y.each * y.fibers, (double)y.ns, "");
}

#endif
