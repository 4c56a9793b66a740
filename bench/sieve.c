/* sieve.c - what does a prime cost in the concurrent sieve, to the 1500th? One fiber and one rendezvous channel for
 * each prime. */
#include "bench.h"

struct sieve {
    CCChan **ch;
    CCTask *tasks;
    uint64_t n, ns;
    int last;
};

static void *generate(void *arg) {
    for (int i = 2; cc_chan_send(arg, &i, sizeof i) == 0; i++) {
    }
    return NULL;
}

CC_TASK(filter, {
    CCChan *in, *out;
    int prime;
}) {
    int i;
    while (cc_chan_recv(self->in, &i, sizeof i) == 0)
        if (i % self->prime != 0 && cc_chan_send(self->out, &i, sizeof i) != 0) break;
    cc_chan_close(self->in);
    return NULL;
}

static CCChan *new_channel(void) {
    CCChan *ch = cc_chan_create(sizeof(int), 0);
    if (ch == NULL) bench_fail("no channel");
    return ch;
}

static void *run(void *arg) {
    struct sieve *s = arg;
    uint64_t start = cc_now_ns();
    s->ch[0] = new_channel();
    s->tasks[0] = cc_fiber_spawn_task(generate, s->ch[0]);
    for (uint64_t i = 0; i < s->n; i++) {
        bench_check(cc_chan_recv(s->ch[i], &s->last, sizeof s->last), "cc_chan_recv");
        s->ch[i + 1] = new_channel();
        s->tasks[i + 1] = CC_GO(filter, .in = s->ch[i], .out = s->ch[i + 1], .prime = s->last);
    }
    s->ns = cc_now_ns() - start;
    cc_chan_close(s->ch[s->n]);
    for (uint64_t i = 0; i <= s->n; i++) bench_check(cc_task_join(&s->tasks[i], NULL), "cc_task_join");
    return NULL;
}

static int nth_prime(uint64_t n) {
    int p = 1;
    while (n > 0) {
        p++;
        int d = 2;
        while (d * d <= p && p % d != 0) d++;
        if (d * d > p) n--;
    }
    return p;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "sieve");
    struct sieve s = {.n = bench_scaled(&b, 1500)};
    s.ch = bench_alloc(s.n + 1, sizeof(CCChan *));
    s.tasks = bench_alloc(s.n + 1, sizeof(CCTask));
    bench_run(run, &s);
    if (s.last != nth_prime(s.n) || (s.n == 1500 && s.last != 12553)) bench_fail("the last prime is %d", s.last);
    for (uint64_t i = 0; i <= s.n; i++) cc_chan_free(s.ch[i]);
    free(s.ch);
    free(s.tasks);
    return bench_end(&b, s.n, (double)s.ns, "");
}
