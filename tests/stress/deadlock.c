/* deadlock.c - every shape of tests/programs/shapes.h repeatedly, many processes at a time: a deadlocked one is always
 * reported, a live one never. */
#include "../programs/child.h"
#include "../programs/shapes.h"
#include "../programs/where.h"

#include <stdio.h>
#include <stdlib.h>

enum { AT_A_TIME = 32, DEADLOCK_STATUS = 124 };

struct run {
    struct running child;
    const struct shape_case *shape;
};

static void run_shape(void *shape) {
    ((const struct shape_case *)shape)->body();
}

static struct run begin(const struct shape_case *shape) {
    return (struct run){start_child(run_shape, (void *)(uintptr_t)shape), shape};
}

static void end(struct run *run, bool dead) {
    static struct child child;
    end_child(&run->child, &child);
    bool good = WIFEXITED(child.status) && WEXITSTATUS(child.status) == (dead ? DEADLOCK_STATUS : 0) &&
                said(&child, "ccc: deadlock:") == dead;
    if (!good) {
        printf("shape '%s':\n", run->shape->name);
        show_child(&child);
    }
    CHECK(good);
}

/* Each of the shapes `rounds` times, mixed. */
static void run_all(const struct shape_case *shapes, int count, long rounds, bool dead) {
    static struct run run[AT_A_TIME];
    long all = rounds * count;
    for (long i = 0; i < all + AT_A_TIME; i++) {
        struct run *at = &run[i % AT_A_TIME];
        if (i >= AT_A_TIME && i - AT_A_TIME < all) end(at, dead);
        if (i < all) *at = begin(&shapes[i % count]);
    }
    test_count(dead ? "deadlocks" : "programs without a deadlock", (uint64_t)all);
}

TEST(dead_shapes, .timeout = 300) {
    if (under_qemu() || UNDER_TSAN) SKIP("the tool has its own threads in the process");
    run_all(dead_shapes, DEAD_SHAPES, test_rounds(2, 100), true);
}

TEST(live_shapes, .timeout = 300) {
    run_all(live_shapes, LIVE_SHAPES, test_rounds(4, 1000), false);
}
