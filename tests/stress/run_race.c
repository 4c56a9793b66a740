/* run_race.c - OS threads whose calls start a fiber and wait for its end, while another thread ends the runtime: either
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
