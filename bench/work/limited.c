/* limited.c - 20,000 fibers at once want one of 64 permits, hold it across a wait of 0.2 ms, and compute for 2 us. One
 * operation: a fiber. */
#include "work.h"

enum { PERMITS = 64, HOLD_NS = 200 * 1000 };

static CCSem permits = CC_SEM_INIT(PERMITS);
static _Atomic uint64_t inside, most, done;
static uint64_t count;

CC_TASK(download, { uint64_t number; }) {
    bench_check(cc_sem_acquire(&permits), "cc_sem_acquire");
    uint64_t now = atomic_fetch_add(&inside, 1) + 1, seen = atomic_load(&most);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) {
    }
    bench_check(cc_sleep_until(cc_after_ns(HOLD_NS)), "cc_sleep_until");
    work_compute(self->number, 2 * STEPS_PER_US);
    atomic_fetch_sub(&inside, 1);
    bench_check(cc_sem_release(&permits, 1), "cc_sem_release");
    atomic_fetch_add(&done, 1);
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(n)
    for (uint64_t i = 0; i < count; i++) bench_check(CC_GO_IN(n, download, .number = i), "CC_GO_IN");
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "limited");
    count = bench_scaled(&w.bench, 20000);
    work_run(&w, run, NULL);
    if (done != count || most > PERMITS)
        bench_fail("%llu were done, %llu at once", (unsigned long long)done, (unsigned long long)most);
    return work_end(&w, count);
}
