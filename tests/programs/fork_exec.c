/* fork_exec.c - a fiber may fork and exec; a child that uses the runtime instead aborts with a message, and
 * does not hang. */
#include "child.h"
#include "where.h"

#include <ccc/ccc.h>

#include <spawn.h>
#include <stdatomic.h>

extern char **environ;

static char *const true_args[] = {"true", NULL};
static char *const false_args[] = {"false", NULL};

static int wait_for(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0) CHECK_EQ(errno, EINTR);
    return status;
}

/* ---- fork, then exec ---- */

static void fork_and_exec(bool truly) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (truly)
            execv("/bin/true", true_args);
        else
            execv("/bin/false", false_args);
        _exit(99);
    }
    int status = wait_for(pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), truly ? 0 : 1);
}

static void *fork_often(void *arg) {
    long rounds = (long)(intptr_t)arg;
    for (long i = 0; i < rounds; i++) {
        fork_and_exec(i % 3 != 0);
        cc_yield();
        CHECK(cc_fiber_id() != 0); /* the parent continues normally */
    }
    return NULL;
}

/* Others keep the workers busy: locks are held while the process is copied. */
static atomic_bool stop;

static void *echo(void *arg) {
    return arg;
}

static void *make_noise(void *arg) {
    while (!atomic_load(&stop)) {
        CCTask task;
        void *result;
        CHECK_EQ(cc_spawn(&task, echo, arg, NULL), 0);
        CHECK_EQ(cc_task_join(&task, &result), 0);
        CHECK(result == arg);
        free(malloc(100));
        cc_yield();
    }
    return NULL;
}

TEST_WORKERS(fork_and_exec_from_fibers, .timeout = 180) {
    enum { FORKERS = 4, NOISE = 4 };
    CCTask forkers[FORKERS], noise[NOISE];
    for (int i = 0; i < NOISE; i++) CHECK_EQ(cc_spawn(&noise[i], make_noise, &stop, NULL), 0);
    for (int i = 0; i < FORKERS; i++)
        CHECK_EQ(cc_spawn(&forkers[i], fork_often, (void *)(intptr_t)test_rounds(60, 2500), NULL), 0);
    for (int i = 0; i < FORKERS; i++) CHECK_EQ(cc_task_join(&forkers[i], NULL), 0);
    test_count("forks", (uint64_t)(FORKERS * test_rounds(60, 2500)));
    atomic_store(&stop, true);
    for (int i = 0; i < NOISE; i++) CHECK_EQ(cc_task_join(&noise[i], NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

static void *spawn_process(void *arg) {
    for (int i = 0; i < 20; i++) {
        pid_t pid;
        CHECK_EQ(posix_spawn(&pid, "/bin/true", NULL, NULL, true_args, environ), 0);
        CHECK_EQ(wait_for(pid), 0);
        cc_yield();
    }
    return arg;
}

TEST(posix_spawn_from_a_fiber) {
    CHECK_EQ(cc_run(spawn_process, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* ---- fork, then use ---- */

static CCTask shared_task;

static void use_spawn(void) {
    CCTask task;
    (void)cc_spawn(&task, echo, NULL, NULL);
}
static void use_run(void) {
    (void)cc_run(echo, NULL, NULL);
}
static void use_join(void) {
    (void)cc_task_join(&shared_task, NULL);
}
static void use_join_until(void) {
    (void)cc_task_join_until(&shared_task, NULL, cc_after_ms(10));
}
static void use_detach(void) {
    (void)cc_task_detach(&shared_task);
}
static void use_dup(void) {
    CCTask copy;
    (void)cc_task_dup(&shared_task, &copy);
}
static void use_init(void) {
    (void)cc_runtime_init(NULL);
}
static void use_shutdown(void) {
    (void)cc_runtime_shutdown(10);
}
static void return_from_the_fiber(void) {}

static void *long_task(void *arg) {
    while (!atomic_load(&stop)) CHECK_EQ(cc_sleep_ms(1), 0);
    return arg;
}

struct misuse {
    void (*use)(void);
    bool from_a_fiber;
};

/* Forks; the child uses the runtime; the parent ends as the child did. */
static void *fork_and_use(void *arg) {
    struct misuse *m = arg;
    pid_t pid = test_fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(20); /* a child that hangs is a separate kind of failure */
        m->use();
        if (m->use == return_from_the_fiber) return NULL;
        _exit(3); /* it lived */
    }
    int status = wait_for(pid);
    atomic_store(&stop, true);
    return (void *)(intptr_t)status;
}

static void misuse(void *arg) {
    struct misuse *m = arg;
    void *status;
    CHECK_EQ(cc_spawn(&shared_task, long_task, NULL, NULL), 0);
    if (m->from_a_fiber)
        CHECK_EQ(cc_run(fork_and_use, m, &status), 0);
    else
        status = fork_and_use(m);
    int how = (int)(intptr_t)status;
    printf("the grandchild ended with %s %d\n", WIFSIGNALED(how) ? "signal" : "status",
           WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    fflush(stdout);
    CHECK(WIFSIGNALED(how));
    CHECK_EQ(WTERMSIG(how), SIGABRT);
}

static void check_misuse(void (*use)(void), bool from_a_fiber) {
    struct misuse m = {use, from_a_fiber};
    struct child child;
    run_child(&child, misuse, &m);
    show_child(&child);
    CHECK(said(&child, "used in a child process after fork"));
    CHECK(WIFEXITED(child.status));
    CHECK_EQ(WEXITSTATUS(child.status), 0);
}

TEST(spawn_in_a_forked_child_dies) {
    check_misuse(use_spawn, true);
    check_misuse(use_run, true);
    check_misuse(use_spawn, false);
    check_misuse(use_run, false);
}

TEST(join_in_a_forked_child_dies) {
    check_misuse(use_join, true);
    check_misuse(use_join_until, true);
    check_misuse(use_join, false);
}

TEST(handles_in_a_forked_child_die) {
    check_misuse(use_detach, true);
    check_misuse(use_dup, true);
    check_misuse(use_dup, false);
}

TEST(init_and_shutdown_in_a_forked_child_die) {
    check_misuse(use_init, true);
    check_misuse(use_shutdown, true);
    check_misuse(use_init, false);
    check_misuse(use_shutdown, false);
}

TEST(a_fiber_that_returns_in_a_forked_child_dies) {
    check_misuse(return_from_the_fiber, true);
}

/* Fork before the runtime starts, or after it has ended: the child may start its own. */
static void use_a_runtime_of_its_own(void *arg) {
    for (int i = 0; i < 2; i++) {
        pid_t pid = test_fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            void *result;
            CHECK_EQ(cc_run(echo, arg, &result), 0);
            CHECK(result == arg);
            CHECK_EQ(cc_runtime_shutdown(10000), 0);
            _exit(7);
        }
        int status = wait_for(pid);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 7);
        CHECK_EQ(cc_run(echo, arg, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(10000), 0);
    }
}

TEST(a_child_of_a_stopped_runtime_may_start_its_own) {
    if (UNDER_TSAN) SKIP("the race detector refuses threads in a child of a multi-threaded process");
    struct child child;
    run_child(&child, use_a_runtime_of_its_own, &child);
    show_child(&child);
    CHECK(WIFEXITED(child.status));
    CHECK_EQ(WEXITSTATUS(child.status), 0);
}
