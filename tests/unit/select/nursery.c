/* nursery.c - arms for the end of a nursery's children: at once, waited for, more than once, by a child of it. */
#include "arms.h"

/* Children that are counted before they start, and end on a signal. */
struct family {
    CCNursery *n;
    CCEvent go;
    atomic_int ended;
};

static void *stay(void *arg) {
    struct family *f = arg;
    CHECK_EQ(cc_event_wait(&f->go), 0);
    atomic_fetch_add(&f->ended, 1);
    return NULL;
}

static void family_init(struct family *f, int children) {
    f->n = cc_nursery_create(NULL);
    f->go = (CCEvent){0};
    atomic_init(&f->ended, 0);
    CHECK(f->n != NULL);
    for (int i = 0; i < children; i++) CHECK_EQ(cc_nursery_spawn(f->n, stay, f), 0);
}

static void *tell(void *arg) {
    struct family *f = arg;
    cc_yield();
    CHECK_EQ(cc_event_set(&f->go), 0);
    return NULL;
}

static void *ends_body(void *unused) {
    (void)unused;
    struct family f;
    family_init(&f, 0);
    size_t chosen = 9;
    CCCase cases[] = {CC_CANCEL(), CC_NURSERY_END_CASE(f.n)};
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0); /* there is no child */
    CHECK_EQ(chosen, 1);
    CHECK_EQ(cases[1].error, 0);
    for (int round = 0; round < 3; round++) { /* and again */
        CHECK_EQ(cc_event_reset(&f.go), 0);
        for (int i = 0; i < 3; i++) CHECK_EQ(cc_nursery_spawn(f.n, stay, &f), 0);
        CHECK_EQ(cc_select_try(cases, 2, &chosen), EAGAIN);
        CHECK_EQ(cc_select(cases, 2, cc_after_ms(1), &chosen), ETIMEDOUT);
        CCTask task = cc_fiber_spawn_task(tell, &f);
        int which = -1;
        CC_WHEN {
            CC_ON_AFTER_MS(3600 * 1000) {
                which = 0;
            }
            CC_ON_NURSERY_END(f.n) {
                which = 1;
                CHECK_EQ(CC_WHEN_ERROR, 0);
                CHECK_EQ(cc_nursery_children(f.n), 0);
            }
        }
        CHECK_EQ(which, 1);
        CHECK_EQ(atomic_load(&f.ended), 3 * (round + 1));
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
    CHECK_EQ(cc_nursery_wait(f.n), 0);
    CHECK_EQ(cc_nursery_free(f.n), 0);
    return NULL;
}

TEST_WORKERS(ends) {
    both_contexts(ends_body);
}

TEST(ends_in_a_simulation) {
    CHECK_EQ(cc_sim_run(11, ends_body, NULL, NULL), 0);
}

/* The last child ends, and its nursery is freed as soon as a select has said so. */
static void *frees_body(void *unused) {
    (void)unused;
    for (int i = 0; i < 200; i++) {
        struct family f;
        family_init(&f, 2);
        size_t chosen;
        CCCase cases[] = {CC_NURSERY_END_CASE(f.n), CC_NURSERY_END_CASE(f.n)};
        CHECK_EQ(cc_event_set(&f.go), 0);
        CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
        CHECK_EQ(cc_nursery_free(f.n), 0);
        CHECK_EQ(atomic_load(&f.ended), 2);
    }
    return NULL;
}

TEST_WORKERS(freed_at_once) {
    both_contexts(frees_body);
}

