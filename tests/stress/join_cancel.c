/* join_cancel.c - trees of tasks whose joins are cancelled at random give the same sum as without: a cancelled join
 * keeps its handle, and the next one gets the result.
 *
 * Each node starts some children. A child may join an older sibling, cancel another one, shield itself, wait, yield or
 * compute; the parent joins them all, in any order. So joiners that run their tasks, joiners that wait and cancellers
 * of both race in all ways.
 */
#include "stress.h"

#include "arch/cpu.h"

enum { CHILDREN = 5 };

struct node {
    uint64_t seed;
    unsigned levels;
    bool has_sibling, has_victim;
    CCTask sibling, victim; /* handles of its own */
};

static atomic_ulong cancelled_joins, cancels;

static uint64_t sum_by_loop(uint64_t seed, unsigned levels) {
    uint64_t rng = seed, sum = seed >> 48;
    if (levels == 0) return sum;
    for (unsigned i = 0; i < CHILDREN; i++) sum += sum_by_loop(test_random(&rng), levels - 1);
    return sum;
}

/* A join that is cancelled, if at all, because the caller is. */
static uint64_t join_for_sure(CCTask task) {
    void *result = NULL;
    int rc = cc_task_join(&task, &result);
    if (rc == ECANCELED) {
        atomic_fetch_add(&cancelled_joins, 1);
        CHECK(cc_cancelled());
        CHECK(task.id != 0);
        CC_SHIELD rc = cc_task_join(&task, &result);
    }
    CHECK_EQ(rc, 0);
    CHECK(task.id == 0);
    return (uint64_t)(uintptr_t)result;
}

static void pause_somehow(uint64_t *rng) {
    switch (below(rng, 6)) {
    case 0:
        cc_yield();
        break;
    case 1:
        (void)cc_sleep_until(cc_after_ns(below(rng, 20000)));
        break;
    case 2:
        for (uint64_t i = below(rng, 2000); i > 0; i--) cc__cpu_relax();
        break;
    default:
        break;
    }
}

static void *run_node(void *arg);

static uint64_t run_children(struct node *self, uint64_t *shape, uint64_t *rng) {
    struct node children[CHILDREN];
    CCTask tasks[CHILDREN];
    for (unsigned i = 0; i < CHILDREN; i++) {
        children[i] = (struct node){.seed = test_random(shape), .levels = self->levels - 1};
        if (i > 0 && below(rng, 2) == 0) {
            children[i].has_sibling = true;
            CHECK_EQ(cc_task_dup(&tasks[below(rng, i)], &children[i].sibling), 0);
        }
        if (i > 0 && below(rng, 3) == 0) {
            children[i].has_victim = true;
            CHECK_EQ(cc_task_dup(&tasks[below(rng, i)], &children[i].victim), 0);
        }
        tasks[i] = spawn(run_node, &children[i]);
        if (below(rng, 8) == 0) pause_somehow(rng);
    }
    uint64_t sum = 0;
    unsigned first = (unsigned)below(rng, CHILDREN), victim = (unsigned)below(rng, 2 * CHILDREN);
    for (unsigned k = 0; k < CHILDREN; k++) {
        unsigned i = (first + k) % CHILDREN;
        if (victim < CHILDREN && victim != i && tasks[victim].id != 0) {
            int rc = cc_task_cancel(&tasks[victim]);
            CHECK(rc == 0);
            atomic_fetch_add(&cancels, 1);
        }
        sum += join_for_sure(tasks[i]);
        tasks[i].id = 0;
    }
    return sum;
}

static void *run_node(void *arg) {
    struct node *self = arg;
    uint64_t shape = self->seed, rng = self->seed ^ UINT64_C(0x9e3779b97f4a7c15);
    bool shielded = below(&rng, 4) == 0 && cc_shield_begin();
    pause_somehow(&rng);
    if (self->has_victim) {
        CHECK_EQ(cc_task_cancel(&self->victim), 0);
        CHECK_EQ(cc_task_detach(&self->victim), 0);
        atomic_fetch_add(&cancels, 1);
    }
    if (self->has_sibling) (void)join_for_sure(self->sibling);
    uint64_t sum = self->seed >> 48;
    if (self->levels > 0) sum += run_children(self, &shape, &rng);
    pause_somehow(&rng);
    cc_shield_end(shielded);
    return (void *)(uintptr_t)sum;
}

static void *grow(void *arg) {
    long rounds = test_rounds(30, 3000);
    uint64_t rng = 7;
    for (long i = 0; i < rounds; i++) {
        struct node root = {.seed = test_random(&rng), .levels = 3};
        CHECK_EQ(join_for_sure(spawn(run_node, &root)), sum_by_loop(root.seed, root.levels));
    }
    return arg;
}

TEST_WORKERS(trees_with_cancelled_joins, .timeout = 120) {
    CHECK_EQ(cc_run(grow, NULL, NULL), 0);
    CHECK(atomic_load(&cancels) > 0);
    finish();
}

/* The joiners, too, are in nurseries: a scope is cancelled while its children run each other. */
enum { FANS = 8 };

struct fan {
    uint64_t seed;
    CCNursery *n;
    CCTask tasks[FANS];
    struct member {
        struct fan *fan;
        unsigned index;
        CCTask before; /* a handle of the one before */
    } members[FANS];
};

static void *run_member(void *arg) {
    struct member *m = arg;
    uint64_t rng = m->fan->seed + m->index;
    pause_somehow(&rng);
    if (m->before.id != 0) (void)join_for_sure(m->before);
    if (below(&rng, 4 * FANS) == 0) CHECK_EQ(cc_nursery_cancel(m->fan->n), 0);
    pause_somehow(&rng);
    return NULL;
}

static void *run_fans(void *arg) {
    long rounds = test_rounds(300, 30000);
    uint64_t rng = 11;
    for (long i = 0; i < rounds; i++) {
        struct fan fan = {.seed = test_random(&rng), .n = cc_nursery_create(NULL)};
        CHECK(fan.n != NULL);
        for (unsigned k = 0; k < FANS; k++) {
            fan.members[k] = (struct member){.fan = &fan, .index = k};
            if (k > 0) CHECK_EQ(cc_task_dup(&fan.tasks[k - 1], &fan.members[k].before), 0);
            CHECK_EQ(cc_nursery_spawn_ex(fan.n, &fan.tasks[k], run_member, &fan.members[k], NULL), 0);
        }
        (void)join_for_sure(fan.tasks[FANS - 1]);
        int rc = cc_nursery_wait(fan.n);
        CHECK(rc == 0 || rc == ECANCELED);
        for (unsigned k = 0; k + 1 < FANS; k++) CHECK_EQ(cc_task_join(&fan.tasks[k], NULL), 0);
        CHECK_EQ(cc_nursery_free(fan.n), 0);
    }
    return arg;
}

TEST_WORKERS(scopes_are_cancelled_while_members_run_each_other, .timeout = 120) {
    CHECK_EQ(cc_run(run_fans, NULL, NULL), 0);
    finish();
}
