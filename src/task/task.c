/* task.c - starting tasks and releasing handles. join.c waits for their end. */
#include "task/task.h"

#include "base/mem.h"
#include "sched/island.h"
#include "sched/record.h"
#include "sched/runq.h"
#include "sched/wake.h"
#include "trace/recorder.h"
#include "trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const uint32_t handles_max = UINT32_MAX - 1; /* completion adds one (join.c) */

static void recycle_locked(struct worker *w, struct fiber *f) {
    cc__set(&f->generation, (cc__get(&f->generation) + 1) & CC_FIBER_GENERATION_MAX);
    cc__lock_release(&f->join_lock);
    cc__state_recycle(f);
    if (w != NULL)
        cc__pool_give(&w->core.fibers, f);
    else
        cc__pool_give_slow(NULL, f);
}

void cc__task_drop_locked(struct worker *w, struct fiber *f) {
    uint32_t left = cc__get(&f->handles);
    if (left > 0) cc__set(&f->handles, --left);
    if (left == 0 && cc__word_state(cc__get(&f->word)) == FIBER_DONE)
        recycle_locked(w, f);
    else
        cc__lock_release(&f->join_lock);
}

void cc__task_end_locked(struct worker *w, struct fiber *f) {
    cc__set(&f->handles, 0);
    cc__set(&f->generation, (cc__get(&f->generation) + 1) & CC_FIBER_GENERATION_MAX);
    cc__state_end(f);
    cc__lock_release(&f->join_lock);
    cc__pool_give(&w->core.fibers, f);
}

struct fiber *cc__task_lock(CCTask task) {
    struct fiber *f = cc__pool_find(task.id);
    if (f == NULL) return NULL;
    cc__lock_take(&f->join_lock);
    if (likely(cc__pool_id(f) == task.id && cc__get(&f->handles) > 0)) return f;
    cc__lock_release(&f->join_lock);
    return NULL;
}

/* Where a task comes from: the scope that it starts in, and the call that started it. */
struct origin {
    uintptr_t scope;
    const void *site;
    bool elsewhere;        /* into or out of an island: */
    struct worker *target; /* the island's worker; NULL: to the pool */
};

static bool on_island(const CCSpawnOptions *o) {
    return o != NULL && o->island != NULL && o->island != CC_NO_ISLAND;
}

/* Sets `elsewhere` and `target`. ESRCH: there is no such island. */
static int find_target(struct worker *w, const CCSpawnOptions *o, struct origin *from) {
    if (likely(o == NULL || o->island == NULL)) return 0;
    int rc = on_island(o) ? cc__island_find(o->island, &from->target) : 0;
    from->elsewhere = from->target != (w != NULL && cc__worker_is_island(w) ? w : NULL);
    return rc;
}

/* A record that only the caller knows; NULL: no memory. */
CC_INLINE struct fiber *new_fiber(struct worker *w, CCTaskFn fn, bool handle, struct origin from) {
    struct fiber *f = likely(w != NULL) ? cc__pool_take(&w->core.fibers) : cc__pool_take_slow(NULL);
    if (unlikely(f == NULL)) return NULL;
    cc__state_take(f);
    f->fn = fn;
    cc__set(&f->handles, handle);
    cc__set(&f->joiners.first, NULL);
    f->site = from.site;
    cc__set(&f->scope, from.scope);
    return f;
}

/* Before the task can run. */
static CC_COLD CC_NOINLINE void record(struct fiber *f, enum fiber_args args) {
    const char *name = "";
    if (args == ARGS_BLOCK) {
        struct fiber_block *block;
        memcpy(&block, f->args, sizeof block);
        name = block->name;
    }
    uintptr_t scope = cc__get(&f->scope) & ~(uintptr_t)FIBER_SCOPE_BITS;
    cc__record_spawn(f->slot, cc__get(&f->generation), f->site, (const void *)(uintptr_t)f->fn, (const void *)scope,
                     name);
}

/* Publishes the task; from here on it may end at any moment, and without a handle its record may be recycled. */
static CCFiberId start(struct worker *w, struct fiber *f, enum fiber_args args, struct origin from) {
    CCFiberId id = cc__pool_id(f);
    if (cc__trace_on(TRACE_RECORD)) record(f, args);
    cc__probe3(spawn, f, f->fn, f->site);
    if (unlikely(from.elsewhere))
        cc__island_spawn(w, from.target, f, args);
    else
        cc__sched_spawn(w, f, args);
    return id;
}

