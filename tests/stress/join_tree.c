/* join_tree.c - trees of tasks, of random shape and joined in random order, give the sum that a loop gives. */
#include "stress.h"

/* ---- random trees ---- */

enum { CHILDREN_MAX = 6 };

/* A node is its seed and the levels below it: the shape follows from both, in the fiber and in the loop that
 * checks it. */
struct node {
    uint64_t seed;
    unsigned levels;
};

static unsigned children_of(struct node n, struct node *children) {
    if (n.levels == 0) return 0;
    uint64_t rng = n.seed;
    unsigned count = (unsigned)below(&rng, CHILDREN_MAX + 1);
    for (unsigned i = 0; i < count; i++) {
        children[i].seed = test_random(&rng);
        children[i].levels = n.levels - 1 - (unsigned)below(&rng, n.levels); /* some branches end early */
    }
    return count;
}

static uint64_t own_value(struct node n) {
    return n.seed >> 40;
}

static uint64_t sum_by_loop(struct node n) {
    struct node children[CHILDREN_MAX];
    unsigned count = children_of(n, children);
    uint64_t sum = own_value(n);
    for (unsigned i = 0; i < count; i++) sum += sum_by_loop(children[i]);
    return sum;
}

/* Joins in one of the ways that the interface has; a handle of each kind is consumed. */
static uint64_t join_somehow(CCTask task, uint64_t how) {
    void *result = NULL;
    CCTask copy;
    switch (how % 6) {
    case 0:
        while (cc_task_join_try(&task, &result) == EAGAIN) cc_yield();
        break;
    case 1:
        CHECK_EQ(cc_task_join_until(&task, &result, CC_FOREVER), 0);
        break;
    case 2:
        while (cc_task_join_until(&task, &result, cc_after_ns(20000)) == ETIMEDOUT) {
        }
        break;
    case 3:
        CHECK_EQ(cc_task_dup(&task, &copy), 0);
        CHECK_EQ(cc_task_join(&copy, NULL), 0);
        CHECK_EQ(cc_task_join(&task, &result), 0);
        break;
    case 4:
        CHECK_EQ(cc_task_dup(&task, &copy), 0);
        CHECK_EQ(cc_task_detach(&copy), 0);
        CHECK_EQ(copy.id, 0);
        CHECK_EQ(cc_task_join(&task, &result), 0);
        break;
    default:
        CHECK_EQ(cc_task_join(&task, &result), 0);
        break;
    }
    CHECK_EQ(task.id, 0);
    return (uint64_t)(uintptr_t)result;
}

static void *tree(void *arg) {
    struct node n = *(struct node *)arg;
    struct node children[CHILDREN_MAX];
    CCTask tasks[CHILDREN_MAX];
    unsigned count = children_of(n, children);
    uint64_t rng = n.seed ^ 1;
    CCSpawnOptions by_copy = {.arg_size = sizeof(struct node)};
    CCSpawnOptions named = {.arg_size = sizeof(struct node), .name = "branch"};
    CCSpawnOptions sized = {.arg_size = sizeof(struct node), .stack_size = 64 * 1024};
    for (unsigned i = 0; i < count; i++) {
        uint64_t kind = below(&rng, 16);
        CCSpawnOptions *options = kind == 0 ? &named : kind == 1 ? &sized : &by_copy;
        CHECK_EQ(cc_spawn(&tasks[i], tree, &children[i], options), 0);
        if (below(&rng, 8) == 0) cc_yield();
    }
    uint64_t sum = own_value(n);
    for (unsigned left = count; left > 0; left--) {
        unsigned i = (unsigned)below(&rng, left);
        sum += join_somehow(tasks[i], test_random(&rng));
        tasks[i] = tasks[left - 1];
    }
    return (void *)(uintptr_t)sum;
}

static void check_tree(uint64_t seed, unsigned levels) {
    struct node root = {seed, levels};
    void *sum;
    CHECK_EQ(cc_run(tree, &root, &sum), 0);
    CHECK_EQ((uintptr_t)sum, sum_by_loop(root));
}

TEST_WORKERS(random_trees) {
    uint64_t rng = test_seed();
    long rounds = test_rounds(600, 100000);
    for (long i = 0; i < rounds; i++) check_tree(test_random(&rng), 12);
    finish();
}

static void *trees_from_a_thread(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    long rounds = test_rounds(150, 30000);
    for (long i = 0; i < rounds; i++) check_tree(test_random(&rng), 12);
    return NULL;
}

TEST_WORKERS(random_trees_from_four_threads) {
    pthread_t threads[4];
    uint64_t rng = test_seed();
    for (int i = 0; i < 4; i++) threads[i] = start_thread(trees_from_a_thread, (void *)(uintptr_t)test_random(&rng));
    for (int i = 0; i < 4; i++) join_thread(threads[i]);
    finish();
}

/* ---- regular trees ---- */

struct span {
    uint64_t from, size;
};

static void *skynet(void *arg) {
    struct span s = *(struct span *)arg;
    if (s.size == 1) return (void *)(uintptr_t)s.from;
    CCTask tasks[10];
    struct span part = {s.from, s.size / 10};
    for (int i = 0; i < 10; i++, part.from += part.size) tasks[i] = cc_task_go(skynet, &part, sizeof part);
    uint64_t sum = 0;
    for (int i = 0; i < 10; i++) sum += (uintptr_t)join(tasks[i]);
    return (void *)(uintptr_t)sum;
}

TEST_WORKERS(skynet_adds_up) {
    long rounds = test_rounds(10, 1000);
    struct span all = {0, test_scale(10) == 10 ? 100000 : 10000};
    for (long i = 0; i < rounds; i++) {
        void *sum;
        CHECK_EQ(cc_run(skynet, &all, &sum), 0);
        CHECK_EQ((uintptr_t)sum, all.size * (all.size - 1) / 2);
    }
    finish();
}

static void *fib(void *arg) {
    uintptr_t n = (uintptr_t)arg;
    if (n < 2) return arg;
    CCTask first = spawn(fib, (void *)(n - 1)), second = spawn(fib, (void *)(n - 2));
    uintptr_t a = (uintptr_t)join(first);
    return (void *)(a + (uintptr_t)join(second));
}

TEST_WORKERS(fib_by_tasks) {
    long rounds = test_rounds(60, 6000);
    bool small = test_scale(10) != 10;
    for (long i = 0; i < rounds; i++) {
        void *result;
        CHECK_EQ(cc_run(fib, (void *)(uintptr_t)(small ? 14 : 20), &result), 0);
        CHECK_EQ((uintptr_t)result, small ? 377 : 6765);
    }
    finish();
}

/* One parent, many children, oldest joined first: every join but the first finds a task that others may hold. */
static void *echo(void *arg) {
    return arg;
}

static void *wide(void *arg) {
    uintptr_t count = (uintptr_t)arg;
    CCTask *tasks = allocate(count, sizeof *tasks);
    for (uintptr_t i = 0; i < count; i++) tasks[i] = spawn(echo, (void *)i);
    for (uintptr_t i = 0; i < count; i++) CHECK_EQ((uintptr_t)join(tasks[i]), i);
    free(tasks);
    return NULL;
}

TEST_WORKERS(wide_and_flat) {
    long rounds = test_rounds(40, 4000);
    for (long i = 0; i < rounds; i++) CHECK_EQ(cc_run(wide, (void *)(uintptr_t)10000, NULL), 0);
    finish();
}
