/* service_body.h - a service with an open loop: a request comes every 1/RATE s, whether or not the last one is done.
 * Each has its own fiber and a deadline, waits for an answer of one of four back ends, computes for 10 us. One
 * operation: a request; the percentiles are of the time from its arrival to its end. CPU time is what counts: wall time
 * follows from the rate. */
#include "work.h"

enum { BACKENDS = 4, WORK_US = 10, DEADLINE_MS = 1000 };

struct query {
    uint64_t question;
    CCChan *answer;
};

static struct {
    CCChan *queries;
    struct samples done;
    _Atomic uint64_t sum;
    uint64_t count;
} work;

CC_TASK(backend, { int unused; }) {
    (void)self;
    struct query q;
    while (cc_chan_recv(work.queries, &q, sizeof q) == 0) {
        uint64_t answer = q.question + 1;
        bench_check(cc_chan_send(q.answer, &answer, sizeof answer), "cc_chan_send");
    }
    return NULL;
}

CC_TASK(request, { uint64_t number, due; }) {
    uint64_t answer = 0;
    CC_WITH_DEADLINE(cc_after_ms(DEADLINE_MS)) {
        CCChan *answers = work_chan(sizeof answer, 1);
        struct query q = {self->number, answers};
        bench_check(cc_chan_send(work.queries, &q, sizeof q), "cc_chan_send");
        bench_check(cc_chan_recv(answers, &answer, sizeof answer), "cc_chan_recv");
        cc_chan_free(answers);
    }
    if (answer != self->number + 1) bench_fail("the answer to another question");
    work_compute(answer, WORK_US * STEPS_PER_US);
    atomic_fetch_add(&work.sum, answer);
    samples_put(&work.done, self->number, cc_now_ns() - self->due);
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(backends) {
        for (int i = 0; i < BACKENDS; i++) bench_check(CC_GO_IN(backends, backend), "CC_GO_IN");
        CC_NURSERY(requests) {
            uint64_t begin = cc_now_ns();
            for (uint64_t i = 0; i < work.count; i++) {
                uint64_t due = begin + i * 1000000000 / RATE;
                bench_check(cc_sleep_until((CCDeadline){due}), "cc_sleep_until");
                bench_check(CC_GO_IN(requests, request, .number = i, .due = due), "CC_GO_IN");
            }
        }
        cc_chan_close(work.queries);
    }
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, NAME);
    work.count = bench_scaled(&w.bench, RATE);
    work.done = samples_create(work.count);
    work.queries = work_chan(sizeof(struct query), 64);
    work_run(&w, run, NULL);
    cc_chan_free(work.queries);
    if (work.sum != work.count * (work.count + 1) / 2) bench_fail("the sum is %llu", (unsigned long long)work.sum);
    samples_print(&work.done, "", w.extras, sizeof w.extras);
    return work_end(&w, work.count);
}
