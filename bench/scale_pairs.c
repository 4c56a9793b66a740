/* scale_pairs.c - what does a message cost when many fibers communicate at once? The parameter is the number of fibers.
 *
 * Each pair passes a token to and fro over two rendezvous channels. One operation is a message; the clock runs from
 * the moment when all callers have passed a gate until the last one is done: 1,000,000 messages, but 8 for each pair
 * at least.
 */
#include "bench.h"

#include <stdatomic.h>

static struct {
    uint64_t pairs, rounds, start, end;
    _Atomic uint64_t arrived, begun, finished, sum;
    CCChan *gate;
} work;

struct pair {
    CCChan *there, *back;
    CCTask caller, answerer;
};

static void *answer(void *arg) {
    struct pair *p = arg;
    uint64_t token;
    for (uint64_t i = 0; i < work.rounds; i++) {
        bench_check(cc_chan_recv(p->there, &token, sizeof token), "cc_chan_recv");
        token++;
        bench_check(cc_chan_send(p->back, &token, sizeof token), "cc_chan_send");
    }
    return NULL;
}

static void *call(void *arg) {
    struct pair *p = arg;
    uint64_t token = 0;
    int nothing;
    if (atomic_fetch_add(&work.arrived, 1) + 1 == work.pairs) bench_check(cc_chan_close(work.gate), "cc_chan_close");
    if (cc_chan_recv(work.gate, &nothing, sizeof nothing) == 0) bench_fail("the gate gave something");
    if (atomic_fetch_add(&work.begun, 1) + 1 == work.pairs) work.start = cc_now_ns();
    while (atomic_load_explicit(&work.begun, memory_order_relaxed) < work.pairs) cc_yield();
    for (uint64_t i = 0; i < work.rounds; i++) {
        bench_check(cc_chan_send(p->there, &token, sizeof token), "cc_chan_send");
        bench_check(cc_chan_recv(p->back, &token, sizeof token), "cc_chan_recv");
    }
    atomic_fetch_add(&work.sum, token);
    if (atomic_fetch_add(&work.finished, 1) + 1 == work.pairs) work.end = cc_now_ns();
    return NULL;
}

static void *run(void *arg) {
    struct pair *pairs = arg;
    for (uint64_t i = 0; i < work.pairs; i++) {
        pairs[i].there = cc_chan_create(sizeof(uint64_t), 0);
        pairs[i].back = cc_chan_create(sizeof(uint64_t), 0);
        if (pairs[i].there == NULL || pairs[i].back == NULL) bench_fail("no channels");
        bench_check(cc_spawn(&pairs[i].answerer, answer, &pairs[i], NULL), "cc_spawn");
        bench_check(cc_spawn(&pairs[i].caller, call, &pairs[i], NULL), "cc_spawn");
    }
    while (atomic_load(&work.finished) < work.pairs) bench_check(cc_sleep_ms(1), "cc_sleep_ms");
    for (uint64_t i = 0; i < work.pairs; i++) {
        bench_check(cc_task_join(&pairs[i].caller, NULL), "cc_task_join");
        bench_check(cc_task_join(&pairs[i].answerer, NULL), "cc_task_join");
        cc_chan_free(pairs[i].there);
        cc_chan_free(pairs[i].back);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "scale_pairs");
    work.pairs = bench_parameter(&b, 1000) / 2;
    if (work.pairs == 0) work.pairs = 1;
    work.rounds = bench_scaled(&b, 500000) / work.pairs;
    if (work.rounds < 4) work.rounds = 4;
    work.gate = cc_chan_create(sizeof(int), 0);
    if (work.gate == NULL) bench_fail("no channel");
    struct pair *pairs = bench_alloc(work.pairs, sizeof *pairs);
    bench_run(run, pairs);
    free(pairs);
    cc_chan_free(work.gate);
    if (work.sum != work.pairs * work.rounds) bench_fail("%llu messages were answered", (unsigned long long)work.sum);
    return bench_end(&b, 2 * work.pairs * work.rounds, (double)(work.end - work.start), "");
}
