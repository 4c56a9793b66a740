/* pingpong.c - what does a question and its answer cost? Two fibers, two rendezvous channels, one token; one operation
 * is a round trip. */
#include "bench.h"

struct table {
    CCChan *there, *back;
    uint64_t n, ns;
};

static void *answer(void *arg) {
    struct table *t = arg;
    uint64_t token;
    while (cc_chan_recv(t->there, &token, sizeof token) == 0) {
        token++;
        bench_check(cc_chan_send(t->back, &token, sizeof token), "cc_chan_send");
    }
    return NULL;
}

static void *play(void *arg) {
    struct table *t = arg;
    CCTask other = cc_fiber_spawn_task(answer, t);
    uint64_t token = 0, start = cc_now_ns();
    for (uint64_t i = 0; i < t->n; i++) {
        bench_check(cc_chan_send(t->there, &token, sizeof token), "cc_chan_send");
        bench_check(cc_chan_recv(t->back, &token, sizeof token), "cc_chan_recv");
    }
    t->ns = cc_now_ns() - start;
    bench_check(cc_chan_close(t->there), "cc_chan_close");
    bench_check(cc_task_join(&other, NULL), "cc_task_join");
    if (token != t->n) bench_fail("the token says %llu", (unsigned long long)token);
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "pingpong");
    struct table t = {.n = bench_scaled(&b, 1000000)};
    t.there = cc_chan_create(sizeof(uint64_t), 0);
    t.back = cc_chan_create(sizeof(uint64_t), 0);
    if (t.there == NULL || t.back == NULL) bench_fail("no channels");
    bench_run(play, &t);
    cc_chan_free(t.there);
    cc_chan_free(t.back);
    return bench_end(&b, t.n, (double)t.ns, "");
}
