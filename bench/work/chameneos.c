/* chameneos.c - ten creatures meet in pairs at one place, under a mutex and a condition, and change their colours. One
 * operation: a meeting. */
#include "work.h"

enum { CREATURES = 10 };
enum colour { BLUE, RED, YELLOW };

static struct {
    CCMutex lock;
    CCCond second; /* the second of a pair has come */
    uint64_t left; /* meetings */
    int first;     /* the creature that waits, or -1 */
    int partner[CREATURES];
    enum colour colours[CREATURES];
    _Atomic uint64_t met;
} work = {.first = -1};

static enum colour complement(enum colour a, enum colour b) {
    return a == b ? a : (enum colour)(3 - a - b);
}

/* False: there are no meetings left. */
static bool meet(int me, enum colour *mine) {
    bench_check(cc_mutex_lock(&work.lock), "cc_mutex_lock");
    bool met = work.left > 0;
    if (met && work.first < 0) {
        work.first = me;
        work.colours[me] = *mine;
        work.partner[me] = -1;
        while (work.partner[me] < 0) bench_check(cc_cond_wait(&work.second, &work.lock), "cc_cond_wait");
        *mine = complement(*mine, work.colours[work.partner[me]]);
    } else if (met) {
        int other = work.first;
        work.first = -1;
        work.left--;
        enum colour theirs = work.colours[other];
        work.colours[me] = *mine;
        work.partner[other] = me;
        *mine = complement(*mine, theirs);
        cc_cond_broadcast(&work.second);
    }
    cc_mutex_unlock(&work.lock);
    return met;
}

CC_TASK(creature, { int me; }) {
    enum colour mine = (enum colour)(self->me % 3);
    uint64_t met = 0;
    while (meet(self->me, &mine)) met++;
    atomic_fetch_add(&work.met, met);
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(n)
    for (int i = 0; i < CREATURES; i++) bench_check(CC_GO_IN(n, creature, .me = i), "CC_GO_IN");
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "chameneos");
    uint64_t meetings = work.left = bench_scaled(&w.bench, 300000);
    work_run(&w, run, NULL);
    if (work.met != 2 * meetings) bench_fail("%llu creatures met", (unsigned long long)work.met);
    return work_end(&w, meetings);
}
