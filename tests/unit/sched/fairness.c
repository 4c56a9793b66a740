/* fairness.c - a ready fiber gets its turn after a bounded number of turns of others. */
#include "harness.h"

#include "../crew.h"
#include "../gate.h"
#include "sched/runq.h"

#include <ccc/ccc.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static _Atomic bool stop;
static _Atomic long pair_turns;
static uint64_t pair_ns; /* how long each of its turns takes, at least */

/* ---- two fibers that wake each other ---- */

static struct gate gates[2];

static void *ping_pong(void *arg) {
    int me = (int)(intptr_t)arg;
    while (!cc__get(&stop)) {
        gate_wait(&gates[me]);
        gate_close(&gates[me]);
        cc__add_relaxed(&pair_turns, 1);
        if (pair_ns != 0)
            for (uint64_t end = cc_now_ns() + pair_ns; cc_now_ns() < end;) continue;
        (void)gate_open(&gates[!me]);
    }
    (void)gate_open(&gates[!me]);
    return NULL;
}

/* The most turns that the pair had between two turns of the third. */
static void *count_turns_between(void *arg) {
    long most = 0, last = cc__get(&pair_turns);
    for (long i = 0; i < (pair_ns != 0 ? 200 : test_rounds(5000, 100000)); i++) {
        cc_yield();
        long now = cc__get(&pair_turns);
        if (now - last > most) most = now - last;
        last = now;
    }
    *(long *)arg = most;
    return NULL;
}

struct pair {
    CCTask tasks[2];
};

static struct pair start_pair(void) {
    struct pair pair;
    cc__set(&stop, false);
    for (int i = 0; i < 2; i++) gate_close(&gates[i]);
    for (intptr_t i = 0; i < 2; i++) pair.tasks[i] = cc_fiber_spawn_task(ping_pong, (void *)i);
    (void)gate_open(&gates[0]);
    return pair;
}

static void stop_pair(struct pair *pair) {
    cc__set(&stop, true);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&pair->tasks[i], NULL), 0);
}

static void *third_beside_a_pair(void *arg) {
    struct pair pair = start_pair();
    while (cc__get(&pair_turns) < 100) cc_yield();
    long most;
    (void)count_turns_between(&most);
    stop_pair(&pair);
    *(long *)arg = most;
    return NULL;
}

TEST(third_beside_a_pair_on_one_worker) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    long most = 0;
    CHECK_EQ(cc_run(third_beside_a_pair, &most, NULL), 0);
    CHECK(most <= 2 * SLOT_STREAK); /* the slot's streak, and the turn that follows it */
}

/* Sixteen of these would be 16 ms. */
TEST(third_beside_a_slow_pair) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    long most = 0;
    pair_ns = 1000000;
    CHECK_EQ(cc_run(third_beside_a_pair, &most, NULL), 0);
    CHECK(most <= 2);
}

/* On several workers turns cannot be compared; the third must get its turns nevertheless. */
TEST_WORKERS(third_beside_a_pair_gets_through) {
    struct pair pair = start_pair();
    CCTask thirds[8];
    long most[8];
    for (int i = 0; i < 8; i++) thirds[i] = cc_fiber_spawn_task(count_turns_between, &most[i]);
    for (int i = 0; i < 8; i++) CHECK_EQ(cc_task_join(&thirds[i], NULL), 0);
    stop_pair(&pair);
    CHECK(pair_turns > 0);
}

/* ---- a fresh fiber beside others ---- */

static void *note_the_time(void *arg) {
    *(long *)arg = cc__get(&pair_turns);
    return NULL;
}

static void *fresh_beside_a_pair(void *arg) {
    struct pair pair = start_pair();
    long most = 0;
    for (int i = 0; i < 100; i++) {
        long ran_at = 0, spawned_at = cc__get(&pair_turns);
        CCTask fresh = cc_fiber_spawn_task(note_the_time, &ran_at);
        /* Not a plain join, which would run it at once. */
        CHECK_EQ(cc_task_join_until(&fresh, NULL, cc_after_ms(60 * 1000)), 0);
        if (ran_at - spawned_at > most) most = ran_at - spawned_at;
    }
    stop_pair(&pair);
    *(long *)arg = most;
    return NULL;
}

/* NEXT-1: after at most 256 turns the worker polls, and the oldest fresh fiber gets every other such turn. */
TEST(fresh_beside_a_pair_on_one_worker) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    long most = 0;
    CHECK_EQ(cc_run(fresh_beside_a_pair, &most, NULL), 0);
    CHECK(most <= 4 * 256);
}

