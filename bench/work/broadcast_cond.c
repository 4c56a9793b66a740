/* broadcast_cond.c - a thousand fibers wait at a condition for the next generation; the last one to see it signals the
 * publisher. One operation: a wake of one fiber. */
#include "work.h"

enum { WAITERS = 1000 };

static struct {
    CCMutex lock;
    CCCond changed, seen_by_all;
    uint64_t generation, seen, rounds;
    _Atomic uint64_t sum;
} work;

CC_TASK(waiter, { int unused; }) {
    (void)self;
    uint64_t sum = 0;
    for (uint64_t last = 0; last < work.rounds;) {
        bench_check(cc_mutex_lock(&work.lock), "cc_mutex_lock");
        while (work.generation == last) bench_check(cc_cond_wait(&work.changed, &work.lock), "cc_cond_wait");
        last = work.generation;
        if (++work.seen == WAITERS) cc_cond_signal(&work.seen_by_all);
        cc_mutex_unlock(&work.lock);
        sum += last;
    }
    atomic_fetch_add(&work.sum, sum);
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(n) {
        for (int i = 0; i < WAITERS; i++) bench_check(CC_GO_IN(n, waiter), "CC_GO_IN");
        for (uint64_t round = 1; round <= work.rounds; round++) {
            bench_check(cc_mutex_lock(&work.lock), "cc_mutex_lock");
            work.generation = round;
            work.seen = 0;
            cc_cond_broadcast(&work.changed);
            while (work.seen < WAITERS) bench_check(cc_cond_wait(&work.seen_by_all, &work.lock), "cc_cond_wait");
            cc_mutex_unlock(&work.lock);
        }
    }
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "broadcast_cond");
    work.rounds = bench_scaled(&w.bench, 200);
    work_run(&w, run, NULL);
    if (work.sum != work.rounds * (work.rounds + 1) / 2 * WAITERS) bench_fail("a wake is missing");
    return work_end(&w, work.rounds * WAITERS);
}
