/* arguments.c - every call with NULL, zero, from an OS thread, in a fiber, without a runtime and after its end. */
#include "scene.h"

static void nowhere(void *arg) {
    (void)arg;
}

static void every_call_with_nothing(void) {
    CCError error = {.code = 77};
    CHECK_EQ(cc_nursery_free(NULL), 0);
    CHECK_EQ(cc_nursery_wait(NULL), EINVAL);
    CHECK_EQ(cc_nursery_wait_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_nursery_cancel(NULL), EINVAL);
    CHECK_EQ(cc_nursery_cancel_with(NULL, 1, "x"), EINVAL);
    CHECK_EQ(cc_nursery_set_deadline(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_nursery_children(NULL), 0);
    CHECK_EQ(cc_nursery_failures(NULL), 0);
    CHECK_EQ(cc_nursery_failure(NULL, 0, &error), EINVAL);
    CHECK_EQ(cc_nursery_autoclose(NULL, NULL), EINVAL);
    CHECK_EQ(cc_nursery_at_exit(NULL, nowhere, NULL), EINVAL);
    CHECK(cc_nursery_alloc(NULL, 1) == NULL);
    CHECK_EQ(cc_nursery_set_value(NULL, &error, &error), EINVAL);
    CHECK_EQ(cc_cancel_reason(NULL), EINVAL);
    CHECK_EQ(cc_cancel_reason(&error), ESRCH);
    CHECK_EQ(error.code, 77);
    CHECK_EQ(cc_nursery_spawn(NULL, nothing, NULL), EINVAL);
    CCTask task = {5};
    CHECK_EQ(cc_nursery_spawn_ex(NULL, &task, nothing, NULL, NULL), EINVAL);
    CHECK_EQ(task.id, 0);
    CHECK_EQ(cc_nursery_go(NULL, nothing, "x", 1), EINVAL);
    CHECK_EQ(cc_task_cancel(NULL), EINVAL);
    CHECK_EQ(cc_task_cancel(&task), EINVAL);
    CHECK(!cc_cancelled());
    CHECK_EQ(cc_check_cancel(), 0);
    CHECK_EQ(cc_deadline().ns, CC_FOREVER.ns);
    CHECK(cc_value(NULL) == NULL);
    CHECK(cc_value(&error) == NULL);
    CC_SHIELD CHECK(!cc_cancelled());
    CCNursery *none = NULL;
    cc_nursery_leave(&none);
}

static void bad_settings(void) {
    CHECK(cc_nursery_create_ex(&(CCNurseryConfig){.mode = 4}) == NULL);
    CHECK(cc_nursery_create_ex(&(CCNurseryConfig){.mode = -1}) == NULL);
    CCNursery *n = cc_nursery_create_ex(NULL);
    CHECK(n != NULL);
    CHECK(cc_nursery_create_ex(&(CCNurseryConfig){.root = true, .parent = n}) == NULL);
    check_empty(n);

    CCTask task = {5};
    CHECK_EQ(cc_nursery_spawn(n, NULL, NULL), EINVAL);
    CHECK_EQ(cc_nursery_spawn_ex(n, &task, nothing, NULL, &(CCSpawnOptions){.stack_size = 1}), EINVAL);
    CHECK_EQ(task.id, 0);
    CHECK_EQ(cc_nursery_spawn_ex(n, &task, nothing, NULL, &(CCSpawnOptions){.arg_size = 8}), EINVAL);
    CHECK_EQ(cc_nursery_go(n, nothing, NULL, 8), EINVAL);
    CHECK_EQ(cc_nursery_children(n), 0);
    CHECK_EQ(cc_nursery_cancel_with(n, -1, NULL), EINVAL);
    CHECK_EQ(cc_nursery_at_exit(n, NULL, NULL), EINVAL);
    CHECK_EQ(cc_nursery_autoclose(n, NULL), EINVAL);
    CHECK_EQ(cc_nursery_set_value(n, NULL, n), EINVAL);
    CHECK_EQ(cc_nursery_failure(n, 0, NULL), EINVAL);
    CHECK_EQ(cc_nursery_wait(n), 0); /* nothing of this was a cancellation */
    CHECK_EQ(cc_nursery_wait_until(n, CC_PASSED), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

/* A nursery that was never used, never waited for, waited for twice, in every order. */
static void short_runs(void) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_free(n), 0);
    n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_nursery_spawn_ex(n, NULL, nothing, NULL, NULL), 0);
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_nursery_spawn(n, nothing, NULL), 0);
    CHECK_EQ(cc_nursery_free(n), 0); /* cancels, waits, frees */
    n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    atomic_int cancelled = 0;
    n = new_nursery(NULL);
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_nursery_spawn(n, wait_for_cancel, &cancelled), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cancelled, 10);
}

/* A child's handle may be joined, detached, duplicated like any other. */
static void *give_back(void *arg) {
    return arg;
}

static void handles(void) {
    static char object;
    CCNursery *n = new_nursery(NULL);
    CCTask task, copy;
    void *result = NULL;
    CHECK_EQ(cc_nursery_spawn_ex(n, &task, give_back, &object, &(CCSpawnOptions){.name = "named"}), 0);
    CHECK_EQ(cc_task_dup(&task, &copy), 0);
    CHECK_EQ(cc_task_join(&task, &result), 0);
    CHECK(result == &object);
    CHECK_EQ(cc_task_detach(&copy), 0);
    CHECK_EQ(cc_nursery_spawn_ex(n, &task, give_back, CC_ERROR(EIO), NULL), 0);
    CHECK_EQ(cc_nursery_wait(n), EIO);
    CHECK_EQ(cc_task_join(&task, &result), 0); /* the task has ended; its failure goes to its nursery */
    CHECK(result == CC_ERROR(EIO));
    CHECK_EQ(cc_nursery_free(n), 0);
}

static void all(void) {
    every_call_with_nothing();
    bad_settings();
    short_runs();
    handles();
}

TEST_WORKERS(edges) {
    every_call_with_nothing(); /* without a runtime */
    CHECK_EQ(cc_worker_count(), 0);
    bad_settings();
    all();
    in_fiber(all);
    every_call_with_nothing(); /* after its end */
    CHECK_EQ(cc_worker_count(), 0);
}

/* Calls on a nursery need no runtime, except for children and deadlines, which start it. */
TEST_WORKERS(without_a_runtime) {
    static int key;
    CCNursery *n = new_nursery(NULL), *inner = new_nursery(n);
    CHECK(cc_nursery_alloc(inner, 10) != NULL);
    CHECK_EQ(cc_nursery_at_exit(inner, nowhere, NULL), 0);
    CHECK_EQ(cc_nursery_set_value(n, &key, &key), 0);
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, "early"), 0);
    CHECK_EQ(cc_nursery_wait(inner), ECANCELED);
    CHECK_EQ(cc_worker_count(), 0);
    CHECK_EQ(cc_nursery_free(inner), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    n = cc_nursery_create_ex(&(CCNurseryConfig){.deadline = cc_after_ms(3600 * 1000)});
    CHECK(n != NULL);
    CHECK(cc_worker_count() > 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    n = new_nursery(NULL);
    atomic_int count = 0;
    CHECK_EQ(cc_nursery_spawn(n, count_up, &count), 0);
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_nursery_wait(n), 0); /* it outlives the runtime */
    CHECK_EQ(cc_nursery_children(n), 0);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(count, 1);
}
