/* rwlock.c - 64 fibers read a table behind a reader-writer lock, one access in 20 writes; each access computes for
 * about 0.2 us inside and 1 us outside. One operation: an access; the percentiles are of the time to acquire the lock.
 */
#include "work.h"

enum { FIBERS = 64, ENTRIES = 256, WRITE_1_IN = 20 };

static struct {
    CCRWLock lock;
    uint64_t table[ENTRIES], writes, each;
    struct samples waits;
    _Atomic uint64_t written;
} work;

static uint64_t access_table(uint64_t *seed) {
    uint64_t from = work_random(seed) % ENTRIES, before = cc_now_ns(), got;
    if (work_random(seed) % WRITE_1_IN == 0) {
        bench_check(cc_rwlock_write_lock(&work.lock), "cc_rwlock_write_lock");
        got = cc_now_ns();
        work.writes++;
        work.table[from] += work_compute(from, STEPS_PER_US / 5) != 0;
        cc_rwlock_write_unlock(&work.lock);
        atomic_fetch_add_explicit(&work.written, 1, memory_order_relaxed);
    } else {
        bench_check(cc_rwlock_read_lock(&work.lock), "cc_rwlock_read_lock");
        got = cc_now_ns();
        work_compute(work.table[from], STEPS_PER_US / 5);
        cc_rwlock_read_unlock(&work.lock);
    }
    return got - before;
}

CC_TASK(user, { uint64_t place; }) {
    uint64_t seed = self->place + 1;
    for (uint64_t i = 0; i < work.each; i++) {
        samples_put(&work.waits, self->place * work.each + i, access_table(&seed));
        work_compute(seed, STEPS_PER_US);
        if (i % 16 == 0) cc_yield();
    }
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(n)
    for (uint64_t i = 0; i < FIBERS; i++) bench_check(CC_GO_IN(n, user, .place = i), "CC_GO_IN");
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "rwlock");
    work.each = bench_scaled(&w.bench, 200000) / FIBERS + 1;
    work.waits = samples_create(work.each * FIBERS);
    work_run(&w, run, NULL);
    if (work.writes != work.written) bench_fail("%llu writes were counted", (unsigned long long)work.writes);
    samples_print(&work.waits, "", w.extras, sizeof w.extras);
    return work_end(&w, work.each * FIBERS);
}
