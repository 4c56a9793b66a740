/* flow_body.h - the body of spsc, spsc_cap1 and mpmc: producers, consumers, one buffered channel. */
#ifndef CCC_BENCH_FLOW_BODY_H
#define CCC_BENCH_FLOW_BODY_H

#include "bench.h"

enum { FLOW_MAX = 8 };

struct flow {
    CCChan *ch;
    uint64_t n; /* values of all producers together */
    unsigned producers, consumers;
    uint64_t ns;
};

struct flow_actor {
    struct flow *flow;
    uint64_t first, count; /* a producer's values */
    uint64_t received, sum, disorder;
};

static void *flow_produce(void *arg) {
    struct flow_actor *s = arg;
    for (uint64_t v = s->first; v < s->first + s->count; v++)
        bench_check(cc_chan_send(s->flow->ch, &v, sizeof v), "cc_chan_send");
    return NULL;
}

static void *flow_consume(void *arg) {
    struct flow_actor *s = arg;
    CCChan *ch = s->flow->ch;
    uint64_t v, received = 0, sum = 0, last = 0, disorder = 0;
    while (cc_chan_recv(ch, &v, sizeof v) == 0) {
        received++;
        sum += v;
        disorder += v < last;
        last = v;
    }
    s->received = received;
    s->sum = sum;
    s->disorder = disorder;
    return NULL;
}

static void *flow_run(void *arg) {
    struct flow *flow = arg;
    struct flow_actor out[FLOW_MAX] = {0}, in[FLOW_MAX] = {0};
    CCTask tasks[2 * FLOW_MAX];
    uint64_t share = flow->n / flow->producers, start = cc_now_ns();
    for (unsigned i = 0; i < flow->consumers; i++) {
        in[i].flow = flow;
        tasks[FLOW_MAX + i] = cc_fiber_spawn_task(flow_consume, &in[i]);
    }
    for (unsigned i = 0; i < flow->producers; i++) {
        out[i] = (struct flow_actor){.flow = flow, .first = i * share, .count = share};
        tasks[i] = cc_fiber_spawn_task(flow_produce, &out[i]);
    }
    for (unsigned i = 0; i < flow->producers; i++) bench_check(cc_task_join(&tasks[i], NULL), "cc_task_join");
    bench_check(cc_chan_close(flow->ch), "cc_chan_close");
    for (unsigned i = 0; i < flow->consumers; i++)
        bench_check(cc_task_join(&tasks[FLOW_MAX + i], NULL), "cc_task_join");
    flow->ns = cc_now_ns() - start;
    uint64_t received = 0, sum = 0;
    for (unsigned i = 0; i < flow->consumers; i++) {
        received += in[i].received;
        sum += in[i].sum;
        if (flow->producers == 1 && in[i].disorder != 0) bench_fail("values came out of order");
    }
    if (received != flow->n || sum != flow->n * (flow->n - 1) / 2)
        bench_fail("%llu values with sum %llu", (unsigned long long)received, (unsigned long long)sum);
    return NULL;
}

static inline int measure_flow(int argc, char **argv, const char *name, size_t capacity, uint64_t n, unsigned each) {
    struct bench b = bench_begin(argc, argv, name);
    struct flow flow = {.n = bench_scaled(&b, n) / each * each, .producers = each, .consumers = each};
    if (flow.n == 0) flow.n = each;
    flow.ch = cc_chan_create(sizeof(uint64_t), capacity);
    if (flow.ch == NULL) bench_fail("no channel");
    bench_run(flow_run, &flow);
    cc_chan_free(flow.ch);
    return bench_end(&b, flow.n, (double)flow.ns, "");
}

#endif
