/* nursery.c - creating nurseries, waiting for them, and ending them. */
#include "nursery/nursery.h"

#include "base/error.h"
#include "base/fatal.h"
#include "base/utf8.h"
#include "os/thread.h"
#include "sim/sim.h"
#include "sync/freed.h"
#include "trace/recorder.h"
#include "trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- creating ---- */

static struct freed freed; /* to report a second cc_nursery_free */

static bool valid(const CCNurseryConfig *c) {
    if ((c->mode & ~(CC_NURSERY_COLLECT | CC_NURSERY_KEEP_GOING)) != 0) return false;
    return !(c->root && c->parent != NULL) && !cc__reserved_used(c);
}

static int create(const CCNurseryConfig *config, CCNursery **nursery) {
    if (!valid(config)) return EINVAL;
    CCNursery *n = cc__scope_alloc(sizeof *n);
    if (n == NULL) return ENOMEM;
    cc__freed_unmark(&freed, n);
    struct scope *parent = config->parent != NULL ? &config->parent->scope : config->root ? NULL : cc__scope_current();
    uint64_t grace = config->grace_ms;
    n->mode = config->mode;
    n->result = config->result;
    n->close_end = &n->closing;
    if (config->name != NULL) {
        snprintf(n->name, sizeof n->name, "%s", config->name);
        cc__utf8_cut(n->name);
    }
    cc__scope_init(&n->scope, parent, grace == 0 || grace > UINT64_MAX / 1000000 ? UINT64_MAX : grace * 1000000);
    n->scope.nursery = true;
    uint64_t deadline = cc__wait_deadline(config->deadline);
    int rc = deadline != UINT64_MAX ? cc__scope_set_deadline(&n->scope, deadline) : 0;
    if (rc != 0) {
        cc__scope_settle(&n->scope); /* whatever the error was, no timer refers to the scope after this */
        cc__scope_destroy(&n->scope);
        cc__scope_free(&n->scope);
        return rc;
    }
    if (unlikely(cc__get(&n->scope.cancelled)) && n->scope.grace_ns != UINT64_MAX) cc__scope_begin_grace(&n->scope);
    if (cc__trace_on(TRACE_RECORD)) cc__record_scope(&n->scope, parent, n->name);
    *nursery = n;
    return 0;
}

int cc__cancel_nursery(const CCNurseryConfig *config, CCNursery **n) {
    _Atomic uintptr_t *own = cc__cancel_word();
    CCNurseryConfig settings = *config;
    settings.root = own != NULL && cc__cancel_hides(cc__get(own));
    int rc = create(&settings, n);
    if (rc == 0 && settings.root) (*n)->scope.seen = cc__scope_current();
    return rc;
}

CCNursery *cc_nursery_create_ex(const CCNurseryConfig *config) {
    static const CCNurseryConfig defaults;
    CCNursery *n = NULL;
    int rc = create(config != NULL ? config : &defaults, &n);
    if (rc != 0) cc__errno_set(rc);
    return n;
}

CCNursery *cc_nursery_create(CCNursery *parent) {
    CCNurseryConfig config = {.parent = parent};
    return cc_nursery_create_ex(&config);
}

/* ---- waiting ---- */

bool cc__nursery_is_child(const CCNursery *n) {
    struct fiber *self = cc__sched_current(cc__worker());
    return self != NULL && cc__scope_below(cc__get(&cc__get(&self->stack)->cold)->base, &n->scope);
}

/* The fiber, or the OS thread with the top bit set. */
static uint64_t caller(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    return self != NULL ? cc__pool_id(self) : UINT64_C(1) << 63 | (unsigned)cc__thread_id();
}

/* EXIT-1  One caller at a time runs the exits (hooks and channels); other waiters return after that. So their order
 *         is kept, and they are done when a wait returns. A hook that waits for the nursery does not wait for itself.
 */
static bool others_exit_locked(const CCNursery *n) {
    return unlikely(n->exiting != 0) && n->exiting != caller();
}

/* 0: no child is left, and no other caller runs the exits. ETIMEDOUT, ECANCELED, ENOMEM. The lock is released only
 * while the caller waits. */
