/* call.c - calls that block an OS thread: where they run, waiting for them, and abandoning them. */
#include "harness.h"

#include "../capture.h"
#include "base/attr.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *give_back(void *arg) {
    CHECK(!cc_in_fiber());
    return arg;
}

/* A call that blocks until it is released. */
struct stay {
    sem_t go;
    atomic_int begun, ended, cleaned;
};

static void *stays(void *arg) {
    struct stay *stay = arg;
    atomic_fetch_add(&stay->begun, 1);
    while (sem_wait(&stay->go) != 0) {
    }
    atomic_fetch_add(&stay->ended, 1);
    return stay;
}

static void cleans(void *arg, void *result) {
    struct stay *stay = arg;
    CHECK(result == NULL || result == arg);
    atomic_fetch_add(&stay->cleaned, 1);
}

static void stay_init(struct stay *stay) {
    memset(stay, 0, sizeof *stay);
    CHECK_EQ(sem_init(&stay->go, 0, 0), 0);
}

static void await(atomic_int *count, int n) {
    while (atomic_load(count) < n) cc_sleep_ms(1);
}

/* ---- results ---- */

CC_BLOCKING(add, { int a, b; }) {
    CHECK(!cc_in_fiber());
    return (void *)(intptr_t)(self->a + self->b);
}

CC_BLOCKING(nothing) {
    return &nothing;
}

static void *results(void *arg) {
    void *result = NULL;
    int here = 1;
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(cc_blocking(give_back, &here, &result), 0);
        CHECK(result == &here);
    }
    CHECK_EQ(cc_blocking(give_back, &here, NULL), 0);
    CHECK_EQ(cc_blocking_until(give_back, &here, &result, cc_after_ms(3600 * 1000)), 0);
    CHECK(result == &here);
    CHECK_EQ(CC_BLOCKING_CALL(add, &result, .a = 17, .b = 4), 0);
    CHECK_EQ((intptr_t)result, 21);
    CHECK_EQ(CC_BLOCKING_CALL(nothing, &result), 0);
    CHECK(result == (void *)&nothing);
    return arg;
}

TEST_WORKERS(a_call_has_a_result) {
    CHECK_EQ(cc_run(results, NULL, NULL), 0);
}

static void *same_thread(void *arg) {
    return (void *)pthread_self() == arg ? arg : NULL;
}

TEST(an_os_thread_calls_directly) {
    void *self = (void *)pthread_self(), *result;
    CHECK_EQ(cc_blocking(same_thread, self, &result), 0);
    CHECK(result == self);
    CHECK_EQ(cc_worker_count(), 0); /* no runtime is needed for that */
    CHECK_EQ(cc_blocking_ex(same_thread, self, &result, &(CCBlockingOptions){.pool = CC_POOL_SLOW}, CC_FOREVER), 0);
    CHECK(result == self);
}

static void *copies(void *arg) {
    char *text = arg;
    CHECK_EQ((uintptr_t)text % 16, 0);
    text[0] = 'X';
    return (void *)(intptr_t)strlen(text);
}

static void *copied(void *arg) {
    char text[] = "copied";
    void *result;
    CHECK_EQ(cc_blocking_ex(copies, text, &result, &(CCBlockingOptions){.arg_size = sizeof text}, CC_FOREVER), 0);
    CHECK_EQ((intptr_t)result, 6);
    CHECK_EQ(text[0], 'c');
    return arg;
}

TEST(arguments_are_copied_if_asked) {
    copied(NULL);
    CHECK_EQ(cc_run(copied, NULL, NULL), 0);
}

