/* sleepers.c - a hundred thousand fibers sleep, none wakes early, all wake. */
#include "stress.h"

#include <time.h>

/* ---- how late is too late ----
 *
 * A timer that was missed, and only found by another event, is seconds late. On a very busy machine everything is. So a
 * plain thread sleeps and computes in turns, by clocks of its own, and lateness is counted in its turns: a timer was
 * missed if the thread has had that many since it was due. A turn takes 10 ms on a quiet machine, and among many as
 * long as a worker needs for 5 ms of work: it computes half of the time, so the system does not give it priority. */
enum {
    TURN_NS = 5 * 1000 * 1000, /* of sleep, and the same of work */
    TURNS_KEPT = 4096,
    LATE_TURNS =
        200, /* 2 s on a quiet machine; of a hundred thousand the last was 15 turns late, among others or not */
};

static struct {
    pthread_t thread;
    atomic_bool stop;
    _Atomic uint64_t turns, ends[TURNS_KEPT]; /* how many, and when they ended */
} ruler;

static uint64_t cpu_ns(void) {
    struct timespec ts;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void *ruler_main(void *arg) {
    for (uint64_t turn = 0; !atomic_load(&ruler.stop);) {
        nanosleep(&(struct timespec){.tv_nsec = TURN_NS}, NULL);
        for (uint64_t end = cpu_ns() + TURN_NS; cpu_ns() < end;) {
        }
        atomic_store(&ruler.ends[turn % TURNS_KEPT], cc_now_ns());
        atomic_store(&ruler.turns, ++turn);
    }
    return arg;
}

static void ruler_start(void) {
    ruler.thread = start_thread(ruler_main, NULL);
}

static void ruler_stop(void) {
    atomic_store(&ruler.stop, true);
    join_thread(ruler.thread);
}

/* Whether that many complete turns, or more, have ended since then. */
static bool turns_since(uint64_t then, uint64_t many) {
    uint64_t turns = atomic_load(&ruler.turns);
    return turns > many && atomic_load(&ruler.ends[(turns - 1 - many) % TURNS_KEPT]) >= then;
}

/* ---- sleepers ---- */

struct sleepers {
    uint64_t turns_max;
    atomic_long awake;
    _Atomic uint64_t latest_ns;
};

struct sleeper {
    struct sleepers *all;
    CCDeadline until;
};

static void note_late(struct sleepers *all, uint64_t late) {
    uint64_t latest = atomic_load(&all->latest_ns);
    while (late > latest && !atomic_compare_exchange_weak(&all->latest_ns, &latest, late)) {
    }
}

static void *sleep_once(void *arg) {
    struct sleeper *s = arg;
    uint64_t begun = cc_now_ns(); /* the last ones may begin after their time: there are many to start */
    CHECK_EQ(cc_sleep_until(s->until), 0);
    uint64_t now = cc_now_ns(), due = s->until.ns > begun ? s->until.ns : begun;
    CHECK(now >= s->until.ns);
    note_late(s->all, now - due);
    CHECK(!turns_since(due, s->all->turns_max));
    atomic_fetch_add(&s->all->awake, 1);
    return NULL;
}

struct plan {
    long count;
    uint64_t from_ns, to_ns; /* from now */
    uint64_t seed;
    uint64_t turns_max; /* how late the last one may be: there is as much to do as there are sleepers */
};

static void *sleep_as_planned(void *arg) {
    struct plan *plan = arg;
    struct sleepers all = {.turns_max = plan->turns_max};
    uint64_t rng = plan->seed, base = cc_now_ns() + plan->from_ns;
    CCTask *tasks = allocate((size_t)plan->count, sizeof *tasks);
    for (long i = 0; i < plan->count; i++) {
        struct sleeper s = {&all, {base + below(&rng, plan->to_ns - plan->from_ns + 1)}};
        tasks[i] = cc_task_go(sleep_once, &s, sizeof s);
        CHECK(tasks[i].id != 0);
    }
    for (long i = 0; i < plan->count; i++) join(tasks[i]);
    free(tasks);
    CHECK_EQ(atomic_load(&all.awake), plan->count);
    printf("the latest came %.1f ms late\n", (double)atomic_load(&all.latest_ns) / 1e6);
    return NULL;
}

static void run_plan(struct plan plan) {
    CHECK_EQ(cc_run(sleep_as_planned, &plan, NULL), 0);
}

/* The spread begins after the spawns are likely to be over, so that all sleep at once. */
TEST_WORKERS(hundred_thousand_sleepers) {
    ruler_start();
    run_plan((struct plan){test_rounds(100000, 1000000), 300000000, 800000000, test_seed(),
                           LATE_TURNS * (test_long() ? 10 : 1)});
    ruler_stop();
    finish();
}

/* Some deadlines are over before the fiber first runs, some come while it parks. */
TEST_WORKERS(deadlines_that_come_at_once) {
    long rounds = test_rounds(20, 2000);
    uint64_t rng = test_seed();
    ruler_start();
    for (long i = 0; i < rounds; i++) run_plan((struct plan){5000, 0, 3000000, test_random(&rng), LATE_TURNS});
    ruler_stop();
    finish();
}

TEST_WORKERS(all_at_the_same_moment) {
    ruler_start();
    run_plan((struct plan){test_rounds(50000, 500000), 200000000, 200000000, test_seed(),
                           LATE_TURNS * (test_long() ? 10 : 1)});
    ruler_stop();
    finish();
}

/* ---- again and again ---- */

static void *nap_often(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    long rounds = test_rounds(40, 4000);
    for (long i = 0; i < rounds; i++) {
        CCDeadline until = cc_after_ns(below(&rng, 10) == 0 ? below(&rng, 20000000) : below(&rng, 500000));
        CHECK_EQ(cc_sleep_until(until), 0);
        CHECK(cc_now_ns() >= until.ns);
        if (below(&rng, 4) == 0) cc_yield();
    }
    return NULL;
}

/* OS threads sleep by the same call. */
TEST_WORKERS(a_thousand_naps_each) {
    enum { FIBERS = 1000, THREADS = 4 };
    static CCTask tasks[FIBERS];
    pthread_t threads[THREADS];
    uint64_t rng = test_seed();
    for (int i = 0; i < THREADS; i++) threads[i] = start_thread(nap_often, (void *)(uintptr_t)test_random(&rng));
    for (int i = 0; i < FIBERS; i++) tasks[i] = spawn(nap_often, (void *)(uintptr_t)test_random(&rng));
    for (int i = 0; i < FIBERS; i++) join(tasks[i]);
    for (int i = 0; i < THREADS; i++) join_thread(threads[i]);
    finish();
}

/* ---- a timer that was armed while everybody slept for a later one ---- */

static void *sleep_for_an_hour(void *arg) {
    CHECK_EQ(cc_sleep_ms(3600 * 1000), ECANCELED);
    return arg;
}

static void *sleep_until_then(void *arg) {
    CHECK_EQ(cc_sleep_until(*(CCDeadline *)arg), 0);
    CHECK(cc_now_ns() >= ((CCDeadline *)arg)->ns);
    return NULL;
}

/* A runtime that misses the earlier one wakes for the later one, in an hour. */
TEST_WORKERS(an_earlier_timer_overtakes) {
    long rounds = test_rounds(400, 40000);
    CCTask last = spawn(sleep_for_an_hour, NULL);
    ruler_start();
    for (long i = 0; i < rounds; i++) {
        CCDeadline near = cc_after_ns(200000);
        join(spawn(sleep_until_then, &near));
        CHECK(!turns_since(near.ns, LATE_TURNS));
    }
    ruler_stop();
    CHECK_EQ(cc_task_cancel(&last), 0);
    join(last);
    finish();
}