static int wait_for_children_locked(CCNursery *n, uint64_t deadline) {
    struct scope *s = &n->scope;
    int rc = 0;
    while ((s->children > 0 || others_exit_locked(n)) && rc == 0) {
        cc__event(nursery_wait, s, s->children);
        rc = cc__scope_wait_locked(s, deadline); /* retakes the lock: after the last child's unlock (CHILD-1) */
        cc__event(nursery_woken, s, rc == 0 ? WAKE_OBJECT : rc == ETIMEDOUT ? WAKE_TIMER : WAKE_CANCEL);
    }
    return rc;
}

/* The caller's wait was cancelled: cancels the nursery with the same reason and waits regardless. */
static void wait_regardless_locked(CCNursery *n) {
    cc__lock_release(&n->scope.lock);
    CCError reason;
    if (cc_cancel_reason(&reason) != 0) reason = cc__scope_reason(ECANCELED, "the runtime shuts down");
    cc__scope_cancel(&n->scope, &reason, false);
    bool held = cc__cancel_hold();
    cc__lock_take(&n->scope.lock);
    while (wait_for_children_locked(n, WAIT_FOREVER) != 0) {
    }
    cc__cancel_unhold(held);
}

static void end_exits(void *nursery) {
    CCNursery *n = nursery;
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&n->scope.lock);
    n->exiting = 0;
    cc__scope_wake_locked(&n->scope, &wakes);
    cc__lock_release(&n->scope.lock);
    if (cc__wakes_any(&wakes)) cc__wakes_flush(&wakes);
}

/* A hook may panic, or throw a C++ exception. */
static void run_exits(CCNursery *n, CCDeferFn end) {
    CC_DEFER(end, n);
    cc__nursery_run_exits(n);
}

/* False: there are none. Releases the lock meanwhile. */
static bool run_exits_locked(CCNursery *n) { /* EXIT-1 */
    if (n->hooks == NULL && n->closing == NULL) return false;
    bool first = n->exiting == 0; /* else a hook calls this */
    if (first) n->exiting = caller();
    cc__lock_release(&n->scope.lock);
    run_exits(n, first ? end_exits : NULL);
    cc__lock_take(&n->scope.lock);
    return true;
}

/* Until there is neither: a hook may start children, and these may register hooks. */
static void end_locked(CCNursery *n) {
    for (;;) {
        if (wait_for_children_locked(n, WAIT_FOREVER) != 0) wait_regardless_locked(n);
        if (!run_exits_locked(n)) return;
    }
}

/* A reason from above is reported as ECANCELED: a caller that passed its code on would turn a cancellation into a
 * failure. */
static int outcome_locked(CCNursery *n) {
    n->reported = n->code != 0;
    if (n->code != 0 || !cc__get(&n->scope.cancelled)) return n->code;
    return n->scope.origin ? n->scope.reason.code : ECANCELED;
}

int cc_nursery_wait(CCNursery *n) {
    if (n == NULL) return EINVAL;
    if (cc__nursery_is_child(n)) return EDEADLK;
    cc__scope_expire_if_due(&n->scope);
    cc__lock_take(&n->scope.lock);
    end_locked(n);
    int code = outcome_locked(n);
    cc__lock_release(&n->scope.lock);
    return code;
}

int cc_nursery_wait_until(CCNursery *n, CCDeadline deadline) {
    if (n == NULL) return EINVAL;
    if (cc__nursery_is_child(n)) return EDEADLK;
    uint64_t until = cc__wait_deadline(deadline);
    cc__scope_expire_if_due(&n->scope);
    cc__lock_take(&n->scope.lock);
    int rc;
    while ((rc = wait_for_children_locked(n, until)) == 0 && run_exits_locked(n)) {
    }
    int code = rc != 0 ? rc : outcome_locked(n);
    cc__lock_release(&n->scope.lock);
    return code;
}

/* ---- ending ---- */

/* The first failure of a child. False: there is none, and *error is unchanged. */
static bool failure_locked(const CCNursery *n, CCError *error) {
    if (likely(n->code == 0)) return false;
    *error = n->first != NULL ? n->first->error : (CCError){.code = 0};
    error->code = n->code;
    return true;
}

