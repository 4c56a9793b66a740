/* waves.c - waves of a thousand fibers that use 12 KiB of stack, wait for each other and end. One operation: a
 * fiber. */
#include "work.h"

enum { FIBERS = 1000, DEPTH = 24, FRAME = 512 };

static struct {
    CCWaitGroup arrived;
    CCEvent go;
    _Atomic uint64_t sum;
    uint64_t waves;
} work;

__attribute__((noinline)) static uint64_t descend(unsigned depth) {
    volatile char frame[FRAME];
    frame[0] = (char)depth;
    frame[FRAME - 1] = 1;
    if (depth == 0) {
        cc_wait_group_done(&work.arrived);
        bench_check(cc_event_wait(&work.go), "cc_event_wait");
        return 1;
    }
    return descend(depth - 1) + (uint64_t)frame[FRAME - 1];
}

CC_TASK(diver, { int unused; }) {
    (void)self;
    atomic_fetch_add(&work.sum, descend(DEPTH));
    return NULL;
}

static void *run(void *arg) {
    for (uint64_t wave = 0; wave < work.waves; wave++) {
        cc_event_reset(&work.go);
        cc_wait_group_add(&work.arrived, FIBERS);
        CC_NURSERY(n) {
            for (int i = 0; i < FIBERS; i++) bench_check(CC_GO_IN(n, diver), "CC_GO_IN");
            bench_check(cc_wait_group_wait(&work.arrived), "cc_wait_group_wait");
            cc_event_set(&work.go);
        }
    }
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "waves");
    work.waves = bench_scaled(&w.bench, 50);
    work_run(&w, run, NULL);
    if (work.sum != work.waves * FIBERS * (DEPTH + 1)) bench_fail("the sum is %llu", (unsigned long long)work.sum);
    return work_end(&w, work.waves * FIBERS);
}
