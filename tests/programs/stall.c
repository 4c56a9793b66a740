/* stall.c - a fiber that occupies its worker for too long is reported, once for each stall; one that parks is not. */
#include "child.h"
#include "parks.h"
#include "where.h"

#include <ccc/ccc.h>

#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum { LONG_MS = 900 }; /* sampled every 100 ms; a stall is reported after 300 to 500 */

static struct child child;

static long times(const char *text, const char *word) {
    long n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word)) n++;
    return n;
}

static void check_said(const char *text, long expected) {
    long n = times(child.output, text);
    if (n != expected) {
        printf("said %ld times and not %ld: %s\n", n, expected, text);
        show_child(&child);
    }
    CHECK_EQ(n, expected);
}

static void join(const char *name, CCTaskFn fn) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, fn, NULL, &(CCSpawnOptions){.name = name}), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

static void run(void (*body)(void *)) {
    if (under_valgrind()) SKIP("valgrind runs one thread at a time: all of them stall");
    setenv("CC_STALL_MS", "300", 1);
    run_child(&child, body, NULL);
    bool good = WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0;
    if (!good) show_child(&child);
    CHECK(good);
}

static __attribute__((noinline)) void compute_for(uint64_t ms) {
    /* Rarely in the clock function, which may not be unwindable. */
    uint64_t until = cc_now_ns() + ms * 1000000;
    do {
        for (volatile int i = 0; i < 1000000; i++) {
        }
    } while (cc_now_ns() < until);
}

/* ---- stalls ---- */

/* In the child: whether that many stalls have been reported. On a busy machine it takes longer. */
static bool reported(long n) {
    static char text[16384];
    ssize_t length = pread(STDERR_FILENO, text, sizeof text - 1, 0);
    CHECK(length >= 0);
    text[length] = '\0';
    return times(text, "ccc: stall:") >= n;
}

/* And then for a while, in which nothing more should be reported. */
static void compute_until_reported(long n) {
    do compute_for(50);
    while (!reported(n));
    compute_for(LONG_MS / 2);
}

static void *computes(void *unused) {
    compute_until_reported(1);
    return unused;
}

static void one_computes(void *unused) {
    (void)unused;
    join("hog", computes);
}

/* The report also says whether workers could be added. */
static void start_and_compute(unsigned workers) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = workers, .max_workers = workers}), 0);
    join("hog", computes);
}

static void only_worker_computes(void *unused) {
    (void)unused;
    start_and_compute(1);
}

static void one_of_two_computes(void *unused) {
    (void)unused;
    start_and_compute(2);
}

TEST(a_stall_of_all_workers_names_the_limit) {
    run(only_worker_computes);
    check_said("the only worker is busy, and there may be no more: CC_MAX_WORKERS, which is 1, would allow it\n", 1);
    run(one_of_two_computes); /* the other one sleeps */
    check_said("ccc: stall: ", 1);
    check_said("CC_MAX_WORKERS", 0);
}

TEST(a_computation_is_named_once) {
    run(one_computes);
    check_said("ccc: stall:", 1);
    check_said("'hog' has kept worker", 1);
    /* Elsewhere, and on a very busy machine, its thread may not answer in time: then the report says so. */
    if (!UNDER_TSAN && !under_qemu()) CHECK(said(&child, "compute_for") || said(&child, "its thread does not respond"));
}

