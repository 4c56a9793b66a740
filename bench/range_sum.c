/* range_sum.c - how well is a sum spread over the workers? By cc_parallel_reduce. One operation: a thousand numbers.
 */
#include "bench.h"

#include "range_body.h"

static int add(size_t begin, size_t end, void *sum, void *unused) {
    (void)unused;
    *(uint64_t *)sum += range_sum(begin, end);
    return 0;
}

static void combine(void *sum, const void *right, void *unused) {
    (void)unused;
    *(uint64_t *)sum += *(const uint64_t *)right;
}

struct work {
    uint64_t n, sum, ns;
};

static void *run(void *arg) {
    struct work *work = arg;
    const uint64_t zero = 0;
    CCReduction plus = {.size = sizeof zero, .identity = &zero, .range = add, .combine = combine};
    for (int turn = 0; turn < RANGE_TURNS; turn++) {
        uint64_t sum, start = cc_now_ns();
        bench_check(cc_parallel_reduce(0, work->n, &plus, NULL, &sum), "cc_parallel_reduce");
        work->ns += cc_now_ns() - start;
        if (sum != work->sum) bench_fail("the sum is wrong");
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "range_sum");
    struct work work = {.n = bench_scaled(&b, SUM_N)};
    work.sum = range_sum(0, work.n);
    bench_run(run, &work);
    return bench_end(&b, RANGE_TURNS * work.n / 1000, (double)work.ns, "");
}
