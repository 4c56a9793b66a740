/* oneshot.c - what does a oneshot cost? One is made, sent and received; nobody waits. Then two fibers answer each other
 * by oneshots, and each waits (waited_ns, for a send and a receive). */
#include "bench.h"

enum { TURNS = 10 };

CC_ONESHOT_OF(Once, uint64_t);

struct work {
    uint64_t n, ns, waited_ns;
};

static uint64_t in_turn(uint64_t n) {
    uint64_t sum = 0, value = 0;
    for (uint64_t i = 0; i < n; i++) {
        Once once = {0};
        bench_check(Once_send(&once, i), "send");
        bench_check(Once_recv(&once, &value), "recv");
        sum += value;
    }
    return sum;
}

struct pair {
    Once *ask, *answer;
    uint64_t n;
};

static void *reply(void *arg) {
    struct pair *p = arg;
    uint64_t value;
    for (uint64_t i = 0; i < p->n; i++) {
        bench_check(Once_recv(&p->ask[i], &value), "recv");
        bench_check(Once_send(&p->answer[i], value), "send");
    }
    return NULL;
}

static uint64_t to_and_fro(struct pair *p) {
    uint64_t sum = 0, value = 0;
    CCTask task;
    bench_check(cc_spawn(&task, reply, p, NULL), "cc_spawn");
    for (uint64_t i = 0; i < p->n; i++) {
        bench_check(Once_send(&p->ask[i], i), "send");
        bench_check(Once_recv(&p->answer[i], &value), "recv");
        sum += value;
    }
    bench_check(cc_task_join(&task, NULL), "cc_task_join");
    return sum;
}

static void *run(void *arg) {
    struct work *work = arg;
    struct pair p = {.n = work->n / 10 + 1};
    for (int turn = 0; turn < TURNS; turn++) {
        p.ask = calloc(p.n, sizeof *p.ask);
        p.answer = calloc(p.n, sizeof *p.answer);
        if (p.ask == NULL || p.answer == NULL) bench_fail("no memory");
        uint64_t start = cc_now_ns(), sum = in_turn(work->n), between = cc_now_ns(), other = to_and_fro(&p);
        work->waited_ns += cc_now_ns() - between;
        work->ns += between - start;
        if (sum != work->n * (work->n - 1) / 2 || other != p.n * (p.n - 1) / 2) bench_fail("the sums are wrong");
        free(p.ask);
        free(p.answer);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "oneshot");
    struct work work = {.n = bench_scaled(&b, 500000)};
    bench_run(run, &work);
    char more[64];
    snprintf(more, sizeof more, "waited_ns=%.1f", (double)work.waited_ns / (double)(TURNS * 2 * (work.n / 10 + 1)));
    return bench_end(&b, TURNS * work.n, (double)work.ns, more);
}
