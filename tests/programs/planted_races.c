/* planted_races.c - the race detector sees fibers as threads: races between them are reported, on one worker
 * too, and accesses that the runtime orders are not.
 *
 * Each shape is run by a child process, once or a few times with different numbers of workers; the child's
 * output is the verdict.
 */
#include "child.h"
#include "where.h"

#include <ccc/ccc.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#if UNDER_TSAN

/* The fibers of a shape touch this; never in order, or always. */
static long shared[64];
static atomic_int steps; /* relaxed: moves fibers along without ordering them */

static void step(void) {
    atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
}

static void await_steps(int n) {
    while (atomic_load_explicit(&steps, memory_order_relaxed) < n) cc_yield();
}

static CCTask go(CCTaskFn fn, void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, fn, arg, NULL), 0);
    return task;
}

static void *end(CCTask task) {
    void *result = NULL;
    CHECK_EQ(cc_task_join(&task, &result), 0);
    return result;
}

static void *write_it(void *arg) {
    *(long *)arg += 1;
    return arg;
}

static void *write_and_step(void *arg) {
    *(long *)arg += 1;
    step();
    return arg;
}

static void *step_then_write(void *arg) {
    await_steps(1);
    *(long *)arg += 1;
    step();
    return arg;
}

/* ---- planted ---- */

/* Two siblings write; their parent joins both afterwards. */
static void *siblings(void *arg) {
    CCTask a = go(write_it, arg), b = go(write_it, arg);
    end(a);
    end(b);
    return NULL;
}

/* One after the other in time, by a relaxed counter, which orders nothing. */
static void *one_after_the_other(void *arg) {
    CCTask a = go(write_and_step, arg), b = go(step_then_write, arg);
    await_steps(2);
    end(a);
    end(b);
    return NULL;
}

/* The parent writes before it joins. */
static void *parent_does_not_wait(void *arg) {
    CCTask a = go(write_and_step, arg);
    await_steps(1);
    write_it(arg);
    end(a);
    return NULL;
}

/* The parent writes after the spawn. */
static void *parent_writes_late(void *arg) {
    CCTask a = go(step_then_write, arg);
    write_it(arg);
    step();
    end(a);
    return NULL;
}

/* Nobody joins a detached one. */
static void *detached(void *arg) {
    CHECK_EQ(cc_spawn(NULL, write_and_step, arg, NULL), 0);
    await_steps(1);
    write_it(arg);
    return NULL;
}

static void *sleep_then_write(void *arg) {
    CHECK_EQ(cc_sleep_ms(1), 0);
    write_it(arg);
    return arg;
}

static CCDeadline morning;

static void *sleep_on(void *arg) {
    CHECK_EQ(cc_sleep_until(morning), 0);
    write_it(arg);
    return arg;
}

/* All sleep until the same moment; a timer orders nothing. There are so many that one worker wakes several: of two
 * workers the late one may be notified by the other, after the other's fiber has written. */
static void *sleepers(void *arg) {
    CCTask tasks[6];
    morning = cc_after_ms(2);
    for (int i = 0; i < 6; i++) tasks[i] = go(sleep_on, arg);
    for (int i = 0; i < 6; i++) end(tasks[i]);
    return NULL;
}

static void *yield_and_write(void *arg) {
    for (int i = 0; i < 20; i++) {
        cc_yield();
        write_it(arg);
    }
    return arg;
}

/* Taking turns on one worker is no order. */
static void *yielders(void *arg) {
    CCTask a = go(yield_and_write, arg), b = go(yield_and_write, arg);
    end(a);
    end(b);
    return NULL;
}

/* A join with a deadline that was missed has ordered nothing. */
static void *timed_out_join(void *arg) {
    CCTask a = go(write_and_step, arg), slow = go(sleep_then_write, &shared[8]);
    await_steps(1);
    (void)cc_task_join_until(&slow, NULL, (CCDeadline){1});
    write_it(arg);
    end(a);
    if (slow.id != 0) end(slow);
    return NULL;
}

/* Joining the sibling of the one that wrote. */
static void *joined_the_wrong_one(void *arg) {
    CCTask a = go(write_and_step, arg), b = go(write_it, &shared[8]);
    await_steps(1);
    end(b);
    write_it(arg);
    end(a);
    return NULL;
}

