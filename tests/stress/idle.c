/* idle.c - a runtime whose workers all sleep wakes for the next piece of work, thousands of times. */
#include "stress.h"

#include <semaphore.h>
#include <time.h>

/* Pauses an OS thread for about ns, spinning or asleep, so that the workers are hit at every stage of going to sleep.
 */
static void pause_somehow(uint64_t *rng) {
    uint64_t ns = below(rng, 150000);
    if (below(rng, 2) == 0)
        compute_ns(ns);
    else
        nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static void *nothing(void *arg) {
    return arg;
}

/* ---- timers ---- */

/* Only this fiber's timer can wake a worker. */
static void *lone_sleeper(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    long rounds = test_rounds(3000, 300000);
    for (long i = 0; i < rounds; i++) {
        CCDeadline until = cc_after_ns(below(&rng, 300000));
        CHECK_EQ(cc_sleep_until(until), 0);
        CHECK(cc_now_ns() >= until.ns);
    }
    return NULL;
}

TEST_WORKERS(a_lone_sleeper_always_wakes) {
    run_and_finish(lone_sleeper, (void *)(uintptr_t)test_seed());
}

/* The timer wakes one worker; the fibers that it spawns wake the others, which steal the rest. */
static void *wake_and_fan_out(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    long rounds = test_rounds(1500, 150000);
    for (long i = 0; i < rounds; i++) {
        CHECK_EQ(cc_sleep_until(cc_after_ns(below(&rng, 200000))), 0);
        CCTask tasks[12];
        uintptr_t count = 1 + below(&rng, 12);
        for (uintptr_t k = 0; k < count; k++) tasks[k] = spawn(nothing, (void *)k);
        for (uintptr_t k = count; k-- > 0;) CHECK_EQ((uintptr_t)join(tasks[k]), k);
    }
    return NULL;
}

TEST_WORKERS(a_sleeper_wakes_and_fans_out) {
    run_and_finish(wake_and_fan_out, (void *)(uintptr_t)test_seed());
}

/* ---- OS threads bring work ---- */

TEST_WORKERS(a_thread_spawns_into_an_idle_runtime) {
    uint64_t rng = test_seed();
    long rounds = test_rounds(3000, 300000);
    for (long i = 0; i < rounds; i++) {
        void *result;
        CHECK_EQ(cc_run(nothing, (void *)i, &result), 0);
        CHECK_EQ((long)(intptr_t)result, i);
        if (i % 2 == 0) pause_somehow(&rng);
    }
    finish();
}

static void *bring_work(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    long rounds = test_rounds(800, 80000);
    for (long i = 0; i < rounds; i++) {
        void *result;
        CHECK_EQ(cc_run(nothing, (void *)i, &result), 0);
        CHECK_EQ((long)(intptr_t)result, i);
        pause_somehow(&rng);
    }
    return NULL;
}

TEST_WORKERS(four_threads_spawn_into_an_idle_runtime) {
    pthread_t threads[4];
    uint64_t rng = test_seed();
    for (int i = 0; i < 4; i++) threads[i] = start_thread(bring_work, (void *)(uintptr_t)test_random(&rng));
    for (int i = 0; i < 4; i++) join_thread(threads[i]);
    finish();
}

/* Detached: nobody joins, so only the fiber itself can record that it ran. */
static void *post(void *arg) {
    CHECK_EQ(sem_post(arg), 0);
    return NULL;
}

TEST_WORKERS(detached_work_runs_without_a_joiner) {
    uint64_t rng = test_seed();
    sem_t done;
    CHECK_EQ(sem_init(&done, 0, 0), 0);
    long rounds = test_rounds(2000, 200000);
    for (long i = 0; i < rounds; i++) {
        uint64_t count = 1 + below(&rng, 4);
        for (uint64_t k = 0; k < count; k++) CHECK_EQ(cc_spawn(NULL, post, &done, NULL), 0);
        for (uint64_t k = 0; k < count; k++)
            while (sem_wait(&done) != 0) CHECK_EQ(errno, EINTR);
        if (i % 4 == 0) pause_somehow(&rng);
    }
    finish();
    sem_destroy(&done);
}

/* ---- an OS thread and a fiber wake each other ---- */

struct rally {
    struct bell bell; /* the fiber waits here */
    sem_t back;       /* the thread waits here */
    long turns;
    atomic_long served;
};

static void *send_back(void *arg) {
    struct rally *rally = arg;
    for (long i = 0; i < rally->turns; i++) {
        bell_wait(&rally->bell);
        atomic_fetch_add(&rally->served, 1);
        CHECK_EQ(sem_post(&rally->back), 0);
    }
    return NULL;
}

static void *serve(void *arg) {
    struct rally *rally = arg;
    uint64_t rng = (uintptr_t)arg ^ test_seed();
    CCTask task = spawn(send_back, rally);
    for (long i = 0; i < rally->turns; i++) {
        bell_ring(&rally->bell);
        while (sem_wait(&rally->back) != 0) CHECK_EQ(errno, EINTR);
        CHECK_EQ(atomic_load(&rally->served), i + 1);
        if (i % 16 == 0) pause_somehow(&rng);
    }
    join(task);
    return NULL;
}

static void rallies(int count) {
    struct rally *all = allocate((size_t)count, sizeof *all);
    pthread_t threads[8];
    for (int i = 0; i < count; i++) {
        all[i].turns = test_rounds(6000 / count, 600000 / count);
        CHECK_EQ(sem_init(&all[i].back, 0, 0), 0);
        threads[i] = start_thread(serve, &all[i]);
    }
    for (int i = 0; i < count; i++) join_thread(threads[i]);
    finish();
    for (int i = 0; i < count; i++) sem_destroy(&all[i].back);
    free(all);
}

TEST_WORKERS(a_thread_and_a_fiber_wake_each_other) {
    rallies(1);
}

TEST_WORKERS(threads_and_fibers_wake_each_other) {
    rallies(4);
}

/* ---- the start ---- */

TEST_WORKERS(work_that_is_spawned_before_the_workers_run) {
    long rounds = test_rounds(150, 15000);
    for (long i = 0; i < rounds; i++) {
        CCTask tasks[20];
        for (uintptr_t k = 0; k < 20; k++) tasks[k] = spawn(nothing, (void *)k); /* the first one starts the runtime */
        for (uintptr_t k = 0; k < 20; k++) CHECK_EQ((uintptr_t)join(tasks[k]), k);
        finish();
    }
}

static void *first_user(void *arg) {
    pthread_barrier_wait(arg);
    void *result;
    CHECK_EQ(cc_run(nothing, arg, &result), 0);
    CHECK(result == arg);
    return NULL;
}

TEST_WORKERS(threads_start_the_runtime_together) {
    enum { THREADS = 4 };
    long rounds = test_rounds(100, 10000);
    for (long i = 0; i < rounds; i++) {
        pthread_barrier_t barrier;
        pthread_t threads[THREADS];
        CHECK_EQ(pthread_barrier_init(&barrier, NULL, THREADS), 0);
        for (int k = 0; k < THREADS; k++) threads[k] = start_thread(first_user, &barrier);
        for (int k = 0; k < THREADS; k++) join_thread(threads[k]);
        finish();
        pthread_barrier_destroy(&barrier);
    }
}

/* ---- after a long quiet, when nobody even watches ---- */

struct relief {
    atomic_bool came;
};

static void *relieve(void *arg) {
    struct relief *relief = arg;
    atomic_store(&relief->came, true);
    return NULL;
}

/* While all others are idle, one fiber spawns another and hogs its worker until that one has run, which takes another
 * worker. */
static void *quiet_then_stuck(void *arg) {
    (void)arg;
    long rounds = test_rounds(10, 1000);
    for (long i = 0; i < rounds; i++) {
        struct relief relief = {false};
        CHECK_EQ(cc_sleep_ms(40), 0); /* not a synchronisation: long enough for the watcher to go to sleep as well */
        CCTask task = spawn(relieve, &relief);
        uint64_t start_ns = cc_now_ns();
        while (!atomic_load(&relief.came)) CHECK(cc_now_ns() - start_ns < 10000000000u);
        join(task);
    }
    return NULL;
}

TEST_WORKERS(out_of_the_quiet) {
    if (atoi(getenv("CC_WORKERS")) == 1) SKIP("with one worker no other could take over");
    run_and_finish(quiet_then_stuck, NULL);
}
