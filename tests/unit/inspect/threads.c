/* threads.c - the list of threads, the system call that each is in, and which signals are handled. */
#include "other.h"

#include "base/inspect.h"
#include "base/san.h"
#include "inspect/threads.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

static void on_pipe(struct other *o) {
    char c;
    CHECK_EQ(read(o->ends[0], &c, 1), 1);
}

static void on_futex(struct other *o) {
    while (!o->go) syscall(SYS_futex, &o->word, FUTEX_WAIT_PRIVATE, 0u, NULL, NULL, 0u);
}

static void on_futex_with_time(struct other *o) {
    struct timespec long_time = {.tv_sec = 1000};
    while (!o->go) syscall(SYS_futex, &o->word, FUTEX_WAIT_PRIVATE, 0u, &long_time, NULL, 0u);
}

static void busy(struct other *o) {
    while (!o->go) {
    }
}

static bool listed(const int *tids, int count, int tid) {
    int times = 0;
    for (int i = 0; i < count; i++) times += tids[i] == tid;
    CHECK(times <= 1);
    return times == 1;
}

TEST(lists_every_thread_once) {
    enum { N = 40 }; /* more than one read of the folder gives */
    static struct other others[N];
    int tids[200];
    start(&others[0], on_pipe);
    end(&others[0]); /* a sanitizer starts a thread of its own with the first */
    int before;
    do before = cc__threads_list(tids, 200);
    while (listed(tids, before, others[0].tid)); /* a join returns somewhat earlier */
    CHECK(before >= 1);
    CHECK(listed(tids, before, cc__thread_id()));
    for (int i = 0; i < N; i++) start(&others[i], on_pipe);
    errno = 1234;
    CHECK_EQ(cc__threads_list(tids, 200), before + N);
    CHECK_EQ(errno, 1234);
    for (int i = 0; i < N; i++) CHECK(listed(tids, before + N, others[i].tid));
    tids[3] = -1;
    CHECK_EQ(cc__threads_list(tids, 3), before + N); /* says how many there are, and stores what fits */
    CHECK_EQ(tids[3], -1);
    CHECK_EQ(cc__threads_list(NULL, 0), before + N);
    for (int i = 0; i < N; i++) end(&others[i]);
}

static void *last_one(void *arg) {
    int tids[8], leader = (int)(intptr_t)arg, count;
    /* The leader becomes a zombie, and stays in the directory. */
    do {
        cc__thread_yield();
        count = cc__threads_list(tids, 8);
    } while (listed(tids, count, leader));
    CHECK(listed(tids, count, cc__thread_id()));
    DONE();
    exit(0);
}

TEST(an_ended_leader_is_not_listed) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, last_one, (void *)(intptr_t)cc__thread_id()), 0);
    pthread_exit(NULL);
}

static void *syncs(void *arg) {
    int fd;
    CHECK_EQ(cc_file_temp(&fd, "/tmp"), 0);
    CHECK_EQ(cc_file_write(fd, "x", 1, 0, NULL), 0);
    CHECK_EQ(cc_file_sync(fd), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    return arg;
}

TEST(threads_of_rings_are_not_listed) {
    int tids[200];
    CHECK_EQ(cc_run(syncs, NULL, NULL), 0);
    int n = cc__threads_list(tids, 200);
    CHECK(n > 1);
    for (int i = 0; i < n; i++) {
        char name[32] = "";
        CHECK(cc__thread_file(tids[i], "comm", name, sizeof name));
        if (strncmp(name, "iou-", 4) == 0) test_fail(__FILE__, __LINE__, "%s", name);
    }
}

static void handle(int sig) {
    (void)sig;
}

static void handle_info(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)info, (void)context;
}

TEST(knows_which_signals_are_handled) {
    uint64_t before = cc__threads_caught(), bit = UINT64_C(1) << (SIGUSR1 - 1),
             real_time = UINT64_C(1) << (SIGRTMIN - 1);
    CHECK_EQ(before & (bit | real_time), 0);
    signal(SIGUSR1, handle);
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    action.sa_sigaction = handle_info;
    CHECK_EQ(sigaction(SIGRTMIN, &action, NULL), 0);
    CHECK(cc__threads_caught() == (before | bit | real_time));
    signal(SIGUSR1, SIG_IGN);
    signal(SIGRTMIN, SIG_DFL);
    CHECK(cc__threads_caught() == before);
}

/* Whether the system shows what a thread really does; under valgrind and qemu it does not. */
static bool shows_calls(void) {
    struct other o;
    struct thread_call call;
    start(&o, on_pipe);
    long tries = 10000;
    bool known = false;
    while (!known && tries-- > 0) {
        known = cc__threads_call(o.tid, &call) && !call.running && call.number == SYS_read &&
                call.args[0] == (uintptr_t)o.ends[0] && call.args[2] == 1;
        cc__thread_yield();
    }
    end(&o);
    return known;
}

TEST(reports_the_call_that_a_thread_waits_in) {
    if (!shows_calls() || cc__san_on_valgrind()) SKIP("the system does not say in which call a thread is");
    struct other forever, timed, reads, works;
    struct thread_call call;
    start(&forever, on_futex);
    start(&timed, on_futex_with_time);
    start(&reads, on_pipe);
    start(&works, busy);
    do CHECK(cc__threads_call(forever.tid, &call));
    while (call.running || call.number != SYS_futex);
    CHECK_EQ(call.args[3], 0);
    do CHECK(cc__threads_call(timed.tid, &call));
    while (call.running || call.number != SYS_futex);
    CHECK(call.args[3] != 0);
    do CHECK(cc__threads_call(reads.tid, &call));
    while (call.running || call.number != SYS_read);
    const char *sp = (const char *)call.sp;
    CHECK(sp != NULL && call.pc != 0);
    CHECK(cc__threads_call(works.tid, &call));
    end(&forever);
    end(&timed);
    end(&reads);
    end(&works);
}

TEST(a_thread_that_is_not_there) {
    struct thread_call call;
    errno = 1234;
    CHECK(!cc__threads_call(0, &call));
    CHECK(!cc__threads_call(-1, &call));
    CHECK(!cc__threads_call(0x7fffffff, &call));
    CHECK_EQ(errno, 1234);
}

/* Without a descriptor nothing is known about them, and a dump must not say that one of them runs. */
TEST(a_dump_says_that_they_cannot_be_listed) {
#if defined(CC_ASAN) || defined(CC_TSAN)
    SKIP("a sanitizer's memory is not searched in any case");
#else
    struct rlimit limit, none;
    char *text = NULL;
    size_t size;
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){0, limit.rlim_max};
    FILE *file = open_memstream(&text, &size);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK_EQ(cc_dump(file), 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    fclose(file);
    if (cc__inspect_missing() == NULL)
        CHECK(strstr(text, "were not searched for: the threads of the process cannot be listed") != NULL);
    free(text);
#endif
}