static void *bad_input(void *arg) {
    void *result = &result;
    CCPool *pool = (CCPool *)&result;
    CHECK_EQ(cc_blocking(NULL, NULL, &result), EINVAL);
    CHECK_EQ(cc_blocking_until(NULL, NULL, NULL, CC_FOREVER), EINVAL);
    static const CCBlockingOptions bad[] = {
        {.arg_size = CC_BLOCKING_ARG_MAX + 1}, {.arg_size = 1}, {.cleanup = cleans}, {.reserved = {0, 0, 0, 1}}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(cc_blocking_ex(give_back, i == 1 ? NULL : &result, &result, &bad[i], CC_FOREVER), EINVAL);
    CHECK_EQ(cc_pool_create(NULL, 1), EINVAL);
    CHECK_EQ(cc_pool_create(&pool, 0), EINVAL);
    CHECK(pool == NULL);
    CHECK_EQ(cc_pool_create(&pool, CC_POOL_THREADS_MAX + 1), EINVAL);
    CHECK_EQ(cc_pool_free(NULL), 0);
    CHECK_EQ(cc_pool_free(CC_POOL_FILE), EINVAL);
    CHECK_EQ(cc_pool_free(CC_POOL_SLOW), EINVAL);
    return arg;
}

TEST(bad_input_is_refused) {
    bad_input(NULL);
    CHECK_EQ(cc_run(bad_input, NULL, NULL), 0);
}

/* ---- the worker goes on ---- */

CC_TASK(call_and_stay, { struct stay *stay; }) {
    void *result;
    CHECK_EQ(cc_blocking(stays, self->stay, &result), 0);
    CHECK(result == self->stay);
    return NULL;
}

static void *many_at_once(void *arg) {
    enum { MANY = 20 };
    struct stay stay;
    stay_init(&stay);
    CC_NURSERY(n) {
        for (int i = 0; i < MANY; i++) CHECK_EQ(CC_GO_IN(n, call_and_stay, .stay = &stay), 0);
        await(&stay.begun, MANY); /* on one worker, too */
        CHECK_EQ(atomic_load(&stay.ended), 0);
        for (int i = 0; i < MANY; i++) sem_post(&stay.go);
    }
    CHECK_EQ(atomic_load(&stay.ended), MANY);
    return arg;
}

TEST_WORKERS(calls_run_beside_each_other) {
    CHECK_EQ(cc_run(many_at_once, NULL, NULL), 0);
}

static void *nested(void *arg) {
    CHECK_EQ(cc_pool_free(arg), EDEADLK);
    void *thread = (void *)pthread_self(), *result;
    CCBlockingOptions options = {.pool = arg, .may_abandon = true};
    CHECK_EQ(cc_blocking(same_thread, thread, &result), 0);
    CHECK(result == thread);
    CHECK_EQ(cc_blocking_ex(same_thread, thread, &result, &options, CC_FOREVER), 0);
    CHECK(result == thread);
    return NULL;
}

static void *call_nested(void *arg) {
    CCPool *pool;
    CHECK_EQ(cc_pool_create(&pool, 1), 0);
    CHECK_EQ(cc_blocking_ex(nested, pool, NULL, &(CCBlockingOptions){.pool = pool}, CC_FOREVER), 0);
    CHECK_EQ(cc_pool_free(pool), 0);
    return arg;
}

TEST(a_call_within_a_call_is_direct) {
    CHECK_EQ(cc_run(call_nested, NULL, NULL), 0);
}

/* ---- pools ---- */

CC_TASK(call_in_pool, {
    CCPool *pool;
    struct stay *stay;
}) {
    CHECK_EQ(cc_blocking_ex(stays, self->stay, NULL, &(CCBlockingOptions){.pool = self->pool}, CC_FOREVER), 0);
    return NULL;
}

/* A pool of one thread, which is in a blocked call. */
static CCPool *busy_pool(CCNursery *n, struct stay *stay) {
    CCPool *pool;
    stay_init(stay);
    CHECK_EQ(cc_pool_create(&pool, 1), 0);
    CHECK_EQ(CC_GO_IN(n, call_in_pool, .pool = pool, .stay = stay), 0);
    await(&stay->begun, 1);
    return pool;
}

static void *limits(void *arg) {
    struct stay stay;
    CCPool *pool;
    stay_init(&stay);
    CHECK_EQ(cc_pool_create(&pool, 3), 0);
    CC_NURSERY(n) {
        for (int i = 0; i < 10; i++) CHECK_EQ(CC_GO_IN(n, call_in_pool, .pool = pool, .stay = &stay), 0);
        await(&stay.begun, 3);
        CHECK_EQ(cc_pool_free(pool), EBUSY);
        for (int i = 0; i < 10; i++) { /* a full pool starves nobody */
            CHECK_EQ(cc_blocking(give_back, NULL, NULL), 0);
            CHECK_EQ(cc_blocking_ex(give_back, NULL, NULL, &(CCBlockingOptions){.pool = CC_POOL_FILE}, CC_FOREVER), 0);
            CHECK_EQ(atomic_load(&stay.begun), 3 + i);
            sem_post(&stay.go);
            await(&stay.ended, i + 1);
            if (i < 7) await(&stay.begun, 4 + i);
            if (i >= 6) break;
        }
        for (int i = 0; i < 10; i++) sem_post(&stay.go);
    }
    CHECK_EQ(atomic_load(&stay.ended), 10);
    CHECK_EQ(cc_pool_free(pool), 0);
    return arg;
}

TEST_WORKERS(a_pool_has_its_limit_and_no_other) {
    CHECK_EQ(cc_run(limits, NULL, NULL), 0);
}

static void *slow_share(void *arg) {
    struct stay stay;
    stay_init(&stay);
    CC_NURSERY(n) {
        for (int i = 0; i < 5; i++) CHECK_EQ(CC_GO_IN(n, call_in_pool, .pool = CC_POOL_SLOW, .stay = &stay), 0);
        await(&stay.begun, 2); /* a quarter of eight */
        CHECK_EQ(cc_blocking_ex(give_back, NULL, NULL, &(CCBlockingOptions){.pool = CC_POOL_FILE}, CC_FOREVER), 0);
        CHECK_EQ(atomic_load(&stay.begun), 2);
        for (int i = 0; i < 5; i++) sem_post(&stay.go);
    }
    return arg;
}

TEST(slow_calls_have_a_quarter) {
    setenv("CC_BLOCKING_MAX", "8", 1);
    CHECK_EQ(cc_run(slow_share, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    unsetenv("CC_BLOCKING_MAX");
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.blocking_max = CC_POOL_THREADS_MAX + 1}), EINVAL);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.blocking_max = 8}), 0);
    CHECK_EQ(cc_run(slow_share, NULL, NULL), 0);
}