static void *yield_for_ever(void *arg) {
    while (!cc__get(&stop)) {
        cc__add_relaxed(&pair_turns, 1);
        cc_yield();
    }
    return arg;
}

static void *just_run(void *arg) {
    return arg;
}

TEST_WORKERS(fresh_beside_yielders) {
    enum { YIELDERS = 20 };
    CCTask yielders[YIELDERS];
    for (int i = 0; i < YIELDERS; i++) yielders[i] = cc_fiber_spawn_task(yield_for_ever, NULL);
    /* Fewer where the workers outnumber the CPUs: each round then waits for the OS as well. */
    long rounds = test_rounds(400, 10000) / cc_worker_count();
    for (long i = 0; i < rounds || cc__get(&pair_turns) == 0; i++) CHECK_EQ(cc_run(just_run, NULL, NULL), 0);
    cc__set(&stop, true);
    for (int i = 0; i < YIELDERS; i++) CHECK_EQ(cc_task_join(&yielders[i], NULL), 0);
}

/* ---- yielders among each other ---- */

enum { FIBERS = 10 };

struct share {
    _Atomic long turns;
    _Alignas(CC_LINE) char apart;
};
static struct share shares[FIBERS];

static void *yield_and_count(void *arg) {
    struct share *share = arg;
    while (!cc__get(&stop)) {
        cc__add_relaxed(&share->turns, 1);
        cc_yield();
    }
    return NULL;
}

static void *compare_shares(void *arg) {
    CCTask tasks[FIBERS];
    for (int i = 0; i < FIBERS; i++) tasks[i] = cc_fiber_spawn_task(yield_and_count, &shares[i]);
    long rounds = test_rounds(5000, 200000);
    for (long i = 0; i < rounds; i++) cc_yield();
    for (int i = 0; i < FIBERS; i++) {
        CHECK(cc__get(&shares[i].turns) >= rounds - 2);
        CHECK(cc__get(&shares[i].turns) <= rounds + 2);
    }
    cc__set(&stop, true);
    for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return arg;
}

TEST(yielders_share_one_worker) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(compare_shares, NULL, NULL), 0);
}

/* On several workers a yielder must get its turns while others spin in yield. */
static void *yield_some(void *arg) {
    for (long i = 0; i < test_rounds(2000, 50000); i++) cc_yield();
    return arg;
}

TEST_WORKERS(yielder_beside_spinning_yielders) {
    CCTask tasks[FIBERS];
    for (int i = 0; i < FIBERS; i++) tasks[i] = cc_fiber_spawn_task(yield_and_count, &shares[i]);
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_run(yield_some, NULL, NULL), 0);
    for (int i = 0; i < FIBERS; i++)
        while (cc__get(&shares[i].turns) == 0) cc_yield();
    cc__set(&stop, true);
    for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}

/* ---- timers and threads beside busy fibers ---- */

static void *sleep_some(void *arg) {
    for (int i = 0; i < 5; i++) {
        uint64_t until = cc_now_ns() + 1000 * 1000;
        CHECK_EQ(cc_sleep_ms(1), 0);
        CHECK(cc_now_ns() >= until);
    }
    return arg;
}

TEST_WORKERS(sleepers_beside_a_pair_and_yielders) {
    struct pair pair = start_pair();
    CCTask yielder = cc_fiber_spawn_task(yield_for_ever, NULL);
    CCTask sleepers[FIBERS];
    for (int i = 0; i < FIBERS; i++) sleepers[i] = cc_fiber_spawn_task(sleep_some, NULL);
    for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_task_join(&sleepers[i], NULL), 0);
    stop_pair(&pair);
    CHECK_EQ(cc_task_join(&yielder, NULL), 0);
}

/* A sleeper's turn comes after the next poll of the timers, not after a turn of every other fiber. */
enum { MANY = 1500, LOOK = 256 /* the most turns between two polls */ };
static _Atomic uint64_t due;
static _Atomic long turns_since_due;

static void *yield_past_due(void *arg) {
    while (!cc__get(&stop)) {
        if (cc_now_ns() >= cc__get(&due)) cc__add_relaxed(&turns_since_due, 1);
        cc_yield();
    }
    return arg;
}

