/* options.c - spawn options: a name, a stack of another size, and their limits. */
#include "harness.h"

#include "base/san.h"

#include "../contexts.h"
#include "../depth.h"
#include "fiber/stack.h"
#include "sync/atomic.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <string.h>

/* ---- names ---- */

static void *copy_own_name(void *to) {
    const char *name = cc_fiber_name();
    CHECK(strlen(name) < CC_FIBER_NAME_MAX);
    strcpy(to, name);
    cc_yield();
    CHECK_EQ(strcmp(cc_fiber_name(), to), 0);
    return to;
}

static void check_name(const char *given, const char *expected) {
    char name[CC_FIBER_NAME_MAX] = "?", given_copy[200];
    if (given != NULL) strcpy(given_copy, given);
    CCSpawnOptions options = {.name = given != NULL ? given_copy : NULL};
    CCTask task;
    CHECK_EQ(cc_spawn(&task, copy_own_name, name, &options), 0);
    memset(given_copy, '!', sizeof given_copy - 1); /* it was copied */
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(strcmp(name, expected), 0);
}

static void give_names(void) {
    check_name(NULL, "");
    check_name("", "");
    check_name("a", "a");
    check_name("thirty bytes are not cut at all", "thirty bytes are not cut at all"); /* 31 of them */
    check_name("thirty-two bytes are one too much", "thirty-two bytes are one too mu");
    check_name("a name so long that nobody would ever want to read it in a message, let alone in a dump",
               "a name so long that nobody woul");
    check_name("%s%n", "%s%n"); /* a name is not a format string */
}

TEST_WORKERS(names) {
    in_both_contexts(give_names);
}

static void *rename_itself(void *arg) {
    CHECK_EQ(strcmp(cc_fiber_name(), "first"), 0);
    CHECK_EQ(cc_fiber_set_name("second"), 0);
    CHECK_EQ(strcmp(cc_fiber_name(), "second"), 0);
    cc_yield();
    CHECK_EQ(strcmp(cc_fiber_name(), "second"), 0);
    CHECK_EQ(cc_fiber_set_name("0123456789012345678901234567890123456789"), 0);
    CHECK_EQ(strcmp(cc_fiber_name(), "0123456789012345678901234567890"), 0);
    CHECK_EQ(cc_fiber_set_name(cc_fiber_name()), 0); /* its own, at the same place */
    CHECK_EQ(strcmp(cc_fiber_name(), "0123456789012345678901234567890"), 0);
    CHECK_EQ(cc_fiber_set_name(NULL), 0);
    CHECK_EQ(strcmp(cc_fiber_name(), ""), 0);
    CHECK_EQ(cc_fiber_set_name(""), 0);
    CHECK_EQ(strcmp(cc_fiber_name(), ""), 0);
    return arg;
}

