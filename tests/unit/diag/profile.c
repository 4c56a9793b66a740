/* profile.c - profiles: errors, and what their tables name. tests/apps/cc-trace.sh has them read by pprof. */
#include "harness.h"
#include "parks.h"

#include "../pprof.h"

#include "base/attr.h"
#include "base/inspect.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static CCChan *silent;
static atomic_bool over;

static void *wait_for_ever(void *arg) {
    int v;
    (void)arg;
    MAY_FAIL(cc_chan_recv(silent, &v, sizeof v));
    return NULL;
}

static void *spin(void *arg) {
    (void)arg;
    while (!atomic_load(&over)) {
    }
    return NULL;
}

static bool contains(const char *data, size_t size, const char *word) {
    return memmem(data, size, word, strlen(word)) != NULL;
}

/* What was written; the caller frees it. */
static char *read_back(FILE *file, size_t *size) {
    long n = (long)lseek(fileno(file), 0, SEEK_END);
    CHECK(n >= 0);
    char *data = malloc((size_t)n + 1);
    CHECK_EQ(pread(fileno(file), data, (size_t)n, 0), n);
    fclose(file);
    *size = (size_t)n;
    return data;
}

TEST(errors) {
    CHECK_EQ(cc_profile_write(1, (CCProfile)4), EINVAL);
    CHECK_EQ(cc_profile_write(1, CC_PROFILE_FIBERS), ESRCH);
    CHECK_EQ(cc_profile_write(1, CC_PROFILE_LEAKS), ESRCH);
    CHECK_EQ(cc_profile_write(1, CC_PROFILE_BLOCK), ENODATA);
    CHECK_EQ(cc_profile_write(1, CC_PROFILE_CONTENTION), ENODATA);
    CHECK_EQ(cc_profile_cpu(1, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_profile_cpu(1, cc_after_ms(1)), ESRCH);
    CHECK_EQ(cc_run(spin, (atomic_store(&over, true), NULL), NULL), 0);
    CHECK_EQ(cc_profile_write(-1, CC_PROFILE_FIBERS), EBADF);
    CHECK_EQ(cc_profile_cpu(-1, cc_after_ms(1)), EBADF);
}

static atomic_bool asked, answered;

static void *write_leaks(void *result) {
    FILE *file = tmpfile();
    atomic_store(&asked, true);
    *(int *)result = cc_profile_write(fileno(file), CC_PROFILE_LEAKS);
    atomic_store(&answered, true);
    fclose(file);
    return result;
}

/* It waits two seconds for a moment in which nothing runs. Meanwhile there are dumps. */
TEST(leaks_let_others_report) {
#if defined CC_ASAN || defined CC_TSAN
    SKIP("a build with a sanitizer looks for no leaks, and waits for nothing");
#endif
    FILE *nowhere = fopen("/dev/null", "we");
    CHECK(nowhere != NULL);
    atomic_store(&over, false);
    CCTask task = cc_fiber_spawn_task(spin, NULL);
    CHECK_EQ(cc_dump(nowhere), 0); /* the first one reads symbols */
    int result = -1, dumps = 0;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, write_leaks, &result), 0);
    while (!atomic_load(&asked)) sched_yield();
    for (;; dumps++) {
        CHECK_EQ(cc_sleep_ms(20), 0);
        CHECK_EQ(cc_dump(nowhere), 0);
        if (atomic_load(&answered)) break;
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(result, EBUSY);
    CHECK(dumps > 2); /* one may have been earlier than the wait */
    atomic_store(&over, true);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    fclose(nowhere);
}

static void await_waiters(uint64_t n) {
    CCStats stats = {0};
    do {
        cc_yield();
        CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
    } while (stats.parks < n);
}