/* In order: each call waits for a place in a pool with one thread. */
static atomic_int order;

static void *in_order(void *arg) {
    CHECK_EQ(atomic_fetch_add(&order, 1), (intptr_t)arg);
    return NULL;
}

CC_TASK(call_in_order, {
    CCPool *pool;
    int number;
}) {
    CHECK_EQ(cc_blocking_ex(in_order, (void *)(intptr_t)self->number, NULL, &(CCBlockingOptions){.pool = self->pool},
                            CC_FOREVER),
             0);
    return NULL;
}

static void *queue_in_order(void *arg) {
    struct stay stay;
    CCPool *pool = NULL;
    CC_NURSERY(n) {
        pool = busy_pool(n, &stay);
        for (int i = 0; i < 10; i++) {
            CCStats before, after;
            CHECK_EQ(cc_stats(&before, sizeof before), 0);
            CHECK_EQ(CC_GO_IN(n, call_in_order, .pool = pool, .number = i), 0);
            unsigned reason = 0;
            while (strcmp(cc_stats_reason(reason), "call") != 0) reason++;
            do {
                cc_sleep_ms(1);
                CHECK_EQ(cc_stats(&after, sizeof after), 0);
            } while (after.parks_by[reason] == before.parks_by[reason]);
        }
        sem_post(&stay.go);
    }
    CHECK_EQ(atomic_load(&order), 10);
    CHECK_EQ(cc_pool_free(pool), 0);
    return arg;
}

TEST(calls_begin_in_order) {
    CHECK_EQ(cc_run(queue_in_order, NULL, NULL), 0);
}

/* A thread that has finished a call is about to become idle when the caller makes the next one: the case waits for
 * that. */
static void *where_it_runs(void *arg) {
    (void)arg;
    return (void *)pthread_self();
}

static void *one_after_the_other(void *arg) {
    CCBlockingOptions options = {0};
    CHECK_EQ(cc_pool_create(&options.pool, 8), 0);
    void *first, *next;
    CHECK_EQ(cc_blocking_ex(where_it_runs, NULL, &first, &options, CC_FOREVER), 0);
    for (int i = 0; i < 5000; i++) {
        CHECK_EQ(cc_blocking_ex(where_it_runs, NULL, &next, &options, CC_FOREVER), 0);
        CHECK(next == first);
    }
    while (cc_pool_free(options.pool) == EBUSY) cc_yield();
    return arg;
}

TEST_WORKERS(calls_one_after_the_other_need_one_thread) {
    CHECK_EQ(cc_run(one_after_the_other, NULL, NULL), 0);
}

/* A clean-up occupies its thread as a call does: the next call gets another one. */
struct two_stays {
    struct stay call, clean_up;
};

static void *stays_first(void *arg) {
    return stays(&((struct two_stays *)arg)->call);
}

static void stays_again(void *arg, void *result) {
    CHECK(result != NULL);
    (void)stays(&((struct two_stays *)arg)->clean_up);
}

