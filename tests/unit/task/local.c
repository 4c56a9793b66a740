/* local.c - fiber-local values, and what happens to them at the fiber's end. */
#include "../panic/log.h"

#include "../contexts.h"
#include "../crew.h"

/* ---- keys ---- */

static void keys(void) {
    CCLocalKey a = 99, b = 99;
    CHECK_EQ(cc_local_key_create(NULL, NULL), EINVAL);
    CHECK_EQ(cc_local_key_create(&a, NULL), 0);
    CHECK_EQ(cc_local_key_create(&b, NULL), 0);
    CHECK(a != 0 && b != 0 && a != b);
    CHECK(cc_local_get(a) == NULL);
    CHECK_EQ(cc_local_set(a, &a), 0);
    CHECK_EQ(cc_local_set(b, &b), 0);
    CHECK(cc_local_get(a) == &a && cc_local_get(b) == &b);
    CHECK_EQ(cc_local_set(a, &b), 0);
    CHECK(cc_local_get(a) == &b);
    CHECK_EQ(cc_local_set(a, NULL), 0);
    CHECK(cc_local_get(a) == NULL);
    CHECK_EQ(cc_local_set(a, &a), 0);
    CHECK_EQ(cc_local_key_delete(a), 0);
    CHECK_EQ(cc_local_key_delete(a), EINVAL);
    CHECK(cc_local_get(a) == NULL);
    CHECK_EQ(cc_local_set(a, &a), EINVAL);
    /* The next key in its slot is a different one, and has no value. */
    CCLocalKey again;
    CHECK_EQ(cc_local_key_create(&again, NULL), 0);
    CHECK(again != a);
    CHECK(cc_local_get(again) == NULL);
    CHECK(cc_local_get(b) == &b);
    CHECK_EQ(cc_local_key_delete(again), 0);
    CHECK_EQ(cc_local_key_delete(b), 0);
    CHECK(cc_local_get(0) == NULL);
    CHECK_EQ(cc_local_set(0, NULL), EINVAL);
    CHECK_EQ(cc_local_key_delete(0), EINVAL);
    CHECK(cc_local_get(UINT32_MAX) == NULL);
    CHECK_EQ(cc_local_set(UINT32_MAX, &a), EINVAL);
}

TEST(keys_in_both_contexts) {
    in_both_contexts(keys);
}

static void all_keys(void) {
    static CCLocalKey all[CC_LOCAL_KEYS_MAX];
    CCLocalKey more = 99;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CC_LOCAL_KEYS_MAX; i++) CHECK_EQ(cc_local_key_create(&all[i], NULL), 0);
        CHECK_EQ(cc_local_key_create(&more, NULL), EAGAIN);
        CHECK_EQ(more, 0);
        for (int i = 0; i < CC_LOCAL_KEYS_MAX; i++) CHECK_EQ(cc_local_set(all[i], &all[i]), 0);
        for (int i = 0; i < CC_LOCAL_KEYS_MAX; i++) CHECK(cc_local_get(all[i]) == &all[i]);
        for (int i = 0; i < CC_LOCAL_KEYS_MAX; i++) CHECK_EQ(cc_local_key_delete(all[i]), 0);
    }
}

TEST(as_many_as_there_are) {
    in_both_contexts(all_keys);
}

/* ---- each has its own ---- */

static CCLocalKey shared;

static void *keep_own(void *arg) {
    CHECK(cc_local_get(shared) == NULL);
    CHECK_EQ(cc_local_set(shared, arg), 0);
    for (int i = 0; i < 20; i++) {
        cc_yield();
        CHECK(cc_local_get(shared) == arg);
    }
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK(cc_local_get(shared) == arg);
    if ((uintptr_t)arg > 100) { /* on this stack, perhaps */
        CCTask task = cc_fiber_spawn_task(keep_own, (void *)((uintptr_t)arg - 100));
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        CHECK(cc_local_get(shared) == arg);
    }
    return arg;
}

static void keep_own_in_thread(int index, void *arg) {
    (void)arg;
    keep_own((void *)(uintptr_t)(index + 1));
    CHECK_EQ(cc_local_set(shared, NULL), 0);
    CHECK_EQ(cc_run(keep_own, (void *)(uintptr_t)(index + 200), NULL), 0);
}