TEST_WORKERS(fibers_by_place) {
    CCTask tasks[3];
    CCSpawnOptions options = {.name = "patient"};
    silent = cc_chan_create(sizeof(int), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_spawn(&tasks[i], wait_for_ever, NULL, &options), 0);
    await_waiters(3);
    FILE *file = tmpfile();
    CHECK_EQ(cc_profile_write(fileno(file), CC_PROFILE_FIBERS), 0);
    size_t size;
    char *data = read_back(file, &size);
    CHECK(contains(data, size, "fibers") && contains(data, size, "patient") && contains(data, size, "reason"));
    if (cc__inspect_missing() == NULL) CHECK(contains(data, size, "wait_for_ever"));
    free(data);
    CHECK_EQ(cc_chan_close(silent), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    cc_chan_free(silent);
}

/* Fibers with the same stack have their own labels, however many there are, and each counts once. */
TEST(a_label_for_each_fiber) {
    enum { FIBERS = 300 };
    static CCTask tasks[FIBERS];
    char name[CC_FIBER_NAME_MAX];
    silent = cc_chan_create(sizeof(int), 0);
    for (int i = 0; i < FIBERS; i++) {
        snprintf(name, sizeof name, "client %d.", i / 2);
        CHECK_EQ(cc_spawn(&tasks[i], wait_for_ever, NULL, &(CCSpawnOptions){.name = name}), 0);
    }
    await_waiters(FIBERS);
    FILE *file = tmpfile();
    CHECK_EQ(cc_profile_write(fileno(file), CC_PROFILE_FIBERS), 0);
    size_t size;
    char *data = read_back(file, &size);
    for (int i = 0; i < FIBERS / 2; i++) {
        snprintf(name, sizeof name, "client %d.", i);
        CHECK(contains(data, size, name));
    }
    CHECK_EQ(pprof_sum((unsigned char *)data, (unsigned char *)data + size, 0, false), FIBERS);
    free(data);
    CHECK_EQ(cc_chan_close(silent), 0);
    for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    cc_chan_free(silent);
}

static void *wait_a_little(void *arg) {
    do CHECK_EQ(cc_sleep_ms(1), 0);
    while (test_parks("sleep") == 0);
    return arg;
}

TEST_WORKERS(waits_by_reason) {
    CHECK_EQ(cc_record_start(NULL), 0);
    CHECK_EQ(cc_run(wait_a_little, NULL, NULL), 0);
    FILE *file = tmpfile();
    CHECK_EQ(cc_profile_write(fileno(file), CC_PROFILE_BLOCK), 0);
    size_t size;
    char *data = read_back(file, &size);
    CHECK(contains(data, size, "delay") && contains(data, size, "sleep"));
    free(data);
    file = tmpfile();
    CHECK_EQ(cc_profile_write(fileno(file), CC_PROFILE_CONTENTION), 0);
    data = read_back(file, &size);
    CHECK(contains(data, size, "contentions"));
    free(data);
}

static uint64_t now_ns(void) {
    struct timespec ts;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A wait that had not ended when the recording was stopped counts until then, not until the profile is made. */
TEST_WORKERS(waits_end_with_the_recording) {
    enum { MS = 1000000 };
    CCTask task;
    size_t size;
    silent = cc_chan_create(sizeof(int), 0);
    uint64_t begin = now_ns();
    CHECK_EQ(cc_record_start(NULL), 0);
    CHECK_EQ(cc_spawn(&task, wait_for_ever, NULL, NULL), 0);
    await_waiters(1);
    CHECK_EQ(cc_record_stop(), 0);
    uint64_t lasted = now_ns() - begin;
    CHECK_EQ(cc_chan_close(silent), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(nanosleep(&(struct timespec){.tv_nsec = 50 * MS}, NULL), 0);
    FILE *file = tmpfile();
    CHECK_EQ(cc_profile_write(fileno(file), CC_PROFILE_BLOCK), 0);
    unsigned char *data = (unsigned char *)read_back(file, &size);
    CHECK(pprof_sum(data, data + size, 1, false) <= lasted + MS);
    free(data);
    cc_chan_free(silent);
}

/* By a fiber, which parks in between, and by an OS thread. */
static void *profile_cpu(void *file) {
    CHECK_EQ(cc_profile_cpu(fileno(file), cc_after_ms(60)), 0);
    return NULL;
}

TEST_WORKERS(computing_fibers) {
    CCTask task;
    size_t size;
    CHECK_EQ(cc_spawn(&task, spin, NULL, NULL), 0);
    FILE *file = tmpfile();
    (void)profile_cpu(file);
    char *data = read_back(file, &size);
    CHECK(contains(data, size, "nanoseconds"));
    free(data);
    atomic_store(&over, true);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    file = tmpfile();
    CHECK_EQ(cc_run(profile_cpu, file, NULL), 0);
    free(read_back(file, &size));
    CHECK(size > 0);
}

static void *spin_politely(void *arg) {
    while (!atomic_load(&over)) {
        for (volatile int i = 0; i < 10000; i++) {
        }
        cc_yield();
    }
    return arg;
}

/* A fiber that profiles does not run at the same time as the others of its worker, which are sampled nevertheless. */
TEST(by_a_fiber_of_the_only_worker, .timeout = 60) {
    CCTask task;
    size_t size;
    bool seen = false;
    if (cc__inspect_missing() != NULL || test_scale(1000) != 1000) SKIP("running threads may not be sampled here");
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_spawn(&task, spin_politely, NULL, &(CCSpawnOptions){.name = "busy"}), 0);
    while (!seen) {
        FILE *file = tmpfile();
        CHECK_EQ(cc_run(profile_cpu, file, NULL), 0);
        char *data = read_back(file, &size);
        seen = contains(data, size, "busy");
        free(data);
    }
    atomic_store(&over, true);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

static void *profile_for_long(void *arg) {
    CHECK_EQ(cc_profile_cpu(1, cc_after_s(1000)), ECANCELED);
    return arg;
}

TEST(a_fiber_that_is_cancelled_meanwhile) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, profile_for_long, NULL, NULL), 0);
    while (test_parks("sleep") == 0) sched_yield();
    CHECK_EQ(cc_task_cancel(&task), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

/* The fibers of islands are sampled, too. */
TEST(computing_on_an_island, .timeout = 60) {
    CCIsland *island;
    CCTask task;
    size_t size;
    bool seen = false;
    if (cc__inspect_missing() != NULL || test_scale(1000) != 1000) SKIP("running threads may not be sampled here");
    CHECK_EQ(cc_island_create(&island, NULL), 0);
    CHECK_EQ(cc_island_spawn(island, &task, spin, NULL, &(CCSpawnOptions){.name = "islander"}), 0);
    while (!seen) { /* on a busy machine it may not run for long */
        FILE *file = tmpfile();
        (void)profile_cpu(file);
        char *data = read_back(file, &size);
        seen = contains(data, size, "islander");
        free(data);
    }
    atomic_store(&over, true);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
}

static uint64_t cpu_ns(void) {
    struct timespec ts;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *spin_and_measure(void *used) {
    uint64_t before = cpu_ns();
    (void)spin(NULL);
    *(uint64_t *)used = cpu_ns() - before;
    return NULL;
}

/* Returns the nanoseconds that the profile counts; *used: what the fiber has used. */
static uint64_t profile_spinning(uint64_t ms, uint64_t *used) {
    CCTask task;
    size_t size;
    atomic_store(&over, false);
    CHECK_EQ(cc_spawn(&task, spin_and_measure, used, NULL), 0);
    FILE *file = tmpfile();
    CHECK_EQ(cc_profile_cpu(fileno(file), cc_after_ms(ms)), 0);
    atomic_store(&over, true);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    unsigned char *data = (unsigned char *)read_back(file, &size);
    uint64_t counted = pprof_sum(data, data + size, 1, false);
    free(data);
    return counted;
}

static atomic_bool no_more;

static void *hog(void *arg) {
    while (!atomic_load(&no_more)) {
    }
    return arg;
}

/* A fiber whose worker shares its CPU with other threads counts for what its worker got. */
TEST(a_shared_cpu, .timeout = 60) {
    enum { HOGS = 4, PERIOD_NS = 10000000 };
    cpu_set_t all, one;
    pthread_t hogs[HOGS];
    uint64_t used = 0;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0); /* the threads started from here on inherit it */
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    (void)profile_spinning(50, &used); /* reads the names, which takes long */
    for (int i = 0; i < HOGS; i++) CHECK_EQ(pthread_create(&hogs[i], NULL, hog, NULL), 0);
    CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    uint64_t counted = profile_spinning(500, &used);
    atomic_store(&no_more, true);
    for (int i = 0; i < HOGS; i++) CHECK_EQ(pthread_join(hogs[i], NULL), 0);
    printf("%llu of %llu us counted\n", (unsigned long long)counted / 1000, (unsigned long long)used / 1000);
    CHECK(counted <= used + 2 * PERIOD_NS); /* at first it is not known what was used before */
    if (cc__inspect_missing() == NULL && test_scale(1000) == 1000) CHECK(counted > 0);
}

static void *simulated(void *arg) {
    (void)arg;
    CHECK_EQ(cc_profile_cpu(1, cc_after_ms(1)), ENOTSUP);
    return NULL;
}

TEST(not_in_a_simulation) {
    CHECK_EQ(cc_sim_run(1, simulated, NULL, NULL), 0);
}