CC_CHILD(call_and_leave, {
    CCPool *pool;
    struct two_stays *stays;
}) {
    CCBlockingOptions options = {.pool = self->pool, .may_abandon = true, .cleanup = stays_again};
    CHECK_EQ(cc_blocking_ex(stays_first, self->stays, NULL, &options, CC_FOREVER), ECANCELED);
    return 0;
}

static void *clean_up_takes_long(void *arg) {
    CCBlockingOptions options = {0};
    struct two_stays stays;
    stay_init(&stays.call);
    stay_init(&stays.clean_up);
    CHECK_EQ(cc_pool_create(&options.pool, 2), 0);
    int rc;
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(CC_GO_IN(n, call_and_leave, .pool = options.pool, .stays = &stays), 0);
        await(&stays.call.begun, 1);
        cc_nursery_cancel(n);
    }
    sem_post(&stays.call.go);
    await(&stays.clean_up.begun, 1);
    CHECK_EQ(cc_blocking_ex(give_back, NULL, NULL, &options, CC_FOREVER), 0);
    CHECK_EQ(cc_pool_free(options.pool), EBUSY);
    sem_post(&stays.clean_up.go);
    await(&stays.clean_up.ended, 1);
    while (cc_pool_free(options.pool) == EBUSY) cc_yield();
    return arg;
}

TEST_WORKERS(a_clean_up_occupies_its_thread) {
    CHECK_EQ(cc_run(clean_up_takes_long, NULL, NULL), 0);
}

static int threads_named(const char *name) {
    char command[128], line[32] = "";
    snprintf(command, sizeof command, "cat /proc/%d/task/*/comm 2>/dev/null | grep -c '^%s'", (int)getpid(), name);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL);
    if (fgets(line, sizeof line, pipe) == NULL) line[0] = '0';
    pclose(pipe);
    return atoi(line);
}

static void *ends_idle(void *arg) {
    struct stay stay;
    stay_init(&stay);
    CC_NURSERY(n) {
        for (int i = 0; i < 4; i++) CHECK_EQ(CC_GO_IN(n, call_and_stay, .stay = &stay), 0);
        await(&stay.begun, 4);
        CHECK_EQ(threads_named("ccc/block-"), 4);
        for (int i = 0; i < 4; i++) sem_post(&stay.go);
    }
    while (threads_named("ccc/block-") != 0) cc_sleep_ms(5);
    CHECK_EQ(cc_blocking(give_back, NULL, NULL), 0); /* and one comes again */
    return arg;
}

TEST(idle_threads_end) {
    setenv("CC_BLOCKING_IDLE_MS", "20", 1);
    CHECK_EQ(cc_run(ends_idle, NULL, NULL), 0);
}

/* ---- panics ---- */

static void *panics(void *arg) {
    cc_panic("in a blocking call");
    return arg;
}

static void *call_panics(void *arg) {
    void *result = &result;
    CHECK_EQ(cc_blocking(panics, NULL, &result), ENOTRECOVERABLE);
    CHECK(result == NULL);
    CHECK_EQ(cc_blocking(give_back, &result, &result), 0); /* the thread lives */
    return arg;
}

TEST(a_panic_is_the_callers_error) {
    call_panics(NULL);
    CHECK_EQ(cc_run(call_panics, NULL, NULL), 0);
}

TEST_DIES(a_panic_is_reported, "not recovered (CC_PANIC_ABORT): in a blocking call", .signal = SIGABRT) {
    setenv("CC_PANIC_ABORT", "1", 1);
    CHECK_EQ(cc_run(call_panics, NULL, NULL), 0);
}

/* ---- cancellation and deadlines ---- */

CC_TASK(call_waits_to_the_end, {
    struct stay *stay;
    atomic_int *over;
}) {
    void *result;
    int rc;
    do rc = cc_blocking_until(stays, self->stay, &result, cc_after_ms(1));
    while (rc == ETIMEDOUT && atomic_load(&self->stay->begun) == 0);
    CHECK_EQ(rc, 0);
    CHECK(result == self->stay && cc_cancelled());
    atomic_store(self->over, 1);
    CHECK_EQ(cc_blocking(give_back, NULL, NULL), ECANCELED);
    return NULL;
}

