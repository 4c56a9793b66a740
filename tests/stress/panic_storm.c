/* panic_storm.c - a hundred thousand panics, in scopes, in fibers, in tasks that their joiners run and in hosted calls:
 * each deferred function runs once, every joiner gets the right result, and nothing leaks. */
#include "stress.h"

static atomic_long deferred, destroyed;

static void count(void *counter) {
    atomic_fetch_add((atomic_long *)counter, 1);
}

static void stop(void *arg) {
    (void)arg;
    CHECK(cc_recover(NULL));
}

/* The reports of so many panics would hide a failure, so they are discarded: TEST_LOUD=1 shows them. */
static void quiet(void) {
    if (getenv("TEST_LOUD") == NULL) CHECK(freopen("/dev/null", "w", stderr) != NULL);
}

static long rss_kb(void) {
    char line[256];
    long value = -1;
    FILE *f = fopen("/proc/self/status", "re");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0) value = atol(line + 6);
    fclose(f);
    CHECK(value > 0);
    return value;
}

/* ---- one after another, in one place ---- */

static __attribute__((noinline)) void descend(int depth) {
    if (depth < 0) return; /* never, but the compiler warns of a function without a way out */
    CC_DEFER(count, &deferred);
    if (depth == 0) cc_panic("at the bottom");
    descend(depth - 1);
    atomic_fetch_add(&destroyed, 1000000); /* never */
}

static void fall(void *arg) {
    CHECK_EQ(cc_defer(count, &deferred), 0);
    descend((int)(intptr_t)arg);
}

static void fall_softly(void *arg) {
    CHECK_EQ(cc_defer(stop, NULL), 0);
    fall(arg);
}

static void *fall_task(void *arg) {
    fall(arg);
    return arg;
}

static long one_round(int i) {
    int depth = i % 8;
    void *arg = (void *)(intptr_t)depth;
    CCTask task;
    switch (i % 5) {
    case 0:
        CHECK_EQ(cc_try(fall, arg, NULL), ENOTRECOVERABLE);
        break;
    case 1:
        CHECK_EQ(cc_try(fall_softly, arg, NULL), 0);
        break;
    case 2:
        CHECK_EQ(cc_hosted_call(fall_task, arg, NULL, NULL), ENOTRECOVERABLE);
        break;
    default: /* on this fiber's stack, or on another */
        task = spawn(fall_task, arg);
        if (i % 5 == 3) cc_yield();
        CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
    }
    return depth + 2;
}

static void many(long n) {
    long expected = atomic_load(&deferred);
    for (long i = 0; i < n; i++) expected += one_round((int)i);
    CHECK_EQ(atomic_load(&deferred), expected);
    CHECK_EQ(atomic_load(&destroyed), 0);
}

static void *many_in_fiber(void *arg) {
    many((long)(intptr_t)arg);
    return NULL;
}

/* The second half takes no more memory than the first. */
TEST_WORKERS(nothing_is_left_behind, .timeout = 300) {
    quiet();
    long n = test_rounds(100000, 5000000);
    CHECK_EQ(cc_run(many_in_fiber, (void *)(intptr_t)(n / 10), NULL), 0);
    long before = rss_kb();
    CHECK_EQ(cc_run(many_in_fiber, (void *)(intptr_t)n, NULL), 0);
    many(n / 5);
    long after = rss_kb();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(CC_TSAN)
    CHECK(after < before + 4096);
#else
    (void)before, (void)after;
#endif
    finish();
}

/* ---- trees of tasks, some of which panic ---- */

struct node {
    uint64_t seed;
    unsigned levels;
};

static CCLocalKey key;

static unsigned shape(struct node n, struct node *children, bool *panics, bool *waits) {
    uint64_t rng = n.seed;
    *panics = below(&rng, 3) == 0;
    *waits = below(&rng, 4) == 0;
    unsigned count_of = n.levels == 0 ? 0 : (unsigned)below(&rng, 5);
    for (unsigned i = 0; i < count_of; i++) children[i] = (struct node){test_random(&rng), n.levels - 1};
    return count_of;
}

static bool fails(struct node n) {
    struct node children[4];
    bool panics, waits;
    (void)shape(n, children, &panics, &waits);
    return panics;
}

static long nodes_by_loop(struct node n) {
    struct node children[4];
    bool panics, waits;
    unsigned count_of = shape(n, children, &panics, &waits);
    long sum = 1;
    for (unsigned i = 0; i < count_of; i++) sum += nodes_by_loop(children[i]);
    return sum;
}

static void join_all(CCTask *tasks, const struct node *children, unsigned count_of) {
    for (unsigned i = 0; i < count_of; i++)
        CHECK_EQ(cc_task_join(&tasks[i], NULL), fails(children[i]) ? ENOTRECOVERABLE : 0);
}

static void *tree(void *arg) {
    struct node n = *(struct node *)arg, children[4];
    CCTask tasks[4];
    bool panics, waits;
    unsigned count_of = shape(n, children, &panics, &waits);
    CC_DEFER(count, &deferred);
    CHECK_EQ(cc_local_set(key, &destroyed), 0);
    for (unsigned i = 0; i < count_of; i++) tasks[i] = spawn(tree, &children[i]);
    if (waits) cc_yield();
    join_all(tasks, children, count_of);
    if (panics) descend(0);
    return NULL;
}

TEST_WORKERS(trees_that_panic, .timeout = 300) {
    quiet();
    CHECK_EQ(cc_local_key_create(&key, count), 0);
    uint64_t rng = test_seed();
    long rounds = test_rounds(300, 30000), nodes = 0;
    for (long i = 0; i < rounds; i++) {
        struct node root = {test_random(&rng), 7};
        nodes += nodes_by_loop(root);
        CHECK_EQ(cc_run(tree, &root, NULL), fails(root) ? ENOTRECOVERABLE : 0);
    }
    CHECK_EQ(atomic_load(&destroyed), nodes);
    CHECK(atomic_load(&deferred) >= nodes);
    finish();
}

/* ---- threads ---- */

static void *host(void *arg) {
    long n = (long)(intptr_t)arg;
    for (long i = 0; i < n; i++) (void)one_round((int)i);
    return NULL;
}

TEST_WORKERS(four_threads, .timeout = 300) {
    pthread_t threads[4];
    quiet();
    long n = test_rounds(2000, 200000);
    for (int i = 0; i < 4; i++) threads[i] = start_thread(host, (void *)(intptr_t)n);
    for (int i = 0; i < 4; i++) join_thread(threads[i]);
    long expected = 0;
    for (long i = 0; i < n; i++) expected += i % 8 + 2;
    CHECK_EQ(atomic_load(&deferred), 4 * expected);
    finish();
}
