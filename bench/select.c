/* select.c - what does a value cost when its receiver has to choose? Two producers on two rendezvous channels, one
 * selecting consumer. */
#include "bench.h"

struct source {
    CCChan *ch;
    uint64_t first, count;
};

struct choice {
    struct source sources[2];
    uint64_t n, ns;
};

static void *produce(void *arg) {
    struct source *s = arg;
    for (uint64_t v = s->first; v < s->first + s->count; v++)
        bench_check(cc_chan_send(s->ch, &v, sizeof v), "cc_chan_send");
    bench_check(cc_chan_close(s->ch), "cc_chan_close");
    return NULL;
}

static void *consume(void *arg) {
    struct choice *c = arg;
    CCTask tasks[2];
    uint64_t value = 0, sum = 0, received = 0, start = cc_now_ns();
    CCCase cases[2] = {CC_RECV(c->sources[0].ch, &value, NULL), CC_RECV(c->sources[1].ch, &value, NULL)};
    for (int i = 0; i < 2; i++) tasks[i] = cc_fiber_spawn_task(produce, &c->sources[i]);
    for (int open = 2; open > 0;) {
        size_t chosen;
        bench_check(cc_select(cases, 2, CC_FOREVER, &chosen), "cc_select");
        if (cases[chosen].error == 0) {
            received++;
            sum += value;
        } else {
            cases[chosen].ch = NULL;
            open--;
        }
    }
    c->ns = cc_now_ns() - start;
    for (int i = 0; i < 2; i++) bench_check(cc_task_join(&tasks[i], NULL), "cc_task_join");
    if (received != c->n || sum != c->n * (c->n - 1) / 2)
        bench_fail("%llu values with sum %llu", (unsigned long long)received, (unsigned long long)sum);
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "select");
    struct choice c = {.n = bench_scaled(&b, 2000000)};
    uint64_t half = c.n / 2;
    c.sources[0] = (struct source){cc_chan_create(sizeof(uint64_t), 0), 0, half};
    c.sources[1] = (struct source){cc_chan_create(sizeof(uint64_t), 0), half, c.n - half};
    if (c.sources[0].ch == NULL || c.sources[1].ch == NULL) bench_fail("no channels");
    bench_run(consume, &c);
    for (int i = 0; i < 2; i++) cc_chan_free(c.sources[i].ch);
    return bench_end(&b, c.n, (double)c.ns, "");
}
