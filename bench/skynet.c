/* skynet.c - what does a wide tree of tasks cost? Ten children each, down to a million leaves, and the sum of
 * their numbers on the way back. One operation is one task, inner nodes included. The scale changes the
 * leaves by the nearest power of ten.
 */
#include "bench.h"

enum { CHILDREN = 10 };

struct work {
    uint64_t leaves, sum, ns;
};

CC_TASK(node, { uint64_t first, leaves; }) {
    if (self->leaves == 1) return (void *)(uintptr_t)self->first;
    CCTask children[CHILDREN];
    uint64_t share = self->leaves / CHILDREN, sum = 0;
    for (int i = 0; i < CHILDREN; i++)
        children[i] = CC_GO(node, .first = self->first + (uint64_t)i * share, .leaves = share);
    for (int i = 0; i < CHILDREN; i++) {
        void *result;
        bench_check(cc_task_join(&children[i], &result), "cc_task_join");
        sum += (uint64_t)(uintptr_t)result;
    }
    return (void *)(uintptr_t)sum;
}

static void *grow(void *arg) {
    struct work *work = arg;
    uint64_t start = cc_now_ns();
    CCTask root = CC_GO(node, .first = 0, .leaves = work->leaves);
    void *sum;
    bench_check(cc_task_join(&root, &sum), "cc_task_join");
    work->ns = cc_now_ns() - start;
    work->sum = (uint64_t)(uintptr_t)sum;
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "skynet");
    struct work work = {.leaves = 1000000};
    for (double scale = b.scale; scale > 3.2 && work.leaves < 100000000; scale /= 10) work.leaves *= CHILDREN;
    for (double scale = b.scale; scale < 0.32 && work.leaves > 1; scale *= 10) work.leaves /= CHILDREN;
    bench_run(grow, &work);
    if (work.sum != work.leaves * (work.leaves - 1) / 2) bench_fail("the sum is %llu", (unsigned long long)work.sum);
    uint64_t nodes = 0;
    for (uint64_t level = work.leaves; level > 0; level /= CHILDREN) nodes += level;
    return bench_end(&b, nodes, (double)work.ns, "");
}
