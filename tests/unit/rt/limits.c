/* limits.c - a process with little address space: fibers that fit run, the others get an error, and the process
 * continues. */
#include "harness.h"

#include "base/san.h"
#include "sync/atomic.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static size_t address_space(void) {
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long pages;
    CHECK(f != NULL);
    CHECK_EQ(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return pages * 4096;
}

static void limit_to(size_t more) {
#if defined(CC_ASAN) || defined(CC_TSAN)
    SKIP("a sanitizer's shadow needs all of the address space");
#endif
    struct rlimit limit = {.rlim_cur = address_space() + more, .rlim_max = RLIM_INFINITY};
    CHECK_EQ(getrlimit(RLIMIT_AS, &(struct rlimit){0}), 0);
    if (setrlimit(RLIMIT_AS, &limit) != 0) SKIP("RLIMIT_AS cannot be set here");
    if (mmap(NULL, 2 * more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
        SKIP("RLIMIT_AS has no effect here, as under an emulator");
}

static _Atomic int parked, running;
static _Atomic bool stop;

static void *stay(void *arg) {
    cc__add(&parked, 1);
    while (!cc__get(&stop)) CHECK_EQ(cc_sleep_ms(1), 0);
    cc__add(&running, 1);
    return arg;
}

/* A thousand stacks of 256 KiB do not fit into 200 MiB, of which malloc may reserve some for each thread. */
TEST(more_stacks_than_fit) {
    if (cc__san_on_valgrind()) SKIP("Valgrind itself needs the address space that the case takes away");
    enum { FIBERS = 1000 };
    static CCTask tasks[FIBERS];
    CCRuntimeConfig config = {.workers = 2, .stack_size = 256 * 1024};
    CHECK_EQ(cc_runtime_init(&config), 0);
    limit_to((size_t)200 * 1024 * 1024);
    int spawned = 0, rc, good = 0, bad = 0;
    for (int i = 0; i < FIBERS; i++) {
        rc = cc_spawn(&tasks[i], stay, NULL, NULL);
        CHECK(rc == 0 || rc == ENOMEM);
        spawned += rc == 0;
    }
    CHECK(spawned > 0);
    /* Those that got no stack have ended with ENOMEM; the others wait for the signal. */
    for (int i = 0; i < FIBERS; i++) {
        if (tasks[i].id == 0) continue;
        rc = cc_task_join_until(&tasks[i], NULL, cc_after_ms(cc__get(&parked) == 0 ? 1000 : 1));
        CHECK(rc == ENOMEM || rc == ETIMEDOUT);
        bad += rc == ENOMEM;
    }
    cc__set(&stop, true);
    for (int i = 0; i < FIBERS; i++) {
        if (tasks[i].id == 0) continue;
        rc = cc_task_join(&tasks[i], NULL);
        CHECK(rc == 0 || rc == ENOMEM);
        good += rc == 0;
        bad += rc == ENOMEM;
    }
    CHECK(bad > 0);
    CHECK(good > 50); /* smaller arenas were tried when the large ones did not fit */
    CHECK_EQ(good + bad, spawned);
    CHECK_EQ(cc__get(&running), good);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void *give_back(void *arg) {
    return arg;
}

/* No descriptor is left: what would be read from /proc is unknown, guards are made by mprotect, and the program
 * continues. */
TEST(no_descriptors) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    FILE *sink = fopen("/dev/null", "we");
    CHECK(sink != NULL);
    int next = dup(0);
    if (next < 0) SKIP("there is no free descriptor");
    close(next);
    limit.rlim_cur = (rlim_t)next;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) SKIP("RLIMIT_NOFILE cannot be set here");
    if (dup(0) >= 0) SKIP("RLIMIT_NOFILE has no effect here, as under an emulator");
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
        CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
        int rc = cc_dump(sink);
        CHECK(rc == 0 || rc == ENOMEM || rc == EIO);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    CHECK(dup(0) < 0); /* it was so all the time */
    fclose(sink);
}

static void *use_own_descriptors(void *pipe) {
    int number = SIGUSR1;
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read_until(((int *)pipe)[0], &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    CCChan *signals = cc_chan_create(sizeof(CCSignal), 1);
    CHECK(signals != NULL);
    CHECK_EQ(cc_signal_notify(signals, &number, 1), 0);
    CHECK_EQ(cc_signal_stop(signals), 0);
    cc_chan_free(signals);
    CHECK_EQ(cc_view_start(&(CCViewConfig){.tcp = true}), 0);
    return NULL;
}

/* Started without stdin, stdout and stderr: the library's own descriptors do not get these numbers, or what the program
 * writes to them would be taken for signals. */
TEST(no_standard_descriptors) {
    int pair[2], kept[3];
    bool taken = false;
    CHECK_EQ(pipe(pair), 0);
    for (int fd = 0; fd < 3; fd++) CHECK((kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10)) >= 0 && close(fd) == 0);
    int rc = cc_run(use_own_descriptors, pair, NULL);
    for (int fd = 0; fd < 3; fd++) taken = taken || fcntl(fd, F_GETFD) >= 0;
    for (int fd = 0; fd < 3; fd++) CHECK_EQ(dup2(kept[fd], fd), fd);
    CHECK_EQ(rc, 0);
    CHECK(!taken);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* The limit of threads is reached: the start fails, and works when the limit is raised. */
TEST(no_threads) {
#if defined(CC_ASAN) || defined(CC_TSAN)
    SKIP("a sanitizer starts its own threads");
#endif
    /* root is not limited: switch to another user, who has no other processes. */
    if (geteuid() == 0 && setresuid(45678, 45678, 45678) != 0) SKIP("the limit does not apply to this user");
    int refused = 0, started = 0;
    for (rlim_t most = 1; most < 12; most++) {
        struct rlimit limit = {.rlim_cur = most, .rlim_max = RLIM_INFINITY};
        CHECK_EQ(getrlimit(RLIMIT_NPROC, &limit), 0);
        limit.rlim_cur = most;
        if (setrlimit(RLIMIT_NPROC, &limit) != 0) SKIP("RLIMIT_NPROC cannot be set here");
        int rc = cc_runtime_init(&(CCRuntimeConfig){.workers = 4});
        CHECK(rc == 0 || rc == EAGAIN);
        refused += rc != 0;
        if (rc != 0) {
            CHECK_EQ(cc_worker_count(), 0);
            rc = cc_run(give_back, NULL, NULL); /* which starts it, with as many as there are CPUs */
            CHECK(rc == 0 || rc == EAGAIN);
            CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
            continue;
        }
        started++;
        CHECK_EQ(cc_worker_count(), 4);
        CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    if (refused == 0) SKIP("RLIMIT_NPROC has no effect here");
    printf("refused %d times, started %d times\n", refused, started);
}

/* Hardly any memory: the start fails or works, and works when there is memory again. */
TEST(start_without_room) {
    if (cc__san_on_valgrind()) SKIP("Valgrind itself needs the address space that the case takes away");
    for (size_t kib = 0; kib < 20000; kib = kib * 3 / 2 + 64) {
        limit_to(kib * 1024 + 4096);
        CCRuntimeConfig config = {.workers = 2};
        int rc = cc_runtime_init(&config);
        CHECK(rc == 0 || rc == ENOMEM || rc == EAGAIN);
        if (rc == 0) {
            rc = cc_run(give_back, NULL, NULL);
            CHECK(rc == 0 || rc == ENOMEM);
            CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        }
        struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
        CHECK_EQ(setrlimit(RLIMIT_AS, &none), 0);
        CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}
