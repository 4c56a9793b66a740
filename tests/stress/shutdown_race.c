/* shutdown_race.c - threads use the runtime while another one stops and starts it: each call returns a documented
 * result, nothing hangs, and a task that was started has run.
 */
#include "stress.h"

#include <unistd.h>

struct race {
    atomic_bool stop;
    atomic_long started, ran;
    atomic_long codes[256];
};

static void *task_of_a_race(void *arg) {
    atomic_fetch_add(&((struct race *)arg)->ran, 1);
    return arg;
}

/* The same after a wait, which a shutdown may cancel. */
static void *slow_task_of_a_race(void *arg) {
    int rc = cc_sleep_until(cc_after_ns(30000));
    CHECK(rc == 0 || rc == ECANCELED);
    return task_of_a_race(arg);
}

static void *parent_of_a_race(void *arg) {
    struct race *race = arg;
    CCTask task;
    int rc = cc_spawn(&task, slow_task_of_a_race, race, NULL);
    CHECK(rc == 0 || rc == ECANCELED);
    if (rc == 0) {
        atomic_fetch_add(&race->started, 1);
        void *result = NULL;
        rc = cc_task_join(&task, &result);
        CHECK(rc == 0 || rc == ECANCELED);
        if (rc == 0)
            CHECK(result == race);
        else
            CHECK_EQ(cc_task_detach(&task), 0);
    }
    return task_of_a_race(arg);
}

static int note(struct race *race, int rc) {
    CHECK(rc >= 0 && rc < 256);
    atomic_fetch_add(&race->codes[rc], 1);
    return rc;
}

static CCTaskFn some_task(uint64_t *rng) {
    uint64_t n = below(rng, 3);
    return n == 0 ? task_of_a_race : n == 1 ? slow_task_of_a_race : parent_of_a_race;
}

/* A handle from before a restart names nothing: ESRCH. One of a runtime that is ending: ECANCELED. */
static bool is_loss(int rc) {
    return rc == ESRCH || rc == ECANCELED;
}

static void use_the_runtime(struct race *race, uint64_t *rng) {
    CCTask task, copy;
    void *result = NULL;
    int rc = note(race, cc_spawn(&task, some_task(rng), race, NULL));
    CHECK(rc == 0 || rc == ECANCELED);
    if (rc != 0) {
        CHECK_EQ(task.id, 0);
        return;
    }
    atomic_fetch_add(&race->started, 1);
    switch (below(rng, 6)) {
    case 0:
        CHECK((rc = note(race, cc_task_detach(&task))) == 0 || is_loss(rc));
        return;
    case 1:
        CHECK((rc = note(race, cc_task_join(&task, &result))) == 0 || is_loss(rc));
        break;
    case 2:
        rc = note(race, cc_task_join_until(&task, &result, cc_after_ns(below(rng, 50000))));
        CHECK(rc == 0 || rc == ETIMEDOUT || is_loss(rc));
        break;
    case 3:
        rc = note(race, cc_task_join_try(&task, &result));
        CHECK(rc == 0 || rc == EAGAIN || is_loss(rc));
        break;
    case 4:
        rc = note(race, cc_task_dup(&task, &copy));
        CHECK(rc == 0 || is_loss(rc));
        if (rc == 0) CHECK((rc = note(race, cc_task_detach(&copy))) == 0 || is_loss(rc));
        CHECK((rc = note(race, cc_task_join(&task, &result))) == 0 || is_loss(rc));
        break;
    default:
        CHECK(cc_worker_count() <= 16);
        CHECK_EQ(cc_sleep_until(cc_after_ns(below(rng, 20000))), 0);
        rc = note(race, cc_task_join(&task, &result));
        CHECK(rc == 0 || is_loss(rc));
    }
    CHECK_EQ(task.id == 0, rc == 0);
    if (rc == 0)
        CHECK(result == race);
    else if (task.id != 0)
        (void)cc_task_detach(&task);
}

struct race_user {
    struct race *race;
    uint64_t seed;
};

static void *race_user_main(void *arg) {
    struct race_user *u = arg;
    uint64_t rng = u->seed;
    while (!atomic_load(&u->race->stop)) {
        use_the_runtime(u->race, &rng);
        if (below(&rng, 8) == 0) compute_ns(below(&rng, 100000));
    }
    return NULL;
}

static void *race_starter_main(void *arg) {
    struct race_user *u = arg;
    uint64_t rng = u->seed;
    while (!atomic_load(&u->race->stop)) {
        CCRuntimeConfig config = {.workers = 1 + (unsigned)below(&rng, 8)};
        int rc = note(u->race, cc_runtime_init(&config));
        CHECK(rc == 0 || rc == EALREADY);
        compute_ns(below(&rng, 300000));
    }
    return NULL;
}

