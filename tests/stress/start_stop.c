/* start_stop.c - the runtime starts and stops repeatedly, with fibers that run, wait and sleep, and leaks nothing. */
#include "../programs/where.h"
#include "parks.h"
#include "stress.h"

#include <dirent.h>
#include <sched.h>
#include <time.h>

/* ---- what a process may leak ---- */

struct footprint {
    long rss_kb, threads, fds, mappings;
};

static long status_field(const char *name) {
    char line[256];
    long value = -1;
    FILE *f = fopen("/proc/self/status", "re");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0) value = atol(line + strlen(name) + 1);
    fclose(f);
    CHECK(value >= 0);
    return value;
}

static struct footprint measure(void) {
    struct footprint p = {.rss_kb = status_field("VmRSS:"), .threads = status_field("Threads:")};
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    while (readdir(dir) != NULL) p.fds++;
    closedir(dir);
    FILE *f = fopen("/proc/self/maps", "re");
    CHECK(f != NULL);
    for (int c; (c = fgetc(f)) != EOF;)
        if (c == '\n') p.mappings++;
    fclose(f);
    return p;
}

/* Before there is a runtime. With its first thread the race detector starts one of its own, which stays. */
static long threads_at_rest(void) {
    return measure().threads + (UNDER_TSAN ? 1 : 0);
}

/* A joined thread is counted until the kernel has cleaned up, which may take a while. */
static struct footprint measure_at_rest(long threads) {
    struct footprint p;
    while ((p = measure()).threads > threads) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return p;
}

static void compare(struct footprint before) {
    struct footprint after = measure_at_rest(before.threads);
    printf("before: %ld kB, %ld threads, %ld descriptors, %ld mappings; after: %ld kB, %ld, %ld, %ld\n", before.rss_kb,
           before.threads, before.fds, before.mappings, after.rss_kb, after.threads, after.fds, after.mappings);
    CHECK_EQ(before.threads, after.threads);
    CHECK_EQ(before.fds, after.fds);
    if (UNDER_ASAN || UNDER_TSAN || under_valgrind() || under_qemu()) return; /* the tool's memory is counted, too */
    /* The C library keeps thread stacks and arenas for later; what grows with the cycles is far above that. */
    CHECK(after.mappings <= before.mappings + 40);
    CHECK(after.rss_kb <= before.rss_kb + 4096);
}

/* ---- the fibers of one cycle ---- */

struct cycle {
    atomic_bool over; /* for those that neither sleep nor wait */
    atomic_long ended, cancelled;
};

static void *sleep_for_an_hour(void *arg) {
    struct cycle *c = arg;
    int rc = cc_sleep_ms(3600 * 1000);
    CHECK_EQ(rc, ECANCELED);
    atomic_fetch_add(&c->cancelled, 1);
    atomic_fetch_add(&c->ended, 1);
    return NULL;
}

struct waiter_args {
    struct cycle *cycle;
    CCTask task;
    bool until;
};

static void *wait_for_a_sleeper(void *arg) {
    struct waiter_args w = *(struct waiter_args *)arg;
    int rc = w.until ? cc_task_join_until(&w.task, NULL, cc_after_ms(3600 * 1000)) : cc_task_join(&w.task, NULL);
    /* The sleeper may have been cancelled, and ended, before this one. */
    CHECK(rc == 0 || rc == ECANCELED);
    if (rc == ECANCELED) {
        CHECK(w.task.id != 0);
        atomic_fetch_add(&w.cycle->cancelled, 1);
        CHECK_EQ(cc_task_detach(&w.task), 0);
    }
    atomic_fetch_add(&w.cycle->ended, 1);
    return NULL;
}