static void island_computes(void *unused) {
    CCIsland *island;
    CCTask task;
    (void)unused;
    CHECK_EQ(cc_island_create(&island, &(CCIslandConfig){.name = "lagoon"}), 0);
    CHECK_EQ(cc_island_spawn(island, &task, computes, NULL, &(CCSpawnOptions){.name = "hog"}), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
}

TEST(an_island_is_named) {
    run(island_computes);
    check_said("ccc: stall:", 1);
    check_said("'hog' on island 'lagoon' has kept its island for", 1);
    check_said("an island's fibers are not stolen", 1);
}

static void *blocks(void *unused) {
    struct timespec ts = {.tv_nsec = 100 * 1000000L};
    for (int after = 0; after < 4; after += reported(1)) (void)nanosleep(&ts, NULL);
    return unused;
}

static void one_blocks(void *unused) {
    (void)unused;
    join("sleeper", blocks);
}

TEST(a_system_call_is_named) {
    run(one_blocks);
    check_said("ccc: stall:", 1);
    check_said("'sleeper' has kept worker", 1);
    if (!UNDER_TSAN && !under_qemu()) CHECK(said(&child, "is blocked in a system call") && said(&child, "blocks"));
}

static void *computes_twice(void *unused) {
    compute_until_reported(1);
    do CHECK_EQ(cc_sleep_ms(1), 0);
    while (test_parks("sleep") == 0);
    compute_until_reported(2);
    return unused;
}

static void one_computes_twice(void *unused) {
    (void)unused;
    join("hog", computes_twice);
}

TEST(a_second_stall_is_named_again) {
    run(one_computes_twice);
    check_said("'hog' has kept worker", 2);
}

/* ---- no stalls ---- */

static _Atomic uint64_t last, longest; /* when it last ran, and the longest time between two runs */

static void look_at_the_clock(void) {
    uint64_t now = cc_now_ns();
    if (now - last > longest) longest = now - last;
    last = now;
}

static void *pauses(void *unused) {
    for (CCDeadline end = cc_after_ms(LONG_MS); last < end.ns;) {
        cc_yield();
        look_at_the_clock();
    }
    return unused;
}

/* Reports when it got no CPU for a part of the time that counts as a stall. */
static void one_pauses(void *unused) {
    (void)unused;
    last = cc_now_ns();
    join("polite", pauses);
    look_at_the_clock();
    if (longest > 100 * UINT64_C(1000000)) fprintf(stderr, "the machine is busy\n");
}

TEST(one_that_yields_is_not_named, .timeout = 120) {
    int tries = 10;
    do run(one_pauses);
    while (--tries > 0 && said(&child, "the machine is busy"));
    if (tries == 0) SKIP("the machine is too busy to tell");
    check_said("ccc: stall:", 0);
}

static void *computes_for_long(void *unused) {
    compute_for(LONG_MS);
    return unused;
}

static void one_computes_unwatched(void *unused) {
    (void)unused;
    setenv("CC_DEBUG_STALL", "0", 1);
    join("hog", computes_for_long);
}

TEST(nothing_is_printed_when_disabled) {
    run(one_computes_unwatched);
    check_said("ccc: stall:", 0);
}

/* ---- a process that is stopped ---- */

static struct { atomic_bool begun, over; } * shared;

static void *computes_until_over(void *unused) {
    atomic_store(&shared->begun, true);
    while (!atomic_load(&shared->over)) {
    }
    return unused;
}

static void one_until_over(void *unused) {
    (void)unused;
    setenv("CC_STALL_MS", "5000", 1);
    join("stopped", computes_until_over);
}

static void nap(long ms) {
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&ts, &ts) != 0) CHECK_EQ(errno, EINTR);
}

/* While the process is stopped, by a signal or a debugger, no fiber counts as stalled. */
TEST(time_in_which_the_process_is_stopped_does_not_count, .timeout = 60) {
    if (under_valgrind()) SKIP("valgrind runs one thread at a time: all of them stall");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    struct running run = start_child(one_until_over, NULL);
    while (!atomic_load(&shared->begun)) nap(1);
    nap(300); /* until sysmon has seen it in that turn */
    CHECK_EQ(kill(run.pid, SIGSTOP), 0);
    CHECK_EQ(waitpid(run.pid, &child.status, WUNTRACED), run.pid);
    nap(6000);
    CHECK_EQ(kill(run.pid, SIGCONT), 0);
    nap(500); /* here it would be reported */
    atomic_store(&shared->over, true);
    end_child(&run, &child);
    check_said("ccc: stall:", 0);
    CHECK_EQ(child.status, 0);
}
