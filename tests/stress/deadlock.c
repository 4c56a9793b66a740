/* deadlock.c - every shape of tests/programs/shapes.h again and again, many processes at a time: one that is dead is
 * reported each time, one that lives never. */
#include "../programs/child.h"
#include "../programs/shapes.h"
#include "../programs/where.h"

#include <stdio.h>
#include <stdlib.h>

enum { AT_A_TIME = 32, DEADLOCK_STATUS = 124 };

struct run {
    pid_t pid;
    int output; /* a file without a name */
    const struct shape_case *shape;
};

static struct run begin(const struct shape_case *shape) {
    struct run run = {.output = memfd_create("child", MFD_CLOEXEC), .shape = shape};
    CHECK(run.output >= 0 && fcntl(run.output, F_SETFL, O_APPEND) == 0);
    fflush(NULL);
    run.pid = fork();
    CHECK(run.pid >= 0);
    if (run.pid == 0) {
        CHECK(dup2(run.output, STDOUT_FILENO) >= 0 && dup2(run.output, STDERR_FILENO) >= 0);
        shape->body();
        exit(0);
    }
    return run;
}

static void end(struct run *run, bool dead) {
    static struct child child;
    while (waitpid(run->pid, &child.status, 0) < 0) CHECK_EQ(errno, EINTR);
    ssize_t n = pread(run->output, child.output, sizeof child.output - 1, 0);
    CHECK(n >= 0);
    child.output[n] = '\0';
    close(run->output);
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
    if (under_qemu() || UNDER_TSAN) SKIP("there are threads of the tool's own in the process");
    run_all(dead_shapes, DEAD_SHAPES, test_rounds(2, 100), true);
}

TEST(live_shapes, .timeout = 300) {
    run_all(live_shapes, LIVE_SHAPES, test_rounds(4, 1000), false);
}
