/* parked.c - what does a fiber cost that waits: time to make it, park it, wake it and end it, and memory
 * while it is parked?
 *
 * 100,000 fibers join a gate, a task that ends when all of them are there; then all are joined. The last
 * fiber to arrive measures the memory, then opens the gate.
 */
#include "bench.h"

#include <stdatomic.h>

static struct {
    uint64_t n, ns, rss_before, rss, pte_before, pte;
    _Atomic uint64_t arrived, passed;
    atomic_bool open;
} work;

static void *gate(void *arg) {
    while (!atomic_load(&work.open)) cc_sleep_ms(1); /* a millisecond is 10 ns for each of 100,000 */
    return arg;
}

CC_TASK(visitor, { CCTask gate; }) {
    if (atomic_fetch_add(&work.arrived, 1) + 1 == work.n) {
        work.rss = bench_status("VmRSS");
        work.pte = bench_status("VmPTE");
        atomic_store(&work.open, true);
    }
    void *ticket;
    bench_check(cc_task_join(&self->gate, &ticket), "cc_task_join of the gate");
    if (ticket == &work) atomic_fetch_add_explicit(&work.passed, 1, memory_order_relaxed);
    return NULL;
}

static void *visit(void *arg) {
    CCTask *tasks = arg;
    work.rss_before = bench_status("VmRSS");
    work.pte_before = bench_status("VmPTE");
    uint64_t start = cc_now_ns();
    CCTask at, handle;
    bench_check(cc_spawn(&at, gate, &work, NULL), "cc_spawn");
    for (uint64_t i = 0; i < work.n; i++) {
        bench_check(cc_task_dup(&at, &handle), "cc_task_dup");
        tasks[i] = CC_GO(visitor, .gate = handle);
    }
    bench_check(cc_task_detach(&at), "cc_task_detach");
    for (uint64_t i = 0; i < work.n; i++) bench_check(cc_task_join(&tasks[i], NULL), "cc_task_join");
    work.ns = cc_now_ns() - start;
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "parked");
    work.n = bench_scaled(&b, 100000);
    CCTask *tasks = bench_alloc(work.n, sizeof *tasks);
    bench_run(visit, tasks);
    free(tasks);
    if (work.passed != work.n) bench_fail("%llu fibers passed the gate", (unsigned long long)work.passed);
    char extras[96];
    snprintf(extras, sizeof extras, "rss_bytes=%.0f pte_bytes=%.0f",
             ((double)work.rss - (double)work.rss_before) / (double)work.n,
             ((double)work.pte - (double)work.pte_before) / (double)work.n);
    return bench_end(&b, work.n, (double)work.ns, extras);
}