TEST_WORKERS(renamed) {
    CCSpawnOptions options = {.name = "first"};
    CCTask task;
    CHECK_EQ(cc_spawn(&task, rename_itself, NULL, &options), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

/* A name does not stay with the stack or the record. */
static void *name_itself(void *arg) {
    CHECK_EQ(strcmp(cc_fiber_name(), ""), 0);
    CHECK_EQ(cc_fiber_set_name("mine"), 0);
    cc_yield();
    CHECK_EQ(strcmp(cc_fiber_name(), "mine"), 0);
    return arg;
}

static void name_many(void) {
    for (int i = 0; i < 500; i++) CHECK_EQ(cc_run(name_itself, NULL, NULL), 0);
}

TEST_WORKERS(names_go_with_the_fiber) {
    in_both_contexts(name_many);
}

TEST(names_outside_a_fiber) {
    CHECK_EQ(cc_fiber_set_name("thread"), EPERM);
    CHECK_EQ(cc_fiber_set_name(NULL), EPERM);
    CHECK_EQ(strcmp(cc_fiber_name(), ""), 0);
    CHECK_EQ(cc_worker_count(), 0);
}

/* ---- stacks ---- */

static void *use_bytes(void *bytes) {
    use_stack((size_t)bytes, NULL, NULL);
    cc_yield();
    use_stack((size_t)bytes, NULL, NULL);
    return bytes;
}

/* What cc_sched.h promises for that size: seven eighths, less the guard; some bytes are the functions' own, and the
 * sanitizer's frames are large. */
#ifdef CC_ASAN
enum { OWN_FRAMES = 6 * 1024 };
#else
enum { OWN_FRAMES = 1024 };
#endif

static size_t promised(size_t size) {
    size_t guard = size >= 256 * 1024 ? 16 * 1024 : size / 16 > 4096 ? size / 16 : 4096;
    size_t left = size / 8 * 7 - guard;
    return left > 2 * OWN_FRAMES ? left - OWN_FRAMES : left / 2;
}

static void use_stacks(void) {
    static const size_t sizes[] = {CC_STACK_SIZE_MIN, 32 * 1024, 64 * 1024, 512 * 1024, 8 * 1024 * 1024};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CCSpawnOptions options = {.stack_size = sizes[i]};
        CCTask task;
        void *bytes = (void *)promised(sizes[i]), *result;
        CHECK_EQ(cc_spawn(&task, use_bytes, bytes, &options), 0);
        CHECK_EQ(cc_task_join(&task, &result), 0);
        CHECK(result == bytes);
    }
}

TEST_WORKERS(stack_sizes) {
    in_both_contexts(use_stacks);
}

/* A fiber that ends passes its stack, here of the wrong size, to the next. On one worker the newest runs first, and the
 * other follows it. */
static void *do_nothing(void *arg) {
    return arg;
}

static void *follow_each_other(void *arg) {
    size_t usual = cc__stack_default();
    CCSpawnOptions small = {.stack_size = CC_STACK_SIZE_MIN}, large = {.stack_size = 4 * usual};
    for (int i = 0; i < 200; i++) { /* sometimes the scheduler polls in between, and no stack is left */
        CCTask first, second;
        CHECK_EQ(cc_spawn(&second, use_bytes, (void *)promised(4 * usual), &large), 0);
        CHECK_EQ(cc_spawn(&first, do_nothing, NULL, NULL), 0);
        CHECK_EQ(cc_task_join(&second, NULL), 0);
        CHECK_EQ(cc_task_join(&first, NULL), 0);
        CHECK_EQ(cc_spawn(&second, use_bytes, (void *)promised(usual), NULL), 0);
        CHECK_EQ(cc_spawn(&first, do_nothing, NULL, &small), 0);
        CHECK_EQ(cc_task_join_until(&second, NULL, cc_after_ms(3600 * 1000)), 0); /* not run by its joiner */
        CHECK_EQ(cc_task_join(&first, NULL), 0);
    }
    return arg;
}

TEST(one_after_another_of_another_size) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(follow_each_other, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* The size is really the one that was asked for: beyond it there is the guard. */
TEST_DIES(stack_size_is_a_limit, "its stack of 64 KiB", .signal = SIGSEGV) {
    CCSpawnOptions options = {.stack_size = 50 * 1000};
    CCTask task;
    CHECK_EQ(cc_spawn(&task, use_bytes, (void *)(uintptr_t)(65 * 1024), &options), 0);
    (void)cc_task_join(&task, NULL);
}

/* The default of the runtime, however deep the joiner was that may run it. */
static void run_deep(void *bytes) {
    CHECK_EQ(cc_run(use_bytes, bytes, NULL), 0);
}

static void *join_from_depth(void *arg) {
    (void)arg;
    for (size_t depth = 0; depth < 100 * 1024; depth += 7 * 1024) {
        cc_yield(); /* a full turn: the joiner may run the task itself */
        use_stack(depth, run_deep, (void *)promised(256 * 1024));
    }
    return NULL;
}

TEST_WORKERS(deep_joiners_do_not_cut_the_stack) {
    CCRuntimeConfig config = {.stack_size = 256 * 1024};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(join_from_depth, NULL, NULL), 0);
}

/* ---- out of range ---- */

static void *never(void *arg) {
    (void)arg;
    CHECK(!"this task runs");
    return NULL;
}

static void refuse_sizes(void) {
    static const size_t sizes[] = {1, 4096, CC_STACK_SIZE_MIN - 1, CC_STACK_SIZE_MAX + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CCSpawnOptions options = {.stack_size = sizes[i]};
        CCTask task = {44};
        CHECK_EQ(cc_spawn(&task, never, NULL, &options), EINVAL);
        CHECK_EQ(task.id, 0);
        CHECK_EQ(cc_spawn(NULL, never, NULL, &options), EINVAL);
    }
}

TEST(impossible_sizes) {
    in_both_contexts(refuse_sizes);
}

/* ---- together with plain tasks ---- */

static _Atomic int counter;

static void *count(void *arg) {
    cc__add(&counter, 1);
    return arg;
}

/* A worker goes from a task's end to the next task directly, whatever kind of stack each needs. */
static void mix(void) {
    enum { TASKS = 24 };
    CCTask tasks[TASKS];
    static const CCSpawnOptions kinds[] = {
        {0}, {.name = "named"}, {.stack_size = 32 * 1024}, {0}, {.stack_size = 1024 * 1024, .name = "large"}, {0},
    };
    for (long round = 0; round < test_rounds(100, 5000); round++) {
        for (int i = 0; i < TASKS; i++) CHECK_EQ(cc_spawn(&tasks[i], count, &tasks[i], &kinds[(i + round) % 6]), 0);
        if (round % 2) CHECK_EQ(cc_sleep_ms(0), 0);
        if (round % 3) cc_yield();
        for (int i = 0; i < TASKS; i++) {
            void *result = NULL;
            int at = round % 5 ? TASKS - 1 - i : i;
            CHECK_EQ(cc_task_join(&tasks[at], &result), 0);
            CHECK(result == &tasks[at]);
        }
    }
}

TEST_WORKERS(mixed_with_plain_tasks) {
    in_both_contexts(mix);
    CHECK_EQ(counter, 2 * 24 * test_rounds(100, 5000));
}

/* The same without a join in between, so that they follow each other on the worker. */
static void *spawn_mixed(void *arg) {
    static const CCSpawnOptions named = {.name = "named"}, large = {.stack_size = 512 * 1024};
    for (int i = 0; i < 300; i++)
        CHECK_EQ(cc_spawn(NULL, count, NULL, i % 3 == 0 ? &named : i % 3 == 1 ? &large : NULL), 0);
    return arg;
}

TEST_WORKERS(in_a_row) {
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(cc_run(spawn_mixed, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        CHECK_EQ(counter, 300 * (i + 1));
    }
}
