/* task.c - tasks and their handles: ends, joins, detaches; and the scheduler that runs them. */
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdlib.h>

static CCTask task, copy;
static CCEvent go;
static int value;
static int counts[4];

static void *on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    value = 5;
    return arg;
}
static void waits_for_signal(void) {
    EX_EQ(cc_spawn(&task, on_signal, &value, NULL), 0);
    EX_EQ(cc_task_dup(&task, &copy), 0);
    ex_settle();
}
static void signals(void) {
    EX_EQ(cc_event_set(&go), 0);
}
static void join_it(CCTask *t) {
    void *result = NULL;
    EX_EQ(cc_task_join(t, &result), 0);
    EX_CHECK(result == &value);
    EX_EQ(value, 5);
}
static void joins(void) {
    join_it(&task);
}
static void joins_too(void) {
    join_it(&copy);
}
static void detaches(void) {
    EX_EQ(cc_task_detach(&copy), 0);
}
SCENARIO(join_end, "JOIN-1: a join and the end of the task", .workers = 1, .setup = waits_for_signal,
         .threads = {joins, signals}, .no_timer = true);
SCENARIO(join_two, "JOIN-2: two joiners and the end", .workers = 1, .setup = waits_for_signal,
         .threads = {joins, joins_too, signals}, .no_timer = true);
SCENARIO(join_detach, "JOIN-3: the last handle is dropped while the task ends", .workers = 1, .setup = waits_for_signal,
         .threads = {joins, detaches, signals}, .no_timer = true);

static void joins_soon(void) {
    void *result = NULL;
    int rc = cc_task_join_until(&copy, &result, cc_after_ns(3000));
    EX_CHECK(rc == 0 || rc == ETIMEDOUT);
    if (rc == 0) EX_EQ(value, 5);
}
SCENARIO(join_deadline, "a join that times out beside one that does not", .workers = 1, .setup = waits_for_signal,
         .threads = {joins, joins_soon, signals});
static void tries(void) {
    int rc = cc_task_join_try(&copy, NULL);
    EX_CHECK(rc == 0 || rc == EAGAIN);
    if (rc == 0) EX_EQ(value, 5);
}
SCENARIO(join_try, "a try at the moment of the end", .workers = 1, .setup = waits_for_signal,
         .threads = {joins, tries, signals}, .no_timer = true);

/* ---- a joiner that runs its task, and is cancelled ---- */

static CCEvent reacted, runs;
static void *counts_up(void *arg) {
    counts[0]++;
    return arg;
}
static void *lets_cancel(void *arg) {
    EX_EQ(cc_event_set(&runs), 0);
    ex_relax();
    counts[0]++;
    return arg;
}
static void *waits_for_reaction(void *arg) {
    EX_EQ(cc_event_wait(&reacted), 0);
    counts[0]++;
    return arg;
}
/* The cancellation may come before, during and after the join. The task runs once, and its result is there in the
 * end. */
static void *runs_its_task(void *fn) {
    CCTask child;
    void *result = NULL;
    bool begun = cc_shield_begin();
    EX_EQ(cc_event_wait(&go), 0);
    cc_shield_end(begun);
    EX_EQ(cc_spawn(&child, *(CCTaskFn *)fn, &value, NULL), 0);
    int rc = cc_task_join(&child, &result);
    if (rc != 0) {
        EX_EQ(rc, ECANCELED);
        EX_EQ(cc_event_set(&reacted), 0);
        begun = cc_shield_begin();
        EX_EQ(cc_task_join(&child, &result), 0);
        cc_shield_end(begun);
    }
    EX_CHECK(result == &value);
    return NULL;
}
static void joiner_of(CCTaskFn *fn) {
    CCTask warm;
    EX_EQ(cc_spawn(&task, runs_its_task, fn, NULL), 0);
    EX_EQ(cc_task_dup(&task, &copy), 0);
    ex_settle();
    EX_EQ(cc_spawn(&warm, counts_up, NULL, NULL), 0); /* passes its stack to its joiner */
    ex_settle();
    EX_EQ(cc_task_join(&warm, NULL), 0);
}
static CCTaskFn quick = lets_cancel, patient = waits_for_reaction;
static void joiner_of_quick(void) {
    joiner_of(&quick);
}
static void joiner_of_patient(void) {
    joiner_of(&patient);
}
static void tells_and_joins(void) {
    EX_EQ(cc_event_set(&go), 0);
    EX_EQ(cc_task_join(&task, NULL), 0);
    EX_EQ(counts[0], 2);
}
static void cancels_joiner(void) {
    EX_EQ(cc_task_cancel(&copy), 0);
    EX_EQ(cc_task_detach(&copy), 0);
}
static void cancels_then(void) {
    EX_EQ(cc_event_wait(&runs), 0);
    cancels_joiner();
}
SCENARIO(join_run_cancel, "RUN-3: a joiner runs its task; the task's end and a canceller", .workers = 1,
         .setup = joiner_of_quick, .threads = {tells_and_joins, cancels_then}, .no_timer = true);