static void *begun_is_waited_for(void *arg) {
    struct stay stay;
    atomic_int over = 0;
    stay_init(&stay);
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, call_waits_to_the_end, .stay = &stay, .over = &over), 0);
        await(&stay.begun, 1);
        cc_nursery_cancel(n);
        cc_sleep_ms(5);
        CC_SHIELD cc_sleep_ms(5);
        CHECK_EQ(atomic_load(&over), 0);
        sem_post(&stay.go);
    }
    CHECK_EQ(atomic_load(&over), 1);
    return arg;
}

TEST_WORKERS(a_call_that_has_begun_is_waited_for) {
    CHECK_EQ(cc_run(begun_is_waited_for, NULL, NULL), 0);
}

CC_TASK(call_is_withdrawn, {
    CCPool *pool;
    int expected;
}) {
    CCDeadline deadline = self->expected == ETIMEDOUT ? cc_after_ms(5) : CC_FOREVER;
    CHECK_EQ(cc_blocking_ex(panics, NULL, NULL, &(CCBlockingOptions){.pool = self->pool}, deadline), self->expected);
    return NULL;
}

static void *queued_is_withdrawn(void *arg) {
    struct stay stay;
    CCPool *pool = NULL;
    CC_NURSERY(n) {
        pool = busy_pool(n, &stay);
        CC_NURSERY(late) CHECK_EQ(CC_GO_IN(late, call_is_withdrawn, .pool = pool, .expected = ETIMEDOUT), 0);
        CC_NURSERY(cancelled) {
            CHECK_EQ(CC_GO_IN(cancelled, call_is_withdrawn, .pool = pool, .expected = ECANCELED), 0);
            cc_sleep_ms(2);
            cc_nursery_cancel(cancelled);
        }
        CHECK_EQ(cc_blocking_until(panics, NULL, NULL, cc_after_ns(0)), ETIMEDOUT);
        sem_post(&stay.go);
    }
    CHECK_EQ(cc_pool_free(pool), 0);
    return arg;
}

TEST_WORKERS(a_call_that_has_not_begun_is_withdrawn) {
    CHECK_EQ(cc_run(queued_is_withdrawn, NULL, NULL), 0);
}

/* ---- abandoned calls ---- */

static const CCBlockingOptions leaves = {.may_abandon = true, .cleanup = cleans};

static void *abandons(void *arg) {
    struct stay *stay = arg;
    void *result = stay;
    CHECK_EQ(cc_blocking_ex(stays, stay, &result, &leaves, cc_after_ms(5)), ETIMEDOUT);
    CHECK(result == NULL);
    bool begun = atomic_load(&stay->begun) == 1; /* on a busy machine it may not have */
    CHECK_EQ(atomic_load(&stay->ended), 0);
    sem_post(&stay->go);
    await(&stay->cleaned, 1);
    CHECK_EQ(atomic_load(&stay->ended), begun ? 1 : atomic_load(&stay->ended));
    CHECK_EQ(cc_blocking_ex(give_back, stay, &result, &leaves, CC_FOREVER), 0); /* in time: nothing to clean */
    CHECK(result == stay);
    CHECK_EQ(atomic_load(&stay->cleaned), 1);
    CHECK_EQ(cc_blocking_ex(give_back, stay, &result, &leaves, cc_after_ns(0)), ETIMEDOUT);
    CHECK_EQ(atomic_load(&stay->cleaned), 2);
    return arg;
}

TEST_WORKERS(a_call_is_abandoned) {
    struct stay stay;
    stay_init(&stay);
    CHECK_EQ(cc_run(abandons, &stay, NULL), 0);
}

TEST(an_os_thread_abandons) {
    struct stay stay;
    stay_init(&stay);
    abandons(&stay);
}

CC_TASK(abandon_by_cancel, { struct stay *stay; }) {
    CHECK_EQ(cc_blocking_ex(stays, self->stay, NULL, &leaves, CC_FOREVER), ECANCELED);
    return NULL;
}

static void *cancel_abandons(void *arg) {
    struct stay *stay = arg;
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, abandon_by_cancel, .stay = stay), 0);
        await(&stay->begun, 1);
        cc_nursery_cancel(n);
    }
    CHECK_EQ(atomic_load(&stay->cleaned), 0);
    return arg;
}

