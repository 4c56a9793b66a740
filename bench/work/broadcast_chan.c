/* broadcast_chan.c - a publisher sends each value to a thousand subscribers, one channel each, and waits until all have
 * it. One operation: a delivery. */
#include "work.h"

enum { SUBSCRIBERS = 1000 };

static struct {
    CCChan *inbox[SUBSCRIBERS];
    CCWaitGroup pending;
    _Atomic uint64_t sum;
    uint64_t rounds;
} work;

CC_TASK(subscriber, { int place; }) {
    uint64_t value, sum = 0;
    while (cc_chan_recv(work.inbox[self->place], &value, sizeof value) == 0) {
        sum += value;
        cc_wait_group_done(&work.pending);
    }
    atomic_fetch_add(&work.sum, sum);
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(n) {
        for (int i = 0; i < SUBSCRIBERS; i++) bench_check(CC_GO_IN(n, subscriber, .place = i), "CC_GO_IN");
        for (uint64_t round = 1; round <= work.rounds; round++) {
            cc_wait_group_add(&work.pending, SUBSCRIBERS);
            for (int i = 0; i < SUBSCRIBERS; i++)
                bench_check(cc_chan_send(work.inbox[i], &round, sizeof round), "cc_chan_send");
            bench_check(cc_wait_group_wait(&work.pending), "cc_wait_group_wait");
        }
        for (int i = 0; i < SUBSCRIBERS; i++) cc_chan_close(work.inbox[i]);
    }
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "broadcast_chan");
    work.rounds = bench_scaled(&w.bench, 500);
    for (int i = 0; i < SUBSCRIBERS; i++) work.inbox[i] = work_chan(sizeof(uint64_t), 1);
    work_run(&w, run, NULL);
    if (work.sum != work.rounds * (work.rounds + 1) / 2 * SUBSCRIBERS) bench_fail("a delivery is missing");
    for (int i = 0; i < SUBSCRIBERS; i++) cc_chan_free(work.inbox[i]);
    return work_end(&w, work.rounds * SUBSCRIBERS);
}
