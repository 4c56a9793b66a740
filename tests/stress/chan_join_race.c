/* chan_join_race.c - of two users of the same handle of an ended task, one by join and one by select, exactly one
 * succeeds. */
#include "../battery/battery.h"

struct contest {
    CCTask copies[2];
    atomic_int ready;
    int returned[2];
    void *results[2];
};

struct contestant {
    struct contest *contest;
    int index;
};

static void *give_back(void *arg) {
    return arg;
}

static void *compete(void *arg) {
    struct contestant *c = arg;
    struct contest *contest = c->contest;
    CCTask *task = &contest->copies[c->index];
    atomic_fetch_add(&contest->ready, 1);
    while (atomic_load(&contest->ready) < 2) cc_yield();
    if (c->index == 0) {
        contest->returned[0] = cc_task_join(task, &contest->results[0]);
    } else {
        CCCase cases[] = {CC_JOIN(task, &contest->results[1], NULL)};
        size_t chosen;
        int rc = cc_select(cases, 1, CC_FOREVER, &chosen);
        contest->returned[1] = rc != 0 ? rc : cases[0].error;
    }
    return NULL;
}

/* Records are reused quickly here: a handle that is dropped twice soon belongs to another task. */
static atomic_bool over;

static void *bystander(void *unused) {
    (void)unused;
    for (uintptr_t i = 0; !atomic_load(&over); i++) {
        CCTask tasks[4];
        for (uintptr_t k = 0; k < 4; k++) CHECK_EQ(cc_spawn(&tasks[k], give_back, (void *)(i + k), NULL), 0);
        for (uintptr_t k = 0; k < 4; k++) {
            void *result = NULL;
            CHECK_EQ(cc_task_join(&tasks[k], &result), 0);
            CHECK_EQ((uintptr_t)result, i + k);
        }
        cc_yield();
    }
    return NULL;
}

static void race(enum parties kind) {
    struct party by[2] = {party_start(FIBERS, 0, bystander, NULL), party_start(THREADS, 0, bystander, NULL)};
    for (long round = 0; round < test_rounds(3000, 300000); round++) {
        CCTask task, other;
        CHECK_EQ(cc_spawn(&task, give_back, &over, NULL), 0);
        CHECK_EQ(cc_task_dup(&task, &other), 0);
        CHECK_EQ(cc_task_join(&other, NULL), 0); /* it has ended, one handle is left */
        struct contest contest = {.copies = {task, task}, .returned = {-1, -1}};
        struct contestant contestants[2] = {{&contest, 0}, {&contest, 1}};
        struct party parties[2];
        for (int i = 0; i < 2; i++) parties[i] = party_start(kind, i, compete, &contestants[i]);
        parties_end(parties, 2);
        int winner = contest.returned[0] == 0 ? 0 : 1;
        CHECK_EQ(contest.returned[winner], 0);
        CHECK_EQ(contest.returned[1 - winner], ESRCH);
        CHECK(contest.results[winner] == &over);
    }
    atomic_store(&over, true);
    parties_end(by, 2);
}

TEST(fibers, .timeout = 120) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
    race(FIBERS);
}

TEST(threads, .timeout = 120) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
    race(THREADS);
}
