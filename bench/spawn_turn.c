/* spawn_turn.c - what does a task cost that gets its own turn, on its own stack?
 *
 * A joiner runs a task that has not started on its own stack, so spawn_join, spawn_batch, fib and skynet
 * mostly measure that. Here one fiber starts a hundred tasks, yields, which lets all of them run, and then
 * joins them. A task that had not ended by then is counted as waited for; if there are many, the figure means
 * something else.
 */
#include "bench.h"

enum { GROUP = 100 };

struct work {
    uint64_t n, ns, waited;
};

static void *give_back(void *arg) {
    return arg;
}

static void *groups(void *arg) {
    struct work *work = arg;
    CCTask tasks[GROUP];
    uint64_t sum = 0, start = cc_now_ns();
    for (uint64_t i = 0; i < work->n; i += GROUP) {
        for (uint64_t k = 0; k < GROUP; k++)
            bench_check(cc_spawn(&tasks[k], give_back, (void *)(uintptr_t)(i + k), NULL), "cc_spawn");
        cc_yield();
        for (uint64_t k = 0; k < GROUP; k++) {
            void *result;
            if (cc_task_join_try(&tasks[k], &result) != 0) {
                work->waited++;
                bench_check(cc_task_join(&tasks[k], &result), "cc_task_join");
            }
            sum += (uint64_t)(uintptr_t)result;
        }
    }
    work->ns = cc_now_ns() - start;
    if (sum != work->n * (work->n - 1) / 2) bench_fail("the sum of the results is %llu", (unsigned long long)sum);
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "spawn_turn");
    struct work work = {.n = (bench_scaled(&b, 1000000) + GROUP - 1) / GROUP * GROUP};
    bench_run(groups, &work);
    char extras[64];
    snprintf(extras, sizeof extras, "waited_percent=%.1f", 100 * (double)work.waited / (double)work.n);
    return bench_end(&b, work.n, (double)work.ns, extras);
}