static void end_with(enum parties who, size_t unused) {
    (void)unused;
    enum { MANY = 4 };
    struct family f;
    family_init(&f, 3);
    struct choice choices[MANY];
    CCCase cases[MANY][2];
    CCEvent never = {0};
    struct party parties[MANY];
    for (int i = 0; i < MANY; i++) {
        CCCase end = CC_NURSERY_END_CASE(f.n), none = CC_EVENT_CASE(&never);
        cases[i][i % 2] = end;
        cases[i][1 - i % 2] = none;
        choice_init(&choices[i], cases[i], 2);
        parties[i] = party_start(who, i, choose, &choices[i]);
    }
    CHECK_EQ(cc_event_set(&f.go), 0);
    parties_end(parties, MANY);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(atomic_load(&choices[i].returned), 0);
        CHECK_EQ(choices[i].chosen, i % 2);
    }
    CHECK_EQ(atomic_load(&f.ended), 3);
    CHECK_EQ(cc_nursery_free(f.n), 0);
}

TEST_WORKERS(many_wait) {
    for_each_kind(end_with, 0);
}

/* In the block itself; a child that fails cancels the wait, as any other in the block. */
static void *fails_body(void *arg) {
    struct family *f = arg;
    CHECK_EQ(cc_event_wait(&f->go), 0);
    return cc_fail(EIO, "no");
}

static void *block_body(void *unused) {
    (void)unused;
    struct family f = {0};
    struct choice forever;
    int which = 0, rc = -1;
    choice_init(&forever, NULL, 0);
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_event_set(&f.go), 0);
        CHECK_EQ(cc_nursery_spawn(n, stay, &f), 0);
        CC_WHEN {
            CC_ON_NURSERY_END(n) {
                which = 1;
            }
        }
    }
    CHECK_EQ(which, 1);
    CHECK_EQ(rc, 0);
    CHECK_EQ(cc_event_reset(&f.go), 0);
    CC_NURSERY(n, .result = &rc) {
        CCEvent never = {0};
        CHECK_EQ(cc_nursery_spawn(n, fails_body, &f), 0);
        CCTask task = cc_fiber_spawn_task(tell, &f);
        CHECK_EQ(cc_nursery_spawn(n, choose, &forever), 0);
        CC_WHEN {
            CC_ON_EVENT(&never) {
                which = -1;
            }
            CC_ON_CANCEL() {
                which = 2;
            }
        }
        CHECK_EQ(cc_task_detach(&task), 0);
        CC_SHIELD {
            CC_WHEN {
                CC_ON_NURSERY_END(n) {
                    which += 10;
                }
            }
        }
    }
    CHECK_EQ(which, 12);
    CHECK_EQ(rc, EIO);
    return NULL;
}

TEST_WORKERS(in_its_block) {
    both_contexts(block_body);
}

/* ---- misuse ---- */

static void *waits_for_itself(void *nursery) {
    size_t chosen;
    CCCase cases[] = {CC_NURSERY_END_CASE((CCNursery *)nursery)};
    CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), EDEADLK);
    CHECK_EQ(cc_select_try(cases, 1, &chosen), EDEADLK);
    CC_NURSERY(inner) { /* below it as well */
        CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), EDEADLK);
    }
    return NULL;
}

static void own_nursery(void *n) {
    CC_WHEN {
        CC_ON_NURSERY_END((CCNursery *)n) {}
    }
}

static void expect_panic(void *n, const char *text) {
    CCPanic why;
    CHECK_EQ(cc_try(own_nursery, n, &why), ENOTRECOVERABLE);
    if (strstr(why.message, text) == NULL) test_fail(__FILE__, __LINE__, "'%s' lacks '%s'", why.message, text);
}

static void *panics_for_itself(void *n) {
    expect_panic(n, "CC_WHEN: a child waits for the end of its own nursery, and so for itself");
    return NULL;
}

static void *misuse_body(void *unused) {
    (void)unused;
    size_t chosen;
    CCCase cases[] = {CC_NURSERY_END_CASE(NULL)};
    CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), EINVAL);
    expect_panic(NULL, "CC_WHEN: arm 1 of 1: the nursery is NULL");
    int rc = -1;
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_nursery_spawn(n, waits_for_itself, n), 0);
        CHECK_EQ(cc_nursery_spawn(n, panics_for_itself, n), 0);
    }
    CHECK_EQ(rc, 0);
    return NULL;
}

TEST_WORKERS(misuse) {
    both_contexts(misuse_body);
}
