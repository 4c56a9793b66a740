/* scale_parked.c - what does a waiting fiber cost in time and in memory, alone and among a million? The parameter is
 * their number.
 *
 * All of them receive from one channel; the last to come measures the memory and closes it. `bytes` is what one takes
 * while it waits, resident and in page tables; `after_bytes` what is still resident for each a fifth of a second after
 * all have ended.
 */
#include "bench.h"

#include <stdatomic.h>

static struct {
    uint64_t n, ns, before, during, after;
    _Atomic uint64_t arrived, passed;
    CCChan *gate;
} work;

static uint64_t memory(void) {
    return bench_status("VmRSS") + bench_status("VmPTE");
}

static void *parked(void *arg) {
    int nothing;
    if (atomic_fetch_add(&work.arrived, 1) + 1 == work.n) {
        work.during = memory();
        bench_check(cc_chan_close(work.gate), "cc_chan_close");
    }
    if (cc_chan_recv(work.gate, &nothing, sizeof nothing) != 0) atomic_fetch_add(&work.passed, 1);
    return arg;
}

static void *measure(void *arg) {
    CCTask *tasks = arg;
    work.before = memory();
    uint64_t start = cc_now_ns();
    for (uint64_t i = 0; i < work.n; i++) bench_check(cc_spawn(&tasks[i], parked, NULL, NULL), "cc_spawn");
    while (atomic_load(&work.arrived) < work.n) cc_yield(); /* else the joins would run the tasks */
    for (uint64_t i = 0; i < work.n; i++) bench_check(cc_task_join(&tasks[i], NULL), "cc_task_join");
    work.ns = cc_now_ns() - start;
    bench_check(cc_sleep_ms(200), "cc_sleep_ms");
    work.after = memory();
    return NULL;
}

static double each(uint64_t bytes) {
    return bytes > work.before ? (double)(bytes - work.before) / (double)work.n : 0;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "scale_parked");
    work.n = bench_parameter(&b, 1000);
    work.gate = cc_chan_create(sizeof(int), 0);
    if (work.gate == NULL) bench_fail("no channel");
    CCTask *tasks = bench_alloc(work.n, sizeof *tasks);
    bench_run(measure, tasks);
    free(tasks);
    cc_chan_free(work.gate);
    if (work.passed != work.n) bench_fail("%llu fibers passed the gate", (unsigned long long)work.passed);
    char extras[96];
    snprintf(extras, sizeof extras, "bytes=%.0f after_bytes=%.0f", each(work.during), each(work.after));
    return bench_end(&b, work.n, (double)work.ns, extras);
}
