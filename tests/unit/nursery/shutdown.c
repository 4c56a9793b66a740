/* shutdown.c - the runtime shuts down while nurseries run. */
#include "scene.h"

#include "../capture.h"
#include "../crew.h"
#include "sched/sched.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static atomic_int ended, started;

static void *wait_for_the_end(void *arg) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    return count_up(arg);
}

static void *nursery_of_sleepers(void *arg) {
    (void)arg;
    int rc;
    CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(3600 * 1000)) {
        for (int i = 0; i < 5; i++) CHECK_EQ(cc_nursery_spawn(n, wait_for_the_end, &ended), 0);
        atomic_fetch_add(&started, 1);
    }
    CHECK(rc == ECANCELED || rc == 0);
    return count_up(&ended);
}

TEST_WORKERS(ends_all_of_it) {
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_spawn(NULL, nursery_of_sleepers, NULL, NULL), 0);
    UNTIL(started == 10);
    end_by_cancelling();
    CHECK_EQ(ended, 60);
}

/* A loop that does not wait calls cc_cancelled, shielded or not. */
static void *poll_for_the_end(void *arg) {
    CCError why;
    CHECK_EQ(cc_check_cancel(), 0);
    CHECK_EQ(cc_cancel_reason(&why), ESRCH);
    atomic_fetch_add(&started, 1);
    CC_SHIELD while (!cc_cancelled()) cc_yield();
    CHECK_EQ(cc_check_cancel(), ECANCELED);
    CHECK_EQ(cc_cancel_reason(&why), 0);
    CHECK_EQ(strcmp(why.text, "the runtime shuts down"), 0);
    return count_up(arg);
}

TEST_WORKERS(ends_loops_that_check) {
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_spawn(NULL, poll_for_the_end, &ended, NULL), 0);
    UNTIL(started == 10);
    end_by_cancelling();
    CHECK_EQ(ended, 10);
    CHECK(!cc_cancelled());
}

/* cc_run, too, waits for the end of its fiber. */
static void *start_and_wait(void *arg) {
    atomic_fetch_add(&started, 1);
    return wait_for_the_end(arg);
}

static void *run_until_the_end(void *arg) {
    atomic_int local = 0;
    int rc = cc_run(start_and_wait, &local, NULL);
    CHECK(rc == ECANCELED || rc == 0); /* 0: the function had ended when the join was to be cancelled */
    CHECK_EQ(local, 1);
    return count_up(arg);
}

TEST_WORKERS(run_waits_for_the_end) {
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_spawn(NULL, run_until_the_end, &ended, NULL), 0);
    UNTIL(started == 10);
    end_by_cancelling();
    CHECK_EQ(ended, 10);
}

/* Nobody waits for the nursery, whose deadline is far away; it is freed when the runtime is gone. */
TEST_WORKERS(nursery_outlives_the_runtime) {
    for (int i = 0; i < 5; i++) {
        ended = 0;
        CCNursery *n =
            cc_nursery_create_ex(&(CCNurseryConfig){.deadline = cc_after_ms(3600 * 1000), .grace_ms = 100000});
        CHECK(n != NULL);
        for (int k = 0; k < 5; k++) CHECK_EQ(cc_nursery_spawn(n, wait_for_the_end, &ended), 0);
        end_by_cancelling();
        CHECK_EQ(ended, 5);
        int rc = cc_nursery_wait(n);
        CHECK(rc == ECANCELED || rc == 0); /* not ETIMEDOUT: the deadline had not passed */
        CHECK_EQ(cc_nursery_free(n), 0);
    }
}

/* An OS thread waits for a nursery while another one ends the runtime. */

static void thread_waits(int index, void *n) {
    (void)index;
    int rc = cc_nursery_wait(n);
    CHECK(rc == 0 || rc == ECANCELED);
    CHECK_EQ(cc_nursery_children(n), 0);
}

TEST_WORKERS(a_thread_waits) {
    for (int i = 0; i < 10; i++) {
        ended = 0;
        CCNursery *n = new_nursery(NULL);
        for (int k = 0; k < 20; k++) CHECK_EQ(cc_nursery_spawn(n, wait_for_the_end, &ended), 0);
        struct crew crew;
        crew_start(&crew, 3, thread_waits, n);
        end_by_cancelling();
        crew_join(&crew);
        CHECK_EQ(ended, 20);
        CHECK_EQ(cc_nursery_free(n), 0);
    }
}

/* A shutdown that times out: the runtime, the nursery and its cancellation go on. */
static atomic_int stop, stubborn_started;

