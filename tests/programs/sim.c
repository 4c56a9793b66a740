/* sim.c - simulated programs: the same seed gives the same run, time passes at once, and bugs are found. */
#include "child.h"
#include "where.h"

#include <ccc/ccc.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static double real_seconds(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- a little of everything, that says what it does ---- */

static CCMutex lock;
static long guarded;

static void say(const char *what, long number) {
    printf("%llu %s %ld\n", (unsigned long long)(cc_now_ns() / 1000), what, number);
}

CC_TASK(talker, {
    CCChan *out;
    long id;
}) {
    for (long i = 0; i < 5; i++) {
        long value = self->id * 10 + i;
        if (cc_chan_send(self->out, &value, sizeof value) != 0) return NULL;
        if (cc_mutex_lock(&lock) != 0) return NULL;
        say("guards", ++guarded);
        cc_mutex_unlock(&lock);
        if (i % 2 == 0)
            cc_sleep_ms((uint64_t)(self->id * 60000));
        else
            cc_yield();
    }
    return NULL;
}

CC_TASK(listener, { CCChan *one, *two; }) {
    for (;;) {
        long value = 0;
        size_t chosen;
        CCCase cases[] = {CC_RECV(self->one, &value, NULL), CC_RECV(self->two, &value, NULL)};
        int rc = cc_select(cases, 2, cc_after_ms(90000), &chosen);
        if (rc != 0) say("receives nothing", rc);
        if (rc == 0 && cases[chosen].error != 0) return NULL;
        if (rc == 0) say(chosen == 0 ? "receives from one" : "receives from two", value);
    }
}

static void stop_panic(void *arg) {
    CCPanic panic;
    if (cc_recover(&panic)) printf("%s %s\n", (const char *)arg, panic.message);
}

static void *panics(void *stops) {
    if (stops != NULL) cc_defer(stop_panic, stops);
    cc_sleep_ms(5);
    cc_panic("planned, %ld", guarded);
    return NULL;
}

static void *gives_up(void *arg) {
    (void)arg;
    cc_sleep_ms(20);
    return cc_fail(EIO, "after %ld", guarded);
}

static void *fails_late(void *arg) {
    while (cc_check_cancel() == 0) cc_sleep_ms(10);
    say("is cancelled", 0);
    return arg;
}

static void *everything(void *arg) {
    guarded = 0;
    CCChan *one = cc_chan_create(sizeof(long), 0), *two = cc_chan_create(sizeof(long), 3);
    CCTask receiver = CC_GO(listener, .one = one, .two = two);
    CCNursery *n = cc_nursery_create(NULL);
    cc_nursery_set_deadline(n, cc_after_ms(3600 * 1000));
    CC_GO_IN(n, talker, .out = one, .id = 1);
    CC_GO_IN(n, talker, .out = two, .id = 2);
    CC_GO_IN(n, talker, .out = two, .id = 3);
    say("waits", cc_nursery_wait(n));
    cc_nursery_free(n);
    n = cc_nursery_create(NULL);
    cc_nursery_spawn(n, fails_late, NULL);
    cc_nursery_spawn(n, panics, "stops");
    cc_nursery_spawn(n, gives_up, NULL);
    say("after a panic", cc_nursery_wait(n));
    cc_nursery_free(n);
    cc_chan_close(one);
    cc_task_join(&receiver, NULL);
    cc_chan_free(one);
    cc_chan_free(two);
    return arg;
}

static void simulate_everything(void *seed) {
    CHECK_EQ(cc_sim_run(*(uint64_t *)seed, everything, NULL, NULL), 0);
}

static void simulate_by_environment(void *seed) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)*(uint64_t *)seed);
    setenv("CC_SIM_SEED", text, 1);
    CHECK_EQ(cc_run(everything, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(1000), 0);
}

static void same_seed_same_run(void (*simulate)(void *)) {
    static struct child first, again;
    static char before[sizeof first.output];
    int different = 0;
    long seeds = test_scale(20) < 3 ? 3 : test_scale(20);
    for (uint64_t seed = 1; seed <= (uint64_t)seeds; seed++) {
        run_child(&first, simulate, &seed);
        if (!WIFEXITED(first.status) || WEXITSTATUS(first.status) != 0) show_child(&first);
        CHECK_EQ(first.status, 0);
        CHECK(said(&first, "guards 15") && said(&first, "receives from one 14") && said(&first, "planned, 15"));
        for (int i = 0; i < 2; i++) {
            run_child(&again, simulate, &seed);
            if (strcmp(first.output, again.output) != 0) {
                show_child(&first);
                show_child(&again);
            }
            CHECK(strcmp(first.output, again.output) == 0);
        }
        different += strcmp(before, first.output) != 0;
        strcpy(before, first.output);
    }
    CHECK_EQ(different, seeds);
}