static void *wait_at_a_flag(void *arg) {
    struct cycle *c = arg;
    _Atomic uint32_t flag = 0;
    struct fiber *self = cc__sched_current(cc__worker());
    (void)cc__park_open(self, PARK_FLAG);
    CHECK_EQ(cc__park_if(self, &flag, 0), WAKE_CANCEL);
    atomic_fetch_add(&c->cancelled, 1);
    atomic_fetch_add(&c->ended, 1);
    return NULL;
}

static void *yield_until_over(void *arg) {
    struct cycle *c = arg;
    while (!atomic_load(&c->over)) cc_yield();
    atomic_fetch_add(&c->ended, 1);
    return NULL;
}

static void *end_soon(void *arg) {
    struct cycle *c = arg;
    int rc = cc_sleep_until(cc_after_ns(20000));
    CHECK(rc == 0 || rc == ECANCELED);
    atomic_fetch_add(&c->ended, 1);
    return NULL;
}

static void *end_at_once(void *arg) {
    atomic_fetch_add(&((struct cycle *)arg)->ended, 1);
    return NULL;
}

/* Starts a few of each kind; returns how many. */
static long populate(struct cycle *c, uint64_t *rng) {
    long count = 0;
    uint64_t kinds = test_random(rng);
    for (uint64_t i = 1 + below(rng, 10); i > 0; i--) {
        CCTask task = spawn(sleep_for_an_hour, c);
        struct waiter_args w = {c, task, below(rng, 2) == 0};
        CCSpawnOptions copy = {.arg_size = sizeof w};
        CHECK_EQ(cc_spawn(NULL, wait_for_a_sleeper, &w, &copy), 0);
        count += 2;
    }
    for (uint64_t i = below(rng, 10); i > 0; i--, count++) {
        CCTaskFn fn = kinds % 4 == 0   ? wait_at_a_flag
                      : kinds % 4 == 1 ? end_at_once
                      : kinds % 4 == 2 ? end_soon
                                       : yield_until_over;
        CHECK_EQ(cc_spawn(NULL, fn, c, NULL), 0);
        kinds /= 4;
    }
    return count;
}

struct populate_args {
    struct cycle *cycle;
    uint64_t *rng;
};

static void *populate_in_a_fiber(void *arg) {
    struct populate_args *p = arg;
    return (void *)populate(p->cycle, p->rng);
}

/* ETIMEDOUT is correct if the workers get no CPU for a tenth of a second; twenty seconds are enough on any machine. */
static void end_runtime(uint64_t timeout_ms) {
    int rc = ETIMEDOUT;
    for (uint64_t begin = cc_now_ns(); rc == ETIMEDOUT && cc_now_ns() - begin < 20000000000u;)
        rc = cc_runtime_shutdown(timeout_ms);
    CHECK_EQ(rc, 0);
}

static void one_cycle(uint64_t *rng, unsigned worker_count) {
    struct cycle c = {.over = false};
    start(worker_count);
    long count = 0;
    if (below(rng, 2) == 0) {
        count = populate(&c, rng);
    } else {
        struct populate_args args = {&c, rng};
        void *counted;
        CHECK_EQ(cc_run(populate_in_a_fiber, &args, &counted), 0);
        count = (long)(intptr_t)counted;
    }
    atomic_store(&c.over, true);
    end_runtime(below(rng, 2));
    CHECK_EQ(atomic_load(&c.ended), count);
    CHECK(atomic_load(&c.cancelled) > 0);
    CHECK_EQ(cc_worker_count(), 0);
}

/* On a busy machine a shutdown may time out and report the remaining fibers: the debug information that it reads for
 * that stays in memory for ever. */
static void read_debug_information(unsigned n) {
    struct cycle c = {.over = false};
    FILE *nowhere = fopen("/dev/null", "we");
    CHECK(nowhere != NULL);
    start(n);
    (void)spawn(sleep_for_an_hour, &c);
    while (test_parks("sleep") == 0) sched_yield();
    CHECK_EQ(cc_dump(nowhere), 0);
    fclose(nowhere);
    end_runtime(0);
}

