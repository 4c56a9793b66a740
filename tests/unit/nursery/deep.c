/* deep.c - a tree of scopes may be as deep as memory allows: no walk down the tree recurses. */
#include "scene.h"

#include <stdlib.h>

/* Levels; with one frame for each, a stack of the smallest size would hold a hundred and fifty. */
static size_t levels(void) {
    return (size_t)test_scale(20000);
}

static CCNursery **chain;

/* The first and the last have a grace period, so that it is armed and ends all the way down. */
static void build(void) {
    size_t n = levels();
    chain = calloc(n, sizeof *chain);
    CHECK(chain != NULL);
    for (size_t i = 0; i < n; i++) {
        CCNurseryConfig config = {.parent = i > 0 ? chain[i - 1] : NULL, .root = i == 0};
        if (i == 0 || i == n - 1) config.grace_ms = 1;
        chain[i] = cc_nursery_create_ex(&config);
        CHECK(chain[i] != NULL);
    }
}

static void take_down(void) {
    for (size_t i = levels(); i-- > 0;) CHECK_EQ(cc_nursery_free(chain[i]), 0);
    free(chain);
}

static atomic_int cancelled, pierced;

static void *shielded(void *arg) {
    (void)arg;
    CC_SHIELD CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED); /* until the grace period is over */
    atomic_fetch_add(&pierced, 1);
    return NULL;
}

static void *cancel_top(void *arg) {
    (void)arg;
    CHECK_EQ(cc_nursery_cancel_with(chain[0], ENOSPC, "full"), 0);
    return NULL;
}

static void cancel_from_a_small_stack(void) {
    cancelled = pierced = 0;
    build();
    CCNursery *last = chain[levels() - 1], *middle = chain[levels() / 2];
    CCFiberId ids[] = {start_child(last, wait_for_cancel, &cancelled), start_child(middle, wait_for_cancel, &cancelled),
                       start_child(last, shielded, NULL)};
    for (size_t i = 0; i < array_len(ids); i++) UNTIL(is_parked(ids[i]));
    CCTask task;
    CHECK_EQ(cc_spawn(&task, cancel_top, NULL, &(CCSpawnOptions){.stack_size = CC_STACK_SIZE_MIN}), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_nursery_wait(last), ECANCELED);
    CHECK_EQ(cc_nursery_wait(middle), ECANCELED);
    CHECK_EQ(cancelled, 2);
    CHECK_EQ(pierced, 1);
    take_down();
}

TEST_WORKERS(cancelled_from_a_small_stack) {
    cancel_from_a_small_stack();
    in_fiber(cancel_from_a_small_stack);
}

/* ---- what a wait costs ---- */

/* A wait checks whether the caller is a child of what it waits for, and cc_cancelled looks up the earliest deadline
 * above. With a step for each level this would take minutes. */
static void *wait_from_below(void *other) {
    CHECK_EQ(cc_nursery_set_deadline(chain[1], cc_after_ms(3600 * 1000)), 0);
    for (long i = 0, rounds = test_scale(200000); i < rounds; i++) {
        CHECK_EQ(cc_nursery_wait(other), 0);
        CHECK(!cc_cancelled());
    }
    CHECK(cc_deadline().ns != CC_FOREVER.ns);
    CHECK_EQ(cc_nursery_set_deadline(chain[1], CC_FOREVER), 0);
    CHECK_EQ(cc_deadline().ns, CC_FOREVER.ns);
    for (size_t i = 0; i < levels(); i += i < 100 ? 1 : 997) CHECK_EQ(cc_nursery_wait(chain[i]), EDEADLK);
    CHECK_EQ(cc_nursery_wait(chain[levels() - 1]), EDEADLK);
    return NULL;
}

TEST(waits_far_below_a_root, .timeout = 20) {
    build();
    CCNursery *other = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    CHECK(other != NULL);
    CHECK_EQ(cc_nursery_spawn(chain[levels() - 1], wait_from_below, other), 0);
    CHECK_EQ(cc_nursery_wait(chain[levels() - 1]), 0);
    CHECK_EQ(cc_nursery_free(other), 0);
    take_down();
}
