/* panic.c - deferring, local values and hosted calls when memory runs out. */
#include "fail.h"

#include <ccc/ccc.h>

static int ran;

static void run_it(void *arg) {
    (void)arg;
    ran++;
}

static void defer_one(void *arg) {
    *(int *)arg = cc_defer(run_it, NULL);
}

TEST(defer_without_memory) {
    int rc = -1;
    fail_begin();
    fail_arm(1, FAIL_MEMORY, true);
    CHECK_EQ(cc_try(defer_one, &rc, NULL), 0);
    CHECK_EQ(fail_disarm(), 1);
    CHECK_EQ(rc, ENOMEM);
    CHECK_EQ(ran, 0);
    CHECK_EQ(cc_try(defer_one, &rc, NULL), 0);
    CHECK_EQ(rc, 0);
    CHECK_EQ(ran, 1);
    CHECK_EQ(atomic_load(&fail.blocks), 0);
}

/* A panic needs no memory. */
static void panic_now(void *arg) {
    CC_DEFER(run_it, NULL);
    cc_panic("%s", (const char *)arg);
}

static void *panic_in_fiber(void *arg) {
    panic_now(arg);
    return arg;
}

TEST(panic_without_memory) {
    CCPanic why;
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CCTask task = cc_fiber_spawn_task(panic_in_fiber, "warm");
    CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
    fail_begin();
    fail_arm(1, FAIL_MEMORY, true);
    CHECK_EQ(cc_try(panic_now, "thread", &why), ENOTRECOVERABLE);
    CHECK_EQ(cc_run(panic_in_fiber, "fiber", NULL), ENOTRECOVERABLE);
    CHECK_EQ(fail_disarm(), 0);
    CHECK_EQ(ran, 3);
}

static void *set_local(void *arg) {
    CCLocalKey *keys = arg;
    int failed = 0, rc;
    for (long n = 1; n < 20; n++) {
        fail_arm(n, FAIL_MEMORY, false);
        for (int i = 0; i < 6; i++) {
            rc = cc_local_set(keys[i], &keys[i]);
            CHECK(rc == 0 || rc == ENOMEM);
            CHECK(cc_local_get(keys[i]) == (rc == 0 ? &keys[i] : NULL));
            failed += rc == ENOMEM;
            if (rc != 0) break; /* and again with the next n */
        }
        (void)fail_disarm();
    }
    CHECK(failed > 0);
    for (int i = 0; i < 6; i++) CHECK(cc_local_get(keys[i]) == &keys[i]);
    return NULL;
}

TEST(local_values_without_memory) {
    CCLocalKey keys[6];
    for (int i = 0; i < 6; i++) CHECK_EQ(cc_local_key_create(&keys[i], NULL), 0);
    (void)set_local(keys);
    CHECK_EQ(cc_run(set_local, keys, NULL), 0);
}

/* A thread's first value needs a key of the system's: there may be none, and later there is one again. */
TEST(a_thread_without_a_key) {
    CCLocalKey key;
    fail_needs_all();
    CHECK_EQ(cc_local_key_create(&key, NULL), 0);
    fail_begin();
    for (long n = 1; n <= 2; n++) {
        fail_arm(n, FAIL_KEY, false);
        CHECK_EQ(cc_local_set(key, &key), ENOMEM);
        CHECK_EQ(fail_disarm(), 1);
        CHECK(cc_local_get(key) == NULL);
        CHECK_EQ(atomic_load(&fail.blocks), 0);
    }
    CHECK_EQ(cc_local_set(key, &key), 0);
    CHECK(cc_local_get(key) == &key);
}

/* Keys that are created and deleted reuse the same slots. */
TEST(local_tables_do_not_grow_for_ever) {
    CCLocalKey stays, key;
    CHECK_EQ(cc_local_key_create(&stays, NULL), 0);
    CHECK_EQ(cc_local_set(stays, &stays), 0);
    fail_begin();
    fail_arm(1, FAIL_MEMORY, true);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(cc_local_key_create(&key, NULL), 0);
        CHECK_EQ(cc_local_set(key, &key), 0);
        CHECK_EQ(cc_local_key_delete(key), 0);
    }
    CHECK_EQ(fail_disarm(), 0);
    CHECK(cc_local_get(stays) == &stays);
}

static void *give_back(void *arg) {
    return arg;
}

/* Each call fails in turn; nothing leaks. */
TEST(hosted_calls_without_memory) {
    void *result;
    bool failed = true;
    for (long n = 1; failed; n++) {
        CHECK(n < 20);
        CHECK_EQ(cc_runtime_init(NULL), 0);
        fail_begin();
        fail_arm(n, FAIL_MEMORY | FAIL_MAP, true);
        int rc = cc_hosted_call(give_back, &result, &result, NULL);
        failed = fail_disarm() > 0;
        CHECK_EQ(rc, failed ? ENOMEM : 0);
        if (failed) CHECK_EQ(atomic_load(&fail.blocks), 0);
        if (failed) CHECK_EQ(atomic_load(&fail.mapped), 0);
        CHECK_EQ(cc_hosted_call(give_back, &result, &result, NULL), 0);
        CHECK(result == &result);
        CHECK_EQ(cc_runtime_shutdown(10000), 0);
    }
}