TEST(same_seed_same_run_of_a_part, .timeout = 300) {
    same_seed_same_run(simulate_everything);
}

TEST(same_seed_same_run_of_a_program, .timeout = 300) {
    same_seed_same_run(simulate_by_environment);
}

static void simulate_twice(void *seed) {
    simulate_everything(seed);
    printf("again\n");
    simulate_everything(seed);
}

TEST(same_seed_same_run_in_one_process, .timeout = 120) {
    static struct child child;
    for (uint64_t seed = 1; seed <= (uint64_t)test_scale(20) + 2; seed++) {
        run_child(&child, simulate_twice, &seed);
        CHECK_EQ(child.status, 0);
        char *again = strstr(child.output, "again\n");
        CHECK(again != NULL && again > child.output);
        *again = '\0';
        again += strlen("again\n");
        if (strcmp(child.output, again) != 0) printf("%s# and then\n%s", child.output, again);
        CHECK(strcmp(child.output, again) == 0);
    }
}

/* ---- an OS thread among the fibers ---- */

static void *echo(void *ch) {
    CCChan **both = ch;
    long value;
    while (cc_chan_recv(both[0], &value, sizeof value) == 0) {
        say("echoes", value);
        cc_chan_send(both[1], &value, sizeof value);
    }
    return NULL;
}

static void talk_from_main(void *seed) {
    setenv("CC_SIM_SEED", seed, 1);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CCChan *both[2] = {cc_chan_create(sizeof(long), 2), cc_chan_create(sizeof(long), 0)};
    CCTask task[2] = {cc_fiber_spawn_task(echo, both), cc_fiber_spawn_task(echo, both)};
    for (long i = 0, value; i < 50; i++) {
        CHECK_EQ(cc_chan_send(both[0], &i, sizeof i), 0);
        say("main sent", i);
        if (i % 3 == 0) cc_yield();
        if (i % 7 == 0) CHECK_EQ(cc_sleep_ms(1000), 0);
        while (cc_chan_recv_until(both[1], &value, sizeof value, cc_after_ms((uint64_t)i % 2)) == 0)
            say("main got", value);
    }
    cc_chan_close(both[0]);
    cc_chan_close(both[1]);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&task[i], NULL), 0);
    for (int i = 0; i < 2; i++) cc_chan_free(both[i]);
    CHECK_EQ(cc_runtime_shutdown(1000), 0);
}

TEST(the_main_thread_takes_part, .timeout = 120) {
    static struct child first, again, other;
    run_child(&first, talk_from_main, "5");
    run_child(&again, talk_from_main, "5");
    run_child(&other, talk_from_main, "6");
    if (first.status != 0) show_child(&first);
    CHECK_EQ(first.status, 0);
    CHECK(said(&first, "main sent 49") && said(&first, "main got"));
    CHECK(strcmp(first.output, again.output) == 0);
    CHECK(strcmp(first.output, other.output) != 0);
}

/* ---- time ---- */

static void *sleeps(void *arg) {
    uint64_t before = cc_now_ns();
    CHECK_EQ(cc_sleep_ms(2 * 3600 * 1000), 0);
    uint64_t took = cc_now_ns() - before;
    CHECK(took >= UINT64_C(7200) * 1000000000 && took < UINT64_C(7201) * 1000000000);
    return arg;
}

TEST(two_hours_take_no_time) {
    double before = real_seconds();
    CHECK_EQ(cc_sim_run(1, sleeps, NULL, NULL), 0);
    CHECK(real_seconds() - before < 30);                           /* valgrind on a busy machine */
    double now = (double)cc_now_ns() / 1e9, real = real_seconds(); /* later; how much depends on the machine */
    CHECK(now < real + 1 && now > real - 60);                      /* the clock is the real one again */
}

/* Loops that wait for a time or a cancellation without parking. */
static void *busy(void *arg) {
    for (CCDeadline end = cc_after_ms(1); cc_now_ns() < end.ns;) {
    }
    while (!cc_cancelled()) {
    }
    return arg;
}

static void *cancels(void *arg) {
    CCNursery *n = cc_nursery_create(NULL);
    cc_nursery_spawn(n, busy, NULL);
    cc_nursery_spawn(n, busy, NULL);
    cc_yield();
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cc_nursery_free(n), 0);
    return arg;
}

