/* process.c - processes and signals while each system call fails in turn, also those of the child before its execve: an
 * error is returned, and neither a process nor a descriptor leaks. */
#include "fail.h"
#include "harness.h"

#include "../unit/process/children.h"

#include <sys/resource.h>

static const char *const argv[] = {"/bin/sh", "-c", "exit 3", NULL};

static int start_and_wait(void) {
    CCProcess *p;
    CCProcessLimit limit = {RLIMIT_CORE, 0, 0};
    CCProcessOptions options = {.argv = argv,
                                .dir = "/",
                                .in = {.kind = CC_PROCESS_PIPE},
                                .out = {.kind = CC_PROCESS_PIPE},
                                .err = {.kind = CC_PROCESS_NULL},
                                .fds = &(CCProcessFd){0, 5},
                                .fd_count = 1,
                                .limits = &limit,
                                .limit_count = 1};
    int rc = cc_process_start(&p, &options);
    if (rc != 0) return rc;
    CCProcessStatus status;
    CHECK_EQ(cc_process_wait(p, &status), 0);
    CHECK_EQ(status.code, 3);
    cc_process_free(p);
    return 0;
}

static int start_and_stop(void) {
    CCProcess *p;
    const char *sleeps[] = {"sleep", "1000", NULL};
    int rc =
        cc_process_start(&p, &(CCProcessOptions){.argv = sleeps, .group = CC_PROCESS_GROUP_SESSION, .grace_ms = 5});
    if (rc == 0) cc_process_free(p);
    return rc;
}

static int run(void) {
    CCProcessRun run = {.input = "x", .input_size = 1};
    int rc = cc_process_run(&(CCProcessOptions){.argv = argv}, &run);
    if (rc == 0) CHECK_EQ(run.status.code, 3);
    cc_process_run_free(&run);
    return rc;
}

static int subscribe(void) {
    CCChan *ch = cc_chan_create(sizeof(CCSignal), 1);
    if (ch == NULL) return ENOMEM;
    int rc = cc_signal_notify(ch, (int[]){SIGUSR1, SIGUSR2}, 2);
    if (rc == 0) {
        CCSignal s;
        CHECK_EQ(kill(getpid(), SIGUSR2), 0);
        CHECK_EQ(cc_chan_recv(ch, &s, sizeof s), 0);
        CHECK_EQ(s.number, SIGUSR2);
        rc = cc_signal_stop(ch);
    }
    cc_chan_free(ch);
    return rc;
}

static bool is_default(int number) {
    struct sigaction now;
    CHECK_EQ(sigaction(number, NULL, &now), 0);
    return now.sa_handler == SIG_DFL;
}

/* A failure of sigaction when a subscription ends leaves the handler. */
static void each_in_turn(int (*call)(void), int kinds) {
    CHECK_EQ(call(), 0);
    int before = open_fds();
    for (long n = 1;; n++) {
        CHECK(n < 1000);
        fail_arm(n, kinds, false);
        int rc = call();
        long failed = fail_disarm();
        if (rc != 0) CHECK(failed > 0);
        check_open_fds(before);
        check_no_children();
        CHECK_EQ(call(), 0);
        if (failed == 0) break;
    }
    CHECK(is_default(SIGUSR1) && is_default(SIGUSR2));
}

static void *each_process(void *arg) {
    int kinds = FAIL_MEMORY | FAIL_PIPE | FAIL_PROCESS | FAIL_FILE | FAIL_CALL;
    each_in_turn(start_and_wait, kinds);
    each_in_turn(start_and_stop, kinds);
    each_in_turn(run, kinds);
    return arg;
}

TEST(each_call_of_a_process) {
    fail_needs_all();
    needs_pidfd();
    open_poller();
    CHECK_EQ(cc_run(each_process, NULL, NULL), 0);
    (void)each_process(NULL);
}

static void *each_signal(void *arg) {
    each_in_turn(subscribe, FAIL_MEMORY | FAIL_PIPE | FAIL_THREAD | FAIL_SIGNAL | FAIL_FILE);
    return arg;
}

TEST(each_call_of_a_subscription) {
    fail_needs_all();
    (void)each_signal(NULL);
    if (cc__san_on_valgrind()) return; /* which loses track of a fiber's stack when a signal interrupts it */
    open_poller();
    CHECK_EQ(cc_run(each_signal, NULL, NULL), 0);
}

static void *no_more_processes(void *arg) {
    CCProcess *p;
    fail_arm(1, FAIL_PROCESS, true);
    CHECK_EQ(cc_process_start(&p, &(CCProcessOptions){.argv = argv}), EAGAIN);
    CHECK(fail_disarm() > 0);
    CHECK(p == NULL);
    fail_arm(1, FAIL_PIPE, true);
    CHECK_EQ(cc_process_start(&p, &(CCProcessOptions){.argv = argv, .in = {.kind = CC_PROCESS_PIPE}}), EMFILE);
    CHECK(fail_disarm() > 0);
    CHECK_EQ(start_and_wait(), 0);
    return arg;
}

TEST(no_more_processes_or_descriptors) {
    needs_pidfd();
    CHECK_EQ(cc_run(no_more_processes, NULL, NULL), 0);
}
