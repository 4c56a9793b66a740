/* memory.c - what a million fibers cost: at most 4.7 kB of memory and 0.6 kB of page tables each while they
 * wait, and nothing afterwards. */
#include "harness.h"
#include "where.h"

#include <ccc/ccc.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- what the kernel says ---- */

struct usage {
    long rss_kb, pte_kb, mappings;
};

static long field_kb(const char *path, const char *name) {
    char line[256];
    long value = -1;
    FILE *f = fopen(path, "re");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0) value = atol(line + strlen(name));
    fclose(f);
    CHECK(value >= 0);
    return value;
}

static struct usage usage(void) {
    struct usage u = {field_kb("/proc/self/status", "VmRSS:"), field_kb("/proc/self/status", "VmPTE:"), 0};
    FILE *f = fopen("/proc/self/maps", "re");
    CHECK(f != NULL);
    for (int c; (c = fgetc(f)) != EOF;)
        if (c == '\n') u.mappings++;
    fclose(f);
    return u;
}

/* Whether the figures are the runtime's own. */
static const char *not_measurable(void) {
    if (UNDER_ASAN || UNDER_TSAN) return "a sanitizer's shadow is counted with the fibers";
    if (under_valgrind()) return "valgrind's own memory is counted with the fibers";
    if (under_qemu()) return "qemu's own memory is counted with the fibers";
#ifndef __OPTIMIZE__
    return "without optimisation the frames are larger";
#else
    return NULL;
#endif
}

/* A million where that is cheap, else fewer. Guards by mprotect, which emulators and the address sanitizer require, are
 * limited to 32,000 stacks, and that sanitizer has its own mappings for each. */
static long how_many(void) {
    if (under_valgrind() || under_qemu() || UNDER_ASAN) return test_scale(20000);
    if (UNDER_TSAN) return test_scale(100000);
    long n = test_scale(1000000);
    long needed_kb = n * 6 + 500000;
    if (field_kb("/proc/meminfo", "MemAvailable:") < needed_kb) SKIP("there is too little free memory for the fibers");
    return n;
}

/* ---- parked ---- */

struct parking_lot {
    atomic_long arrived;
    atomic_bool open;
    CCTask gate;
};

/* What the others join. */
static void *gate(void *arg) {
    struct parking_lot *lot = arg;
    while (!atomic_load(&lot->open)) CHECK_EQ(cc_sleep_ms(1), 0);
    return lot;
}

/* One fiber's arguments: a row, and its own handle of that row's gate. */
struct place {
    struct parking_lot *lot;
    CCTask gate;
};

static void *park(void *arg) {
    struct place *place = arg;
    void *result = NULL;
    atomic_fetch_add(&place->lot->arrived, 1);
    CHECK_EQ(cc_task_join(&place->gate, &result), 0);
    CHECK(result == place->lot);
    return NULL;
}

/* A task has 65,534 handles at most: so a million fibers are divided into rows, each with its own gate. */
enum { PER_GATE = 50000, GATES_MAX = 20 };

static void *fill(void *arg) {
    struct parking_lot *lots = arg;
    long count = how_many();
    for (long i = 0; i < count; i++) {
        struct place place = {&lots[i / PER_GATE], {0}};
        if (i % PER_GATE == 0) CHECK_EQ(cc_spawn(&place.lot->gate, gate, place.lot, NULL), 0);
        CHECK_EQ(cc_task_dup(&place.lot->gate, &place.gate), 0);
        CCSpawnOptions copy = {.arg_size = sizeof place};
        CHECK_EQ(cc_spawn(NULL, park, &place, &copy), 0);
        if (i % 1000 == 0) cc_yield();
    }
    return (void *)(intptr_t)count;
}

static bool all_arrived(struct parking_lot *lots, long count) {
    long arrived = 0;
    for (int i = 0; i < GATES_MAX; i++) arrived += atomic_load(&lots[i].arrived);
    return arrived == count;
}