/* settled: neither the deadline nor a grace period can fire any more. */
static void destroy(CCNursery *n, bool settled) {
    if (!settled) cc__scope_settle(&n->scope);
    cc__scope_destroy(&n->scope);
    cc__nursery_free_all(n);
    cc__freed_mark(&freed, n);
    cc__scope_free(&n->scope);
}

/* " 'name'"; "" for a nursery that has none. */
struct quoted {
    char text[CC_FIBER_NAME_MAX + 4];
};
static CC_COLD struct quoted quoted(const char *name) {
    struct quoted q = {""};
    if (name[0] != '\0') snprintf(q.text, sizeof q.text, " '%s'", name);
    return q;
}

/* For a failure that no enclosing nursery takes. It is a panic only where none is in progress and the caller is not
 * clean-up code. */
static CC_COLD void warn_unreported(const char *what, const char *name, const char *without, const CCError *error,
                                    bool panic) {
    char text[CC_PANIC_MESSAGE_MAX + CC_ERROR_TEXT_MAX];
    snprintf(text, sizeof text, "%s%s has failed, without %s and without a nursery around it: %s (%d)%s%s%s%s", what,
             quoted(name).text, without, cc__error_name(error->code), error->code, error->name[0] != '\0' ? " in" : "",
             quoted(error->name).text, error->text[0] != '\0' ? ": " : "", error->text);
    if (panic) cc_panic("%s", text);
    cc__warn("%s", text);
}

int cc_nursery_free(CCNursery *n) {
    if (n == NULL) return 0;
    if (unlikely(cc__freed_is(&freed, n)))
        cc__fatal("cc_nursery_free: the nursery %p has been freed already", (void *)n);
    if (cc__nursery_is_child(n)) return EDEADLK;
    if (n->deferred.fn != NULL)
        cc__fatal("cc_nursery_free: the nursery%s belongs to a CC_NURSERY block, which frees it when it is left",
                  quoted(n->name).text);
    cc__lock_take(&n->scope.lock);
    if (unlikely(n->exiting != 0) && n->exiting == caller()) { /* a hook, whose caller still uses the nursery */
        cc__lock_release(&n->scope.lock);
        return EDEADLK;
    }
    if (n->scope.children > 0) {
        cc__lock_release(&n->scope.lock);
        (void)cc_nursery_cancel_with(n, ECANCELED, "the nursery is freed");
        cc__lock_take(&n->scope.lock);
    }
    end_locked(n);
    CCError error;
    bool failed = !n->reported && failure_locked(n, &error), settled = cc__scope_disarm_locked(&n->scope);
    cc__lock_release(&n->scope.lock);
    if (unlikely(failed) && !cc__nursery_pass_on(&n->scope, &error))
        warn_unreported("nursery", n->name, "a wait", &error, false);
    destroy(n, settled);
    return 0;
}

/* ---- blocks ---- */

/* The failure of a block without .result: a child's, or else the reason it was cancelled with, if that was given here
 * and is an error. False: none. */
static bool block_failure_locked(const CCNursery *n, CCError *error) {
    if (failure_locked(n, error)) return true;
    if (likely(!cc__get(&n->scope.cancelled)) || !n->scope.origin || n->scope.reason.code == ECANCELED) return false;
    *error = n->scope.reason;
    return true;
}

/* A hook may panic: then this runs again as a deferred call of that panic, for the remaining exits and the end. */
static void end_outside(void *nursery) {
    CCNursery *n = nursery;
    bool panics = !n->left;
    n->left = false;
    n->deferred = (CCDefer){.fn = end_outside, .arg = n};
    (void)cc_defer_enter(&n->deferred);
    cc__scope_expire_if_due(&n->scope);
    cc__lock_take(&n->scope.lock);
    end_locked(n);
    CCError error;
    char name[sizeof n->name];
    int rc = outcome_locked(n);
    bool failed = n->result == NULL && block_failure_locked(n, &error), settled = cc__scope_disarm_locked(&n->scope);
    cc__lock_release(&n->scope.lock);
    if (n->result != NULL) *n->result = rc;
    bool reported = likely(!failed) || cc__nursery_pass_on(&n->scope, &error);
    if (unlikely(!reported)) memcpy(name, n->name, sizeof name);
    n->deferred.fn = NULL;
    cc_defer_leave(&n->deferred);
    destroy(n, settled);
    if (unlikely(!reported)) warn_unreported("CC_NURSERY", name, ".result", &error, !panics);
}

