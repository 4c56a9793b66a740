/* arguments.c - arguments are copied, whatever their size: to the fiber's record or to a block of their own. */
#include "harness.h"

#include "../contexts.h"
#include "fiber/fiber.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- CC_TASK and CC_GO ---- */

CC_TASK(add, {
    int *sum;
    int first, second;
}) {
    *self->sum = self->first + self->second;
    return self->sum;
}

static void go_small(void) {
    for (int i = 0; i < 100; i++) {
        int sum = 0;
        CCTask task = CC_GO(add, .sum = &sum, .first = i, .second = 2 * i);
        CHECK(cc_block_on(task) == &sum);
        CHECK_EQ(sum, 3 * i);
    }
    int sum = 77;
    CHECK(cc_block_on(CC_GO(add, .sum = &sum)) == &sum); /* what is not named is 0 */
    CHECK_EQ(sum, 0);
}

TEST_WORKERS(small_arguments) {
    in_both_contexts(go_small);
}

CC_TASK(sum_up, { long numbers[1000]; }) {
    long sum = 0;
    for (int i = 0; i < 1000; i++) sum += self->numbers[i];
    return (void *)sum;
}

static void go_large(void) {
    for (int i = 0; i < 20; i++) CHECK_EQ((long)cc_block_on(CC_GO(sum_up, .numbers = {[0] = 5, [999] = i})), 5 + i);
}

TEST_WORKERS(large_arguments) {
    in_both_contexts(go_large);
}

CC_TASK(mixed, {
    char c;
    double d;
    void *p;
    long double ld;
}) {
    CHECK_EQ(self->c, 'x');
    CHECK(self->d == 1.5);
    CHECK(self->ld == 2.25L);
    return self->p;
}

static void go_mixed(void) {
    int x;
    CHECK(cc_block_on(CC_GO(mixed, .c = 'x', .d = 1.5, .p = &x, .ld = 2.25L)) == &x);
}

TEST_WORKERS(mixed_types) {
    in_both_contexts(go_mixed);
}

/* A task that starts others with its own arguments. */
CC_TASK(tree, {
    int depth;
    long weight;
}) {
    if (self->depth == 0) return (void *)self->weight;
    CCTask left = CC_GO(tree, .depth = self->depth - 1, .weight = self->weight);
    CCTask right = CC_GO(tree, .depth = self->depth - 1, .weight = 2 * self->weight);
    return (void *)((long)cc_block_on(left) + (long)cc_block_on(right));
}

TEST_WORKERS(tasks_of_tasks) {
    CHECK_EQ((long)cc_block_on(CC_GO(tree, .depth = 8, .weight = 1)), 6561); /* (1 + 2)^8 */
}

/* ---- every size ---- */

struct expected {
    size_t size;
    const unsigned char *original;
};
static struct expected expected;

/* Bytes that depend on their place and on the size. */
static void fill(unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 7 + size);
}

static void *check_copy(void *arg) {
    const unsigned char *bytes = arg;
    CHECK(bytes != expected.original);
    CHECK_EQ((uintptr_t)bytes % alignof(max_align_t), 0);
    for (size_t i = 0; i < expected.size; i++) CHECK_EQ(bytes[i], (unsigned char)(i * 7 + expected.size));
    cc_yield(); /* and is still there when the record's place has been used for the context */
    for (size_t i = 0; i < expected.size; i++) CHECK_EQ(bytes[i], (unsigned char)(i * 7 + expected.size));
    memset(arg, 0, expected.size); /* the copy is the task's own */
    return (void *)expected.size;
}

static void copy_size(size_t size, bool named) {
    unsigned char *original = malloc(size);
    CHECK(original != NULL);
    fill(original, size);
    expected = (struct expected){size, original};
    CCSpawnOptions options = {.arg_size = size, .name = named ? "copy" : NULL};
    CCTask task;
    CHECK_EQ(cc_spawn(&task, check_copy, original, &options), 0);
    memset(original, 0xee, size); /* the copy was made already */
    free(original);
    void *result;
    CHECK_EQ(cc_task_join(&task, &result), 0);
    CHECK_EQ((size_t)result, size);
}

static void copy_sizes(void) {
    for (size_t size = 1; size <= 80; size++) {
        copy_size(size, false);
        copy_size(size, true);
    }
    static const size_t sizes[] = {127, 128, 4095, 4096, 10000, CC_SPAWN_ARG_MAX - 1, CC_SPAWN_ARG_MAX};
    for (size_t i = 0; i < array_len(sizes); i++) copy_size(sizes[i], i % 2);
}

TEST_WORKERS(every_size) {
    CHECK(FIBER_INLINE_ARGS >= 48 && FIBER_INLINE_ARGS <= 64); /* the edge is among the sizes that are tried */
    in_both_contexts(copy_sizes);
}

/* ---- sizes that are not possible ---- */

static void *never(void *arg) {
    (void)arg;
    CHECK(!"this task runs");
    return NULL;
}

static void refuse_sizes(void) {
    static unsigned char bytes[CC_SPAWN_ARG_MAX + 1];
    static const size_t sizes[] = {CC_SPAWN_ARG_MAX + 1, SIZE_MAX, SIZE_MAX / 2, SIZE_MAX - CC_SPAWN_ARG_MAX};
    for (size_t i = 0; i < array_len(sizes); i++) {
        CCSpawnOptions options = {.arg_size = sizes[i]};
        CCTask task = {66};
        CHECK_EQ(cc_spawn(&task, never, bytes, &options), EINVAL);
        CHECK_EQ(task.id, 0);
        CHECK_EQ(cc_task_go(never, bytes, sizes[i]).id, 0);
    }
    CCSpawnOptions options = {.arg_size = 1};
    CCTask task = {66};
    CHECK_EQ(cc_spawn(&task, never, NULL, &options), EINVAL);
    CHECK_EQ(task.id, 0);
    CHECK_EQ(cc_task_go(never, NULL, 8).id, 0);
    CHECK_EQ(cc_task_go(NULL, bytes, 8).id, 0);
}

TEST(impossible_sizes) {
    in_both_contexts(refuse_sizes);
}

/* ---- no copy ---- */

static void *give_back(void *arg) {
    return arg;
}

static void pass_pointers(void) {
    static const uintptr_t values[] = {0, 1, UINTPTR_MAX, UINTPTR_MAX / 2};
    for (size_t i = 0; i < array_len(values); i++) {
        void *arg = (void *)values[i];
        CHECK(cc_block_on(cc_fiber_spawn_task(give_back, arg)) == arg);
        CHECK(cc_block_on(cc_task_go(give_back, arg, 0)) == arg); /* size 0: the pointer itself */
        CCSpawnOptions options = {.name = "pointer"};
        CCTask task;
        CHECK_EQ(cc_spawn(&task, give_back, arg, &options), 0);
        CHECK(cc_block_on(task) == arg);
    }
}

TEST_WORKERS(pointers) {
    in_both_contexts(pass_pointers);
}

/* ---- many at once ---- */

CC_TASK(square, { long n; }) {
    cc_yield();
    return (void *)(self->n * self->n);
}

TEST_WORKERS(each_has_its_own) {
    enum { MANY = 2000 };
    static CCTask tasks[MANY];
    for (long i = 0; i < MANY; i++) tasks[i] = CC_GO(square, .n = i);
    for (long i = 0; i < MANY; i++) CHECK_EQ((long)cc_block_on(tasks[i]), i * i);
}