TEST_WORKERS(threads_use_what_another_ends, .timeout = 120) {
    enum { USERS = 3 };
    struct race *race = allocate(1, sizeof *race);
    uint64_t rng = test_seed();
    struct race_user users[USERS + 1];
    pthread_t threads[USERS + 1];
    for (int i = 0; i <= USERS; i++) {
        users[i] = (struct race_user){race, test_random(&rng)};
        threads[i] = start_thread(i < USERS ? race_user_main : race_starter_main, &users[i]);
    }
    long rounds = test_rounds(300, 30000), ended = 0;
    for (long i = 0; i < rounds; i++) {
        int rc = cc_runtime_shutdown(below(&rng, 4));
        CHECK(rc == 0 || rc == ETIMEDOUT);
        if (rc == 0) ended++;
        compute_ns(below(&rng, 1000000));
    }
    atomic_store(&race->stop, true);
    for (int i = 0; i <= USERS; i++) join_thread(threads[i]);
    finish();
    printf("%ld of %ld shutdowns came through; %ld tasks; calls that returned:", ended, rounds,
           atomic_load(&race->started));
    for (int i = 0; i < 256; i++)
        if (atomic_load(&race->codes[i]) != 0) printf(" %ld times '%s'", atomic_load(&race->codes[i]), strerror(i));
    printf("\n");
    CHECK(ended > 0);
    CHECK_EQ(atomic_load(&race->ran), atomic_load(&race->started));
    free(race);
}

/* ---- descriptors: threads wait for them, and close them, while the poller is opened and closed ---- */

static void *read_and_close(void *arg) {
    enum { PIPES = 16 };
    struct race_user *u = arg;
    uint64_t rng = u->seed;
    int ends[PIPES][2];
    while (!atomic_load(&u->race->stop)) {
        for (int i = 0; i < PIPES; i++) {
            char byte;
            size_t n;
            CHECK_EQ(pipe(ends[i]), 0);
            CHECK_EQ(cc_fd_adopt(ends[i][0]), 0);
            int rc = note(u->race, cc_fd_read_until(ends[i][0], &byte, 1, &n, cc_after_ns(below(&rng, 20000))));
            CHECK(rc == ETIMEDOUT || rc == ECANCELED);
        }
        for (int i = 0; i < PIPES; i++) {
            if (below(&rng, 2) == 0) CHECK_EQ(cc_fd_release(ends[i][0]), 0);
            CHECK_EQ(cc_fd_close(ends[i][0]), 0);
            CHECK_EQ(close(ends[i][1]), 0);
        }
    }
    return NULL;
}

TEST_WORKERS(threads_close_what_another_polls, .timeout = 120) {
    enum { USERS = 3 };
    struct race *race = allocate(1, sizeof *race);
    struct race_user users[USERS];
    pthread_t threads[USERS];
    uint64_t rng = test_seed();
    for (int i = 0; i < USERS; i++) {
        users[i] = (struct race_user){race, test_random(&rng)};
        threads[i] = start_thread(read_and_close, &users[i]);
    }
    long rounds = test_rounds(300, 30000);
    /* On a busy machine the threads may not have had a CPU by then: the calls of the poller have to race with some. */
    for (long i = 0; i < rounds || atomic_load(&race->codes[ETIMEDOUT]) == 0; i++) {
        CHECK_EQ(cc_runtime_shutdown(1000), 0);
        compute_ns(below(&rng, 300000));
    }
    atomic_store(&race->stop, true);
    for (int i = 0; i < USERS; i++) join_thread(threads[i]);
    finish();
    free(race);
}

/* ---- patience: a shutdown with time in hand waits for the tasks that others still start ---- */

static void *brief_task_of_a_race(void *arg) {
    compute_ns(5000);
    return task_of_a_race(arg);
}

static void *start_a_few(void *arg) {
    struct race_user *u = arg;
    uint64_t rng = u->seed;
    while (!atomic_load(&u->race->stop)) {
        /* Counted before: this thread may lose its CPU between the two. */
        long ahead = atomic_fetch_add(&u->race->started, 1) - atomic_load(&u->race->ran);
        int rc = ahead < 10 ? cc_spawn(NULL, brief_task_of_a_race, u->race, NULL) : ECANCELED;
        CHECK(rc == 0 || rc == ECANCELED);
        if (rc != 0) {
            atomic_fetch_sub(&u->race->started, 1);
            sched_yield(); /* or the tasks would never catch up, and no shutdown would find them all ended */
        }
        compute_ns(below(&rng, 30000));
    }
    return NULL;
}

TEST_WORKERS(a_patient_shutdown_does_not_time_out) {
    enum { USERS = 2 };
    struct race *race = allocate(1, sizeof *race);
    struct race_user users[USERS];
    pthread_t threads[USERS];
    uint64_t rng = test_seed();
    for (int i = 0; i < USERS; i++) {
        users[i] = (struct race_user){race, test_random(&rng)};
        threads[i] = start_thread(start_a_few, &users[i]);
    }
    long rounds = test_rounds(300, 30000);
    for (long i = 0; i < rounds; i++) {
        while (cc_worker_count() == 0) sched_yield(); /* until one of them has started it again */
        compute_ns(below(&rng, 100000));
        CHECK_EQ(cc_runtime_shutdown(30 * 1000), 0); /* no task takes a thousandth of that */
    }
    atomic_store(&race->stop, true);
    for (int i = 0; i < USERS; i++) join_thread(threads[i]);
    finish();
    CHECK_EQ(atomic_load(&race->ran), atomic_load(&race->started));
    free(race);
}
