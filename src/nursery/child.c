/* child.c - spawning children, their failures, and their end.
 *
 * CHILD-1  A child is counted before it can run and until its last access to the nursery, the unlock after it has left.
 *          So a thread that has seen the count at zero, under the lock, may free the nursery.
 */
#include "nursery/nursery.h"

#include "base/fatal.h"
#include "base/mem.h"
#include "sim/sim.h"
#include "trace/trace.h"

#include <ccc/cc_panic.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { KEPT = 16 }; /* failures kept without CC_NURSERY_COLLECT */

/* ---- failures ---- */

static void keep_locked(CCNursery *n, const CCError *error) {
    struct failure *before = n->newest;
    if (before != NULL && before->index + 1 >= KEPT && (n->mode & CC_NURSERY_COLLECT) == 0) return;
    struct failure *f = cc__mem_alloc_small(sizeof *f);
    if (f == NULL) return; /* it is counted anyway */
    f->error = *error;
    f->older = before;
    f->jump = f;
    n->newest = f;
    if (n->failed == 1) n->first = f; /* else the first is not kept */
    if (before == NULL) return;
    /* Skew-binary, as in cc__scope_init. */
    const struct failure *j = before->jump;
    f->index = before->index + 1;
    f->jump = before->index - j->index == j->index - j->jump->index ? j->jump : before;
}

/* ECANCELED of a cancelled wait is a consequence of the cancellation, not a failure of its own. */
static bool is_consequence(CCNursery *n, int code) {
    return code == ECANCELED && cc__get(&n->scope.cancelled);
}

bool cc__nursery_fail_with(CCNursery *n, const CCError *error) {
    if (is_consequence(n, error->code)) return false;
    cc__lock_take(&n->scope.lock);
    bool first = n->failed++ == 0;
    if (first) n->code = error->code;
    keep_locked(n, error);
    cc__lock_release(&n->scope.lock);
    cc__event(child_fails, n, n->name, error->code, error->text);
    /* Only the first cancels, so that the reason seen below is what the wait returns. */
    if (first && (n->mode & CC_NURSERY_KEEP_GOING) == 0) cc__scope_cancel(&n->scope, error, true);
    return true;
}

bool cc__nursery_fail(CCNursery *n, int code, const char *text) {
    CCError error = cc__scope_reason(code, text);
    return cc__nursery_fail_with(n, &error);
}

static CCNursery *nearest(struct scope *s) {
    while (s != NULL && !s->nursery) s = s->parent;
    return (CCNursery *)s;
}

bool cc__nursery_pass_on(const struct scope *s, const CCError *error) {
    struct fiber *self = cc__sched_current(cc__worker());
    CCNursery *n = nearest(s->parent);
    if (n == NULL) n = nearest(cc__scope_current());
    if (n == NULL) return false;
    if (self == NULL || cc__get(&cc__get(&self->stack)->cold)->base != n)
        (void)cc__nursery_fail_with(n, error);
    else if ((cc__get(&self->scope) & CANCEL_REPORTED) == 0 && cc__nursery_fail_with(n, error))
        cc__or(&self->scope, CANCEL_REPORTED); /* one failure per child, whatever it returns */
    return true;
}

void *cc_fail(int code, const char *format, ...) {
    if (code <= 0 || code > CC_ERROR_MAX) code = EINVAL;
    struct fiber *self = cc__sched_current(cc__worker());
    CCNursery *n = self != NULL ? cc__get(&cc__get(&self->stack)->cold)->base : NULL;
    /* Many children are cancelled together: no text for those. */
    if (n != NULL && (cc__get(&self->scope) & CANCEL_REPORTED) == 0 && !is_consequence(n, code)) {
        char text[CC_ERROR_TEXT_MAX] = "";
        va_list args;
        va_start(args, format);
        if (format != NULL) vsnprintf(text, sizeof text, format, args);
        va_end(args);
        if (cc__nursery_fail(n, code, text)) cc__or(&self->scope, CANCEL_REPORTED);
    }
    return CC_ERROR(code);
}

/* ---- beginning and end ---- */

void cc__upcall_scope_begin(struct fiber *self, struct fiber_cold *cold) {
    struct scope *s = cc__scope_of(cc__get(&self->scope));
    if (s == NULL || cc__scope_is_alarm(self->fn)) return;
    cold->base = s;
    cold->fiber = self;
    cc__lock_take(&s->lock);
    cc__list_push_back(&s->members, &cold->member);
    if (cc__get(&s->cancelled)) {
        cc__cancel_adopt();
        cc__cancel_mark(self, CANCEL_SCOPE);
    }
    bool late = s->grace_late;
    cc__lock_release(&s->lock);
    if (unlikely(late)) cc__scope_begin_late_grace(s);
}

/* The last child claims the waiters. cold: NULL if the child has not become a member. */
static void leave(CCNursery *n, struct fiber_cold *cold) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&n->scope.lock);
    if (cold != NULL) cc__list_remove(&cold->member);
    if (--n->scope.children == 0) {
        if (unlikely(!cc__list_empty(&n->scope.waiters))) cc__scope_wake_locked(&n->scope, &wakes);
        if (unlikely(n->selected)) cc__nursery_ended_locked(n, &wakes);
    }
    cc__lock_release(&n->scope.lock); /* the nursery may be freed from here on */
    if (cc__wakes_any(&wakes)) cc__wakes_flush(&wakes);
}