/* A try that found it running has ordered nothing. */
static void *failed_try(void *arg) {
    CCTask a = go(write_and_step, arg);
    while (atomic_load_explicit(&steps, memory_order_relaxed) < 1) {
        if (cc_task_join_try(&a, NULL) == 0) break;
        cc_yield();
    }
    CCTask b = go(step_then_write, arg);
    write_it(arg);
    if (a.id != 0) end(a);
    end(b);
    return NULL;
}

static void *thread_main(void *arg) {
    write_it(arg);
    step();
    return NULL;
}

/* A fiber and an OS thread. */
static void *fiber_and_thread(void *arg) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, thread_main, arg), 0);
    await_steps(1);
    write_it(arg);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return NULL;
}

/* A child's frame is read by its parent while it lives. */
struct frame {
    long *_Atomic of_child;
};

static void *show_frame(void *arg) {
    struct frame *frame = arg;
    long own = 1;
    atomic_store_explicit(&frame->of_child, &own, memory_order_relaxed);
    for (int i = 0; i < 20; i++) {
        own += i;
        cc_yield();
    }
    step();
    await_steps(2);
    return (void *)own;
}

static void *reads_a_live_frame(void *arg) {
    struct frame frame = {NULL};
    CCTask a = go(show_frame, &frame);
    await_steps(1);
    *(long *)arg = *atomic_load_explicit(&frame.of_child, memory_order_relaxed);
    step();
    end(a);
    return NULL;
}

/* ---- in order ---- */

static void *spawn_then_start(void *arg) {
    write_it(arg);
    CCTask a = go(write_it, arg);
    end(a);
    write_it(arg);
    return NULL;
}

static void *chain(void *arg) {
    for (int i = 0; i < 100; i++) end(go(write_it, arg));
    return NULL;
}

static void *end_then_join_until(void *arg) {
    CCTask a = go(sleep_then_write, arg);
    while (cc_task_join_until(&a, NULL, cc_after_ns(100000)) != 0) {
    }
    write_it(arg);
    return NULL;
}

static void *end_then_join_try(void *arg) {
    CCTask a = go(yield_and_write, arg);
    while (cc_task_join_try(&a, NULL) != 0) cc_yield();
    write_it(arg);
    return NULL;
}

static void *join_copy(void *arg) {
    CCTask copy = *(CCTask *)arg;
    long *which = end(copy);
    /* Both joiners read what the task wrote. */
    return (void *)*which;
}

static void *end_then_two_joins(void *arg) {
    CCTask task = go(sleep_then_write, arg), copies[3];
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_task_dup(&task, &copies[i]), 0);
    CCTask joiners[3];
    for (int i = 0; i < 3; i++) joiners[i] = go(join_copy, &copies[i]);
    for (int i = 0; i < 3; i++) end(joiners[i]);
    end(task);
    write_it(arg);
    return NULL;
}

static void *grandchild(void *arg) {
    end(go(write_it, arg));
    return arg;
}

static void *three_generations(void *arg) {
    write_it(arg);
    end(go(grandchild, arg));
    write_it(arg);
    return NULL;
}

static void *each_its_own(void *arg) {
    (void)arg;
    CCTask tasks[32];
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 32; i++) tasks[i] = go(yield_and_write, &shared[i]);
        for (int i = 0; i < 32; i++) end(tasks[i]);
    }
    return NULL;
}

struct big_args {
    char bytes[200];
    long *to;
};

static void *use_big_args(void *arg) {
    struct big_args *args = arg;
    for (int i = 0; i < 200; i++) *args->to += args->bytes[i];
    return NULL;
}

static void *args_by_copy(void *arg) {
    CCTask tasks[8];
    for (int i = 0; i < 8; i++) {
        struct big_args args = {.to = &((long *)arg)[i]};
        memset(args.bytes, i, sizeof args.bytes);
        CCSpawnOptions options = {.arg_size = sizeof args, .name = "big"};
        CHECK_EQ(cc_spawn(&tasks[i], use_big_args, &args, &options), 0);
    }
    for (int i = 0; i < 8; i++) end(tasks[i]);
    return NULL;
}

static atomic_int handover;

static void *write_release(void *arg) {
    write_it(arg);
    atomic_store_explicit(&handover, 1, memory_order_release);
    return NULL;
}

static void *acquire_and_write(void *arg) {
    while (atomic_load_explicit(&handover, memory_order_acquire) == 0) cc_yield();
    write_it(arg);
    return NULL;
}

