/* deadlock.c - programs that can never go on are ended, and told why; programs that only look so are left alone. */
#define LONG_MS 950
#include "child.h"
#include "shapes.h"
#include "where.h"

enum { DEADLOCK_STATUS = 124 };

static void run_shape(void *shape) {
    ((const struct shape_case *)shape)->body();
}

static void must_die(const struct shape_case *shape) {
    static struct child child;
    run_child(&child, run_shape, (void *)(uintptr_t)shape);
    bool good =
        WIFEXITED(child.status) && WEXITSTATUS(child.status) == DEADLOCK_STATUS && said(&child, "ccc: deadlock:");
    for (size_t i = 0; i < sizeof shape->says / sizeof shape->says[0]; i++) {
        if (shape->says[i] == NULL || said(&child, shape->says[i])) continue;
        printf("not said: %s\n", shape->says[i]);
        good = false;
    }
    if (!good) {
        printf("shape '%s':\n", shape->name);
        show_child(&child);
    }
    CHECK(good);
}

TEST(dead_shapes_are_reported, .timeout = 120) {
    if (under_qemu() || UNDER_TSAN) SKIP("there are threads of the tool's own in the process");
    for (int i = 0; i < DEAD_SHAPES; i++) must_die(&dead_shapes[i]);
}

static void must_live(const struct shape_case *shape, struct running *run) {
    static struct child child;
    end_child(run, &child);
    bool good = WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0 && !said(&child, "deadlock");
    if (!good) {
        printf("shape '%s':\n", shape->name);
        show_child(&child);
    }
    CHECK(good);
}

/* Some at a time: most of them sleep. */
TEST(live_shapes_are_not, .timeout = 120) {
    enum { AT_A_TIME = 6 };
    for (int first = 0; first < LIVE_SHAPES; first += AT_A_TIME) {
        struct running runs[AT_A_TIME];
        int n = LIVE_SHAPES - first < AT_A_TIME ? LIVE_SHAPES - first : AT_A_TIME;
        for (int i = 0; i < n; i++) runs[i] = start_child(run_shape, (void *)(uintptr_t)&live_shapes[first + i]);
        for (int i = 0; i < n; i++) must_live(&live_shapes[first + i], &runs[i]);
    }
}

/* With CC_DEADLOCK_ABORT=0 it is said once, and the program goes on. */
static void goes_on(void *unused) {
    (void)unused;
    setenv("CC_DEADLOCK_ABORT", "0", 1);
    CCChan *ch = named_channel("late", 0);
    CCTask task = start("reader", receiver, ch);
    /* The main thread waits for ever as far as anyone can tell; a child process ends its wait by a signal whose
     * default action is to stop and go on, which changes nothing. So here nothing but the time limit ends it. */
    (void)cc_task_join(&task, NULL);
}

TEST(can_be_told_to_go_on, .timeout = 60) {
    if (under_qemu() || UNDER_TSAN) SKIP("there are threads of the tool's own in the process");
    int fd[2];
    CHECK_EQ(pipe(fd), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(dup2(fd[1], STDERR_FILENO) >= 0);
        goes_on(NULL);
        _exit(1);
    }
    close(fd[1]);
    /* It has said all of it when the last line is there; it is alive then, and stays so. */
    static char text[16384];
    size_t len = 0;
    while (strstr(text, "goes on, because of CC_DEADLOCK_ABORT=0") == NULL) {
        ssize_t n = read(fd[0], text + len, sizeof text - 1 - len);
        CHECK(n > 0);
        len += (size_t)n;
    }
    CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status));
}
