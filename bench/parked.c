/* parked.c - what does a fiber cost that waits: time to make it, park it, wake it and end it, and memory
 * while it is parked?
 *
 * 100,000 fibers receive from one channel; then all are joined. The last one to arrive measures the memory and closes
 * the channel.
 */
#include "bench.h"

#include <errno.h>
#include <stdatomic.h>

static struct {
    uint64_t n, ns, passed, rss_before, rss, pte_before, pte;
    _Atomic uint64_t arrived;
    CCChan *gate;
} work;

static void *parked(void *arg) {
    if (atomic_fetch_add(&work.arrived, 1) + 1 == work.n) {
        work.rss = bench_status("VmRSS");
        work.pte = bench_status("VmPTE");
        bench_check(cc_chan_close(work.gate), "cc_chan_close");
    }
    int nothing;
    return cc_chan_recv(work.gate, &nothing, sizeof nothing) == EPIPE ? arg : NULL;
}

static void *measure(void *arg) {
    CCTask *tasks = arg;
    work.rss_before = bench_status("VmRSS");
    work.pte_before = bench_status("VmPTE");
    uint64_t start = cc_now_ns();
    for (uint64_t i = 0; i < work.n; i++) tasks[i] = cc_fiber_spawn_task(parked, &work);
    for (uint64_t i = 0; i < work.n; i++) {
        void *result;
        bench_check(cc_task_join(&tasks[i], &result), "cc_task_join");
        work.passed += result == &work;
    }
    work.ns = cc_now_ns() - start;
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "parked");
    work.n = bench_scaled(&b, 100000);
    work.gate = cc_chan_create(sizeof(int), 0);
    if (work.gate == NULL) bench_fail("no channel");
    CCTask *tasks = bench_alloc(work.n, sizeof *tasks);
    bench_run(measure, tasks);
    free(tasks);
    cc_chan_free(work.gate);
    if (work.passed != work.n) bench_fail("%llu fibers passed the gate", (unsigned long long)work.passed);
    char extras[96];
    snprintf(extras, sizeof extras, "rss_bytes=%.0f pte_bytes=%.0f",
             ((double)work.rss - (double)work.rss_before) / (double)work.n,
             ((double)work.pte - (double)work.pte_before) / (double)work.n);
    return bench_end(&b, work.n, (double)work.ns, extras);
}