/* The same on a worker, for a task in no scope. */
CC_INLINE CCFiberId start_here(struct worker *w, struct fiber *f, enum fiber_args args) {
    CCFiberId id = cc__pool_id(f);
    cc__sched_record_spawn(w, f);
    cc__probe3(spawn, f, f->fn, f->site);
    cc__runq_spawn(w, f, args);
    return id;
}

/* Copies a few bytes by overlapping loads and stores: a call would cost more and clobber registers. */
CC_INLINE void copy_few(unsigned char *to, const unsigned char *from, size_t size) {
    if (size >= 16) {
        memcpy(to, from, 16);
        if (size > 32) memcpy(to + 16, from + 16, 16);
        memcpy(to + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
        memcpy(to, from, 8);
        memcpy(to + size - 8, from + size - 8, 8);
    } else {
        for (; size > 0; size--) *to++ = *from++;
    }
}

_Static_assert(FIBER_INLINE_ARGS == 48, "three times sixteen");

/* With a name, a stack size or large arguments, which go into an allocated block. */
static CC_NOINLINE int spawn_block(struct worker *w, CCFiberId *id, bool handle, CCTaskFn fn, void *arg,
                                   const CCSpawnOptions *o, struct origin from) {
    struct fiber_block *block = cc__mem_alloc_small(sizeof *block + o->arg_size);
    if (block == NULL) return ENOMEM;
    if (o->name != NULL) snprintf(block->name, sizeof block->name, "%s", o->name);
    block->stack_size = o->stack_size;
    block->args_size = o->arg_size;
    block->pointer = arg;
    if (o->arg_size > 0) memcpy(block->args, arg, o->arg_size);
    struct fiber *f = new_fiber(w, fn, handle, from);
    if (f == NULL) {
        cc__mem_free(block);
        return ENOMEM;
    }
    memcpy(f->args, &block, sizeof(void *));
    *id = start(w, f, ARGS_BLOCK, from);
    return 0;
}

CC_INLINE int spawn_any(struct worker *w, CCFiberId *id, bool handle, CCTaskFn fn, void *arg, const CCSpawnOptions *o,
                        struct origin from) {
    size_t size = o != NULL ? o->arg_size : 0; /* 0: nothing to copy */
    if (o != NULL && (o->name != NULL || o->stack_size != 0 || size > FIBER_INLINE_ARGS))
        return spawn_block(w, id, handle, fn, arg, o, from);
    struct fiber *f = new_fiber(w, fn, handle, from);
    if (unlikely(f == NULL)) return ENOMEM;
    if (size == 0)
        memcpy(f->args, &arg, sizeof arg);
    else
        copy_few(f->args, arg, size);
    *id = start(w, f, size == 0 ? ARGS_POINTER : ARGS_INLINE, from);
    return 0;
}

/* While spawns are refused or traced. */
static CC_COLD CC_NOINLINE int spawn_slow(struct worker *w, CCFiberId *id, bool handle, CCTaskFn fn, void *arg,
                                          const CCSpawnOptions *options, struct origin from) {
    bool refused = (cc__get(&cc__sched.spawns) & SPAWNS_REFUSED) != 0;
    int rc = refused ? ECANCELED : spawn_any(w, id, handle, fn, arg, options, from);
    if (rc == 0)
        cc__event(spawn, *id, options != NULL && options->name != NULL ? options->name : "", fn);
    else
        cc__event(spawn_failed, rc, fn);
    return rc;
}

static bool options_valid(void *arg, const CCSpawnOptions *o) {
    if (cc__reserved_used(o)) return false;
    if (o->stack_size != 0 && (o->stack_size < CC_STACK_SIZE_MIN || o->stack_size > CC_STACK_SIZE_MAX)) return false;
    return o->arg_size == 0 || (arg != NULL && o->arg_size <= CC_SPAWN_ARG_MAX);
}

int cc__upcall_spawn_in(uintptr_t scope, CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options,
                        const void *site) {
    struct origin from = {.scope = scope, .site = site};
    if (task != NULL) task->id = 0;
    if (fn == NULL || (options != NULL && !options_valid(arg, options))) return EINVAL;
    struct worker *w = cc__worker();
    int rc = cc__task_enter(w, !on_island(options)); /* without a runtime there is no island */
    if (rc != 0) return rc;
    CCFiberId id = 0;
    if (unlikely((rc = find_target(w, options, &from)) != 0)) {
        cc__task_leave(w);
        return rc;
    }
    if (unlikely(cc__get(&cc__sched.spawns) != 0))
        rc = spawn_slow(w, &id, task != NULL, fn, arg, options, from);
    else
        rc = spawn_any(w, &id, task != NULL, fn, arg, options, from);
    if (task != NULL) task->id = id;
    cc__task_leave(w);
    return rc;
}

/* ---- fast paths: a fiber starts another one ---- */

CC_INLINE bool is_short(struct worker *w, CCTaskFn fn) {
    return likely(w != NULL && fn != NULL && cc__get(&cc__sched.spawns) == 0);
}

/* 0: no memory. */
CC_INLINE CCFiberId go_pointer(struct worker *w, CCTaskFn fn, void *arg, const void *site) {
    struct fiber *f = new_fiber(w, fn, true, (struct origin){.site = site});
    if (unlikely(f == NULL)) return 0;
    memcpy(f->args, &arg, sizeof arg);
    return start_here(w, f, ARGS_POINTER);
}

int cc_spawn(CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options) {
    struct worker *w = cc__worker();
    if (unlikely(task == NULL || options != NULL || !is_short(w, fn)))
        return cc__upcall_spawn_in(0, task, fn, arg, options, __builtin_return_address(0));
    task->id = go_pointer(w, fn, arg, __builtin_return_address(0));
    return likely(task->id != 0) ? 0 : ENOMEM;
}

CCTask cc_fiber_spawn_task(CCTaskFn fn, void *arg) {
    CCTask task = {0};
    struct worker *w = cc__worker();
    if (is_short(w, fn))
        task.id = go_pointer(w, fn, arg, __builtin_return_address(0));
    else
        (void)cc__upcall_spawn_in(0, &task, fn, arg, NULL, __builtin_return_address(0));
    return task;
}

static CC_NOINLINE CCTask go_slow(CCTaskFn entry, const void *args, size_t size, const void *site) {
    CCTask task;
    CCSpawnOptions options = {.arg_size = size};
    (void)cc__upcall_spawn_in(0, &task, entry, (void *)(uintptr_t)args, &options, site);
    return task;
}

CCTask cc_task_go(CCTaskFn entry, const void *args, size_t size) {
    struct worker *w = cc__worker();
    if (unlikely(!is_short(w, entry) || args == NULL || size == 0 || size > FIBER_INLINE_ARGS))
        return go_slow(entry, args, size, __builtin_return_address(0));
    struct fiber *f = new_fiber(w, entry, true, (struct origin){.site = __builtin_return_address(0)});
    if (unlikely(f == NULL)) return (CCTask){0};
    copy_few(f->args, args, size);
    return (CCTask){start_here(w, f, ARGS_INLINE)};
}

int cc_task_detach(CCTask *task) {
    if (task == NULL || task->id == 0) return EINVAL;
    struct worker *w = cc__worker();
    int rc = cc__task_enter(w, false);
    if (rc != 0) return rc;
    struct fiber *f = cc__task_lock(*task);
    if (f != NULL) {
        cc__task_drop_locked(w, f);
        task->id = 0;
    }
    cc__task_leave(w);
    return f != NULL ? 0 : ESRCH;
}

int cc_task_dup(const CCTask *task, CCTask *copy) {
    if (copy == NULL || copy == task) return EINVAL; /* one variable cannot hold two handles */
    copy->id = 0;
    if (task == NULL || task->id == 0) return EINVAL;
    struct worker *w = cc__worker();
    int rc = cc__task_enter(w, false);
    if (rc != 0) return rc;
    struct fiber *f = cc__task_lock(*task);
    rc = f == NULL ? ESRCH : cc__get(&f->handles) >= handles_max ? EOVERFLOW : 0;
    if (rc == 0) {
        cc__set(&f->handles, cc__get(&f->handles) + 1);
        *copy = *task;
    }
    if (f != NULL) cc__lock_release(&f->join_lock);
    cc__task_leave(w);
    return rc;
}
