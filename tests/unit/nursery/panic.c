/* panic.c - nurseries, deadlines and shields when a panic passes through them. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int cancelled, finished;

static void *sleep_long(void *arg) {
    if (cc_sleep_ms(3600 * 1000) == ECANCELED) atomic_fetch_add(&cancelled, 1);
    return arg;
}

static void *panic_at_once(void *arg) {
    (void)arg;
    cc_fiber_set_name("clumsy");
    cc_panic("dropped %d plates", 3);
}

/* ---- a child panics ---- */

static void *child_panics(void *arg) {
    (void)arg;
    int rc = -1;
    CCError error = {0};
    CC_NURSERY(n, .result = &rc) {
        for (int i = 0; i < 5; i++) CHECK_EQ(cc_nursery_spawn(n, sleep_long, NULL), 0);
        cc_yield();
        CHECK_EQ(cc_nursery_spawn(n, panic_at_once, NULL), 0);
        CHECK_EQ(cc_sleep_ms(3600 * 1000), ECANCELED); /* the block belongs to the scope */
        CHECK_EQ(cc_nursery_failures(n), 1);
        CHECK_EQ(cc_nursery_failure(n, 0, &error), 0);
    }
    CHECK_EQ(rc, ENOTRECOVERABLE);
    CHECK_EQ(error.code, ENOTRECOVERABLE);
    CHECK_EQ(strcmp(error.text, "dropped 3 plates"), 0);
    CHECK_EQ(strcmp(error.name, "clumsy"), 0);
    CHECK_EQ(atomic_load(&cancelled), 5);
    CHECK_EQ(cc_sleep_ms(1), 0); /* out of it again */
    return NULL;
}

TEST_WORKERS(a_child_that_panics_fails_the_nursery) {
    CHECK_EQ(cc_run(child_panics, NULL, NULL), 0);
}

/* ---- the block panics ---- */

static void panic_in_blocks(void *arg) {
    int *rc = arg;
    CC_NURSERY(outer, .result = rc) {
        CHECK_EQ(cc_nursery_spawn(outer, sleep_long, NULL), 0);
        CC_WITH_DEADLINE(cc_after_ms(3600 * 1000)) {
            CC_NURSERY(inner) {
                CHECK_EQ(cc_nursery_spawn(inner, sleep_long, NULL), 0);
                CC_SHIELD {
                    cc_yield();
                    cc_panic("in the middle");
                }
            }
        }
    }
    atomic_fetch_add(&finished, 1); /* not reached */
}

static void *recovers_outside(void *arg) {
    (void)arg;
    for (int i = 1; i <= 20; i++) {
        int rc = -1;
        CCPanic info;
        CHECK_EQ(cc_try(panic_in_blocks, &rc, &info), ENOTRECOVERABLE);
        CHECK_EQ(strcmp(info.message, "in the middle"), 0);
        CHECK_EQ(atomic_load(&cancelled), 2 * i); /* no child outlived the blocks */
        CHECK_EQ(atomic_load(&finished), 0);
        CHECK_EQ(rc, ECANCELED);
        CHECK(!cc_cancelled());
        CHECK_EQ(cc_deadline().ns, CC_FOREVER.ns);
        CHECK_EQ(cc_sleep_ms(0), 0);
    }
    /* The shield has ended: a cancellation has effect again. */
    CC_NURSERY(n) {
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK(cc_cancelled());
    }
    return NULL;
}

TEST_WORKERS(a_panic_ends_the_blocks_that_it_leaves) {
    CHECK_EQ(cc_run(recovers_outside, NULL, NULL), 0);
}

/* ---- nobody recovers: the fiber ends, its nurseries with it ---- */

static void *panics_with_children(void *arg) {
    (void)arg;
    int rc;
    panic_in_blocks(&rc);
    return NULL;
}

static void *watches(void *arg) {
    (void)arg;
    int rc = -1;
    CC_NURSERY(n, .result = &rc) CHECK_EQ(cc_nursery_spawn(n, panics_with_children, NULL), 0);
    CHECK_EQ(rc, ENOTRECOVERABLE);
    CHECK_EQ(atomic_load(&cancelled), 2);
    return NULL;
}

TEST_WORKERS(an_unrecovered_panic_leaves_no_children) {
    CHECK_EQ(cc_run(watches, NULL, NULL), 0);
}

/* ---- a lock that is held ---- */

static CCMutex mutex;

static void unlock(void *m) {
    CHECK_EQ(cc_mutex_unlock(m), 0);
}

static void *panic_with_mutex(void *arg) {
    int rc = cc_mutex_lock(&mutex);
    if (rc == ECANCELED) return NULL; /* it would have had to wait, and a sibling has panicked */
    CHECK_EQ(rc, 0);
    CC_DEFER(unlock, &mutex);
    if (arg == NULL) cc_panic("with the mutex");
    return NULL;
}

static void *locks_again(void *arg) {
    (void)arg;
    int rc = -1;
    CC_NURSERY(n, .result = &rc) {
        for (int i = 0; i < 20; i++) CHECK_EQ(cc_nursery_spawn(n, panic_with_mutex, i % 2 ? &mutex : NULL), 0);
    }
    CHECK(rc == ENOTRECOVERABLE);
    CHECK_EQ(cc_mutex_lock_try(&mutex), 0);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    return NULL;
}

TEST_WORKERS(a_mutex_is_given_back) {
    CHECK_EQ(cc_run(locks_again, NULL, NULL), 0);
}

/* ---- a hook panics ---- */

static atomic_int hooks;

static void count_hook(void *arg) {
    (void)arg;
    atomic_fetch_add(&hooks, 1);
}

static void panic_hook(void *text) {
    cc_panic("%s", (const char *)text);
}

static void block_with_hooks(void *ch) {
    CC_NURSERY(n) {
        CHECK_EQ(cc_nursery_autoclose(n, ch), 0);
        CHECK_EQ(cc_nursery_at_exit(n, count_hook, NULL), 0);
        CHECK_EQ(cc_nursery_at_exit(n, panic_hook, "the second hook"), 0);
        CHECK_EQ(cc_nursery_at_exit(n, count_hook, NULL), 0);
        CHECK_EQ(cc_nursery_at_exit(n, panic_hook, "the first hook"), 0);
        CHECK_EQ(cc_nursery_spawn(n, sleep_long, NULL), 0);
        CHECK_EQ(cc_nursery_cancel(n), 0);
    }
}

/* The remaining exits are run, and the nursery is freed: otherwise the outer one could not be freed. */
static void *hooks_panic(void *arg) {
    CCChan *ch = cc_chan_create(sizeof(int), 1);
    atomic_store(&hooks, 0);
    CC_NURSERY(outer) {
        CCPanic why;
        CHECK_EQ(cc_try(block_with_hooks, ch, &why), ENOTRECOVERABLE);
        CHECK_EQ(strcmp(why.message, "the second hook"), 0); /* it has taken the place of the first */
        CHECK_EQ(atomic_load(&hooks), 2);
        CHECK(cc_chan_is_closed(ch));
        CHECK(!cc_cancelled());
    }
    cc_chan_free(ch);
    return arg;
}

TEST_WORKERS(a_hook_that_panics) {
    hooks_panic(NULL);
    CHECK_EQ(cc_run(hooks_panic, NULL, NULL), 0);
}