TEST_WORKERS(cycles_with_fibers_of_every_kind, .timeout = 180) {
    uint64_t rng = test_seed();
    unsigned n = (unsigned)atoi(getenv("CC_WORKERS"));
    struct footprint before = {0};
    long threads = threads_at_rest();
    read_debug_information(n);
    long rounds = test_rounds(300, 100000);
    long warm = rounds / 4;
    for (long i = 0; i < rounds; i++) {
        if (i == warm) before = measure_at_rest(threads);
        one_cycle(&rng, n);
    }
    test_count("start/stop cycles", (uint64_t)rounds);
    compare(before);
}

/* ---- empty cycles: the machine alone ---- */

TEST_WORKERS(empty_cycles, .timeout = 180) {
    unsigned n = (unsigned)atoi(getenv("CC_WORKERS"));
    struct footprint before = {0};
    long threads = threads_at_rest();
    long rounds = test_rounds(400, 100000);
    long warm = rounds / 4;
    for (long i = 0; i < rounds; i++) {
        if (i == warm) before = measure_at_rest(threads);
        start(n);
        end_runtime(0);
    }
    test_count("start/stop cycles", (uint64_t)rounds);
    compare(before);
}

/* ---- thousands at once ---- */

TEST_WORKERS(thousands_are_cancelled) {
    struct cycle c = {.over = false};
    long count = test_rounds(5000, 100000);
    for (long i = 0; i < count; i++) {
        CCTask task = spawn(sleep_for_an_hour, &c);
        struct waiter_args w = {&c, task, i % 2 == 0};
        CCSpawnOptions copy = {.arg_size = sizeof w};
        CHECK_EQ(cc_spawn(NULL, wait_for_a_sleeper, &w, &copy), 0);
        CHECK_EQ(cc_spawn(NULL, wait_at_a_flag, &c, NULL), 0);
    }
    end_runtime(500); /* that long for them to end by themselves, then they are cancelled */
    CHECK_EQ(atomic_load(&c.ended), 3 * count);
    CHECK(atomic_load(&c.cancelled) >= 2 * count); /* sleepers and flags; of the joins as many as came first */
}

/* ---- what the fibers had is given back, address space included ---- */

TEST(shutdown_returns_all_memory) {
    if (UNDER_ASAN || UNDER_TSAN || under_valgrind() || under_qemu()) SKIP("the tool's memory is counted, too");
    enum { FIBERS = 20000, PEAK_KB = FIBERS * 56, LEFT_KB = 600 * 1024 };
    struct cycle c = {.over = false};
    long before = status_field("VmSize:");
    start(4);
    for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_spawn(NULL, sleep_for_an_hour, &c, NULL), 0);
    /* It is not certain that they all have their stacks, but the size of the address space shows it. */
    for (int i = 0; i < 2000 && status_field("VmSize:") < before + PEAK_KB; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    long peak = status_field("VmSize:");
    end_runtime(1);
    long after = status_field("VmSize:");
    printf("before %ld MB, at the peak %ld MB, afterwards %ld MB\n", before / 1024, peak / 1024, after / 1024);
    CHECK(peak >= before + PEAK_KB);
    /* The C library keeps an arena of 64 MB for each thread that there was, and its stack. */
    CHECK(after < before + LEFT_KB);
    CHECK_EQ(atomic_load(&c.ended), FIBERS);
}

/* ---- one that will not end ---- */

TEST_WORKERS(a_shutdown_that_times_out_leaves_all_running) {
    struct cycle c = {.over = false};
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_spawn(NULL, yield_until_over, &c, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(1), ETIMEDOUT);
    CHECK(cc_worker_count() > 0);
    CHECK_EQ(cc_run(end_at_once, &c, NULL), 0); /* it goes on */
    atomic_store(&c.over, true);
    finish();
    CHECK_EQ(atomic_load(&c.ended), 5);
}
