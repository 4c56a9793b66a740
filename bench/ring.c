/* ring.c - what does a hop cost in a ring of 503 fibers that pass one token by rendezvous? */
#include "bench.h"

enum { FIBERS = 503 };

struct node {
    CCChan *in, *out;
    uint64_t passed;
};

struct ring {
    CCChan *ch[FIBERS];
    struct node nodes[FIBERS];
    CCTask tasks[FIBERS];
    uint64_t n, ns;
};

/* The token counts the hops that are left; the fiber that receives 0 stops the ring. */
static void *pass(void *arg) {
    struct node *s = arg;
    uint64_t left;
    while (cc_chan_recv(s->in, &left, sizeof left) == 0) {
        s->passed++;
        if (left == 0) return s; /* the joiner sees the end */
        left--;
        bench_check(cc_chan_send(s->out, &left, sizeof left), "cc_chan_send");
    }
    return NULL;
}

static void *turn(void *arg) {
    struct ring *r = arg;
    for (unsigned i = 0; i < FIBERS; i++) {
        r->nodes[i] = (struct node){r->ch[i], r->ch[(i + 1) % FIBERS], 0};
        r->tasks[i] = cc_fiber_spawn_task(pass, &r->nodes[i]);
    }
    uint64_t token = r->n, start = cc_now_ns(), passed = 0;
    bench_check(cc_chan_send(r->ch[0], &token, sizeof token), "cc_chan_send");
    void *result;
    bench_check(cc_task_join(&r->tasks[r->n % FIBERS], &result), "cc_task_join");
    r->ns = cc_now_ns() - start;
    if (result == NULL) bench_fail("the token was lost");
    for (unsigned i = 0; i < FIBERS; i++) bench_check(cc_chan_close(r->ch[i]), "cc_chan_close");
    for (unsigned i = 0; i < FIBERS; i++) {
        if (i != r->n % FIBERS) bench_check(cc_task_join(&r->tasks[i], NULL), "cc_task_join");
        passed += r->nodes[i].passed;
    }
    if (passed != r->n + 1) bench_fail("%llu hops", (unsigned long long)passed);
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "ring");
    static struct ring r;
    r.n = bench_scaled(&b, 2000000);
    for (unsigned i = 0; i < FIBERS; i++)
        if ((r.ch[i] = cc_chan_create(sizeof(uint64_t), 0)) == NULL) bench_fail("no channel");
    bench_run(turn, &r);
    for (unsigned i = 0; i < FIBERS; i++) cc_chan_free(r.ch[i]);
    return bench_end(&b, r.n, (double)r.ns, "");
}