static void *stubborn(void *arg) {
    (void)arg;
    atomic_fetch_add(&stubborn_started, 1);
    while (!atomic_load(&stop)) cc_yield();
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    CHECK(cc_cancelled());
    return count_up(&ended);
}

TEST_WORKERS(a_shutdown_that_times_out) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, stubborn, NULL), 0);
    UNTIL(stubborn_started);
    struct capture capture;
    capture_start(&capture);
    CHECK_EQ(cc_runtime_shutdown(1), ETIMEDOUT);
    CHECK(contains(capture_end(&capture), "1 task still runs"));
    CHECK_EQ(cc_nursery_spawn(n, wait_for_cancel, &ended), 0); /* accepted again */
    CHECK_EQ(cc_nursery_cancel(n), 0);
    stop = 1;
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(ended, 2);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* While the runtime refuses new fibers, a spawn returns an error, and the nursery's count stays correct. */
static void *spawn_till_refused(void *arg) {
    CCNursery *n = arg;
    int rc;
    atomic_fetch_add(&started, 1);
    while ((rc = cc_nursery_spawn(n, nothing, NULL)) == 0) cc_yield();
    CHECK_EQ(rc, ECANCELED);
    return count_up(&ended);
}

TEST_WORKERS(refuses_children) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, spawn_till_refused, n), 0);
    UNTIL(started);
    end_by_cancelling();
    CHECK_EQ(ended, 1);
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

/* A select that never waits sees a shutdown, too. */
static void *poll_for_cancel(void *arg) {
    (void)arg;
    bool cancelled = false;
    atomic_fetch_add(&started, 1);
    while (!cancelled && !atomic_load(&stop)) CC_WHEN {
            CC_ON_CANCEL() {
                cancelled = true;
            }
            CC_ON_DEFAULT() {}
        }
    return cancelled ? count_up(&ended) : NULL;
}

TEST_WORKERS(shutdown_cancels_a_polling_select) {
    CHECK_EQ(cc_spawn(NULL, poll_for_cancel, NULL, NULL), 0);
    UNTIL(started);
    for (int i = 0; i < 50 && cc_runtime_shutdown(1) != 0; i++) { /* each gives it a tenth of a second */
    }
    stop = 1;
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(ended, 1);
}

/* All workers sleep, and a shutdown waits for the last thing left: a deadline that an OS thread removes. */
static void *free_from_outside(void *nursery) {
    while (!cc__get_seq(&cc__sched.draining)) sched_yield();
    usleep(20 * 1000); /* it may as well come earlier; then it shows less */
    CHECK_EQ(cc_nursery_free(nursery), 0);
    return NULL;
}

TEST_WORKERS(a_deadline_is_removed_meanwhile, .timeout = 20) {
    pthread_t thread;
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.root = true, .deadline = cc_after_ms(3600 * 1000)});
    CHECK(n != NULL);
    CHECK_EQ(pthread_create(&thread, NULL, free_from_outside, n), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* ---- blocks with a deadline, on an OS thread, when no fiber can arm it any more ---- */

static atomic_bool refused, released;

static void *hold_the_shutdown_up(void *arg) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    atomic_store(&refused, true);
    while (!atomic_load(&released)) sched_yield();
    return arg;
}

static void *shut_down(void *arg) {
    CHECK_EQ(cc_runtime_shutdown(1000), 0); /* the blocks have a second */
    return arg;
}

static void check_cancelled_by_the_shutdown(void) {
    CCError why;
    CHECK_EQ(cc_check_cancel(), ECANCELED);
    CHECK_EQ(cc_cancel_reason(&why), 0);
    CHECK_EQ(why.code, ECANCELED);
    CHECK_EQ(strcmp(why.text, "the runtime shuts down"), 0);
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    atomic_fetch_add(&started, 1);
}

TEST(blocks_with_a_deadline_are_cancelled) {
    pthread_t thread;
    int rc = -1;
    CHECK_EQ(cc_spawn(NULL, hold_the_shutdown_up, NULL, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, shut_down, NULL), 0);
    UNTIL(atomic_load(&refused));
    CC_WITH_DEADLINE(cc_after_ms(3600 * 1000)) check_cancelled_by_the_shutdown();
    CC_NURSERY(n, .deadline = cc_after_ms(3600 * 1000)) check_cancelled_by_the_shutdown();
    CC_NURSERY(n, .deadline = cc_after_ms(3600 * 1000), .result = &rc) check_cancelled_by_the_shutdown();
    CHECK_EQ(rc, ECANCELED);
    CHECK_EQ(started, 3);
    CHECK(!cc_cancelled());
    atomic_store(&released, true);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
