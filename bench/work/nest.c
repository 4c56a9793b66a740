/* nest.c - nurseries in nurseries: four levels with three children each, again and again. One operation: a child. */
#include "work.h"

enum { LEVELS = 4, CHILDREN = 3, TREE = 3 + 9 + 27 + 81 };

static _Atomic uint64_t children;
static uint64_t rounds;

CC_TASK(grow, { int level; }) {
    atomic_fetch_add_explicit(&children, 1, memory_order_relaxed);
    if (self->level == 0) return NULL;
    CC_NURSERY(n)
    for (int i = 0; i < CHILDREN; i++) bench_check(CC_GO_IN(n, grow, .level = self->level - 1), "CC_GO_IN");
    return NULL;
}

static void *run(void *arg) {
    for (uint64_t i = 0; i < rounds; i++) CC_NURSERY(n)
    for (int k = 0; k < CHILDREN; k++) bench_check(CC_GO_IN(n, grow, .level = LEVELS - 1), "CC_GO_IN");
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "nest");
    rounds = bench_scaled(&w.bench, 4000);
    work_run(&w, run, NULL);
    if (children != rounds * TREE) bench_fail("%llu children ran", (unsigned long long)children);
    return work_end(&w, rounds * TREE);
}
