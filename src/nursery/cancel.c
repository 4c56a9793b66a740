/* cancel.c - cancellation queries, shields, and deadline blocks. */
#include "base/fatal.h"
#include "nursery/scope.h"
#include "os/clock.h"
#include "sim/sim.h"

#include <errno.h>

/* A loop that does not wait may occupy the very worker that would fire its deadline, so it reads the clock itself. */
static void check_deadlines(struct scope *s) {
    uint64_t earliest = s != NULL ? cc__scope_deadline(s) : UINT64_MAX, now;
    if (earliest == UINT64_MAX || (now = cc__clock_look()) < earliest) return;
    for (; s != NULL; s = s->parent)
        if (now >= cc__get(&s->deadline) && !cc__get(&s->owner_cancelled)) cc__scope_expire(s, now);
}

/* A shutdown ends every wait of every fiber, shielded or not. */
static bool shuts_down(void) {
    return unlikely(cc__get(&cc__sched.spawns) & SPAWNS_REFUSED) && cc_in_fiber();
}

/* Not cancelled yet, and an expired deadline would change that. */
static bool may_be_due(uintptr_t word) {
    return (word & (CANCEL_SCOPE | CANCEL_SHIELD | CANCEL_HELD)) == 0 && !cc__cancel_holds(word);
}

bool cc_cancelled(void) {
    if (cc__cancel_word() == NULL) return false;
    cc__sim_point(); /* a polling loop has to end in a simulation too, where nothing runs in parallel */
    if (shuts_down()) return true;
    _Atomic uintptr_t *own = cc__cancel_word();
    uintptr_t word = cc__get_acquire(own); /* pairs with the mark */
    if (word == 0) return false;
    if (may_be_due(word)) {
        check_deadlines(cc__scope_of(word));
        word = cc__get_acquire(own); /* as above */
    }
    return cc__cancel_holds(word);
}

int cc_check_cancel(void) {
    return cc_cancelled() ? ECANCELED : 0;
}

/* ---- as an arm of a select ---- */

/* As cc_cancelled. Expiring a deadline takes locks, and so does computing the earliest one for the first time. */
static int look(struct worker *w, const CCCase *c) {
    (void)c;
    int no = w != NULL ? LOOK_BIASED : LOOK_NOT_READY;
    _Atomic uintptr_t *own = cc__cancel_word();
    uintptr_t word = own != NULL ? cc__get_acquire(own) : 0; /* pairs with the mark */
    if (unlikely(cc__cancel_holds(word) || shuts_down())) return LOOK_READY;
    if (cc__scope_of(word) == NULL || !may_be_due(word)) return no;
    if (w != NULL) return cc__scope_may_be_late(cc__scope_of(word)) ? LOOK_OUTSIDE : no;
    check_deadlines(cc__scope_of(word));
    return cc__cancel_holds(cc__get_acquire(own)) ? LOOK_READY : no; /* as above */
}

static int pass(const CCCase *c) {
    (void)c;
    return 0;
}

static unsigned prepare(struct arm *arm, const CCCase *c) {
    (void)arm, (void)c;
    return WAKE_CANCEL;
}

const struct arm_ops cc__arm_cancel = {.look = look, .try = pass, .prepare = prepare};

/* ---- queries ---- */

int cc_cancel_reason(CCError *reason) {
    if (reason == NULL) return EINVAL;
    _Atomic uintptr_t *own = cc__cancel_word();
    uintptr_t word = own != NULL ? cc__get_acquire(own) : 0;
    struct scope *s = cc__scope_of(word);
    if (s != NULL && cc__get(&s->cancelled)) { /* hidden by a shield or not */
        cc__lock_take(&s->lock);
        *reason = s->reason;
        cc__lock_release(&s->lock);
        return 0;
    }
    if ((word & CANCEL_TASK) != 0)
        *reason = (CCError){.code = ECANCELED, .text = "the task was cancelled by cc_task_cancel"};
    else if (shuts_down())
        *reason = (CCError){.code = ECANCELED, .text = "the runtime shuts down"};
    else
        return ESRCH;
    return 0;
}

CCDeadline cc_deadline(void) {
    struct scope *s = cc__scope_current();
    return s != NULL ? (CCDeadline){cc__scope_deadline(s)} : CC_FOREVER;
}

/* ---- shields ---- */

bool cc_shield_begin(void) {
    _Atomic uintptr_t *own = cc__cancel_word();
    if (own == NULL) return false;
    struct scope *s = cc__scope_of(cc__get(own));
    if (s == NULL) return cc__cancel_shield(own);
    /* Under the lock: the end of a grace period either finds the shield and clears it, or is seen here. */
    cc__lock_take(&s->lock);
    bool begun = !s->pierced && cc__cancel_shield(own);
    cc__lock_release(&s->lock);
    return begun;
}

void cc_shield_end(bool begun) {
    _Atomic uintptr_t *own = cc__cancel_word();
    if (begun && own != NULL) cc__cancel_unshield(own);
}

static void end_shield(void *shield) {
    cc_shield_end(((CCShield *)shield)->begun);
}

CCShield *cc_shield_enter(CCShield *shield) {
    shield->begun = cc_shield_begin();
    shield->deferred = (CCDefer){.fn = end_shield, .arg = shield};
    (void)cc_defer_enter(&shield->deferred);
    return shield;
}

void cc_shield_leave(CCShield *shield) {
    cc_defer_leave(&shield->deferred);
}

/* ---- deadline blocks ---- */

static void end_deadline(void *scope) {
    CCDeadlineScope *block = scope;
    struct scope *s = block->scope;
    if (cc__scope_current() != s)
        cc__fatal("CC_WITH_DEADLINE: the block is left while one inside it is still open; blocks end in the reverse "
                  "order of their beginning");
    /* By the clock: the timer may not have fired yet. */
    bool late = block->fired != NULL && cc__clock_look() >= cc__get(&s->deadline);
    cc__scope_leave(s);
    cc__scope_settle(s);
    if (block->fired != NULL) *block->fired = late || s->expired;
    cc__scope_destroy(s);
    cc__scope_free(s);
}

CCDeadlineScope *cc_deadline_enter_ex(CCDeadlineScope *scope, CCDeadline deadline, bool *fired) {
    if (fired != NULL) *fired = false;
    scope->fired = fired;
    struct scope *s = cc__scope_alloc(sizeof *s);
    if (s == NULL) cc__fatal("CC_WITH_DEADLINE: no memory for a scope");
    cc__scope_init(s, cc__scope_current(), UINT64_MAX);
    uint64_t until = cc__wait_deadline(deadline);
    int rc = until != UINT64_MAX ? cc__scope_set_deadline(s, until) : 0;
    if (rc == ECANCELED)
        cc__scope_cancel_for_shutdown(s);
    else if (rc != 0)
        cc__fatal("CC_WITH_DEADLINE: %s", rc == ENOMEM ? "no memory for a timer" : "the runtime does not start");
    cc__scope_enter(s);
    scope->scope = s;
    scope->deferred = (CCDefer){.fn = end_deadline, .arg = scope};
    (void)cc_defer_enter(&scope->deferred);
    return scope;
}

CCDeadlineScope *cc_deadline_enter(CCDeadlineScope *scope, CCDeadline deadline) {
    return cc_deadline_enter_ex(scope, deadline, NULL);
}

void cc_deadline_leave(CCDeadlineScope *scope) {
    cc_defer_leave(&scope->deferred);
}
