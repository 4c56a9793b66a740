/* idle.c - does a program that waits leave the CPU alone? The parameter is the number of parked fibers.
 *
 * They wait at a channel for two seconds. One operation is one second: its time is that of the CPUs, in user space and
 * in the kernel; switches_per_s counts how often a thread of the process was switched to.
 */
#include "bench.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

static _Atomic uint64_t arrived;

static void *wait_at(void *gate) {
    int nothing;
    atomic_fetch_add(&arrived, 1);
    return cc_chan_recv(gate, &nothing, sizeof nothing) == EPIPE ? NULL : gate;
}

static double cpu_ns(const struct rusage *u) {
    return 1e9 * (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
           1e3 * (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

static void rest(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "idle");
    uint64_t n = bench_parameter(&b, 10000), seconds = 2;
    CCTask *tasks = bench_alloc(n + 1, sizeof *tasks);
    CCChan *gate = cc_chan_create(sizeof(int), 0);
    if (gate == NULL) bench_fail("no channel");
    for (uint64_t i = 0; i < n; i++) bench_check(cc_spawn(&tasks[i], wait_at, gate, NULL), "cc_spawn");
    while (atomic_load(&arrived) < n) rest(0.001);
    rest(0.5); /* searching workers have found no work */
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    rest((double)seconds);
    getrusage(RUSAGE_SELF, &after);
    bench_check(cc_chan_close(gate), "cc_chan_close");
    for (uint64_t i = 0; i < n; i++) {
        void *wrong;
        bench_check(cc_task_join(&tasks[i], &wrong), "cc_task_join");
        if (wrong != NULL) bench_fail("a fiber did not wait");
    }
    cc_chan_free(gate);
    free(tasks);
    char extras[64];
    long switches = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw;
    snprintf(extras, sizeof extras, "switches_per_s=%.1f", (double)switches / (double)seconds);
    return bench_end(&b, seconds, cpu_ns(&after) - cpu_ns(&before), extras);
}
