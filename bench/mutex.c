/* mutex.c - what does it cost to lock and unlock a mutex? 16 fibers lock, increment, unlock. */
#include "bench.h"

enum { FIBERS = 16 };

struct account {
    CCMutex mutex;
    uint64_t each, ns;
    uint64_t balance; /* beside the mutex, as data usually is */
};

static void *deposit(void *arg) {
    struct account *a = arg;
    for (uint64_t i = 0; i < a->each; i++) {
        bench_check(cc_mutex_lock(&a->mutex), "cc_mutex_lock");
        a->balance++;
        bench_check(cc_mutex_unlock(&a->mutex), "cc_mutex_unlock");
    }
    return NULL;
}

static void *run(void *arg) {
    struct account *a = arg;
    CCTask tasks[FIBERS];
    uint64_t start = cc_now_ns();
    for (int i = 0; i < FIBERS; i++) tasks[i] = cc_fiber_spawn_task(deposit, a);
    for (int i = 0; i < FIBERS; i++) bench_check(cc_task_join(&tasks[i], NULL), "cc_task_join");
    a->ns = cc_now_ns() - start;
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "mutex");
    struct account a = {.each = (bench_scaled(&b, 2000000) + FIBERS - 1) / FIBERS};
    bench_run(run, &a);
    uint64_t n = FIBERS * a.each;
    if (a.balance != n) bench_fail("%llu increments were counted", (unsigned long long)a.balance);
    return bench_end(&b, n, (double)a.ns, "");
}
