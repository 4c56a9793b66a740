/* actors.c - a thousand actors, each with an inbox; 64 tokens go from actor to actor at random. One operation: a
 * message. */
#include "work.h"

enum { ACTORS = 1000, TOKENS = 64 };

struct message {
    uint64_t left, seed; /* hops that this token has to make */
};

static struct {
    CCChan *inbox[ACTORS];
    CCChan *done;
    _Atomic uint64_t handled;
    uint64_t hops;
} work;

CC_TASK(actor, { int place; }) {
    struct message m;
    uint64_t handled = 0;
    while (cc_chan_recv(work.inbox[self->place], &m, sizeof m) == 0) {
        handled++;
        if (--m.left == 0) {
            bench_check(cc_chan_send(work.done, &m.seed, sizeof m.seed), "cc_chan_send");
            continue;
        }
        CCChan *to = work.inbox[work_random(&m.seed) % ACTORS];
        bench_check(cc_chan_send(to, &m, sizeof m), "cc_chan_send");
    }
    atomic_fetch_add(&work.handled, handled);
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(n) {
        for (int i = 0; i < ACTORS; i++) bench_check(CC_GO_IN(n, actor, .place = i), "CC_GO_IN");
        for (uint64_t i = 0; i < TOKENS; i++) {
            struct message m = {work.hops, i};
            bench_check(cc_chan_send(work.inbox[i * 15 % ACTORS], &m, sizeof m), "cc_chan_send");
        }
        uint64_t end;
        for (int i = 0; i < TOKENS; i++) bench_check(cc_chan_recv(work.done, &end, sizeof end), "cc_chan_recv");
        for (int i = 0; i < ACTORS; i++) cc_chan_close(work.inbox[i]);
    }
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "actors");
    work.hops = bench_scaled(&w.bench, 2000000) / TOKENS + 1;
    for (int i = 0; i < ACTORS; i++) work.inbox[i] = work_chan(sizeof(struct message), TOKENS);
    work.done = work_chan(sizeof(uint64_t), TOKENS);
    work_run(&w, run, NULL);
    if (work.handled != work.hops * TOKENS) bench_fail("%llu messages were handled", (unsigned long long)work.handled);
    for (int i = 0; i < ACTORS; i++) cc_chan_free(work.inbox[i]);
    cc_chan_free(work.done);
    return work_end(&w, work.hops * TOKENS);
}
