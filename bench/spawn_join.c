/* spawn_join.c - what does a task cost that is awaited at once? One after the other is started and joined. */
#include "bench.h"

struct work {
    uint64_t n, ns;
};

static void *give_back(void *arg) {
    return arg;
}

static void *one_after_the_other(void *arg) {
    struct work *work = arg;
    uint64_t sum = 0, start = cc_now_ns();
    for (uint64_t i = 0; i < work->n; i++) {
        CCTask task;
        void *result;
        bench_check(cc_spawn(&task, give_back, (void *)(uintptr_t)i, NULL), "cc_spawn");
        bench_check(cc_task_join(&task, &result), "cc_task_join");
        sum += (uint64_t)(uintptr_t)result;
    }
    work->ns = cc_now_ns() - start;
    if (sum != work->n * (work->n - 1) / 2) bench_fail("the sum of the results is %llu", (unsigned long long)sum);
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "spawn_join");
    struct work work = {.n = bench_scaled(&b, 1000000)};
    bench_run(one_after_the_other, &work);
    return bench_end(&b, work.n, (double)work.ns, "");
}
