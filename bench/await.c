/* await.c - what does a typed result cost? Tasks are started and awaited, one after the other, by CC_START and
 * CC_AWAIT; and, in turns with that, by cc_spawn and cc_task_join (join_ns). */
#include "bench.h"

enum { TURNS = 10 };

struct work {
    uint64_t n, ns, join_ns;
};

CC_ASYNC(uint64_t, give_back, { uint64_t i; }) {
    return self->i;
}

static void *return_it(void *arg) {
    return arg;
}

static uint64_t by_await(uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        CC_FUTURE(give_back, f);
        bench_check(CC_START(&f, give_back, .i = i), "CC_START");
        sum += CC_AWAIT(&f);
    }
    return sum;
}

static uint64_t by_join(uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        CCTask task;
        void *result;
        bench_check(cc_spawn(&task, return_it, (void *)(uintptr_t)i, NULL), "cc_spawn");
        bench_check(cc_task_join(&task, &result), "cc_task_join");
        sum += (uint64_t)(uintptr_t)result;
    }
    return sum;
}

static void *in_turns(void *arg) {
    struct work *work = arg;
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t start = cc_now_ns(), sum = by_await(work->n), between = cc_now_ns();
        sum += by_join(work->n);
        work->join_ns += cc_now_ns() - between;
        work->ns += between - start;
        if (sum != work->n * (work->n - 1)) bench_fail("the sum of the results is %llu", (unsigned long long)sum);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "await");
    struct work work = {.n = bench_scaled(&b, 100000)};
    bench_run(in_turns, &work);
    char more[64];
    snprintf(more, sizeof more, "join_ns=%.1f", (double)work.join_ns / (double)(TURNS * work.n));
    return bench_end(&b, TURNS * work.n, (double)work.ns, more);
}
