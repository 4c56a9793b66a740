/* unwind_memo.c - stacks that were unwound before: the kept number is that of the frames that a walk would find.
 *
 * Functions with frames of different kinds call each other along paths that come back, on the stacks of several fibers.
 * At the end of each path a walk without a memo is compared with the frames of the number.
 */
#include "harness.h"

#include "base/attr.h"
#include "base/inspect.h"
#include "base/mem.h"
#include "fiber/stack.h"
#include "sched/sched.h"

#include <ccc/ccc.h>

#include <alloca.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES = 16, STACKS = 4096, DEPTH = 7 };

/* No tail call, no inlining: a frame stays. */
#define STAY() __asm__ volatile("" ::: "memory")

static struct {
    unsigned count, asked, calls, paths;
    struct {
        unsigned count;
        const void *frame[FRAMES];
    } stack[STACKS + 1];
    struct unwind_memo *memo;
} known;

static unsigned number_of(const void *const *frames, unsigned count) {
    known.asked++;
    for (unsigned i = 1; i <= known.count; i++)
        if (known.stack[i].count == count && memcmp(known.stack[i].frame, frames, count * sizeof frames[0]) == 0)
            return i;
    CHECK(known.count < STACKS);
    known.stack[++known.count].count = count;
    memcpy(known.stack[known.count].frame, frames, count * sizeof frames[0]);
    return known.count;
}

/* From its caller on: the frames of the two calls differ. */
static CC_NOINLINE void look(void) {
    const void *frames[FRAMES], *back = __builtin_return_address(0);
    struct doubt doubt;
    const struct stack *s = cc__get(&cc__sched_current(cc__worker())->stack);
    const void *low = s->base + cc__stack_guard_size(s), *top = s->base + cc__stack_size(s);
    unsigned number = cc__unwind_number(known.memo, low, top, back, FRAMES, number_of);
    unsigned n = cc__unwind_here(low, top, back, frames, FRAMES, &doubt);
    known.calls++;
    CHECK(number != 0);
    CHECK_EQ(known.stack[number].count, n);
    CHECK_EQ(memcmp(known.stack[number].frame, frames, n * sizeof frames[0]), 0);
    STAY();
}

static void go(uint64_t path, unsigned depth);

/* Its frame is found by the stack pointer, ... */
static CC_NOINLINE void plain(uint64_t path, unsigned depth) {
    go(path, depth);
    STAY();
}
/* ... has room, ... */
static CC_NOINLINE void roomy(uint64_t path, unsigned depth) {
    volatile char room[48];
    room[path % sizeof room] = 1;
    go(path, depth);
    STAY();
    CHECK_EQ(room[path % sizeof room], 1);
}
/* ... is found by the frame pointer, because its size varies, ... */
static CC_NOINLINE void varying(uint64_t path, unsigned depth) {
    size_t size = 16 + path % 3 * 32;
    volatile char *room = alloca(size);
    room[size - 1] = 1;
    go(path, depth);
    STAY();
    CHECK_EQ(room[size - 1], 1);
}
/* ... or has two calls. */
static CC_NOINLINE void forks(uint64_t path, unsigned depth) {
    if (path % 2 == 0)
        go(path, depth);
    else
        go(path + 2, depth);
    STAY();
}

static CC_NOINLINE void go(uint64_t path, unsigned depth) {
    static void (*const kinds[])(uint64_t path, unsigned depth) = {plain, roomy, varying, forks};
    if (depth == 0)
        look();
    else
        kinds[path % array_len(kinds)](path / array_len(kinds), depth - 1);
    STAY();
}

static void *take_paths(void *arg) {
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    long rounds = test_scale(20000);
    for (long i = 0; i < (rounds > 1000 ? rounds : 1000); i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t path = (seed >> 33) % known.paths;
        go(path * UINT64_C(2654435761), DEPTH - (unsigned)(path % 3));
        if (i % 64 == 0) cc_yield();
    }
    return NULL;
}

static void *take_paths_on_several(void *arg) {
    CC_NURSERY(n) {
        for (uintptr_t i = 0; i < 4; i++) CHECK_EQ(cc_nursery_spawn(n, take_paths, (void *)i), 0);
    }
    return arg;
}

static void run(unsigned paths) {
#ifdef CC_TSAN
    SKIP("to the race detector the fibers of a worker are threads, which share nothing without a lock");
#endif
    memset(&known, 0, sizeof known);
    known.paths = paths;
    known.memo = cc__unwind_memo();
    CHECK(known.memo != NULL || cc__inspect_missing() != NULL);
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(take_paths_on_several, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    cc__mem_free(known.memo);
}

TEST(the_number_is_that_of_the_frames) {
    run(100); /* more than there is room for, since many are of the same height */
    CHECK(known.count > 10 || cc__inspect_missing() != NULL);
}

TEST(a_known_shape_is_not_unwound_again) {
    if (cc__inspect_missing() != NULL) SKIP("this build does not unwind");
    run(10);
    printf("%u walks for %u numbers of %u stacks\n", known.asked, known.calls, known.count);
    CHECK(known.asked < known.calls / 10);
}
