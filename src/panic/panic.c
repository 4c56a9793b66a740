/* panic.c - a panic runs deferred functions and ends a protected call. README.md has the protocol.
 *
 * PANIC-1  Deferred functions run on top of the frame that panicked; the escape abandons frames only when no deferred
 *          function is left in their protected call.
 * PANIC-2  The innermost panic of a protected call is the newest MARK_PANIC above its boundary. A panic that meets an
 *          older one replaces it.
 * PANIC-3  A panic never crosses a boundary; the code that catches it there may panic again.
 */
#include "panic/panic.h"
#include "base/fatal.h"
#include "fiber/cxx.h"
#include "sched/upcalls.h"
#include "trace/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct panic {
    CCDefer node; /* MARK_PANIC */
    bool stopped;
    unsigned replaced; /* how many panics it replaced, each raised in a deferred function of the one before */
    CCPanic info;
};

struct try_call {
    struct boundary boundary; /* MARK_TRY */
    struct cxx_state cxx;     /* when it began */
    CCPanic *info;
    bool failed;
};

/* Guess: no program nests panics that deep on purpose. Each takes a kilobyte of stack. */
enum { REPLACED_MAX = 32 };

static struct panic *panic_of(CCDefer *d) {
    return container_of(d, struct panic, node);
}

/* ---- panic ---- */

/* Takes the next deferred function off the list. Those that a deferred function added lie above the panic's mark, the
 * others below. Boundaries stay. */
static CCDefer *take_next(CCDefer **list, struct panic *p) {
    CCDefer **at = *list == &p->node ? &p->node.next : list;
    CCDefer *d = *at;
    if (!cc__defer_is_boundary(d)) *at = d->next;
    return d;
}

/* Puts the panic on the list. Fatal outside a protected call, or after too many replaced panics. */
static CCDefer **begin(struct panic *p) {
    if (!cc__defer_protected()) cc__report_fatal(&p->info, "outside of cc_try");
    CCDefer **list = cc__defer_list(), **mark = cc__defer_mark(), *older = *mark;
    if (older != NULL && older->fn == MARK_PANIC) p->replaced = panic_of(older)->replaced + 1;
    if (p->replaced > REPLACED_MAX) cc__report_fatal(&p->info, "deferred functions panic without end");
    p->node = (CCDefer){.next = *list, .fn = MARK_PANIC};
    *list = *mark = &p->node;
    return list;
}

static CC_NORETURN void leave_to(CCDefer **list, struct panic *p, struct boundary *b) {
    *list = &b->node;
    *cc__defer_mark() = b->node.fn == MARK_TRY ? &b->node : NULL;
    /* A fiber starts outside all catch blocks. */
    cc__cxx_abandon(b->node.fn == MARK_TRY ? container_of(b, struct try_call, boundary)->cxx : (struct cxx_state){0});
    cc__event(panic_ends, p->stopped, b->node.fn == MARK_TRY, p->info.message);
    if (b->node.fn == MARK_TRY) {
        struct try_call *t = container_of(b, struct try_call, boundary);
        t->failed = !p->stopped;
        if (!p->stopped && t->info != NULL) *t->info = p->info;
    } else if (!p->stopped) {
        cc__report_unstopped(&p->info);
        *list = NULL; /* tells cc__upcall_fiber_ends */
    }
    cc__san_abandon();
    cc__escape_take(&b->escape, NULL); /* ESCAPE-1 */
}

/* Called through a guard, so that an exception becomes a panic. */
static void *run_deferred(void *d) {
    cc__defer_run(d);
    return NULL;
}

static CC_NORETURN void unwind(struct panic *p) {
    CCDefer **list = begin(p), *d;
    cc__event(panic, p->info.message);
    cc__probe1(panic, p->info.message);
    while (!cc__defer_is_boundary(d = take_next(list, p)))
        if (d->fn != MARK_PANIC) (void)cc__guard(d, NULL, run_deferred); /* else: a panic that this one replaces */
    leave_to(list, p, container_of(d, struct boundary, node));
}

