/* model.c - random nestings of nurseries, deadlines and shields by one caller, with cancellations in between, against a
 * model: the caller is cancelled if a scope that it is below was cancelled, and it has not raised a shield since it
 * entered that one. */
#include "scene.h"

enum { DEPTH = 7 };

/* What the caller has entered. parent: the index of the scope above, -1: none. */
struct entered {
    bool shield, cancelled;
    int parent;
    CCNursery *nursery; /* NULL: none */
};

struct walk {
    struct entered at[DEPTH];
    int count;
    bool task_cancelled;
    CCTask *self; /* NULL: an OS thread */
    CCEvent ready;
    uint64_t rng;
};

static unsigned below(struct walk *w, unsigned n) {
    return (unsigned)(test_random(&w->rng) >> 16) % n;
}

static int innermost(const struct walk *w) {
    int i = w->count - 1;
    while (i >= 0 && w->at[i].shield) i--;
    return i;
}

static bool is_shielded_since(const struct walk *w, int i) {
    while (++i < w->count)
        if (w->at[i].shield) return true;
    return false;
}

static bool should_be_cancelled(const struct walk *w) {
    bool cancelled = w->task_cancelled && !is_shielded_since(w, -1);
    for (int i = innermost(w); i >= 0; i = w->at[i].parent) cancelled |= w->at[i].cancelled && !is_shielded_since(w, i);
    return cancelled;
}

static bool is_child_cancelled(const struct walk *w, int i) {
    bool cancelled = false;
    for (; i >= 0; i = w->at[i].parent) cancelled |= w->at[i].cancelled;
    return cancelled;
}

static void compare(struct walk *w) {
    bool expected = should_be_cancelled(w);
    CHECK_EQ(cc_cancelled(), expected);
    if (!expected && below(w, 16) != 0) return; /* a sleep that is not cancelled takes time */
    CHECK_EQ(cc_sleep_until(expected ? CC_FOREVER : cc_after_ns(1000)), expected ? ECANCELED : 0);
}

/* One of the nurseries; -1: none. */
static int choose(struct walk *w) {
    int chosen = -1;
    for (int i = 0; i < w->count; i++)
        if (w->at[i].nursery != NULL && below(w, 2) == 0) chosen = i;
    return chosen;
}

static void step(struct walk *w);

static void go_inside(struct walk *w, struct entered what) {
    w->at[w->count++] = what;
    compare(w);
    for (unsigned steps = 1 + below(w, 5); steps > 0; steps--) step(w);
    w->count--;
}

static void enter_nursery(struct walk *w) {
    int rc, parent = below(w, 2) == 0 ? choose(w) : -1;
    bool root = parent < 0 && below(w, 8) == 0;
    CCNursery *above = parent >= 0 ? w->at[parent].nursery : NULL;
    if (parent < 0 && !root) parent = innermost(w);
    CC_NURSERY(n, .parent = above, .root = root, .result = &rc) go_inside(w, (struct entered){false, false, parent, n});
}

static void enter_deadline(struct walk *w) {
    bool passed = below(w, 3) == 0;
    CC_WITH_DEADLINE(passed ? CC_PASSED : cc_after_ms(3600 * 1000))
    go_inside(w, (struct entered){false, passed, innermost(w), NULL});
}

static void cancel(struct walk *w) {
    int i = choose(w);
    if (i < 0) return;
    w->at[i].cancelled = true;
    CHECK_EQ(cc_nursery_cancel(w->at[i].nursery), 0);
}

static void cancel_self(struct walk *w) {
    if (w->self == NULL || below(w, 12) != 0) return;
    w->task_cancelled = true;
    CHECK_EQ(cc_task_cancel(w->self), 0);
}

static void *look(void *cancelled) {
    *(bool *)cancelled = cc_cancelled();
    return NULL;
}

static void look_in_child(struct walk *w) {
    int i = choose(w), rc = -1;
    bool cancelled = false;
    CCTask task;
    if (i < 0) return;
    CHECK_EQ(cc_nursery_spawn_ex(w->at[i].nursery, &task, look, &cancelled, NULL), 0);
    CC_SHIELD rc = cc_task_join(&task, NULL);
    CHECK_EQ(rc, 0);
    CHECK_EQ(cancelled, is_child_cancelled(w, i));
}

static void step(struct walk *w) {
    switch (below(w, w->count < DEPTH ? 7 : 4)) {
    case 0:
    case 1:
        cancel(w);
        break;
    case 2:
        cancel_self(w);
        break;
    case 3:
        look_in_child(w);
        break;
    case 4:
        enter_nursery(w);
        break;
    case 5:
        enter_deadline(w);
        break;
    default:
        CC_SHIELD go_inside(w, (struct entered){true, false, -1, NULL});
    }
    compare(w);
}

static void *walk_in_fiber(void *walk) {
    struct walk *w = walk;
    CHECK_EQ(cc_event_wait(&w->ready), 0);
    for (int i = 0; i < 10; i++) step(w);
    return NULL;
}

TEST_WORKERS(fibers_as_in_the_model) {
    uint64_t rng = test_seed();
    for (long n = test_rounds(300, 20000); n > 0; n--) {
        CCTask task;
        struct walk w = {.self = &task, .rng = test_random(&rng)};
        CHECK_EQ(cc_spawn(&task, walk_in_fiber, &w, NULL), 0);
        CHECK_EQ(cc_event_set(&w.ready), 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
}

TEST(threads_as_in_the_model) {
    uint64_t rng = test_seed();
    for (long n = test_rounds(50, 4000); n > 0; n--) {
        struct walk w = {.rng = test_random(&rng)};
        int rc;
        CC_NURSERY(outermost, .result = &rc) go_inside(&w, (struct entered){false, false, -1, outermost});
    }
}
