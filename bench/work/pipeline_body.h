/* pipeline_body.h - items pass the stages of a pipeline, over channels. The including file defines NAME, how many
 * PIPELINES, how many items (AMOUNT), the CAPACITY of the channels, and the STEPS of each stage. One operation: an
 * item. */
#include "work.h"

static const int steps[] = {STEPS};
enum { STAGES = sizeof steps / sizeof steps[0] };

static struct {
    CCChan *between[PIPELINES][STAGES + 1];
    uint64_t each;
    _Atomic uint64_t items;
} work;

CC_TASK(stage, {
    CCChan *in, *out;
    int steps;
}) {
    uint64_t item[2];
    while (cc_chan_recv(self->in, item, sizeof item) == 0) {
        item[1] = work_compute(item[1], (uint64_t)self->steps);
        bench_check(cc_chan_send(self->out, item, sizeof item), "cc_chan_send");
    }
    cc_chan_close(self->out);
    return NULL;
}

CC_TASK(source, { CCChan *out; }) {
    for (uint64_t i = 0; i < work.each; i++) {
        uint64_t item[2] = {i, i};
        bench_check(cc_chan_send(self->out, item, sizeof item), "cc_chan_send");
    }
    cc_chan_close(self->out);
    return NULL;
}

CC_TASK(drain, { CCChan *in; }) {
    uint64_t item[2], next = 0;
    while (cc_chan_recv(self->in, item, sizeof item) == 0)
        if (item[0] != next++) bench_fail("item %llu is out of order", (unsigned long long)item[0]);
    atomic_fetch_add(&work.items, next);
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(n)
    for (int p = 0; p < PIPELINES; p++) {
        CCChan **ch = work.between[p];
        bench_check(CC_GO_IN(n, source, .out = ch[0]), "CC_GO_IN");
        for (int s = 0; s < STAGES; s++)
            bench_check(CC_GO_IN(n, stage, .in = ch[s], .out = ch[s + 1], .steps = steps[s]), "CC_GO_IN");
        bench_check(CC_GO_IN(n, drain, .in = ch[STAGES]), "CC_GO_IN");
    }
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, NAME);
    work.each = bench_scaled(&w.bench, AMOUNT) / PIPELINES + 1;
    for (int p = 0; p < PIPELINES; p++)
        for (int s = 0; s <= STAGES; s++) work.between[p][s] = work_chan(2 * sizeof(uint64_t), CAPACITY);
    work_run(&w, run, NULL);
    if (work.items != work.each * PIPELINES) bench_fail("%llu items came through", (unsigned long long)work.items);
    for (int p = 0; p < PIPELINES; p++)
        for (int s = 0; s <= STAGES; s++) cc_chan_free(work.between[p][s]);
    return work_end(&w, work.each * PIPELINES);
}