SCENARIO(join_run_cancel_2, "the same, two workers", .workers = 2, .setup = joiner_of_quick,
         .threads = {tells_and_joins, cancels_then});
SCENARIO(join_run_reaction, "CANCEL-1: a joiner that runs its task is cancelled, and the task waits for that",
         .workers = 1, .setup = joiner_of_patient, .threads = {tells_and_joins, cancels_joiner}, .no_timer = true);

/* An old handle matches no fiber, even when its record is in use again. */
static void *nothing(void *arg) {
    return arg;
}
static void reuses(void) {
    CCTask fresh;
    EX_EQ(cc_spawn(&fresh, nothing, NULL, NULL), 0);
    EX_EQ(cc_task_join(&fresh, NULL), 0);
}
static CCTask stale;
static void old_handle(void) {
    EX_EQ(cc_spawn(&task, nothing, NULL, NULL), 0);
    stale = task;
    EX_EQ(cc_task_join(&task, NULL), 0);
    ex_settle();
}
static void uses_old(void) {
    CCTask mine = stale;
    EX_EQ(cc_task_join_until(&mine, NULL, cc_after_ns(1000000)), ESRCH);
}
SCENARIO(stale_handle, "POOL-2: an old handle, and a new fiber in its record", .workers = 1, .setup = old_handle,
         .threads = {reuses, uses_old});

/* ---- spawn, inbox, idle ---- */

static void *counts_one(void *arg) {
    ++*(int *)arg;
    return arg;
}
static void spawn_joined(int *counter) {
    CCTask mine;
    void *result = NULL;
    EX_EQ(cc_spawn(&mine, counts_one, counter, NULL), 0);
    EX_EQ(cc_task_join(&mine, &result), 0);
    EX_EQ(*counter, 1);
}
static void spawn_a(void) {
    spawn_joined(&counts[0]);
}
static void spawn_b(void) {
    spawn_joined(&counts[1]);
}
SCENARIO(spawn_one_worker, "IDLE-1: a spawn and a worker that goes to sleep", .workers = 1, .threads = {spawn_a},
         .no_timer = true);
SCENARIO(spawn_two_threads, "INBOX-1: two threads spawn, one worker", .workers = 1, .threads = {spawn_a, spawn_b},
         .no_timer = true);
SCENARIO(spawn_two_workers, "two threads spawn, two workers", .workers = 2, .threads = {spawn_a, spawn_b},
         .no_timer = true);

/* One fiber spawns more than it runs itself: shared or stolen, all of it runs. */
static void *spawns_three(void *arg) {
    CCTask t[3];
    for (int i = 0; i < 3; i++) EX_EQ(cc_spawn(&t[i], counts_one, &counts[i], NULL), 0);
    for (int i = 0; i < 3; i++) EX_EQ(cc_task_join(&t[i], NULL), 0);
    return arg;
}
static void runs_three(void) {
    EX_EQ(cc_run(spawns_three, NULL, NULL), 0);
    EX_EQ(counts[0] + counts[1] + counts[2], 3);
}
SCENARIO(spawn_shared, "RUNQ-1: a fiber spawns three, two workers take them", .workers = 2, .threads = {runs_three});

