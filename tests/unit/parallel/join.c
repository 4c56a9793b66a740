/* join.c - cc_join_all, cc_join_any, cc_race: any number of tasks, deadlines, cancellation. */
#include "../contexts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

static void *give_back(void *arg) {
    return arg;
}

static void *panics(void *arg) {
    (void)arg;
    cc_panic("on purpose");
}

static atomic_int cancelled;

static void *wait_for_ever(void *arg) {
    (void)arg;
    if (cc_sleep_until(CC_FOREVER) == ECANCELED) cancelled++;
    return NULL;
}

/* Ends when the event is set. */
static void *wait_for_event(void *event) {
    int rc = cc_event_wait(event);
    if (rc == ECANCELED) cancelled++;
    return rc == 0 ? event : NULL;
}

static CCTask start(CCTaskFn fn, void *arg) {
    CCTask task = cc_fiber_spawn_task(fn, arg);
    CHECK(task.id != 0);
    return task;
}

enum { SOME = 5 };

static void all(void) {
    CCTask tasks[SOME] = {{0}};
    void *results[SOME];
    int value[SOME];
    CHECK_EQ(cc_join_all(NULL, 0, NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_join_all(NULL, 1, NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_join_all(tasks, SOME, NULL, CC_FOREVER), 0); /* all left out */
    for (int i = 0; i < SOME; i++) {
        tasks[i] = start(give_back, &value[i]);
        results[i] = NULL;
    }
    CHECK_EQ(cc_join_all(tasks, SOME, results, CC_FOREVER), 0);
    for (int i = 0; i < SOME; i++) CHECK(results[i] == &value[i] && tasks[i].id == 0);
    CCTask stale = start(give_back, NULL), copy = stale;
    CHECK_EQ(cc_task_join(&stale, NULL), 0);
    tasks[0] = start(give_back, value);
    tasks[1] = start(panics, NULL);
    tasks[2] = copy;
    tasks[3] = start(give_back, value);
    CHECK_EQ(cc_join_all(tasks, SOME, results, CC_FOREVER), ENOTRECOVERABLE);
    CHECK(results[0] == value && results[1] == NULL && results[3] == value);
    CHECK(tasks[0].id == 0 && tasks[1].id == 0 && tasks[3].id == 0);
    tasks[2].id = 0;
    CCEvent event = {0};
    tasks[0] = start(give_back, value);
    tasks[1] = start(wait_for_event, &event);
    CHECK_EQ(cc_join_all(tasks, SOME, results, cc_after_ms(1)), ETIMEDOUT);
    CHECK(tasks[1].id != 0);
    CHECK_EQ(cc_event_set(&event), 0);
    CHECK_EQ(cc_join_all(tasks, SOME, results, CC_FOREVER), 0);
    CHECK(results[0] == value && results[1] == &event);
}

TEST_WORKERS(all) {
    in_both_contexts(all);
}

/* n - 1 tasks that wait, and one that ends. */
static void any_of(size_t n) {
    CCTask *tasks = calloc(n, sizeof *tasks);
    CCEvent never = {0}, now = {0};
    size_t which = SIZE_MAX, last = n - 1;
    void *result = NULL;
    cancelled = 0;
    for (size_t i = 1; i < n; i++) tasks[i] = start(wait_for_event, i == last ? &now : &never); /* the first is none */
    CHECK_EQ(cc_join_any(tasks, n, cc_after_ms(1), &which, &result), ETIMEDOUT);
    for (size_t i = 1; i < n; i++) CHECK(tasks[i].id != 0);
    CHECK_EQ(cc_event_set(&now), 0);
    CHECK_EQ(cc_join_any(tasks, n, CC_FOREVER, &which, &result), 0);
    CHECK_EQ(which, last);
    CHECK(result == &now && tasks[last].id == 0);
    int rc = -1;
    CC_NURSERY(nursery, .result = &rc) {
        CHECK_EQ(cc_nursery_cancel(nursery), 0);
        CHECK_EQ(cc_join_any(tasks, n, CC_FOREVER, NULL, NULL), n > 2 ? ECANCELED : EINVAL);
    }
    CHECK_EQ(cancelled, 0);
    CHECK_EQ(cc_event_set(&never), 0);
    CHECK_EQ(cc_join_all(tasks, n, NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_join_any(tasks, n, CC_FOREVER, NULL, NULL), EINVAL);
    free(tasks);
}

static void any(void) {
    CHECK_EQ(cc_join_any(NULL, 1, CC_FOREVER, NULL, NULL), EINVAL);
    any_of(2);
    any_of(20);
    any_of(256);
    any_of(257);
    any_of((size_t)test_scale(700));
}

TEST_WORKERS(any) {
    in_both_contexts(any);
}

static void any_ends_otherwise(void) {
    CCTask tasks[2] = {start(panics, NULL), start(wait_for_ever, NULL)};
    size_t which = 9;
    CHECK_EQ(cc_join_any(tasks, 2, CC_FOREVER, &which, NULL), ENOTRECOVERABLE);
    CHECK_EQ(which, 0);
    tasks[0] = tasks[1];
    CHECK_EQ(cc_task_cancel(&tasks[1]), 0);
    CHECK_EQ(cc_task_join(&tasks[1], NULL), 0);
    CHECK_EQ(cc_join_any(tasks, 2, CC_FOREVER, &which, NULL), ESRCH); /* was used up */
    CHECK_EQ(which, 0);
}

TEST_WORKERS(any_ends_otherwise) {
    in_both_contexts(any_ends_otherwise);
}

static void race_of(size_t n) {
    CCTask *tasks = calloc(n, sizeof *tasks);
    size_t which = SIZE_MAX;
    void *result = NULL;
    int value, rc = -1;
    cancelled = 0;
    for (size_t i = 0; i < n; i++) tasks[i] = i == n / 2 ? start(give_back, &value) : start(wait_for_ever, NULL);
    CHECK_EQ(cc_race(tasks, n, CC_FOREVER, &which, &result), 0);
    CHECK(which == n / 2 && result == &value);
    CHECK_EQ(cancelled, n - 1); /* all have ended */
    for (size_t i = 0; i < n; i++) CHECK_EQ(tasks[i].id, 0);
    cancelled = 0;
    for (size_t i = 0; i < n; i++) tasks[i] = start(wait_for_ever, NULL);
    CHECK_EQ(cc_race(tasks, n, cc_after_ms(1), &which, &result), ETIMEDOUT);
    CHECK_EQ(cancelled, n);
    cancelled = 0;
    for (size_t i = 0; i < n; i++) tasks[i] = start(wait_for_ever, NULL);
    CC_NURSERY(nursery, .result = &rc) {
        CHECK_EQ(cc_nursery_cancel(nursery), 0);
        CHECK_EQ(cc_race(tasks, n, CC_FOREVER, NULL, NULL), ECANCELED);
    }
    CHECK_EQ(cancelled, n);
    CHECK_EQ(cc_race(tasks, n, CC_FOREVER, NULL, NULL), EINVAL); /* none is left */
    free(tasks);
}

static void race(void) {
    race_of(1);
    race_of(3);
    race_of(300);
}

TEST_WORKERS(race) {
    in_both_contexts(race);
}

/* ---- misuse ---- */

struct itself {
    CCTask task;
    CCEvent known;
};

static void *joins_itself(void *arg) {
    struct itself *i = arg;
    CCTask own = {0};
    CHECK_EQ(cc_event_wait(&i->known), 0);
    CHECK_EQ(cc_task_dup(&i->task, &own), 0);
    CHECK_EQ(cc_join_all(&own, 1, NULL, CC_FOREVER), EDEADLK);
    CHECK_EQ(cc_race(&own, 1, CC_FOREVER, NULL, NULL), EDEADLK);
    CHECK_EQ(cc_join_any(&own, 1, CC_FOREVER, NULL, NULL), EDEADLK);
    CCTask all[2] = {start(give_back, NULL), own}, copy;
    CHECK_EQ(cc_task_dup(&all[0], &copy), 0);
    CHECK_EQ(cc_task_join(&copy, NULL), 0); /* it could win */
    CHECK_EQ(cc_race(all, 2, CC_FOREVER, NULL, NULL), EDEADLK);
    CHECK(all[0].id != 0 && !cc_cancelled()); /* nothing has happened */
    CHECK_EQ(cc_task_join(&all[0], NULL), 0);
    CHECK_EQ(cc_task_detach(&all[1]), 0); /* it has stayed */
    return arg;
}

static void of_itself(void) {
    struct itself i = {.known = {0}};
    i.task = start(joins_itself, &i);
    CHECK_EQ(cc_event_set(&i.known), 0);
    CHECK_EQ(cc_join_all(&i.task, 1, NULL, CC_FOREVER), 0);
}

TEST_WORKERS(of_itself) {
    in_both_contexts(of_itself);
}