TEST_WORKERS(each_has_its_own) {
    CCTask tasks[50];
    CHECK_EQ(cc_local_key_create(&shared, NULL), 0);
    for (int i = 0; i < 50; i++) tasks[i] = cc_fiber_spawn_task(keep_own, (void *)(uintptr_t)(i + 1 + i % 3 * 100));
    crew_run(4, keep_own_in_thread, NULL);
    for (int i = 0; i < 50; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}

/* ---- destructors ---- */

static CCLocalKey key_a, key_b, key_c;

static void make_keys(void (*destructor)(void *)) {
    CHECK_EQ(cc_local_key_create(&key_a, destructor), 0);
    CHECK_EQ(cc_local_key_create(&key_b, destructor), 0);
    CHECK_EQ(cc_local_key_create(&key_c, destructor), 0);
    log_clear();
}

static void *set_three(void *arg) {
    CHECK_EQ(cc_defer(note_first, "d"), 0);
    CHECK_EQ(cc_local_set(key_b, "b"), 0);
    CHECK_EQ(cc_local_set(key_c, "x"), 0);
    CHECK_EQ(cc_local_set(key_a, "a"), 0);
    CHECK_EQ(cc_local_set(key_c, "c"), 0); /* its place is the one of its first value */
    CHECK(cc_local_get(key_b) != NULL);
    note('.');
    return arg;
}

/* After the deferred functions, in reverse order of setting, and before the join returns. */
TEST_WORKERS(destroyed_in_reverse_order) {
    make_keys(note_first);
    CHECK_EQ(cc_run(set_three, NULL, NULL), 0);
    CHECK_LOG(".dacb");
}

static void *set_two_and_panic(void *arg) {
    set_three(arg);
    CHECK_EQ(cc_local_set(key_c, NULL), 0);
    cc_panic("with values");
    return arg;
}

TEST_WORKERS(destroyed_after_a_panic) {
    make_keys(note_first);
    CHECK_EQ(cc_run(set_two_and_panic, NULL, NULL), ENOTRECOVERABLE);
    CHECK_LOG(".dab");
}

static void *join_three(void *arg) {
    CCTask task = cc_fiber_spawn_task(set_three, arg);
    CHECK_EQ(cc_local_set(key_a, "z"), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    note('j');
    CHECK_EQ(*(const char *)cc_local_get(key_a), 'z');
    return arg;
}

TEST_WORKERS(destroyed_before_the_join) {
    make_keys(note_first);
    CHECK_EQ(cc_run(join_three, NULL, NULL), 0);
    CHECK_LOG(".dacbjz");
}

static void three_in_thread(int index, void *arg) {
    (void)index, (void)arg;
    CHECK_EQ(cc_local_set(key_b, "b"), 0);
    CHECK_EQ(cc_local_set(key_a, "a"), 0);
}

TEST(destroyed_at_a_threads_end) {
    make_keys(note_first);
    crew_run(1, three_in_thread, NULL);
    CHECK_LOG("ab");
}

/* A destructor that sets its value again is called a bounded number of times. */
static void set_again(void *value) {
    note_first(value);
    CHECK_EQ(cc_local_get(key_a) == NULL, 1);
    CHECK_EQ(cc_local_set(key_a, value), 0);
}

static void *set_one(void *arg) {
    CHECK_EQ(cc_local_set(key_a, "a"), 0);
    return arg;
}

static void one_in_thread(int index, void *arg) {
    (void)index;
    set_one(arg);
}

TEST(rounds_are_bounded) {
    make_keys(set_again);
    CHECK_EQ(cc_run(set_one, NULL, NULL), 0);
    CHECK_LOG("aaaa");
    log_clear();
    crew_run(1, one_in_thread, NULL);
    CHECK_LOG("aaaa");
}

/* What a destructor sets elsewhere is destroyed in the next round. */
static void set_next(void *value) {
    const char *text = value;
    note(*text);
    if (*text == 'a') CHECK_EQ(cc_local_set(key_b, "b"), 0);
    if (*text == 'b') CHECK_EQ(cc_local_set(key_c, "c"), 0);
}

TEST(destructors_may_set) {
    make_keys(set_next);
    CHECK_EQ(cc_run(set_one, NULL, NULL), 0);
    CHECK_LOG("abc");
}

/* Waits and panics are allowed: each value is destroyed once all the same. */
static void wait_and_panic(void *value) {
    note_first(value);
    cc_yield();
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(cc_defer(note_first, "D"), 0);
    cc_panic("in a destructor");
}

TEST_WORKERS(destructors_may_panic) {
    make_keys(wait_and_panic);
    void *result = &result;
    CHECK_EQ(cc_run(set_three, &result, &result), ENOTRECOVERABLE);
    CHECK(result == NULL);
    CHECK_LOG(".daDcDbD");
}

static void delete_others(void *value) {
    note_first(value);
    (void)cc_local_key_delete(key_b);
}

TEST(deleted_keys_are_not_destroyed) {
    make_keys(delete_others);
    CHECK_EQ(cc_run(set_three, NULL, NULL), 0);
    CHECK_LOG(".dac");
}

static void *look_at_thread(void *arg) {
    CHECK(cc_local_get(key_a) == arg);
    return cc_local_set(key_b, arg) == 0 ? arg : NULL;
}

/* A hosted call sees the values of the thread. */
TEST(hosted_calls_see_the_threads) {
    make_keys(NULL);
    void *result = NULL;
    CHECK_EQ(cc_local_set(key_a, &result), 0);
    CHECK_EQ(cc_hosted_call(look_at_thread, &result, &result, NULL), 0);
    CHECK(result == &result);
    CHECK(cc_local_get(key_b) == &result);
}
