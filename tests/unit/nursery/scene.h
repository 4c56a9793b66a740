/* scene.h - shared by the tests of nurseries. */
#ifndef CCC_TESTS_UNIT_NURSERY_SCENE_H
#define CCC_TESTS_UNIT_NURSERY_SCENE_H

#include "harness.h"

#include "../ending.h"
#include "nursery/nursery.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define SCENE_UNUSED __attribute__((unused))

SCENE_UNUSED static void let_others(void) {
    if (cc_in_fiber())
        cc_yield();
    else if (cc_sim_seed() != 0)
        cc_sleep_ms(1); /* no fiber runs beside this thread */
    else
        sched_yield();
}

#define UNTIL(condition) \
    while (!(condition)) let_others()

/* Whether that fiber is parked, and not about to be woken. */
SCENE_UNUSED static bool is_parked(CCFiberId id) {
    struct fiber *f = cc__pool_find(id);
    return f != NULL && cc__pool_id(f) == id && cc__word_state(cc__get_acquire(&f->word)) == FIBER_PARKED;
}

static void *scene_main(void *body) {
    (*(void (**)(void))body)();
    return NULL;
}

/* Runs a body as a fiber without a nursery, and ends the runtime: nothing is left of it. */
SCENE_UNUSED static void in_fiber(void (*body)(void)) {
    CHECK_EQ(cc_run(scene_main, &body, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0);
}

/* ---- children ---- */

SCENE_UNUSED static void *nothing(void *arg) {
    (void)arg;
    return NULL;
}

SCENE_UNUSED static void *count_up(void *counter) {
    atomic_fetch_add((atomic_int *)counter, 1);
    return NULL;
}

/* Waits until it is cancelled, and counts that. */
SCENE_UNUSED static void *wait_for_cancel(void *counter) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    CHECK(cc_cancelled());
    CHECK_EQ(cc_check_cancel(), ECANCELED);
    atomic_fetch_add((atomic_int *)counter, 1);
    return CC_ERROR(ECANCELED);
}

SCENE_UNUSED static void *fail_with(void *code) {
    return code;
}

SCENE_UNUSED static CCNursery *new_nursery(CCNursery *parent) {
    CCNursery *n = cc_nursery_create(parent);
    CHECK(n != NULL);
    return n;
}

/* Starts a child with a handle, detaches it, and returns its id. */
SCENE_UNUSED static CCFiberId start_child(CCNursery *n, CCTaskFn fn, void *arg) {
    CCTask task;
    CHECK_EQ(cc_nursery_spawn_ex(n, &task, fn, arg, NULL), 0);
    CCFiberId id = task.id;
    CHECK_EQ(cc_task_detach(&task), 0);
    return id;
}

/* The nursery has no children, no scopes below and no waiters; no timer can fire. */
SCENE_UNUSED static void check_empty(CCNursery *n) {
    struct scope *s = &n->scope;
    cc__lock_take(&s->lock);
    CHECK(cc__list_empty(&s->members) && cc__list_empty(&s->inner) && cc__list_empty(&s->waiters));
    CHECK_EQ(s->children, 0);
    cc__lock_release(&s->lock);
}

#endif
