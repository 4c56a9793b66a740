/* wait_group.c - a wait ends when all are done; the group may be reused or freed at once. */
#include "waiters.h"

/* ---- alone: the zero value, three forms, bad arguments ---- */

static void no_object(void) {
    CHECK_EQ(cc_wait_group_add(NULL, 1), EINVAL);
    CHECK_EQ(cc_wait_group_done(NULL), EINVAL);
    CHECK_EQ(cc_wait_group_wait(NULL), EINVAL);
    CHECK_EQ(cc_wait_group_wait_try(NULL), EINVAL);
    CHECK_EQ(cc_wait_group_wait_until(NULL, CC_FOREVER), EINVAL);
}

static void use_alone(void) {
    CCWaitGroup wg = {0};
    CHECK_EQ(cc_wait_group_wait(&wg), 0);
    CHECK_EQ(cc_wait_group_wait_try(&wg), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_wait_group_add(&wg, 3), 0);
        CHECK_EQ(cc_wait_group_add(&wg, 0), 0);
        CHECK_EQ(cc_wait_group_done(&wg), 0);
        CHECK_EQ(cc_wait_group_wait_try(&wg), EAGAIN);
        times_out(call_group, &wg);
        CHECK_EQ(cc_wait_group_add(&wg, -2), 0);
        CHECK_EQ(cc_wait_group_wait(&wg), 0);
        CHECK_EQ(cc_wait_group_wait_until(&wg, past), 0);
    }
    CHECK(wg.first == NULL);
}

TESTS_ALONE(no_object, use_alone)

/* ---- among several ---- */

struct part {
    CCWaitGroup *group;
    long written; /* not atomic: the group orders it */
};

static void *work_a_part(void *arg) {
    struct part *p = arg;
    p->written++;
    CHECK_EQ(cc_wait_group_done(p->group), 0);
    return NULL;
}

/* Round after round on one group; what the workers wrote is there when the wait returns. */
static void reuse_with(enum parties who, size_t unused) {
    (void)unused;
    CCWaitGroup group = {0};
    struct part parts[6] = {{0}};
    for (long round = 1; round <= test_rounds(300, 100000); round++) {
        struct party parties[6];
        CHECK_EQ(cc_wait_group_add(&group, 6), 0);
        for (int i = 0; i < 6; i++) {
            parts[i].group = &group;
            parties[i] = party_start(who, i, work_a_part, &parts[i]);
        }
        CHECK_EQ(cc_wait_group_wait(&group), 0);
        for (int i = 0; i < 6; i++) CHECK_EQ(parts[i].written, round);
        parties_end(parties, 6);
    }
}

static void *reuse_in_fiber(void *unused) {
    reuse_with(FIBERS, 0);
    reuse_with(MIXED, 0);
    return unused;
}

TEST_WORKERS(round_after_round, .timeout = 120) {
    for_each_kind(reuse_with, 0);
    CHECK_EQ(cc_run(reuse_in_fiber, NULL, NULL), 0);
}

/* On the stack of the waiter, which returns after the wait. */
static void *count_down(void *group) {
    CHECK_EQ(cc_wait_group_done(group), 0);
    return NULL;
}

static void gone_with(enum parties who, size_t unused) {
    (void)unused;
    for (long round = 0; round < test_rounds(500, 100000); round++) {
        CCWaitGroup *group = calloc(1, sizeof *group);
        struct party parties[3];
        CHECK(group != NULL);
        CHECK_EQ(cc_wait_group_add(group, 3), 0);
        for (int i = 0; i < 3; i++) parties[i] = party_start(who, i, count_down, group);
        CHECK_EQ(cc_wait_group_wait(group), 0);
        memset(group, 0xff, sizeof *group);
        free(group);
        parties_end(parties, 3);
    }
}

TEST_WORKERS(gone_after_the_wait) {
    for_each_kind(gone_with, 0);
}

/* ---- misuse ---- */

TEST_DIES(more_done_than_added, "cc_wait_group_done: the count is 0: more is done than was added", .signal = SIGABRT) {
    CCWaitGroup wg = {0};
    CHECK_EQ(cc_wait_group_add(&wg, 1), 0);
    CHECK_EQ(cc_wait_group_done(&wg), 0);
    (void)cc_wait_group_done(&wg);
}

TEST_DIES(too_much_added, "is too much", .signal = SIGABRT) {
    CCWaitGroup wg = {0};
    CHECK_EQ(cc_wait_group_add(&wg, INT32_MAX), 0);
    (void)cc_wait_group_add(&wg, 1);
}
