/* pinned.c - the storms again with eight workers that share one CPU, where the holder of a lock has usually
 * been preempted. */
#include "storm_join.h"
#include "storm_park.h"

#include <semaphore.h>

/* Before the runtime starts: its threads inherit it. */
static void pin(void) {
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &all)) continue;
        CPU_SET(i, &one);
        break;
    }
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CHECK_EQ(CPU_COUNT(&all), 1);
    start(8);
}

TEST(join_storm_on_one_cpu, .timeout = 120) {
    pin();
    join_storm(test_rounds(150, 30000), test_seed());
    finish();
}

TEST(park_storm_on_one_cpu, .timeout = 120) {
    pin();
    park_storm(test_rounds(15000, 1500000), false, test_seed());
    park_storm(test_rounds(15000, 1500000), true, test_seed());
    finish();
}

static void *fib(void *arg) {
    uintptr_t n = (uintptr_t)arg;
    if (n < 2) return arg;
    CCTask first = spawn(fib, (void *)(n - 1)), second = spawn(fib, (void *)(n - 2));
    uintptr_t a = (uintptr_t)join(first);
    return (void *)(a + (uintptr_t)join(second));
}

TEST(fib_on_one_cpu, .timeout = 120) {
    pin();
    long rounds = test_rounds(200, 20000);
    for (long i = 0; i < rounds; i++) {
        void *result;
        CHECK_EQ(cc_run(fib, (void *)(uintptr_t)15, &result), 0);
        CHECK_EQ((uintptr_t)result, 610);
    }
    finish();
}

static void *post(void *arg) {
    CHECK_EQ(sem_post(arg), 0);
    return NULL;
}

static void *nap(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    long rounds = test_rounds(100, 10000);
    for (long i = 0; i < rounds; i++) {
        CCDeadline until = cc_after_ns(below(&rng, 300000));
        CHECK_EQ(cc_sleep_until(until), 0);
        CHECK(cc_now_ns() >= until.ns);
    }
    return NULL;
}

/* Fall asleep and wake, by timers and by an OS thread. */
TEST(idle_and_awake_on_one_cpu, .timeout = 120) {
    pin();
    sem_t done;
    CHECK_EQ(sem_init(&done, 0, 0), 0);
    uint64_t rng = test_seed();
    CCTask naps[8];
    for (int i = 0; i < 8; i++) naps[i] = spawn(nap, (void *)(uintptr_t)test_random(&rng));
    long rounds = test_rounds(8000, 800000);
    for (long i = 0; i < rounds; i++) {
        CHECK_EQ(cc_spawn(NULL, post, &done, NULL), 0);
        while (sem_wait(&done) != 0) CHECK_EQ(errno, EINTR);
    }
    for (int i = 0; i < 8; i++) join(naps[i]);
    finish();
    sem_destroy(&done);
}

/* A fiber that hogs the only CPU: only the kernel can let another worker run, and that one finds the work. */
struct stuck {
    atomic_int left;
};

static void *relieve(void *arg) {
    atomic_fetch_sub(&((struct stuck *)arg)->left, 1);
    return NULL;
}

static void *keep_the_cpu(void *arg) {
    struct stuck *s = arg;
    uint64_t begin = cc_now_ns();
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_spawn(NULL, relieve, s, NULL), 0);
    while (atomic_load(&s->left) > 0) CHECK(cc_now_ns() - begin < 20000000000u);
    return NULL;
}

TEST(stuck_on_one_cpu, .timeout = 120) {
    pin();
    long rounds = test_rounds(50, 5000);
    for (long i = 0; i < rounds; i++) {
        struct stuck s = {.left = 10};
        CHECK_EQ(cc_run(keep_the_cpu, &s, NULL), 0);
    }
    finish();
}
