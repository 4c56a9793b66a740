/* range_tree.c - how well are unbalanced trees spread over the workers? The roots, and in the upper part of a tree the
 * children of a node, are counted by cc_parallel_reduce. One operation: a thousand nodes. */
#include "bench.h"

#include "range_body.h"

struct node {
    uint64_t id;
    unsigned depth;
};

static uint64_t count(uint64_t id, unsigned depth);

static int count_children(size_t begin, size_t end, void *sum, void *arg) {
    const struct node *node = arg;
    for (size_t i = begin; i < end; i++) *(uint64_t *)sum += count(range_child(node->id, i), node->depth + 1);
    return 0;
}

static void combine(void *sum, const void *right, void *unused) {
    (void)unused;
    *(uint64_t *)sum += *(const uint64_t *)right;
}

static int count_roots(size_t begin, size_t end, void *sum, void *unused) {
    (void)unused;
    for (size_t i = begin; i < end; i++) *(uint64_t *)sum += count(i + 1, 0);
    return 0;
}

static uint64_t reduce(size_t n, int (*range)(size_t begin, size_t end, void *sum, void *arg), void *arg) {
    uint64_t sum;
    const uint64_t zero = 0;
    CCReduction plus = {.size = sizeof zero, .identity = &zero, .range = range, .combine = combine};
    bench_check(cc_parallel_reduce(0, n, &plus, arg, &sum), "cc_parallel_reduce");
    return sum;
}

static uint64_t count(uint64_t id, unsigned depth) {
    unsigned n = range_children(id, depth);
    if (n == 0 || depth > TREE_DEPTH) return range_count_alone(id, depth);
    return 1 + reduce(n, count_children, &(struct node){id, depth});
}

struct work {
    uint64_t roots, nodes, ns;
};

static void *run(void *arg) {
    struct work *work = arg;
    for (int turn = 0; turn < RANGE_TURNS; turn++) {
        uint64_t start = cc_now_ns(), nodes = reduce(work->roots, count_roots, NULL);
        work->ns += cc_now_ns() - start;
        if (nodes != work->nodes) bench_fail("%llu nodes were counted", (unsigned long long)nodes);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "range_tree");
    struct work work = {.roots = bench_scaled(&b, TREE_ROOTS)};
    for (uint64_t i = 0; i < work.roots; i++) work.nodes += range_count_alone(i + 1, 0);
    bench_run(run, &work);
    return bench_end(&b, RANGE_TURNS * work.nodes / 1000 + 1, (double)work.ns, "");
}
