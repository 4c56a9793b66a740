/* profile.c - profiles: errors, and what their tables name. tests/apps/cc-trace.sh has them read by pprof. */
#include "harness.h"
#include "parks.h"

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

TEST_WORKERS(fibers_by_place) {
    CCTask tasks[3];
    CCSpawnOptions options = {.name = "patient"};
    silent = cc_chan_create(sizeof(int), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_spawn(&tasks[i], wait_for_ever, NULL, &options), 0);
    CCStats stats = {0};
    do {
        cc_yield();
        CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
    } while (stats.parks < 3);
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

/* Reads a number of seven bits a byte, the last one below 128. */
static uint64_t varint(const unsigned char **at) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

/* The sum of the second value of all samples: field 2 of the profile has a sample, whose field 2 has the values. */
static uint64_t sum_of(const unsigned char *at, const unsigned char *end, bool in_sample) {
    uint64_t sum = 0;
    while (at < end) {
        uint64_t key = varint(&at), value = varint(&at);
        if ((key & 7) == 0) continue; /* a number; else so many bytes */
        const unsigned char *next = at + value;
        if (key >> 3 == 2 && !in_sample) sum += sum_of(at, next, true);
        if (key >> 3 == 2 && in_sample) {
            (void)varint(&at);
            sum += varint(&at);
        }
        at = next;
    }
    return sum;
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
    uint64_t counted = sum_of(data, data + size, false);
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
