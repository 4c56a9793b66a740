/* island.c - the public calls of islands; sched/island.h has the worker and its rules. */
#include "sched/island.h"

#include "base/error.h"
#include "base/mem.h"
#include "os/thread.h"
#include "sched/upcalls.h"
#include "sync/backoff.h"
#include "wait/cancel.h"

#include <ccc/cc_island.h>
#include <ccc/cc_nursery.h>
#include <ccc/cc_sync.h>
#include <errno.h>

_Static_assert(CC_ISLANDS_MAX == ISLANDS_MAX, "as the header says");

struct island {
    struct CCIsland base; /* the handle points here */
    CCEvent ended;        /* its thread no longer uses it */
};

static void say_ended(void *ended) {
    (void)cc_event_set(ended);
}

/* Enters the runtime, which stays up until leave(). */
static int enter(bool start) {
    return cc__worker() != NULL ? 0 : cc__upcall_enter(start);
}

static void leave(void) {
    if (cc__worker() == NULL) cc__upcall_leave();
}

static bool config_valid(const CCIslandConfig *config) {
    return !cc__reserved_used(config) && (!config->pinned || config->cpu <= INT32_MAX);
}

int cc_island_create(CCIsland **island, const CCIslandConfig *config) {
    static const CCIslandConfig defaults;
    if (island == NULL) return EINVAL;
    *island = NULL;
    if (config == NULL) config = &defaults;
    if (!config_valid(config) || (config->pinned && cc__thread_may_pin((int)config->cpu) != 0)) return EINVAL;
    struct island *i = cc__mem_alloc(sizeof *i);
    if (i == NULL) return ENOMEM;
    struct island_setup setup = {.name = config->name,
                                 .on_start = config->on_start,
                                 .on_end = config->on_end,
                                 .context = config->context,
                                 .ended = say_ended,
                                 .ended_arg = &i->ended,
                                 .island = &i->base,
                                 .cpu = config->pinned ? (int)config->cpu : -1};
    struct worker *worker;
    int rc = enter(true);
    if (rc == 0 && (cc__get(&cc__sched.spawns) & SPAWNS_REFUSED) != 0) {
        leave();
        rc = ECANCELED;
    } else if (rc == 0) {
        rc = cc__island_open(&setup, &worker);
        if (rc == 0) i->base = (struct CCIsland){worker->core.owner, worker->core.tag};
        leave();
    }
    if (rc != 0) {
        cc__mem_free(i);
        return rc;
    }
    *island = &i->base;
    return 0;
}

int cc_island_spawn(CCIsland *island, CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options) {
    if (task != NULL) task->id = 0;
    if (island == NULL || (options != NULL && options->island != NULL && options->island != island)) return EINVAL;
    CCSpawnOptions there = options != NULL ? *options : (CCSpawnOptions){0};
    there.island = island;
    return cc__upcall_spawn_in(0, task, fn, arg, &there, __builtin_return_address(0));
}

CCTask cc_island_go(CCIsland *island, CCTaskFn entry, const void *args, size_t size) {
    CCTask task = {0};
    CCSpawnOptions there = {.arg_size = size, .island = island};
    if (island != NULL)
        (void)cc__upcall_spawn_in(0, &task, entry, (void *)(uintptr_t)args, &there, __builtin_return_address(0));
    return task;
}

/* The caller was cancelled: cancels the task and waits for its end. */
static CC_NOINLINE int cancel_and_join(CCTask *task, void **result) {
    int rc;
    (void)cc_task_cancel(task);
    bool held = cc__cancel_hold();
    do {
        rc = cc_task_join(task, result);
    } while (rc == ECANCELED && task->id != 0);
    cc__cancel_unhold(held);
    return rc;
}

int cc_island_call(CCIsland *island, CCTaskFn fn, void *arg, void **result) {
    CCTask task;
    CCSpawnOptions there = {.island = island};
    if (island == NULL) return EINVAL;
    int rc = enter(island == CC_NO_ISLAND); /* until the task has ended: a shutdown waits for it */
    if (rc != 0) return rc;
    rc = cc__upcall_spawn_in(0, &task, fn, arg, &there, __builtin_return_address(0));
    if (rc == 0) rc = cc_task_join(&task, result);
    if (rc == ECANCELED && task.id != 0) rc = cancel_and_join(&task, result);
    leave();
    return rc;
}

CCIsland *cc_island_current(void) {
    struct worker *w = cc__worker();
    return w != NULL && cc__get(&w->core.current) != NULL && cc__worker_is_island(w) ? w->island.setup.island : NULL;
}

static void await_end(struct island *i) {
    bool held = cc__cancel_hold();
    while (cc_event_wait(&i->ended) != 0) {
    }
    cc__cancel_unhold(held);
}

int cc_island_free(CCIsland *island) {
    if (island == NULL) return 0;
    if (island == CC_NO_ISLAND) return EINVAL;
    if (cc_island_current() == island || cc__island_hooked() == island) return EDEADLK;
    struct island *i = (struct island *)(void *)island;
    struct worker *worker;
    struct backoff backoff = {0};
    int entered;
    while ((entered = enter(false)) == ECANCELED) { /* a shutdown is in progress, and may be called off */
        if (cc__worker_ending()) return EDEADLK;    /* the shutdown waits for this thread */
        cc__backoff(&backoff);
    }
    if (entered == 0) { /* else its thread has ended */
        int rc = cc__island_find(island, &worker);
        if (rc == 0) {
            cc__island_close(worker);
            await_end(i);
            if (!cc__sched.simulated) cc__island_join(worker);
        }
        leave();
    }
    cc__mem_free(i);
    return 0;
}