static void describe(CCPanic *info, const void *back, const char *fmt, va_list args) {
    info->message[0] = '\0';
    if (fmt != NULL) (void)vsnprintf(info->message, sizeof info->message, fmt, args);
    cc__report_describe(info, back);
}

void cc_panic(const char *fmt, ...) {
    struct panic p = {.stopped = false};
    va_list args;
    va_start(args, fmt);
    describe(&p.info, __builtin_return_address(0), fmt, args);
    va_end(args);
    unwind(&p);
}

void cc__panic_exception(const char *text) {
    struct panic p = {.stopped = false};
    (void)snprintf(p.info.message, sizeof p.info.message, "%s", text);
    cc__report_describe(&p.info, NULL);
    unwind(&p);
}

void cc_panic_fatal(const char *fmt, ...) {
    CCPanic info;
    va_list args;
    va_start(args, fmt);
    describe(&info, __builtin_return_address(0), fmt, args);
    va_end(args);
    cc__report_fatal(&info, "");
}

bool cc_recover(CCPanic *info) {
    CCDefer *d = *cc__defer_mark();
    if (d == NULL || d->fn != MARK_PANIC || panic_of(d)->stopped) return false;
    panic_of(d)->stopped = true;
    cc__event(panic_stopped, panic_of(d)->info.message);
    if (info != NULL) *info = panic_of(d)->info;
    return true;
}

/* ---- protected calls ---- */

struct call {
    CCTaskFn task; /* or */
    CCDeferFn fn;
    void *arg;
};

/* Functions that cc_defer added in a protected call run inside it: they may panic too. */
static void *call(void *arg) {
    struct call *c = arg;
    CCDefer **list = cc__defer_list(), *boundary = *list;
    void *result = NULL;
    if (c->task != NULL)
        result = c->task(c->arg);
    else
        c->fn(c->arg);
    cc__defer_run_all(list, boundary);
    return result;
}

static int run_try(struct call *c, void **result, CCPanic *info) {
    CCDefer **list = cc__defer_list(), **mark = cc__defer_mark(), *outer = *mark;
    struct try_call t;
    t.cxx = cc__cxx_state(cc__cxx_here());
    t.info = info;
    t.failed = false;
    t.boundary.node = (CCDefer){.next = *list, .fn = MARK_TRY};
    *list = *mark = &t.boundary.node;
    void *returned = cc__escape_call(&t.boundary.escape, call, c);
    *list = t.boundary.node.next;
    *mark = outer;
    if (result != NULL) *result = returned;
    return t.failed ? ENOTRECOVERABLE : 0;
}

int cc__panic_try(CCTaskFn fn, void *arg, void **result, CCPanic *info) {
    return run_try(&(struct call){.task = fn, .arg = arg}, result, info);
}

int cc_try(CCDeferFn fn, void *arg, CCPanic *info) {
    return fn != NULL ? run_try(&(struct call){.fn = fn, .arg = arg}, NULL, info) : EINVAL;
}

/* ---- the fiber's own protected call ---- */

struct rest {
    struct fiber_cold *cold;
    struct boundary *base;
};

static void *finish(void *arg) {
    struct rest *rest = arg;
    do {
        cc__defer_run_all(&rest->cold->deferred, &rest->base->node);
    } while (rest->cold->extra != NULL && cc__upcall_locals_destroy(rest->cold));
    return rest;
}

void cc__upcall_fiber_ends(struct fiber *f, struct fiber_cold *cold, struct boundary *base, void *result) {
    struct rest rest = {cold, base};
    int status = 0;
    for (;;) {
        if (cold->deferred == NULL) { /* an unrecovered panic */
            status = ENOTRECOVERABLE;
            cold->deferred = &base->node;
        }
        /* The boundary's call is over, so it can be reused for the next one. */
        if (cc__escape_call(&base->escape, finish, &rest) != NULL) break;
        result = NULL; /* there was a panic, recovered or not */
    }
    if (cold->extra != NULL) cc__upcall_locals_free(cold);
    f->outcome.result = status == 0 ? result : NULL;
    f->outcome.status = status;
}
