/* spawn_batch.c - what does a burst cost? One fiber starts n tasks that do nothing, then joins them all. */
#include "bench.h"

struct work {
    uint64_t n, ns;
    CCTask *tasks;
};

static void *give_back(void *arg) {
    return arg;
}

static void *all_then_wait(void *arg) {
    struct work *work = arg;
    uint64_t sum = 0, start = cc_now_ns();
    for (uint64_t i = 0; i < work->n; i++)
        bench_check(cc_spawn(&work->tasks[i], give_back, (void *)(uintptr_t)i, NULL), "cc_spawn");
    for (uint64_t i = 0; i < work->n; i++) {
        void *result;
        bench_check(cc_task_join(&work->tasks[i], &result), "cc_task_join");
        sum += (uint64_t)(uintptr_t)result;
    }
    work->ns = cc_now_ns() - start;
    if (sum != work->n * (work->n - 1) / 2) bench_fail("the sum of the results is %llu", (unsigned long long)sum);
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "spawn_batch");
    struct work work = {.n = bench_scaled(&b, 1000000)};
    work.tasks = bench_alloc(work.n, sizeof *work.tasks);
    bench_run(all_then_wait, &work);
    free(work.tasks);
    return bench_end(&b, work.n, (double)work.ns, "");
}
