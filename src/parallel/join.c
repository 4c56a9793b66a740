/* join.c - join all of several tasks, any of them, or race them.
 *
 * A select has a limit. So cc_join_any of more tasks starts watchers, each of which selects among a part of them, with
 * its own handles: the caller's handles are not touched before a task is known to have ended.
 *
 * ANY-1  A watcher's handles are copies. Whatever it joins, the caller's own handle still gets the result.
 */
#include "base/mem.h"
#include "wait/cancel.h"

#include <ccc/cc_nursery.h>
#include <ccc/cc_parallel.h>
#include <ccc/cc_select.h>
#include <errno.h>
#include <stdint.h>

/* ---- all ---- */

int cc_join_all(CCTask *tasks, size_t n, void **results, CCDeadline deadline) {
    if (tasks == NULL && n > 0) return EINVAL;
    int first = 0;
    for (size_t i = 0; i < n; i++) {
        if (tasks[i].id == 0) continue;
        void *result = NULL;
        int rc = cc_task_join_until(&tasks[i], &result, deadline);
        if (tasks[i].id != 0 && rc != ESRCH && rc != EDEADLK) return rc; /* the task is still running */
        if (results != NULL) results[i] = result;
        if (first == 0) first = rc;
    }
    return first;
}

/* ---- any ---- */

/* Joins the first task that has ended. EAGAIN: none has; EINVAL: there are no tasks. */
static int join_ended(CCTask *tasks, size_t n, size_t *which, void **result) {
    int rc = EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (tasks[i].id == 0) continue;
        rc = cc_task_join_try(&tasks[i], result);
        if (rc == EAGAIN) continue;
        *which = i;
        return rc;
    }
    return rc;
}

static int select_ended(CCTask *tasks, size_t n, CCCase *cases, CCDeadline deadline, size_t *which, void **result) {
    for (size_t i = 0; i < n; i++)
        cases[i] = (CCCase){.kind = tasks[i].id != 0 ? CC_CASE_JOIN : CC_CASE_NONE, .task = &tasks[i], .value = result};
    int rc = cc_select(cases, n, deadline, which);
    return rc != 0 ? rc : cases[*which].error;
}

static int join_few(CCTask *tasks, size_t n, CCDeadline deadline, size_t *which, void **result) {
    CCCase few[8], *cases = n <= array_len(few) ? few : cc__mem_alloc_small(n * sizeof *cases);
    if (cases == NULL) return ENOMEM;
    int rc = select_ended(tasks, n, cases, deadline, which, result);
    if (cases != few) cc__mem_free(cases);
    return rc;
}

struct watcher {
    CCTask *self, *copies;
    CCCase *cases;
    size_t n;
    int rc;
};

static void *watch(void *arg) {
    struct watcher *w = arg;
    size_t which;
    w->rc = cc_select(w->cases, w->n, CC_FOREVER, &which);
    return NULL;
}

static int start_watcher(struct watcher *w, const CCTask *tasks, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (tasks[i].id == 0) continue;
        int rc = cc_task_dup(&tasks[i], &w->copies[w->n]);
        if (rc != 0) return rc;
        w->cases[w->n] = (CCCase){.kind = CC_CASE_JOIN, .task = &w->copies[w->n]};
        w->n++;
    }
    return cc_spawn(w->self, watch, w, NULL);
}

/* Ends it and releases its handles. */
static int stop_watcher(struct watcher *w) {
    if (w->self->id != 0) {
        (void)cc_task_cancel(w->self);
        (void)cc__cancel_join_owned(w->self, NULL);
    }
    for (size_t i = 0; i < w->n; i++)
        if (w->copies[i].id != 0) (void)cc_task_detach(&w->copies[i]);
    return w->rc != ECANCELED ? w->rc : 0;
}

enum { PART = CC_SELECT_MAX };

/* Waits until a task has ended, by waiting for one of the few watchers. A watcher that gets no stack ends the wait
 * too. */
static int wait_many(const CCTask *tasks, size_t n, CCDeadline deadline) {
    size_t parts = (n + PART - 1) / PART, started = 0, each = sizeof(CCTask) + sizeof(CCCase);
    if (n > SIZE_MAX / 2 / each) return ENOMEM;
    struct watcher *watchers = cc__mem_alloc(parts * (sizeof *watchers + sizeof(CCTask))); /* and the handles to the
                                                                                            * watchers */
    CCCase *cases = cc__mem_alloc(n * each); /* the cases of all, then the handles of all */
    CCTask *own = watchers != NULL ? (CCTask *)(void *)(watchers + parts) : NULL;
    int rc = watchers != NULL && cases != NULL ? 0 : ENOMEM;
    for (; rc == 0 && started < parts; started++) {
        size_t first = started * PART, count = n - first < PART ? n - first : PART;
        struct watcher *w = &watchers[started];
        w->self = &own[started];
        w->cases = cases + first;
        w->copies = (CCTask *)(void *)(cases + n) + first;
        rc = start_watcher(w, tasks + first, count);
    }
    if (rc == 0) rc = cc_join_any(own, parts, deadline, NULL, NULL);
    for (size_t i = 0; i < started; i++) {
        int stopped = stop_watcher(&watchers[i]);
        if (rc == 0) rc = stopped;
    }
    cc__mem_free(cases);
    cc__mem_free(watchers);
    return rc;
}

int cc_join_any(CCTask *tasks, size_t n, CCDeadline deadline, size_t *which, void **result) {
    size_t unused = 0;
    if (which == NULL) which = &unused;
    if (tasks == NULL) return EINVAL;
    if (result != NULL) *result = NULL;
    int rc;
    while ((rc = join_ended(tasks, n, which, result)) == EAGAIN) {
        if (n <= CC_SELECT_MAX) return join_few(tasks, n, deadline, which, result);
        if ((rc = wait_many(tasks, n, deadline)) != 0) return rc; /* ANY-1 */
    }
    return rc;
}

/* ---- a race ---- */

int cc_race(CCTask *tasks, size_t n, CCDeadline deadline, size_t *winner, void **result) {
    CCFiberId self = cc_fiber_id();
    for (size_t i = 0; tasks != NULL && self != 0 && i < n; i++)
        if (tasks[i].id == self) return EDEADLK; /* before any of them is joined or cancelled */
    int rc = cc_join_any(tasks, n, deadline, winner, result);
    if (rc == EINVAL) return rc;
    for (size_t i = 0; i < n; i++)
        if (tasks[i].id != 0) (void)cc_task_cancel(&tasks[i]);
    for (size_t i = 0; i < n; i++) {
        if (tasks[i].id == 0) continue;
        (void)cc__cancel_join_owned(&tasks[i], NULL);
        tasks[i].id = 0;
    }
    return rc;
}