static void *sleep_among_many(void *arg) {
    static CCTask tasks[MANY];
    cc__set(&due, UINT64_MAX);
    for (int i = 0; i < MANY; i++) tasks[i] = cc_fiber_spawn_task(yield_past_due, NULL);
    for (int i = 0; i < 5; i++) {
        cc__set(&turns_since_due, 0);
        CCDeadline until = cc_after_ms(3);
        cc__set(&due, until.ns);
        CHECK_EQ(cc_sleep_until(until), 0);
        cc__set(&due, UINT64_MAX);
        CHECK(cc__get(&turns_since_due) <= LOOK + 8);
    }
    cc__set(&stop, true);
    for (int i = 0; i < MANY; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return arg;
}

TEST(sleeper_among_many) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(sleep_among_many, NULL, NULL), 0);
}

/* Sleepers that are always due again do not starve the others. */
static _Atomic long naps;

static void *nap_for_ever(void *arg) {
    while (!cc__get(&stop)) {
        CHECK_EQ(cc_sleep_until(cc_after_ns(50 * 1000)), 0); /* less than a turn of all of them takes */
        cc__add_relaxed(&naps, 1);
    }
    return arg;
}

static void *yield_beside_naps(void *arg) {
    enum { NAPPERS = 512 };
    static CCTask tasks[NAPPERS];
    for (int i = 0; i < NAPPERS; i++) tasks[i] = cc_fiber_spawn_task(nap_for_ever, NULL);
    long most = 0;
    for (long i = 0; i < test_rounds(500, 5000); i++) {
        long before = cc__get(&naps);
        cc_yield();
        if (cc__get(&naps) - before > most) most = cc__get(&naps) - before;
    }
    CHECK(cc__get(&naps) > 0);
    CHECK(most <= 2 * NAPPERS + LOOK);
    cc__set(&stop, true);
    for (int i = 0; i < NAPPERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return arg;
}

TEST(yielder_beside_sleepers_that_are_always_due) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(yield_beside_naps, NULL, NULL), 0);
}

static void spawn_and_join(int index, void *arg) {
    (void)index, (void)arg;
    for (long i = 0; i < test_rounds(100, 5000); i++) CHECK_EQ(cc_run(just_run, NULL, NULL), 0);
}

TEST_WORKERS(threads_beside_a_pair) {
    struct pair pair = start_pair();
    crew_run(3, spawn_and_join, NULL);
    stop_pair(&pair);
    CHECK(pair_turns > 0);
}

/* ---- turns that become long ---- */

/* After short turns the next poll is planned 256 turns ahead. If turns become long, that is half a second: sysmon asks
 * for the poll. Where it shares a CPU with the worker, it may wait for that on a busy machine, but then there are few
 * turns. For reads it has its own; a round in which it had hardly a tick says nothing. Nor does one in which the worker
 * has got no CPU for LOST_NS: its turn looks like a stuck one, and sysmon rightly takes the events. */
enum { LONG_NS = 2 * 1000 * 1000, LOST_NS = 1000 * 1000, LONG_TURNS = 60, BUSY = 100 };
enum { ROUNDS = 3, ATTEMPTS = 20, FEW_TICKS = 10 };
static _Atomic uint64_t turn_ns;
static _Atomic long turns_at_write;
static int ends[2];
static _Atomic uint64_t looked_at; /* by the one worker */
static _Atomic bool reads, lost_cpu, too_busy;

