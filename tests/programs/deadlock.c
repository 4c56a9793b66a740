/* deadlock.c - deadlocked programs are ended with a report; programs that only look deadlocked are not. */
#define LONG_MS 950
#include "child.h"
#include "shapes.h"
#include "where.h"

#include "base/inspect.h"

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

TEST(deadlocked_shapes_are_reported, .timeout = 120) {
    if (under_qemu() || UNDER_TSAN) SKIP("the tool has its own threads in the process");
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

/* With CC_DEADLOCK_ABORT=0 it is reported once, and the program continues. */
static void goes_on(void *unused) {
    (void)unused;
    setenv("CC_DEADLOCK_ABORT", "0", 1);
    CCChan *ch = named_channel("late", 0);
    CCTask task = start("reader", receiver, ch);
    /* To the detector the main thread waits for ever; a child process ends its wait by a signal whose default action is
     * to stop and continue, which changes nothing. So only the time limit ends the case. */
    (void)cc_task_join(&task, NULL);
}

TEST(can_be_set_to_continue, .timeout = 60) {
    if (under_qemu() || UNDER_TSAN) SKIP("the tool has its own threads in the process");
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
    /* The report is complete when its last line is there; the process is alive then, and stays so. */
    static char text[16384];
    size_t len = 0;
    while (strstr(text, "continues, because of CC_DEADLOCK_ABORT=0") == NULL) {
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

/* ---- how it ends is the program's choice ---- */

static void check_status(void (*body)(void *), void *arg, int status, const char *text) {
    static struct child child;
    run_child(&child, body, arg);
    bool good = WIFEXITED(child.status) && WEXITSTATUS(child.status) == status && said(&child, "ccc: deadlock:") &&
                said(&child, text);
    if (!good) show_child(&child);
    CHECK(good);
}

static void ends_as_environment_says(void *unused) {
    (void)unused;
    setenv("CC_DEADLOCK_STATUS", "77", 1);
    dead_recv();
}

static void ends_as_config_says(void *unused) {
    (void)unused;
    setenv("CC_DEADLOCK_STATUS", "77", 1);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.deadlock_status = 78}), 0);
    dead_recv();
}

static void ends_as_usual(void *unused) {
    (void)unused;
    setenv("CC_DEADLOCK_STATUS", "256", 1);
    dead_recv();
}

TEST(the_status_can_be_chosen, .timeout = 60) {
    if (under_qemu() || UNDER_TSAN) SKIP("the tool has its own threads in the process");
    check_status(ends_as_environment_says, NULL, 77, "ccc: exiting with status 77 (");
    check_status(ends_as_config_says, NULL, 78, "ccc: exiting with status 78 (");
    check_status(ends_as_usual, NULL, DEADLOCK_STATUS, "ignoring CC_DEADLOCK_STATUS=256: it must be");
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.deadlock_status = 256}), EINVAL);
}

enum hook { HOOK_ENDS, HOOK_EXITS, HOOK_HELPS, HOOKS };
static const enum hook hooks[HOOKS] = {HOOK_ENDS, HOOK_EXITS, HOOK_HELPS};

static bool look_at_deadlock(const char *report, void *arg) {
    uint64_t v = 1;
    CHECK(strncmp(report, "ccc: deadlock: ", 15) == 0 && strstr(report, "channel 'empty'") != NULL);
    switch (*(const enum hook *)arg) {
    case HOOK_EXITS:
        _exit(9);
    case HOOK_HELPS:
        CHECK_EQ(cc_chan_send(channels[0], &v, sizeof v), 0);
        return false;
    default:
        return true;
    }
}

static void with_a_fiber(void *arg) {
    cc_on_deadlock(look_at_deadlock, arg);
    dead_recv();
}

static void without_a_runtime(void *arg) {
    cc_on_deadlock(look_at_deadlock, arg);
    receiver(named_channel("empty", 1));
}

TEST(a_function_of_the_programs_decides, .timeout = 60) {
    if (under_qemu() || UNDER_TSAN) SKIP("the tool has its own threads in the process");
    void (*const bodies[])(void *) = {with_a_fiber, without_a_runtime};
    for (int i = 0; i < 2; i++) {
        check_status(bodies[i], (void *)(uintptr_t)&hooks[HOOK_ENDS], DEADLOCK_STATUS, "exiting with status 124");
        check_status(bodies[i], (void *)(uintptr_t)&hooks[HOOK_EXITS], 9, "channel 'empty'");
        /* With a fiber, another thread prints that it continues, and the program may have ended by then. */
        check_status(bodies[i], (void *)(uintptr_t)&hooks[HOOK_HELPS], 0,
                     i == 0 ? "ccc: deadlock: " : "continues, as the function set by cc_on_deadlock decided");
    }
}

/* ---- a report of many different stacks is complete ---- */

__attribute__((noinline)) static void descend(uintptr_t depth) {
    if (depth > 0)
        descend(depth - 1);
    else
        MAY_FAIL(cc_event_wait(&event));
    __asm__ volatile(""); /* no tail call */
}

#define ENTRY(n)                          \
    static void *enter_##n(void *depth) { \
        descend((uintptr_t)depth);        \
        return NULL;                      \
    }
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
ENTRY(4)
ENTRY(5)
ENTRY(6)

static bool look_at_end(const char *report, void *arg) {
    (void)arg;
    CHECK(strstr(report, "504 fibers wait") != NULL);
    CHECK(strlen(report) > 65536 || cc__inspect_missing() != NULL);
    CHECK(strstr(report, "no cycle of waits among fibers was found") != NULL); /* its last line */
    return true;
}

static void in_many_places(void *unused) {
    static void *(*const entries[])(void *) = {enter_0, enter_1, enter_2, enter_3, enter_4, enter_5, enter_6};
    enum { DEPTHS = 18 };
    CCTask task = {0};
    (void)unused;
    cc_on_deadlock(look_at_end, NULL);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        for (uintptr_t k = 0; k < 4 * DEPTHS; k++) task = start("deep", entries[i], (void *)(k % DEPTHS));
    join(task);
}

TEST(a_function_of_the_programs_gets_all_of_a_long_report, .timeout = 60) {
    if (under_qemu() || UNDER_TSAN) SKIP("the tool has its own threads in the process");
    check_status(in_many_places, NULL, DEADLOCK_STATUS, "504 fibers wait");
}
