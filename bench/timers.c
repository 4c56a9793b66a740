/* timers.c - what does a sleeping fiber cost, and is it woken on time?
 *
 * 100,000 fibers sleep between 0 and 1000 ms, evenly spread, in a scrambled order, which is the hard case for a heap. A
 * sleep that ends early is an error. One operation is one fiber; the second that the longest sleep takes anyway is
 * subtracted. */
#include "bench.h"

#include <stdatomic.h>

static struct {
    uint64_t n, ns;
    _Atomic uint64_t early, late_sum, late_max;
} work;

#define SECOND UINT64_C(1000000000)

static void *sleeper(void *arg) {
    uint64_t start = cc_now_ns(), wanted = (uint64_t)(uintptr_t)arg;
    CCDeadline deadline = {start + wanted};
    bench_check(cc_sleep_until(deadline), "cc_sleep_until");
    uint64_t now = cc_now_ns();
    if (now < deadline.ns) {
        atomic_fetch_add_explicit(&work.early, 1, memory_order_relaxed);
        return NULL;
    }
    uint64_t late = now - deadline.ns, max = atomic_load_explicit(&work.late_max, memory_order_relaxed);
    atomic_fetch_add_explicit(&work.late_sum, late, memory_order_relaxed);
    while (late > max && !atomic_compare_exchange_weak(&work.late_max, &max, late)) {
    }
    return NULL;
}

static void *sleep_all(void *arg) {
    CCTask *tasks = arg;
    uint64_t start = cc_now_ns();
    for (uint64_t i = 0; i < work.n; i++) {
        uint64_t place = work.n > 1 ? i * 7919 % work.n : 1; /* 7919 is prime: each place once, unless it divides n */
        uint64_t ns = work.n > 1 ? place * SECOND / (work.n - 1) : SECOND;
        bench_check(cc_spawn(&tasks[i], sleeper, (void *)(uintptr_t)ns, NULL), "cc_spawn");
    }
    for (uint64_t i = 0; i < work.n; i++) bench_check(cc_task_join(&tasks[i], NULL), "cc_task_join");
    work.ns = cc_now_ns() - start;
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "timers");
    work.n = bench_scaled(&b, 100000);
    CCTask *tasks = bench_alloc(work.n, sizeof *tasks);
    bench_run(sleep_all, tasks);
    free(tasks);
    if (work.early != 0) bench_fail("%llu sleeps ended early", (unsigned long long)work.early);
    if (work.ns < SECOND) bench_fail("all sleeps were over after %llu ns", (unsigned long long)work.ns);
    char extras[96];
    snprintf(extras, sizeof extras, "late_mean_us=%.0f late_max_us=%.0f", (double)work.late_sum / (double)work.n / 1e3,
             (double)work.late_max / 1e3);
    return bench_end(&b, work.n, (double)(work.ns - SECOND), extras);
}
