/* profile.c - profiles: errors, and what their tables name. tests/apps/cc-trace.sh has them read by pprof. */
#include "harness.h"
#include "parks.h"

#include "base/inspect.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void *simulated(void *arg) {
    (void)arg;
    CHECK_EQ(cc_profile_cpu(1, cc_after_ms(1)), ENOTSUP);
    return NULL;
}

TEST(not_in_a_simulation) {
    CHECK_EQ(cc_sim_run(1, simulated, NULL, NULL), 0);
}