static void *release_and_acquire(void *arg) {
    CCTask a = go(write_release, arg), b = go(acquire_and_write, arg);
    end(b);
    end(a);
    return NULL;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *write_locked(void *arg) {
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex); /* held across no switch */
        write_it(arg);
        pthread_mutex_unlock(&mutex);
        cc_yield();
    }
    return NULL;
}

static void *under_a_mutex(void *arg) {
    CCTask tasks[4];
    for (int i = 0; i < 4; i++) tasks[i] = go(write_locked, arg);
    for (int i = 0; i < 4; i++) end(tasks[i]);
    return NULL;
}

static void *write_from_a_thread(void *arg) {
    void *result;
    write_it(arg);
    CHECK_EQ(cc_run(write_it, arg, &result), 0);
    write_it(arg);
    return NULL;
}

/* ---- the verdicts ---- */

struct shape {
    const char *name;
    CCTaskFn fn;
    unsigned workers;
};

static void run_shape(void *arg) {
    struct shape *shape = arg;
    CCRuntimeConfig config = {.workers = shape->workers};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(shape->fn, &shared[0], NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(20000), 0);
}

static const unsigned worker_counts[] = {1, 2, 4};

/* The detector sees a race unless something that the scheduler did happened to order the two, as when an idle worker
 * was woken or stole from another in between. That is chance, and varies from run to run; an order that the runtime
 * always establishes would hide the race in all of them. So it is run until it was reported three times. */
enum { ATTEMPTS = 25, REPORTS_MIN = 3 };

static void check_reported(const char *name, CCTaskFn fn) {
    for (int i = 0; i < 3; i++) {
        struct shape shape = {name, fn, worker_counts[i]};
        int reports = 0, k;
        for (k = 0; k < ATTEMPTS && reports < REPORTS_MIN; k++) {
            struct child child;
            run_child(&child, run_shape, &shape);
            if (!said(&child, "data race")) continue;
            if (!said(&child, "planted_races.c")) show_child(&child);
            CHECK(said(&child, "planted_races.c")); /* ours, not the runtime's own */
            CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) != 0);
            reports++;
        }
        printf("%s on %u workers: reported in %d of %d runs\n", name, shape.workers, reports, k);
        CHECK(reports >= REPORTS_MIN);
    }
}

static void check_silent(const char *name, CCTaskFn fn) {
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            struct shape shape = {name, fn, worker_counts[i]};
            struct child child;
            run_child(&child, run_shape, &shape);
            if (child.status != 0 || said(&child, "data race")) {
                printf("%s on %u workers:\n", name, shape.workers);
                show_child(&child);
            }
            CHECK(!said(&child, "data race"));
            CHECK_EQ(child.status, 0);
        }
    }
}

#define PLANTED(shape)                       \
    TEST(reported_##shape, .timeout = 120) { \
        check_reported(#shape, shape);       \
    }
#define ORDERED(shape)                     \
    TEST(silent_##shape, .timeout = 120) { \
        check_silent(#shape, shape);       \
    }

PLANTED(siblings)
PLANTED(one_after_the_other)
PLANTED(parent_does_not_wait)
PLANTED(parent_writes_late)
PLANTED(detached)
PLANTED(sleepers)
PLANTED(yielders)
PLANTED(timed_out_join)
PLANTED(joined_the_wrong_one)
PLANTED(failed_try)
PLANTED(fiber_and_thread)
PLANTED(reads_a_live_frame)

ORDERED(spawn_then_start)
ORDERED(chain)
ORDERED(end_then_join_until)
ORDERED(end_then_join_try)
ORDERED(end_then_two_joins)
ORDERED(three_generations)
ORDERED(each_its_own)
ORDERED(args_by_copy)
ORDERED(release_and_acquire)
ORDERED(under_a_mutex)

static void run_thread_shape(void *arg) {
    struct shape *shape = arg;
    CCRuntimeConfig config = {.workers = shape->workers};
    CHECK_EQ(cc_runtime_init(&config), 0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, write_from_a_thread, &shared[i]), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(shared[i], 3);
    CHECK_EQ(cc_runtime_shutdown(20000), 0);
}

TEST(silent_threads_that_run_fibers) {
    for (int i = 0; i < 3; i++) {
        struct shape shape = {"threads", NULL, worker_counts[i]};
        struct child child;
        run_child(&child, run_thread_shape, &shape);
        if (child.status != 0) show_child(&child);
        CHECK_EQ(child.status, 0);
    }
}

#else

TEST(planted_races) {
    SKIP("the race detector is not built in");
}

#endif