/* Runs at the block's end, or when a panic unwinds through it. */
static void end_block(void *nursery) {
    CCNursery *n = nursery;
    if (!n->left) (void)cc_nursery_cancel_with(n, ECANCELED, "a panic has left the nursery's block");
    /* The waits below belong to the outer scope. */
    if (n->entered) {
        if (cc__scope_current() != &n->scope)
            cc__fatal("CC_NURSERY%s: the block is left while one inside it is still open; blocks end in the "
                      "reverse order of their beginning",
                      quoted(n->name).text);
        n->entered = false;
        cc__scope_leave(&n->scope);
    }
    end_outside(n);
}

CCNursery *cc_nursery_enter(const CCNurseryConfig *config) {
    CCNursery *n = NULL;
    int rc = create(config, &n);
    if (rc == ECANCELED) { /* the runtime shuts down: no fiber can arm the deadline */
        CCNurseryConfig without = *config;
        without.deadline = CC_FOREVER;
        rc = create(&without, &n);
        if (rc == 0) cc__scope_cancel_for_shutdown(&n->scope);
    }
    if (rc != 0) {
        if (config->result == NULL)
            cc__fatal("CC_NURSERY: %s; give it .result to go on", rc == EINVAL   ? "invalid settings"
                                                                  : rc == ENOMEM ? "no memory for a nursery"
                                                                                 : "the runtime does not start");
        *config->result = rc;
        return NULL;
    }
    n->entered = true;
    cc__scope_enter(&n->scope);
    n->deferred = (CCDefer){.fn = end_block, .arg = n};
    (void)cc_defer_enter(&n->deferred);
    return n;
}

void cc_nursery_leave(CCNursery **nursery) {
    CCNursery *n = *nursery;
    if (n == NULL) return;
    *nursery = NULL;
    n->left = true;
    cc_defer_leave(&n->deferred);
}

/* ---- cancelling and queries ---- */

int cc_nursery_cancel_with(CCNursery *n, int code, const char *text) {
    if (n == NULL || code < 0) return EINVAL;
    CCError reason = cc__scope_reason(code, text);
    cc__scope_cancel(&n->scope, &reason, true);
    cc__sim_point(); /* so that a fiber that does not wait sees it too */
    return 0;
}

int cc_nursery_cancel(CCNursery *n) {
    return cc_nursery_cancel_with(n, ECANCELED, NULL);
}

int cc_nursery_set_deadline(CCNursery *n, CCDeadline deadline) {
    if (n == NULL) return EINVAL;
    cc__scope_expire_if_due(&n->scope);
    int rc = cc__scope_set_deadline(&n->scope, cc__wait_deadline(deadline));
    cc__scope_deadline_changed();
    return rc;
}

size_t cc_nursery_children(CCNursery *n) {
    if (n == NULL) return 0;
    cc__sim_point(); /* a polling loop has to end in a simulation too */
    cc__lock_take(&n->scope.lock);
    size_t children = n->scope.children;
    cc__lock_release(&n->scope.lock);
    return children;
}

size_t cc_nursery_failures(CCNursery *n) {
    if (n == NULL) return 0;
    cc__sim_point(); /* as above */
    cc__lock_take(&n->scope.lock);
    size_t failed = n->failed;
    n->reported = n->code != 0;
    cc__lock_release(&n->scope.lock);
    return failed;
}

int cc_nursery_failure(CCNursery *n, size_t index, CCError *error) {
    if (n == NULL || error == NULL) return EINVAL;
    int rc = ESRCH;
    cc__lock_take(&n->scope.lock);
    struct failure *f = n->newest;
    while (f != NULL && f->index > index) f = f->jump->index >= index ? f->jump : f->older;
    if (f != NULL && f->index == index) {
        *error = f->error;
        rc = 0;
    }
    cc__lock_release(&n->scope.lock);
    return rc;
}