/* Woken by OS threads, all at once. */
static CCTask many[3];
static void *woken(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    ++*(int *)arg;
    return NULL;
}
static void three_wait(void) {
    for (int i = 0; i < 3; i++) EX_EQ(cc_spawn(&many[i], woken, &counts[i], NULL), 0);
    ex_settle();
}
static void wakes_all(void) {
    EX_EQ(cc_event_set(&go), 0);
    for (int i = 0; i < 3; i++) EX_EQ(cc_task_join(&many[i], NULL), 0);
    EX_EQ(counts[0] + counts[1] + counts[2], 3);
}
SCENARIO(wake_three, "one event wakes three fibers on two workers", .workers = 2, .setup = three_wait,
         .threads = {wakes_all});

/* ---- yields ---- */

static void *yields(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    for (int i = 0; i < 2; i++) cc_yield();
    ++*(int *)arg;
    return NULL;
}
static void three_yield(void) {
    for (int i = 0; i < 3; i++) EX_EQ(cc_spawn(&many[i], yields, &counts[i], NULL), 0);
    ex_settle();
}
SCENARIO(yield_three, "yields on two workers, one of which is idle", .workers = 2, .setup = three_yield,
         .threads = {wakes_all});

/* ---- the end of the runtime ---- */

static void *ends_at_once(void *arg) {
    return arg;
}
static void ended_before(void) {
    EX_EQ(cc_spawn(&task, ends_at_once, &value, NULL), 0);
    ex_settle();
}
static void shuts_down(void) {
    int rc = cc_runtime_shutdown(1);
    EX_CHECK(rc == 0 || rc == ETIMEDOUT); /* time passes at random */
}
static void joins_at_the_end(void) {
    void *result = NULL;
    int rc = cc_task_join(&task, &result);
    EX_CHECK(rc == 0 ? result == &value : rc == ESRCH || rc == ECANCELED);
}
SCENARIO(shutdown_join, "RT-1: a shutdown and a thread that joins", .workers = 1, .setup = ended_before,
         .threads = {shuts_down, joins_at_the_end});

static void *waits_to_the_end(void *arg) {
    int rc = cc_event_wait(&go);
    EX_CHECK(rc == 0 || rc == ECANCELED);
    return arg;
}
static void parked_before(void) {
    EX_EQ(cc_spawn(NULL, waits_to_the_end, NULL, NULL), 0);
    ex_settle();
}
SCENARIO(shutdown_wake, "RT-3: a shutdown and a thread that wakes the last fiber", .workers = 1, .setup = parked_before,
         .threads = {shuts_down, signals});

/* A spawn starts the runtime again if that has ended. */
static void one_worker_again(void) {
    EX_EQ(setenv("CC_WORKERS", "1", 1), 0);
    ex_settle();
}
static void spawns_at_the_end(void) {
    CCTask mine;
    int rc = cc_spawn(&mine, counts_one, &counts[0], NULL);
    EX_CHECK(rc == 0 || rc == ECANCELED);
    if (rc == 0) {
        rc = cc_task_join(&mine, NULL);
        EX_CHECK(rc == 0 || rc == ESRCH || rc == ECANCELED);
    }
}
SCENARIO(shutdown_spawn, "RT-1: a shutdown and a thread that starts a task", .workers = 1, .setup = one_worker_again,
         .threads = {shuts_down, spawns_at_the_end});

/* The worker is awake, and finds the last fiber before the thread that woke it has finished its notification. */
static void parked_and_alone(void) {
    EX_EQ(setenv("CC_WORKERS", "1", 1), 0);
    parked_before();
}
static void keeps_it_awake(void) {
    int rc = cc_spawn(NULL, ends_at_once, NULL, NULL);
    EX_CHECK(rc == 0 || rc == ECANCELED);
}
SCENARIO(shutdown_wake_awake, "RT-3: the same, and the worker need not be notified", .workers = 1,
         .setup = parked_and_alone, .threads = {shuts_down, signals, keeps_it_awake});
