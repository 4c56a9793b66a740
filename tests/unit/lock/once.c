/* once.c - one caller runs the function, the others wait for it; after a panic the next one runs it. */
#include "waiters.h"

/* ---- alone: the zero value, three forms, bad arguments ---- */

static void no_object(void) {
    CCOnce once = {0};
    CHECK_EQ(cc_once(NULL, NULL, NULL), EINVAL);
    CHECK_EQ(cc_once(&once, NULL, NULL), EINVAL);
}

static void count(void *n) {
    ++*(int *)n;
}

static void use_alone(void) {
    CCOnce once = {0};
    int n = 0;
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_once(&once, count, &n), 0);
    CHECK_EQ(n, 1);
}

TESTS_ALONE(no_object, use_alone)

/* ---- among several ---- */

struct init {
    CCOnce once;
    CCEvent go_on;
    int value;
};

static void begin(void *arg) {
    struct init *i = arg;
    CHECK_EQ(cc_event_wait(&i->go_on), 0); /* until the others wait */
    i->value++;
}

static void *need_it(void *arg) {
    struct init *i = arg;
    CHECK_EQ(cc_once(&i->once, begin, i), 0);
    CHECK_EQ(i->value, 1);
    return NULL;
}

static void once_with(enum parties who, size_t unused) {
    (void)unused;
    struct init init = {.value = 0};
    struct party parties[8];
    for (int i = 0; i < 8; i++) parties[i] = party_start(who, i, need_it, &init);
    await_queued(&init.once, 7);
    CHECK_EQ(cc_event_set(&init.go_on), 0);
    parties_end(parties, 8);
    CHECK_EQ(init.value, 1);
}

TEST_WORKERS(for_all) {
    for_each_kind(once_with, 0);
}

/* The first caller panics: the others do not wait for ever, and one of them runs the function. */
struct retried {
    CCOnce once;
    CCEvent go_on;
    atomic_int begun, done;
};

static void panic_first(void *arg) {
    struct retried *r = arg;
    if (atomic_fetch_add(&r->begun, 1) == 0) {
        CHECK_EQ(cc_event_wait(&r->go_on), 0); /* until the others wait */
        cc_panic("not this time");
    }
    atomic_fetch_add(&r->done, 1);
}

static void need_once(void *arg) {
    struct retried *r = arg;
    CHECK_EQ(cc_once(&r->once, panic_first, r), 0);
    CHECK_EQ(r->done, 1);
}

static atomic_int panicked;

static void *need_and_try(void *arg) {
    CCPanic why;
    int rc = cc_try(need_once, arg, &why);
    if (rc != 0) {
        CHECK_EQ(rc, ENOTRECOVERABLE);
        CHECK_EQ(strcmp(why.message, "not this time"), 0);
        atomic_fetch_add(&panicked, 1);
    }
    return NULL;
}

static void once_again_with(enum parties who, size_t unused) {
    (void)unused;
    struct retried r = {.begun = 0};
    struct party parties[8];
    panicked = 0;
    for (int i = 0; i < 8; i++) parties[i] = party_start(who, i, need_and_try, &r);
    await_queued(&r.once, 7);
    CHECK_EQ(cc_event_set(&r.go_on), 0);
    parties_end(parties, 8);
    CHECK_EQ(panicked, 1);
    CHECK_EQ(r.begun, 2);
    CHECK_EQ(r.done, 1);
    need_once(&r);
    /* Nobody waits: the next call runs it. */
    struct retried alone = {.begun = 0};
    CHECK_EQ(cc_event_set(&alone.go_on), 0);
    (void)need_and_try(&alone);
    CHECK_EQ(panicked, 2);
    need_once(&alone);
    CHECK_EQ(alone.begun, 2);
}

TEST_WORKERS(after_a_panic) {
    for_each_kind(once_again_with, 0);
}

/* The panic comes when another has seen that the function runs, and is about to wait for that. */
TEST(a_panic_before_the_wait) {
    struct retried r = {.begun = 0};
    struct wait_word *ww = (void *)&r.once;
    panicked = 0;
    struct party first = party_start(THREADS, 0, need_and_try, &r);
    while (atomic_load(&r.begun) == 0) cc_yield();
    CHECK(cc__lock_grab(&ww->lock));
    struct party second = party_start(THREADS, 1, need_and_try, &r);
    CHECK_EQ(cc_sleep_ms(20), 0); /* it comes as far as the lock */
    CHECK_EQ(cc_event_set(&r.go_on), 0);
    party_end(&first);
    cc__set_release(&ww->lock.word, 0);
    party_end(&second);
    CHECK_EQ(panicked, 1);
    CHECK_EQ(r.begun, 2);
    CHECK_EQ(r.done, 1);
}