TEST_WORKERS(a_shutdown_waits_for_abandoned_calls) {
    struct stay stay;
    stay_init(&stay);
    CHECK_EQ(cc_run(cancel_abandons, &stay, NULL), 0);
    struct capture out;
    capture_start(&out);
    CHECK_EQ(cc_runtime_shutdown(1), ETIMEDOUT);
    const char *text = capture_end(&out);
    CHECK(strstr(text, "1 blocking call still runs") != NULL);
    CHECK(strstr(text, "its caller has abandoned") != NULL);
    CHECK_EQ(atomic_load(&stay.cleaned), 0);
    sem_post(&stay.go);
    CHECK_EQ(cc_runtime_shutdown(60000), 0);
    CHECK_EQ(atomic_load(&stay.cleaned), 1);
    CHECK_EQ(threads_named("ccc/block-"), 0);
    CHECK_EQ(cc_run(results, NULL, NULL), 0); /* after a restart */
}

CC_TASK(stay_over_shutdown, { struct stay *stay; }) {
    CHECK_EQ(cc_blocking(stays, self->stay, NULL), 0);
    return NULL;
}

TEST_WORKERS(a_shutdown_names_callers) {
    struct stay stay;
    stay_init(&stay);
    CCTask task = CC_GO(stay_over_shutdown, .stay = &stay);
    await(&stay.begun, 1);
    struct capture out;
    capture_start(&out);
    CHECK_EQ(cc_runtime_shutdown(1), ETIMEDOUT); /* which ends other waits, but not this one */
    const char *text = capture_end(&out);
    CHECK(strstr(text, "waits for a blocking call") != NULL);
    sem_post(&stay.go);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(60000), 0);
}

/* ---- dumps, simulation, fork ---- */

static void *dumps(void *arg) {
    struct stay stay;
    stay_init(&stay);
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, call_and_stay, .stay = &stay), 0);
        await(&stay.begun, 1);
        struct capture out;
        capture_start(&out);
        CHECK_EQ(cc_dump(stderr), 0);
        const char *text = capture_end(&out);
        CHECK(strstr(text, "waits for a blocking call: ") != NULL);
        sem_post(&stay.go);
    }
    return arg;
}

TEST(a_dump_knows_calls) {
    CHECK_EQ(cc_run(dumps, NULL, NULL), 0);
}

static void *simulated(void *arg) {
    void *self = (void *)pthread_self(), *result;
    CHECK_EQ(cc_blocking(same_thread, self, &result), 0);
    CHECK(result == self);
    CHECK_EQ(cc_blocking_ex(same_thread, self, &result, &leaves, cc_after_ms(1)), 0);
    return arg;
}

TEST(a_simulation_calls_directly) {
    for (uint64_t seed = 1; seed <= 20; seed++) CHECK_EQ(cc_sim_run(seed, simulated, NULL, NULL), 0);
}

/* The call of a thread that starts the runtime, before anything else has. */
TEST(a_call_that_starts_a_simulation) {
    setenv("CC_SIM_SEED", "7", 1);
    (void)simulated(NULL);
    CHECK_EQ(cc_sim_seed(), 7);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    unsetenv("CC_SIM_SEED");
}

static void *shuts_down(void *arg) {
    CHECK_EQ(cc_runtime_shutdown(1000), 0);
    return arg;
}

/* As any call that a simulation makes on its caller's thread. */
TEST(a_call_that_starts_a_simulation_may_end_it) {
    setenv("CC_SIM_SEED", "7", 1);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_blocking_ex(shuts_down, NULL, NULL, &leaves, CC_FOREVER), 0);
    unsetenv("CC_SIM_SEED");
}

static void *deadlocks(void *arg) {
    CHECK_EQ(cc_blocking(give_back, NULL, NULL), 0);
    CCChan *ch = cc_chan_create(1, 0);
    char c;
    MAY_FAIL(cc_chan_recv(ch, &c, 1)); /* an idle thread of a pool will not send */
    return arg;
}

TEST_DIES(an_idle_thread_hides_no_deadlock, "ccc: deadlock") {
#ifdef CC_TSAN
    fprintf(stderr, "ccc: deadlock\n"); /* not searched for */
    _exit(1);
#endif
    (void)cc_run(deadlocks, NULL, NULL);
}

TEST(a_child_has_pools_of_its_own) {
    CCPool *pool;
    CHECK_EQ(cc_pool_create(&pool, 2), 0);
    CHECK_EQ(cc_run(results, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    pid_t child = test_fork();
    CHECK(child >= 0);
    if (child == 0) {
        bool good = cc_run(results, NULL, NULL) == 0 && cc_pool_free(pool) == 0 && cc_runtime_shutdown(10000) == 0;
        _exit(good ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(cc_pool_free(pool), 0);
}
