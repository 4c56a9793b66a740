/* scale_yield.c - what does a switch cost among 10 fibers, and among a million? The parameter is their number.
 *
 * All of them wait at a gate until the last has come, so that making them does not count. The clock runs from the
 * moment when the last has had its first turn after that, until the last has yielded often enough: 4,000,000 times all
 * together, but 8 times each at least.
 */
#include "bench.h"

#include <stdatomic.h>

static struct {
    uint64_t fibers, each, start, end;
    _Atomic uint64_t arrived, begun, finished;
    CCChan *gate;
} work;

static void *yielder(void *arg) {
    int nothing;
    if (atomic_fetch_add(&work.arrived, 1) + 1 == work.fibers) bench_check(cc_chan_close(work.gate), "cc_chan_close");
    if (cc_chan_recv(work.gate, &nothing, sizeof nothing) == 0) bench_fail("the gate gave something");
    if (atomic_fetch_add(&work.begun, 1) + 1 == work.fibers) work.start = cc_now_ns();
    while (atomic_load_explicit(&work.begun, memory_order_relaxed) < work.fibers) cc_yield();
    for (uint64_t i = 0; i < work.each; i++) cc_yield();
    if (atomic_fetch_add(&work.finished, 1) + 1 == work.fibers) work.end = cc_now_ns();
    return arg;
}

static void *run(void *arg) {
    CCTask *tasks = arg;
    for (uint64_t i = 0; i < work.fibers; i++) bench_check(cc_spawn(&tasks[i], yielder, NULL, NULL), "cc_spawn");
    while (atomic_load(&work.finished) < work.fibers) bench_check(cc_sleep_ms(1), "cc_sleep_ms");
    for (uint64_t i = 0; i < work.fibers; i++) bench_check(cc_task_join(&tasks[i], NULL), "cc_task_join");
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "scale_yield");
    work.fibers = bench_parameter(&b, 1000);
    work.each = bench_scaled(&b, 4000000) / work.fibers;
    if (work.each < 8) work.each = 8;
    work.gate = cc_chan_create(sizeof(int), 0);
    if (work.gate == NULL) bench_fail("no channel");
    CCTask *tasks = bench_alloc(work.fibers, sizeof *tasks);
    bench_run(run, tasks);
    free(tasks);
    cc_chan_free(work.gate);
    return bench_end(&b, work.fibers * work.each, (double)(work.end - work.start), "");
}
