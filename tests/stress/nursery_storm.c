/* nursery_storm.c - hundreds of thousands of nurseries: tiny, deep, wide, failing, freed at once. */
#include "stress.h"

#include "nursery/nursery.h"

#include <unistd.h>

static CCNursery *new_nursery(const CCNurseryConfig *config) {
    CCNursery *n = cc_nursery_create_ex(config);
    CHECK(n != NULL);
    return n;
}

static void *count_up(void *counter) {
    atomic_fetch_add((atomic_long *)counter, 1);
    return NULL;
}

/* ---- tiny ones ---- */

enum { MAKERS = 8 };

static atomic_long ran;

/* The last child's exit against the wait and the free; sometimes the free comes first and cancels. */
static void *make_tiny(void *arg) {
    uint64_t rng = test_seed() ^ (uintptr_t)arg;
    long rounds = test_rounds(15000, 1000000), started = 0;
    for (long i = 0; i < rounds; i++) {
        CCNursery *n = new_nursery(NULL);
        uint64_t children = below(&rng, 3);
        for (uint64_t k = 0; k < children; k++) CHECK_EQ(cc_nursery_spawn(n, count_up, &ran), 0);
        started += (long)children;
        size_t chosen;
        CCCase end[] = {CC_NURSERY_END_CASE(n), CC_NURSERY_END_CASE(n)};
        switch (below(&rng, 5)) {
        case 0:
            break;
        case 1:
            cc_yield();
            break;
        case 2:
            CHECK_EQ(cc_select(end, 2, CC_FOREVER, &chosen), 0);
            break;
        default:
            CHECK_EQ(cc_nursery_wait(n), 0);
            CHECK_EQ(cc_nursery_children(n), 0);
        }
        CHECK_EQ(cc_nursery_free(n), 0);
    }
    return (void *)started;
}

static void tiny(bool threads) {
    long started = 0;
    ran = 0;
    if (threads) {
        pthread_t makers[MAKERS];
        for (uintptr_t i = 0; i < MAKERS; i++) makers[i] = start_thread(make_tiny, (void *)(i + 1));
        for (int i = 0; i < MAKERS; i++) {
            void *result;
            CHECK_EQ(pthread_join(makers[i], &result), 0);
            started += (long)result;
        }
    } else {
        CCTask makers[MAKERS];
        for (uintptr_t i = 0; i < MAKERS; i++) makers[i] = spawn(make_tiny, (void *)(i + 1));
        for (int i = 0; i < MAKERS; i++) started += (long)join(makers[i]);
    }
    CHECK_EQ(ran, started);
    finish();
}

TEST(tiny_on_eight_workers, .timeout = 300) {
    start(8);
    tiny(false);
}

TEST_WORKERS(tiny_ones, .timeout = 300) {
    tiny(false);
}

TEST(tiny_from_threads, .timeout = 300) {
    if (test_scale(100) < 100) SKIP("threads that spin for a lock take too long here");
    start(4);
    tiny(true);
}

/* ---- many children, flat memory ---- */

static long resident_pages(void) {
    long size, pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) return 0;
    if (fscanf(f, "%ld %ld", &size, &pages) != 2) pages = 0;
    fclose(f);
    return pages;
}

static void *feed_one_nursery(void *arg) {
    long children = test_scale(test_scale(1000000)), before = 0;
    CCNursery *n = new_nursery(NULL);
    (void)arg;
    for (long i = 0; i < children; i++) {
        CHECK_EQ(cc_nursery_spawn(n, count_up, &ran), 0);
        if (i % 100 == 99) CHECK_EQ(cc_nursery_wait(n), 0); /* started, at most: the rest is not counted any more */
        if (i == children / 10) before = resident_pages();
    }
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(ran, children);
    long grown = (resident_pages() - before) * sysconf(_SC_PAGESIZE);
    printf("grown by %ld KiB\n", grown / 1024);
    if (children >= 1000000) CHECK(grown < 4 * 1024 * 1024);
    CHECK(cc__list_empty(&n->scope.members));
    CHECK_EQ(cc_nursery_free(n), 0);
    return NULL;
}

TEST_WORKERS(a_million_children, .timeout = 300) {
    run_and_finish(feed_one_nursery, NULL);
}

/* ---- a wide one that is cancelled ---- */

static atomic_long cancelled;

static void *sleep_till_cancelled(void *arg) {
    (void)arg;
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    CCError why;
    CHECK_EQ(cc_cancel_reason(&why), 0);
    CHECK_EQ(why.code, EXDEV);
    atomic_fetch_add(&cancelled, 1);
    return NULL;
}

static void *cancel_many(void *arg) {
    (void)arg;
    long children = test_scale(test_scale(100000));
    CCNursery *n = new_nursery(NULL);
    for (long i = 0; i < children; i++) CHECK_EQ(cc_nursery_spawn(n, sleep_till_cancelled, NULL), 0);
    for (int i = 0; i < 20; i++) cc_yield(); /* most of them wait by now */
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, NULL), 0);
    CHECK_EQ(cc_nursery_wait(n), EXDEV);
    CHECK_EQ(cancelled, children);
    CHECK_EQ(cc_nursery_free(n), 0);
    return NULL;
}

TEST_WORKERS(a_hundred_thousand_parked, .timeout = 300) {
    run_and_finish(cancel_many, NULL);
}

