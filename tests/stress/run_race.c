/* run_race.c - OS threads that start a fiber and wait for its end, while another thread stops the runtime: either
 * the fiber has run when the call returns, or it never runs.
 */
#include "stress.h"

enum { USERS = 3 };

static atomic_bool stop;
static atomic_int at_work;

struct user {
    uint64_t seed;
    atomic_bool calls; /* cc_run has not returned */
    atomic_long ran;
};

/* Ends the runtime again and again while the users are at work. */
static void end_beside(void *(*fn)(void *), long rounds) {
    struct user *users = allocate(USERS, sizeof *users);
    pthread_t threads[USERS];
    uint64_t rng = test_seed();
    for (int i = 0; i < USERS; i++) {
        users[i].seed = test_random(&rng);
        atomic_fetch_add(&at_work, 1);
        threads[i] = start_thread(fn, &users[i]);
    }
    for (long i = 0; i < rounds; i++) {
        compute_ns(below(&rng, 500000));
        int rc = cc_runtime_shutdown(below(&rng, 3));
        CHECK(rc == 0 || rc == ETIMEDOUT);
    }
    atomic_store(&stop, true);
    while (atomic_load(&at_work) > 0) (void)cc_runtime_shutdown(0); /* one may have begun to wait for it */
    for (int i = 0; i < USERS; i++) join_thread(threads[i]);
    finish();
    free(users);
}

/* ---- cc_run ---- */

static void *run_in_the_call(void *arg) {
    struct user *u = arg;
    CHECK(atomic_load(&u->calls));
    atomic_fetch_add(&u->ran, 1);
    return u;
}

/* Until a shutdown ends the wait: none may wait for this without doing so. */
static void *wait_in_the_call(void *arg) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    return run_in_the_call(arg);
}

static void *user_of_cc_run(void *arg) {
    struct user *u = arg;
    uint64_t rng = u->seed;
    for (long ran = 0; !atomic_load(&stop);) {
        void *result = NULL;
        CCTaskFn fn = below(&rng, 50) == 0 ? wait_in_the_call : run_in_the_call;
        atomic_store(&u->calls, true);
        int rc = cc_run(fn, u, &result);
        atomic_store(&u->calls, false);
        CHECK(rc == 0 || rc == ECANCELED);
        if (rc == 0) ran++;
        CHECK(result == (rc == 0 ? u : NULL));
        CHECK_EQ(atomic_load(&u->ran), ran);
        if (rc != 0) sched_yield();
    }
    atomic_fetch_sub(&at_work, 1);
    return NULL;
}

TEST_WORKERS(cc_run_has_run_or_never_runs, .timeout = 120) {
    end_beside(user_of_cc_run, test_rounds(300, 30000));
}

/* ---- nurseries with a deadline: a fiber arms the timer ---- */

static void *user_of_deadlines(void *arg) {
    uint64_t rng = ((struct user *)arg)->seed;
    while (!atomic_load(&stop)) {
        CCNurseryConfig config = {.root = true, .deadline = cc_after_ns(below(&rng, 2000000))};
        CCNursery *n = cc_nursery_create_ex(&config);
        if (n == NULL) {
            CHECK_EQ(errno, ECANCELED);
            sched_yield();
        }
        CHECK_EQ(cc_nursery_free(n), 0);
    }
    atomic_fetch_sub(&at_work, 1);
    return NULL;
}

TEST_WORKERS(no_timer_outlives_its_nursery, .timeout = 120) {
    end_beside(user_of_deadlines, test_rounds(300, 30000));
}

/* ---- a nursery is cancelled while the runtime ends, or goes on because a child has come ---- */

static struct {
    pthread_barrier_t begin, end;
    CCNursery *nursery;
    CCEvent never;
    uint64_t spawn_ns, cancel_ns;
} meeting;

static void *wait_as_a_child(void *arg) {
    CHECK_EQ(cc_event_wait_until(&meeting.never, cc_after_ms(20 * 1000)), ECANCELED);
    return arg;
}

static void *spawn_each_round(void *arg) {
    for (;;) {
        pthread_barrier_wait(&meeting.begin);
        if (atomic_load(&stop)) return arg;
        compute_ns(meeting.spawn_ns);
        int rc = cc_nursery_spawn(meeting.nursery, wait_as_a_child, NULL);
        CHECK(rc == 0 || rc == ECANCELED);
        pthread_barrier_wait(&meeting.end);
    }
}

static void *cancel_each_round(void *arg) {
    for (;;) {
        pthread_barrier_wait(&meeting.begin);
        if (atomic_load(&stop)) return arg;
        compute_ns(meeting.cancel_ns);
        CHECK_EQ(cc_nursery_cancel(meeting.nursery), 0);
        pthread_barrier_wait(&meeting.end);
    }
}

TEST_WORKERS(a_cancellation_beside_the_end_is_not_lost, .timeout = 120) {
    CHECK_EQ(pthread_barrier_init(&meeting.begin, NULL, 3), 0);
    CHECK_EQ(pthread_barrier_init(&meeting.end, NULL, 3), 0);
    pthread_t spawner = start_thread(spawn_each_round, NULL), canceller = start_thread(cancel_each_round, NULL);
    uint64_t rng = test_seed();
    for (long i = test_rounds(1500, 100000); i > 0; i--) {
        int rc = cc_runtime_init(NULL);
        CHECK(rc == 0 || rc == EALREADY);
        CCNurseryConfig config = {.root = true};
        CHECK((meeting.nursery = cc_nursery_create_ex(&config)) != NULL);
        meeting.spawn_ns = below(&rng, 4000);
        meeting.cancel_ns = below(&rng, 25000);
        pthread_barrier_wait(&meeting.begin);
        compute_ns(below(&rng, 4000));
        CHECK_EQ(cc_runtime_shutdown(10 * 1000), 0); /* a child without its cancellation waits for longer */
        pthread_barrier_wait(&meeting.end);
        CHECK_EQ(cc_nursery_free(meeting.nursery), 0);
        CHECK_EQ(cc_runtime_shutdown(10 * 1000), 0);
    }
    atomic_store(&stop, true);
    pthread_barrier_wait(&meeting.begin);
    join_thread(spawner);
    join_thread(canceller);
    finish();
}
