/* island_call.c - what does a call on an island cost? One fiber of the pool calls a function there and waits, again and
 * again: two switches of thread for each call. */
#include "bench.h"

struct work {
    CCIsland *island;
    uint64_t n, ns;
    uint64_t sum; /* owned by the island */
};

static void *add(void *arg) {
    struct work *work = arg;
    work->sum++;
    return NULL;
}

static void *call(void *arg) {
    struct work *work = arg;
    uint64_t start = cc_now_ns();
    for (uint64_t i = 0; i < work->n; i++) bench_check(cc_island_call(work->island, add, work, NULL), "cc_island_call");
    work->ns = cc_now_ns() - start;
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "island_call");
    struct work work = {.n = bench_scaled(&b, 200000)};
    bench_check(cc_island_create(&work.island, NULL), "cc_island_create");
    bench_run(call, &work);
    bench_check(cc_island_free(work.island), "cc_island_free");
    if (work.sum != work.n) bench_fail("%llu calls were made", (unsigned long long)work.sum);
    return bench_end(&b, work.n, (double)work.ns, "");
}
