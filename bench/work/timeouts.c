/* timeouts.c - 64 pairs exchange values; every wait has a deadline of ten seconds, which never passes. One operation: a
 * wait with a deadline. */
#include "work.h"

enum { PAIRS = 64 };

static struct {
    CCChan *there[PAIRS], *back[PAIRS];
    uint64_t each;
    _Atomic uint64_t sum;
} work;

CC_TASK(answer, { int pair; }) {
    uint64_t value;
    for (uint64_t i = 0; i < work.each; i++) {
        bench_check(cc_chan_recv_until(work.there[self->pair], &value, sizeof value, cc_after_ms(10000)), "recv");
        value++;
        bench_check(cc_chan_send_until(work.back[self->pair], &value, sizeof value, cc_after_ms(10000)), "send");
    }
    return NULL;
}

CC_TASK(ask, { int pair; }) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < work.each; i++) {
        bench_check(cc_chan_send_until(work.there[self->pair], &value, sizeof value, cc_after_ms(10000)), "send");
        bench_check(cc_chan_recv_until(work.back[self->pair], &value, sizeof value, cc_after_ms(10000)), "recv");
    }
    atomic_fetch_add(&work.sum, value);
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(n)
    for (int i = 0; i < PAIRS; i++) {
        bench_check(CC_GO_IN(n, answer, .pair = i), "CC_GO_IN");
        bench_check(CC_GO_IN(n, ask, .pair = i), "CC_GO_IN");
    }
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "timeouts");
    work.each = bench_scaled(&w.bench, 1000000) / (4 * PAIRS) + 1;
    for (int i = 0; i < PAIRS; i++) work.there[i] = work_chan(8, 1), work.back[i] = work_chan(8, 1);
    work_run(&w, run, NULL);
    if (work.sum != work.each * PAIRS) bench_fail("the sum is %llu", (unsigned long long)work.sum);
    for (int i = 0; i < PAIRS; i++) cc_chan_free(work.there[i]), cc_chan_free(work.back[i]);
    return work_end(&w, 4 * work.each * PAIRS);
}
