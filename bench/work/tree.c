/* tree.c - an unbalanced tree is counted, with a task for each child of the upper part; how many children a node has,
 * from none to eight, depends on its hash. One operation: a node. */
#include "work.h"

enum { SPAWN_DEPTH = 6, ROOT_CHILDREN = 500, LIMIT = 200 };

static uint64_t hash(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* One node in nine has eight children: on average just under one child per node, so the tree is finite. */
static unsigned children_of(uint64_t node, unsigned depth) {
    return depth == 0 ? ROOT_CHILDREN : depth < LIMIT && hash(node) % 1000 < 122 ? 8 : 0;
}

static void *count_task(void *arg);

struct subtree {
    uint64_t node, count;
    unsigned depth;
};

static uint64_t count_in_tasks(uint64_t node, unsigned depth, unsigned n) {
    struct {
        struct subtree subtree;
        CCTask task;
    } *children = malloc(n * sizeof *children);
    uint64_t sum = 1;
    if (children == NULL) bench_fail("no memory for %u children", n);
    for (unsigned i = 0; i < n; i++) {
        children[i].subtree = (struct subtree){hash(node * 8191 + i + 1), 0, depth + 1};
        bench_check(cc_spawn(&children[i].task, count_task, &children[i].subtree, NULL), "cc_spawn");
    }
    for (unsigned i = n; i-- > 0;) {
        bench_check(cc_task_join(&children[i].task, NULL), "cc_task_join");
        sum += children[i].subtree.count;
    }
    free(children);
    return sum;
}

static uint64_t count_alone(uint64_t node, unsigned depth) {
    uint64_t sum = 1;
    for (unsigned n = children_of(node, depth), i = 0; i < n; i++)
        sum += count_alone(hash(node * 8191 + i + 1), depth + 1);
    return sum;
}

static uint64_t count(uint64_t node, unsigned depth) {
    unsigned n = children_of(node, depth);
    return depth > SPAWN_DEPTH || n == 0 ? count_alone(node, depth) : count_in_tasks(node, depth, n);
}

static void *count_task(void *arg) {
    struct subtree *s = arg;
    s->count = count(s->node, s->depth);
    return NULL;
}

static uint64_t rounds, nodes;

static void *run(void *arg) {
    for (uint64_t i = 0; i < rounds; i++) nodes += count(i + 1, 0);
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "tree");
    rounds = bench_scaled(&w.bench, 40);
    uint64_t expected = 0;
    for (uint64_t i = 0; i < rounds; i++) expected += count_alone(i + 1, 0);
    work_run(&w, run, NULL);
    if (nodes != expected) bench_fail("%llu nodes were counted", (unsigned long long)nodes);
    return work_end(&w, nodes);
}
