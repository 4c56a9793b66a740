/* fanout_body.h - a dispatcher hands jobs to 16 fibers over one channel and collects the results over another. A job
 * takes JOB_US microseconds. One operation: a job. */
#include "work.h"

enum { HANDS = 16, CAPACITY = 128 };

struct job {
    uint64_t number, result;
};

static struct {
    CCChan *jobs, *results;
    uint64_t count;
} work;

CC_TASK(hand, { int unused; }) {
    (void)self;
    struct job job;
    while (cc_chan_recv(work.jobs, &job, sizeof job) == 0) {
        job.result = work_compute(job.number, JOB_US * STEPS_PER_US);
        bench_check(cc_chan_send(work.results, &job, sizeof job), "cc_chan_send");
    }
    return NULL;
}

CC_TASK(dispatch, { int unused; }) {
    (void)self;
    for (uint64_t i = 0; i < work.count; i++) {
        struct job job = {.number = i};
        bench_check(cc_chan_send(work.jobs, &job, sizeof job), "cc_chan_send");
    }
    cc_chan_close(work.jobs);
    return NULL;
}

static void *run(void *arg) {
    uint64_t sum = 0;
    CC_NURSERY(n) {
        for (int i = 0; i < HANDS; i++) bench_check(CC_GO_IN(n, hand), "CC_GO_IN");
        bench_check(CC_GO_IN(n, dispatch), "CC_GO_IN");
        for (uint64_t i = 0; i < work.count; i++) {
            struct job job;
            bench_check(cc_chan_recv(work.results, &job, sizeof job), "cc_chan_recv");
            sum += job.number;
        }
    }
    if (sum != work.count * (work.count - 1) / 2) bench_fail("the sum of the jobs is %llu", (unsigned long long)sum);
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, NAME);
    work.count = bench_scaled(&w.bench, JOBS);
    work.jobs = work_chan(sizeof(struct job), CAPACITY);
    work.results = work_chan(sizeof(struct job), CAPACITY);
    work_run(&w, run, NULL);
    cc_chan_free(work.jobs);
    cc_chan_free(work.results);
    return work_end(&w, work.count);
}