TEST(busy_loops_end, .timeout = 120) {
    for (uint64_t seed = 1; seed <= 10; seed++) CHECK_EQ(cc_sim_run(seed, cancels, NULL, NULL), 0);
}

static void *sends_and_closes(void *ch) {
    long value = 1;
    CHECK_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    CHECK_EQ(cc_chan_close(ch), 0);
    return NULL;
}

static void *sets_flag(void *flag) {
    atomic_store((atomic_bool *)flag, true);
    return NULL;
}

/* And loops that poll until something has changed, or join an ended task. */
static void *looks(void *arg) {
    atomic_bool flag = false;
    CCTask ended = cc_fiber_spawn_task(sets_flag, &flag), handle;
    CHECK_EQ(cc_task_dup(&ended, &handle), 0);
    CHECK_EQ(cc_task_join(&handle, NULL), 0);
    atomic_store(&flag, false);
    CCTask setter = cc_fiber_spawn_task(sets_flag, &flag);
    while (!atomic_load(&flag)) {
        CHECK_EQ(cc_task_dup(&ended, &handle), 0);
        CHECK_EQ(cc_task_join(&handle, NULL), 0);
    }
    CHECK_EQ(cc_task_join(&setter, NULL), 0);
    CHECK_EQ(cc_task_join(&ended, NULL), 0);
    CCChan *ch = cc_chan_create(sizeof(long), 3);
    CCNursery *n = cc_nursery_create(NULL);
    CCTask task = cc_fiber_spawn_task(sends_and_closes, ch);
    while (cc_chan_len(ch) == 0) {
    }
    while (!cc_chan_is_closed(ch)) {
    }
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_nursery_spawn(n, gives_up, NULL), 0);
    while (cc_nursery_failures(n) == 0) {
    }
    while (cc_nursery_children(n) > 0) {
    }
    CHECK_EQ(cc_nursery_wait(n), EIO);
    CHECK_EQ(cc_nursery_free(n), 0);
    cc_chan_free(ch);
    return arg;
}

TEST(polling_loops_end, .timeout = 60) {
    for (uint64_t seed = 1; seed <= 10; seed++) CHECK_EQ(cc_sim_run(seed, looks, NULL, NULL), 0);
}

/* Calls that do not switch are points nevertheless, except where a switch would block all fibers. */
static pthread_mutex_t posix = PTHREAD_MUTEX_INITIALIZER;

static void *starts_under_a_mutex(void *depth) {
    pthread_mutex_lock(&posix);
    CCTask task = {0};
    if ((intptr_t)depth > 0) task = cc_fiber_spawn_task(starts_under_a_mutex, (void *)((intptr_t)depth - 1));
    pthread_mutex_unlock(&posix);
    if ((intptr_t)depth > 0) CHECK_EQ(cc_task_join(&task, NULL), 0);
    return NULL;
}

TEST(a_pthread_mutex_may_be_held_over_a_start, .timeout = 60) {
    if (UNDER_TSAN) SKIP("the race detector's functions are linked into the program");
    for (uint64_t seed = 1; seed <= (uint64_t)test_scale(50); seed++)
        CHECK_EQ(cc_sim_run(seed, starts_under_a_mutex, (void *)10, NULL), 0);
}

/* ---- everybody gets a turn ---- */

enum { MANY = 100 };
static atomic_int arrived;

static void *arrives(void *arg) {
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < MANY) cc_yield();
    return arg;
}