/* The same by an OS thread, and by a deadline. */
TEST_WORKERS(ten_thousand_from_outside, .timeout = 300) {
    long children = test_scale(test_scale(10000));
    CCNursery *n = new_nursery(NULL);
    for (long i = 0; i < children; i++) CHECK_EQ(cc_nursery_spawn(n, sleep_till_cancelled, NULL), 0);
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, NULL), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cancelled, children);
    finish();
}

/* ---- trees that fail, are cancelled, run out of time ---- */

struct node {
    uint64_t rng;
    int depth;
};

static atomic_long leaves;

/* Every node waits for its whole subtree, whatever happens in it. */
static void *grow(void *arg) {
    struct node self = *(struct node *)arg;
    if (self.depth == 0) {
        atomic_fetch_add(&leaves, 1);
        switch (below(&self.rng, 6)) {
        case 0:
            return cc_fail(EIO, "leaf");
        case 1:
            (void)cc_sleep_until(cc_after_ns(below(&self.rng, 20000)));
            break;
        case 2:
            (void)cc_check_cancel();
            break;
        case 3:
            CC_SHIELD(void) cc_sleep_until(cc_after_ns(below(&self.rng, 5000)));
            break;
        default:
            cc_yield();
        }
        return NULL;
    }
    int rc = 0;
    uint64_t r = test_random(&self.rng);
    CCNurseryConfig config = {.result = &rc};
    if (r % 5 == 0) config.mode = CC_NURSERY_KEEP_GOING;
    if (r % 7 == 0) config.deadline = cc_after_ns(r % 50000);
    if (r % 11 == 0) config.grace_ms = 1;
    CCNursery *n CC_CLEANUP(cc_nursery_leave) = cc_nursery_enter(&config);
    struct node child = {.depth = self.depth - 1};
    CCSpawnOptions options = {.arg_size = sizeof child};
    for (uint64_t i = 0, count = 1 + r % 4; i < count; i++) {
        child.rng = test_random(&self.rng);
        CHECK_EQ(cc_nursery_spawn_ex(n, NULL, grow, &child, &options), 0);
    }
    if (r % 13 == 0) CHECK_EQ(cc_nursery_cancel(n), 0);
    if (r % 17 == 0) CC_WITH_DEADLINE(cc_after_ns(r % 30000))(void) cc_nursery_wait_until(n, CC_FOREVER);
    return r % 19 == 0 ? CC_ERROR(ENXIO) : NULL;
}

static void *grow_forest(void *arg) {
    uint64_t rng = test_seed() ^ cc_fiber_id();
    (void)arg;
    for (long i = 0, rounds = test_rounds(300, 30000); i < rounds; i++) {
        CCNursery *n = new_nursery(NULL);
        struct node root = {test_random(&rng), 1 + (int)below(&rng, 5)};
        CCSpawnOptions options = {.arg_size = sizeof root};
        CHECK_EQ(cc_nursery_spawn_ex(n, NULL, grow, &root, &options), 0);
        if (below(&rng, 3) == 0) {
            compute_ns(below(&rng, 5000));
            CHECK_EQ(cc_nursery_cancel(n), 0);
        }
        (void)cc_nursery_wait(n);
        CHECK(cc__list_empty(&n->scope.members) && cc__list_empty(&n->scope.inner) &&
              cc__list_empty(&n->scope.waiters));
        CHECK_EQ(cc_nursery_free(n), 0);
    }
    return NULL;
}

TEST_WORKERS(trees_that_fail, .timeout = 300) {
    CCTask tasks[6];
    for (int i = 0; i < 6; i++) tasks[i] = spawn(grow_forest, NULL);
    for (int i = 0; i < 6; i++) join(tasks[i]);
    CHECK(leaves > 0);
    finish();
}

/* ---- a parent is cancelled while nurseries are made and freed below it ---- */

static void *make_below(void *arg) {
    CCNursery *parent = arg;
    for (;;) {
        CCNursery *n = cc_nursery_create(parent);
        CHECK(n != NULL);
        atomic_long count = 0;
        CHECK_EQ(cc_nursery_spawn(n, count_up, &count), 0);
        int rc = 0;
        CC_SHIELD rc = cc_nursery_wait(n);
        CHECK(rc == 0 || rc == ECANCELED); /* from above */
        CHECK_EQ(count, 1);
        CHECK_EQ(cc_nursery_free(n), 0);
        if (cc_cancelled()) return NULL;
        cc_yield();
    }
}

static void *cancel_above(void *arg) {
    (void)arg;
    uint64_t rng = test_seed();
    for (long i = 0, rounds = test_rounds(1000, 100000); i < rounds; i++) {
        CCNursery *n = new_nursery(NULL);
        for (int k = 0; k < 4; k++) CHECK_EQ(cc_nursery_spawn(n, make_below, n), 0);
        for (uint64_t k = below(&rng, 5); k > 0; k--) cc_yield();
        compute_ns(below(&rng, 5000));
        CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, NULL), 0);
        CHECK_EQ(cc_nursery_wait(n), EXDEV);
        CHECK_EQ(cc_nursery_free(n), 0);
    }
    return NULL;
}

TEST_WORKERS(made_while_the_parent_is_cancelled, .timeout = 300) {
    run_and_finish(cancel_above, NULL);
}
