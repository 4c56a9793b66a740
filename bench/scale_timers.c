/* scale_timers.c - what does a sleep cost, and how late does it end, for 10 sleepers and for a million? The parameter
 * is their number.
 *
 * Each fiber sleeps for about a second in all, in pieces of irregular length: 20 of them, 4 with more than 1000
 * sleepers, 1 with more than 100,000. One operation is one sleep; its time is that of the CPUs, in user space and in
 * the kernel, since what passes on the clock is mostly the sleep itself. The percentiles say how late the sleeps ended.
 */
#include "samples.h"

#include <sys/resource.h>

static struct {
    uint64_t sleepers, pieces;
    double ns;
    struct samples late;
} work;

#define SECOND UINT64_C(1000000000)

static double cpu_ns(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return 1e9 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e3 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void *sleeper(void *arg) {
    uint64_t place = (uint64_t)(uintptr_t)arg, seed = place * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (uint64_t i = 0; i < work.pieces; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t mean = SECOND / work.pieces;
        CCDeadline until = {cc_now_ns() + mean / 2 + (seed >> 33) % mean};
        bench_check(cc_sleep_until(until), "cc_sleep_until");
        uint64_t now = cc_now_ns();
        if (now < until.ns) bench_fail("a sleep ended early");
        samples_put(&work.late, place * work.pieces + i, now - until.ns);
    }
    return NULL;
}

static void *run(void *arg) {
    CCTask *tasks = arg;
    double start = cpu_ns();
    for (uint64_t i = 0; i < work.sleepers; i++)
        bench_check(cc_spawn(&tasks[i], sleeper, (void *)(uintptr_t)i, NULL), "cc_spawn");
    bench_check(cc_sleep_ms(100), "cc_sleep_ms"); /* else the joins would run the tasks */
    for (uint64_t i = 0; i < work.sleepers; i++) bench_check(cc_task_join(&tasks[i], NULL), "cc_task_join");
    work.ns = cpu_ns() - start;
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "scale_timers");
    work.sleepers = bench_parameter(&b, 1000);
    work.pieces = work.sleepers <= 1000 ? 20 : work.sleepers <= 100000 ? 4 : 1;
    work.late = samples_create(work.sleepers * work.pieces);
    CCTask *tasks = bench_alloc(work.sleepers, sizeof *tasks);
    bench_run(run, tasks);
    free(tasks);
    char extras[256] = "";
    samples_print(&work.late, "late_", extras, sizeof extras);
    return bench_end(&b, work.late.count, work.ns, extras);
}