static void *meet(void *arg) {
    CCTask tasks[MANY];
    atomic_store(&arrived, 0);
    for (int i = 0; i < MANY; i++) tasks[i] = cc_fiber_spawn_task(arrives, NULL);
    for (int i = 0; i < MANY; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return arg;
}

TEST(no_fiber_is_left_out, .timeout = 120) {
    for (uint64_t seed = 1; seed <= (uint64_t)test_scale(40); seed++) CHECK_EQ(cc_sim_run(seed, meet, NULL, NULL), 0);
}

/* ---- room for timers ---- */

enum { TIMED = 150 }; /* a heap begins with 64 entries, and doubles */

/* Waits until its time, and again at once: the timers that fire make room, and the next waits fill it. */
CC_TASK(waits_with_a_deadline, {
    CCMutex *m;
    CCCond *c;
}) {
    CHECK_EQ(cc_mutex_lock(self->m), 0);
    for (uint64_t i = 1; i <= 2; i++) CHECK_EQ(cc_cond_wait_until(self->c, self->m, cc_after_ms(i)), ETIMEDOUT);
    CHECK_EQ(cc_mutex_unlock(self->m), 0);
    return NULL;
}

static void *timed_meeting(void *arg) {
    CCMutex mutexes[TIMED] = {0};
    CCCond cond = {0};
    CCTask tasks[TIMED];
    for (int i = 0; i < TIMED; i++) tasks[i] = CC_GO(waits_with_a_deadline, .m = &mutexes[i], .c = &cond);
    for (int i = 0; i < TIMED; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return arg;
}

/* Between the unlock of a condition's mutex and the wait other fibers run, and arm their timers (TIMER-3). */
TEST(timers_that_wait_for_a_condition_find_room, .timeout = 120) {
    for (uint64_t seed = 1; seed <= (uint64_t)test_scale(40); seed++)
        CHECK_EQ(cc_sim_run(seed, timed_meeting, NULL, NULL), 0);
}

/* ---- what is found ---- */

static atomic_int balance;

/* Checks and acts in two steps, with a point in between at which others can run. */
static void *withdraw(void *through) {
    int seen = balance, nothing = 0;
    if (through == NULL)
        CHECK_EQ(cc_mutex_lock(&lock), 0);
    else
        (void)cc_chan_send_try(through, &nothing, sizeof nothing);
    if (seen > 0) balance--;
    if (through == NULL) cc_mutex_unlock(&lock);
    return NULL;
}

static void *two_withdraw(void *buffered) {
    CCChan *ch = buffered != NULL ? cc_chan_create(sizeof(int), 8) : NULL;
    balance = 1;
    CCTask a = cc_fiber_spawn_task(withdraw, ch), b = cc_fiber_spawn_task(withdraw, ch);
    CHECK_EQ(cc_task_join(&a, NULL), 0);
    CHECK_EQ(cc_task_join(&b, NULL), 0);
    cc_chan_free(ch);
    return NULL;
}

static void find_and_replay(void *how) {
    uint64_t seed = 0;
    do CHECK(++seed <= 200 && cc_sim_run(seed, two_withdraw, how, NULL) == 0);
    while (balance >= 0);
    for (long i = 0; i < test_scale(100); i++) {
        CHECK_EQ(cc_sim_run(seed, two_withdraw, how, NULL), 0);
        CHECK_EQ(balance, -1);
    }
}

TEST(a_race_before_a_lock_is_found, .timeout = 120) {
    find_and_replay(NULL);
}

TEST(a_race_around_a_buffered_send_is_found, .timeout = 120) {
    find_and_replay(&balance);
}

static CCMutex left, right;

static void *locks_two(void *swapped) {
    CHECK_EQ(cc_mutex_lock(swapped != NULL ? &right : &left), 0);
    CHECK_EQ(cc_mutex_lock(swapped != NULL ? &left : &right), 0);
    cc_mutex_unlock(&left);
    cc_mutex_unlock(&right);
    return NULL;
}

static void *lock_in_two_orders(void *arg) {
    CCTask a = cc_fiber_spawn_task(locks_two, NULL), b = cc_fiber_spawn_task(locks_two, &left);
    cc_task_join(&a, NULL);
    cc_task_join(&b, NULL);
    return arg;
}

static void search_deadlock(void *ended) {
    for (uint64_t seed = 1; seed <= 200; seed++) {
        *(uint64_t *)ended = seed;
        CHECK_EQ(cc_sim_run(seed, lock_in_two_orders, NULL, NULL), 0);
    }
}

TEST(a_deadlock_is_found_and_names_the_seed, .timeout = 120) {
    static struct child child;
    uint64_t *seed = mmap(NULL, sizeof *seed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(seed != MAP_FAILED);
    run_child(&child, search_deadlock, seed);
    char line[80];
    snprintf(line, sizeof line, "a simulation with seed %llu: cc_sim_run with that seed", (unsigned long long)*seed);
    bool good = WIFEXITED(child.status) && WEXITSTATUS(child.status) == 124 && said(&child, "ccc: deadlock:") &&
                said(&child, line);
    if (!good) show_child(&child);
    CHECK(good);
}

static void wait_without_end(void *stopped) {
    setenv("CC_SIM_SEED", "3", 1);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CCChan *ch = cc_chan_create(0, 0);
    if (stopped != NULL) CHECK_EQ(cc_runtime_shutdown(0), 0);
    CHECK_EQ(cc_chan_recv_until(ch, NULL, 0, cc_after_ms(1000)), ETIMEDOUT);
    (void)cc_chan_recv(ch, NULL, 0); /* without a single fiber */
}

TEST(a_thread_that_waits_alone_is_a_deadlock, .timeout = 120) {
    static struct child child;
    for (int stopped = 0; stopped < 2; stopped++) {
        run_child(&child, wait_without_end, stopped ? &stopped : NULL);
        bool good = WIFEXITED(child.status) && WEXITSTATUS(child.status) == 124 && said(&child, "CC_SIM_SEED=3 ") &&
                    said(&child, "ccc: deadlock: 1 OS thread waits, and nothing can wake it");
        if (!good) show_child(&child);
        CHECK(good);
    }
}

/* ---- bad ends name the seed ---- */

static void *ends_badly(void *how) {
    if (*(int *)how == 0) abort();
    if (*(int *)how == 1) exit(3);
    cc_panic("oh");
}

static void end_badly(void *how) {
    setenv("CC_SIM_SEED", "4711", 1);
    (void)cc_run(ends_badly, how, NULL);
}

TEST(bad_ends_name_the_seed, .timeout = 120) {
    static struct child child;
    for (int how = 0; how < 3; how++) {
        run_child(&child, end_badly, &how);
        if (!said(&child, "CC_SIM_SEED=4711 ")) show_child(&child);
        CHECK(said(&child, "CC_SIM_SEED=4711 "));
    }
}

TEST(good_ends_do_not) {
    static struct child child;
    run_child(&child, talk_from_main, "12");
    CHECK(!said(&child, "CC_SIM_SEED"));
}

/* ---- what is refused ---- */

static void *nothing(void *arg) {
    return arg;
}

static void *nested(void *arg) {
    CHECK_EQ(cc_sim_run(1, nothing, NULL, NULL), EDEADLK);
    CHECK_EQ(cc_sim_seed(), 7);
    return arg;
}

TEST(arguments) {
    int object;
    void *result = NULL;
    CHECK_EQ(cc_sim_seed(), 0);
    CHECK_EQ(cc_sim_run(0, nothing, NULL, NULL), EINVAL);
    CHECK_EQ(cc_sim_run(1, NULL, NULL, NULL), EINVAL);
    CHECK_EQ(cc_sim_run(7, nested, &object, &result), 0);
    CHECK(result == &object);
    CHECK_EQ(cc_sim_run(7, panics, NULL, NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_sim_seed(), 0);
    CHECK_EQ(cc_sim_run(UINT64_MAX, nothing, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_sim_run(1, nothing, NULL, NULL), EALREADY);
    CHECK_EQ(cc_runtime_shutdown(1000), 0);
}

static void *leaves_one_behind(void *ch) {
    CCTask task = cc_fiber_spawn_task(echo, ch);
    CHECK_EQ(cc_task_detach(&task), 0);
    return NULL;
}

TEST(what_is_left_is_cancelled) {
    CCChan *both[2] = {cc_chan_create(sizeof(long), 2), cc_chan_create(sizeof(long), 0)};
    CHECK_EQ(cc_sim_run(7, leaves_one_behind, both, NULL), 0);
    cc_chan_free(both[0]);
    cc_chan_free(both[1]);
}

static void *sends_from_a_thread(void *ch) {
    long value = 1;
    (void)cc_chan_send(ch, &value, sizeof value);
    return NULL;
}

static void *starts_a_thread(void *arg) {
    CCChan *ch = cc_chan_create(sizeof(long), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, sends_from_a_thread, ch), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return arg;
}

TEST_DIES(a_second_thread_is_refused, "a simulation (seed 9) has one thread", .signal = SIGABRT) {
    (void)cc_sim_run(9, starts_a_thread, NULL, NULL);
}

static void start_with(void *seed) {
    setenv("CC_SIM_SEED", seed, 1);
    setenv("CC_WORKERS", "4", 1);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_worker_count(), cc_sim_seed() != 0 ? 1 : 4);
    CHECK_EQ(cc_runtime_shutdown(1000), 0);
}

TEST(seeds_of_the_environment, .timeout = 120) {
    static const char *const bad[] = {"0", "x", "-1", "1x", "18446744073709551616"};
    static struct child child;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        run_child(&child, start_with, (void *)(uintptr_t)bad[i]);
        CHECK_EQ(child.status, 0);
        CHECK(said(&child, "ignoring CC_SIM_SEED=") && said(&child, "nothing is simulated"));
    }
    run_child(&child, start_with, "18446744073709551615");
    CHECK_EQ(child.status, 0);
    CHECK(said(&child, "a simulation has one worker: CC_WORKERS and CC_MAX_WORKERS do not count"));
    run_child(&child, start_with, "");
    CHECK_EQ(child.status, 0);
    CHECK_EQ(child.output[0], '\0');
}