/* The threads that are started from here on have one CPU. */
static void restrict_to_one_cpu(void) {
    cpu_set_t one;
    int here = sched_getcpu();
    CHECK(here >= 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)here, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static uint64_t look_at_clock(void) {
    uint64_t now = cc_now_ns();
    if (now - cc__get(&looked_at) > LOST_NS) cc__set(&lost_cpu, true);
    cc__set(&looked_at, now);
    return now;
}

static void *yield_in_turns(void *arg) {
    while (!cc__get(&stop)) {
        cc__add_relaxed(&pair_turns, 1);
        uint64_t end = look_at_clock() + (cc__get(&reads) && cc__get(&lost_cpu) ? 0 : cc__get(&turn_ns));
        while (look_at_clock() < end) continue;
        cc_yield();
    }
    return arg;
}

static long sleep_in_long_turns(void) {
    cc__set(&turn_ns, LONG_NS);
    long before = cc__get(&pair_turns);
    CHECK_EQ(cc_sleep_ms(5), 0);
    return cc__get(&pair_turns) - before;
}

static void *write_in_a_long_turn(void *arg) {
    while (cc__get(&turn_ns) == 0) sched_yield();
    for (long since = cc__get(&pair_turns); cc__get(&pair_turns) < since + 2;) sched_yield();
    cc__set(&turns_at_write, cc__get(&pair_turns));
    CHECK_EQ(write(ends[1], "", 1), 1);
    if (cc__get(&pair_turns) > cc__get(&turns_at_write) + 1) cc__set(&lost_cpu, true); /* perhaps before the write */
    return arg;
}

int cc__sysmon_thread(void); /* of sched/sysmon.h, which has another `gate` than ../gate.h */

/* How often sysmon has begun to sleep. */
static long count_ticks(void) {
    char path[64], line[128];
    long n = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", cc__sysmon_thread());
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    while (n < 0 && fgets(line, sizeof line, file) != NULL) (void)sscanf(line, "voluntary_ctxt_switches: %ld", &n);
    CHECK_EQ(fclose(file), 0);
    return n;
}

static void *begin_long_turns(void *arg) {
    cc__set(&turn_ns, LONG_NS);
    return arg;
}

static long read_in_long_turns(void) {
    pthread_t writer;
    char byte;
    size_t n;
    CHECK_EQ(pthread_create(&writer, NULL, write_in_a_long_turn, NULL), 0);
    CCTask begin = cc_fiber_spawn_task(begin_long_turns, NULL);
    CHECK_EQ(cc_fd_read(ends[0], &byte, 1, &n), 0);
    long turns = cc__get(&pair_turns) - cc__get(&turns_at_write);
    CHECK_EQ(pthread_join(writer, NULL), 0);
    CHECK_EQ(cc_task_join(&begin, NULL), 0);
    return turns;
}

static void become_short(void) {
    cc__set(&turn_ns, 0);
    for (long since = cc__get(&pair_turns); cc__get(&pair_turns) < since + 100 * 1000;) cc_yield();
}

static void *turns_become_long(void *arg) {
    CCTask tasks[BUSY];
    for (int i = 0; i < BUSY; i++) tasks[i] = cc_fiber_spawn_task(yield_in_turns, NULL);
    int rounds = 0;
    for (int i = 0; i < ATTEMPTS && rounds < ROUNDS; i++) {
        become_short();
        (void)look_at_clock();
        lost_cpu = false;
        long ticks = count_ticks(), turns = reads ? read_in_long_turns() : sleep_in_long_turns();
        (void)look_at_clock();
        if (reads && (lost_cpu || (turns > LONG_TURNS && count_ticks() - ticks < FEW_TICKS))) continue;
        CHECK(turns <= LONG_TURNS);
        rounds++;
    }
    if (rounds < ROUNDS) too_busy = true;
    cc__set(&stop, true);
    for (int i = 0; i < BUSY; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return arg;
}

static void on_one_worker(void) {
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    CHECK_EQ(pipe(ends), 0);
    if (!reads) restrict_to_one_cpu();
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(turns_become_long, NULL, NULL), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(close(ends[i]), 0);
    if (too_busy) SKIP("the worker lost its CPU in almost every round");
}

TEST(sleeps_end_when_turns_become_long) {
    on_one_worker();
}

TEST(reads_end_when_turns_become_long, .timeout = 300) { /* each round has a hundred thousand turns */
    reads = true;
    on_one_worker();
}

/* The same on an island while all workers sleep, when sysmon would tick every 100 ms: 25 turns a round, on average. */
static void *island_turns_become_long(void *arg) {
    enum { ISLAND_ROUNDS = 12, ISLAND_TURNS = 15 };
    CCTask tasks[BUSY];
    long turns = 0;
    for (int i = 0; i < BUSY; i++) tasks[i] = cc_fiber_spawn_task(yield_in_turns, NULL);
    for (int i = 0; i < ISLAND_ROUNDS; i++) {
        become_short();
        turns += sleep_in_long_turns();
    }
    cc__set(&stop, true);
    for (int i = 0; i < BUSY; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK(turns <= ISLAND_ROUNDS * ISLAND_TURNS);
    return arg;
}

TEST(an_island_polls_when_turns_become_long) {
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    CCIsland *island;
    restrict_to_one_cpu();
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_island_create(&island, NULL), 0);
    CHECK_EQ(cc_island_call(island, island_turns_become_long, NULL, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
}