static CC_NORETURN CC_COLD void left_inside(struct fiber *self, struct fiber_cold *cold) {
    cc__fatal(
        "fiber %u.%u%s%s%s has ended inside a CC_NURSERY or CC_WITH_DEADLINE block, by a longjmp out of it: the block's "
        "fibers would outlive it. Leave such blocks by their end, break, return or goto",
        self->slot, cc__get(&self->generation) & 0x7fffffffu, cc__quoted(cold->name));
}

/* The deferred calls of a block left by longjmp are in a dead frame: they must not be touched. */
void cc__upcall_scope_check(struct fiber *self, struct fiber_cold *cold) {
    struct scope *s = cc__scope_of(cc__get(&self->scope));
    if (s != cold->base && !cc__scope_is_alarm(self->fn)) left_inside(self, cold);
}

/* panic/ keeps the message. */
static CC_COLD void fail_by_panic(CCNursery *n, struct fiber *self) {
    CCPanic panic;
    bool known = cc_panic_find(cc__pool_id(self), &panic) == 0;
    (void)cc__nursery_fail(n, self->outcome.status, known ? panic.message : "panic");
}

/* The text tells a program that meant no error how its return value was read. */
static CC_COLD void fail_by_pointer(CCNursery *n, int code) {
    if (is_consequence(n, code)) return;
    char text[CC_ERROR_TEXT_MAX];
    snprintf(text, sizeof text, "the child returned (void *)%d, which is read as errno %d (see CC_ERROR, CC_CHILD)",
             code, code);
    (void)cc__nursery_fail(n, code, text);
}

void cc__upcall_scope_end(struct fiber *self, struct fiber_cold *cold) {
    uintptr_t word = cc__get(&self->scope);
    struct scope *s = cc__scope_of(word);
    if (cold->base == NULL && (s == NULL || cc__scope_is_alarm(self->fn))) return;
    cc__upcall_scope_check(self, cold);
    CCNursery *n = cold->base;
    cc__sim_mute(true);
    intptr_t code = (intptr_t)self->outcome.result;
    if (unlikely(self->outcome.status != 0))
        fail_by_panic(n, self);
    else if (unlikely(code > 0 && code <= CC_ERROR_MAX && (word & CANCEL_REPORTED) == 0))
        fail_by_pointer(n, (int)code);
    leave(n, cold);
    cc__sim_mute(false);
}

/* The argument that f's function would have received. */
static void *argument(struct fiber *f) {
    struct fiber_block *block;
    void *pointer;
    switch (cc__state_args(f)) {
    case ARGS_INLINE:
        return f->args;
    case ARGS_BLOCK:
        memcpy(&block, f->args, sizeof(void *));
        return block->args_size > 0 ? block->args : block->pointer;
    default:
        memcpy(&pointer, f->args, sizeof pointer);
        return pointer;
    }
}

void cc__upcall_scope_unstarted(struct fiber *f, int error) {
    struct scope *s = cc__scope_of(cc__get(&f->scope));
    if (s == NULL || cc__scope_fired_unstarted(f)) return;
    CCNursery *n = (CCNursery *)s;
    (void)cc__nursery_fail(n, error, "no memory for a child's stack");
    if (n->unstarted != NULL) n->unstarted(argument(f));
    leave(n, NULL);
}

/* ---- spawning ---- */

static int spawn(CCNursery *n, CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options, const void *site) {
    if (task != NULL) task->id = 0;
    if (n == NULL || fn == NULL) return EINVAL;
    cc__lock_take(&n->scope.lock);
    if (n->scope.children++ == 0 && unlikely(n->selected)) cc__nursery_not_ended_locked(n);
    cc__lock_release(&n->scope.lock);
    int rc = cc__upcall_spawn_in((uintptr_t)&n->scope, task, fn, arg, options, site);
    if (unlikely(rc != 0)) leave(n, NULL);
    return rc;
}

void *cc_child_status(int status) {
    if (status == 0) return NULL;
    if (status > 0 && status <= CC_ERROR_MAX)
        return cc_fail(status, "the child returned %d (%s)", status, cc_error_text(status));
    return cc_fail(EINVAL, "the child returned %d, which is no errno value", status);
}

struct status_child {
    int (*fn)(void *arg);
    void *arg;
};

static void *run_status_child(void *args) {
    struct status_child *child = args;
    return cc_child_status(child->fn(child->arg));
}

int cc_nursery_spawn_status(CCNursery *n, int (*fn)(void *arg), void *arg) {
    struct status_child child = {fn, arg};
    if (fn == NULL) return EINVAL;
    return spawn(n, NULL, run_status_child, &child, &(CCSpawnOptions){.arg_size = sizeof child},
                 __builtin_return_address(0));
}

int cc_nursery_spawn_ex(CCNursery *n, CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options) {
    return spawn(n, task, fn, arg, options, __builtin_return_address(0));
}

int cc_nursery_spawn(CCNursery *n, CCTaskFn fn, void *arg) {
    return spawn(n, NULL, fn, arg, NULL, __builtin_return_address(0));
}

int cc_nursery_go(CCNursery *n, CCTaskFn entry, const void *args, size_t size) {
    CCSpawnOptions options = {.arg_size = size};
    return spawn(n, NULL, entry, (void *)(uintptr_t)args, &options, __builtin_return_address(0));
}