/* Polls every few milliseconds until it is true; false: not within a minute. */
static bool soon(bool (*is_true)(void *), void *arg) {
    for (int i = 0; i < 12000; i++) {
        if (is_true(arg)) return true;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return false;
}

struct waited {
    struct parking_lot *lots;
    long count;
    long rss_kb_max;
};

static bool is_full(void *arg) {
    struct waited *w = arg;
    return all_arrived(w->lots, w->count);
}

static bool has_shrunk(void *arg) {
    struct waited *w = arg;
    return usage().rss_kb <= w->rss_kb_max;
}

TEST(a_million_parked_at_once, .timeout = 300) {
    static struct parking_lot lots[GATES_MAX];
    CCRuntimeConfig config = {.workers = 2};
    CHECK_EQ(cc_runtime_init(&config), 0);
    struct usage before = usage();
    void *count;
    CHECK_EQ(cc_run(fill, lots, &count), 0);
    struct waited w = {.lots = lots, .count = (long)(intptr_t)count};
    CHECK(soon(is_full, &w));
    /* The last of them have said that they are there and are about to park; their pages are touched already. */
    struct usage full = usage();
    double n = (double)w.count;
    double rss = (double)(full.rss_kb - before.rss_kb) * 1024 / n,
           pte = (double)(full.pte_kb - before.pte_kb) * 1024 / n;
    printf("%ld parked: %.0f bytes and %.0f bytes of page tables each, %ld mappings\n", w.count, rss, pte,
           full.mappings);
    const char *why_not = not_measurable();
    if (why_not == NULL) {
        test_count("fibers parked", (uint64_t)w.count);
        test_count("bytes each", (uint64_t)rss);
        test_count("bytes of page tables each", (uint64_t)pte);
        test_count("mappings", (uint64_t)full.mappings);
        CHECK(rss <= 4700);
        CHECK(pte <= 600);
        CHECK(full.mappings < 100);
    }

    for (int i = 0; i < GATES_MAX; i++) atomic_store(&lots[i].open, true);
    for (int i = 0; i < GATES_MAX; i++)
        if (lots[i].gate.id != 0) CHECK_EQ(cc_task_join(&lots[i].gate, NULL), 0);
    /* A worker that becomes idle returns the pages. */
    w.rss_kb_max = before.rss_kb + (full.rss_kb - before.rss_kb) / 20;
    bool shrunk = why_not != NULL || soon(has_shrunk, &w);
    struct usage after = usage();
    printf("before %ld kB, full %ld kB, afterwards %ld kB\n", before.rss_kb, full.rss_kb, after.rss_kb);
    if (why_not == NULL) {
        test_count("kB before", (uint64_t)before.rss_kb);
        test_count("kB at the most", (uint64_t)full.rss_kb);
        test_count("kB afterwards", (uint64_t)after.rss_kb);
    }
    CHECK(shrunk);
    CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0);
    if (why_not != NULL) printf("not measured: %s\n", why_not);
}

/* ---- spawned and joined ---- */

static void *one(void *arg) {
    return (void *)((uintptr_t)arg + 1);
}

static void *a_burst(void *arg) {
    long count = (long)(intptr_t)arg;
    CCTask *tasks = calloc((size_t)count, sizeof *tasks);
    CHECK(tasks != NULL);
    for (long i = 0; i < count; i++) CHECK_EQ(cc_spawn(&tasks[i], one, (void *)i, NULL), 0);
    for (long i = 0; i < count; i++) {
        void *result;
        CHECK_EQ(cc_task_join(&tasks[i], &result), 0);
        CHECK_EQ((intptr_t)result, i + 1);
    }
    free(tasks);
    return NULL;
}

/* Runs to completion, so that a burst of a million needs few stacks: the records are what it costs. */
TEST_WORKERS(a_million_spawned_and_joined, .timeout = 300) {
    long count = how_many();
    CHECK_EQ(cc_run(one, NULL, NULL), 0);
    struct usage before = usage();
    CHECK_EQ(cc_run(a_burst, (void *)(intptr_t)count, NULL), 0);
    struct usage after = usage();
    double each = (double)(after.rss_kb - before.rss_kb) * 1024 / (double)count;
    printf("%ld spawned and joined: %.0f bytes each stay\n", count, each);
    if (not_measurable() == NULL && count >= 100000) CHECK(each < 400);
    CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0);
}

/* The same again and again costs nothing more. */
TEST(bursts_do_not_add_up, .timeout = 300) {
    long count = how_many() / 10;
    struct usage first = {0};
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(cc_run(a_burst, (void *)(intptr_t)count, NULL), 0);
        if (i == 2) first = usage();
    }
    struct usage last = usage();
    printf("after 3 bursts of %ld: %ld kB; after 10: %ld kB\n", count, first.rss_kb, last.rss_kb);
    if (not_measurable() == NULL) CHECK(last.rss_kb <= first.rss_kb + first.rss_kb / 10 + 8192);
    CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0);
}
