/* bursts.c - after each pause of 1 ms 30 jobs of 20 us come at once, with a fiber each. One operation: a burst, from
 * its beginning to the end of its last job; the pauses do not count. */
#include "work.h"

enum { JOBS = 30, JOB_US = 20, PAUSE_NS = 1000 * 1000 };

static _Atomic uint64_t sum;
static uint64_t count, busy;

CC_TASK(job, { uint64_t number; }) {
    work_compute(self->number, JOB_US * STEPS_PER_US);
    atomic_fetch_add(&sum, self->number);
    return NULL;
}

static void *run(void *arg) {
    for (uint64_t i = 0; i < count; i++) {
        bench_check(cc_sleep_until(cc_after_ns(PAUSE_NS)), "cc_sleep_until");
        uint64_t begin = cc_now_ns();
        CC_NURSERY(n)
        for (uint64_t k = 0; k < JOBS; k++) bench_check(CC_GO_IN(n, job, .number = k), "CC_GO_IN");
        busy += cc_now_ns() - begin;
    }
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "bursts");
    count = bench_scaled(&w.bench, 200);
    work_run(&w, run, NULL);
    if (sum != count * JOBS * (JOBS - 1) / 2) bench_fail("the sum is %llu", (unsigned long long)sum);
    w.wall = busy;
    return work_end(&w, count);
}
