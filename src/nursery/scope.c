/* scope.c - entering, leaving and cancelling scopes. */
#include "nursery/scope.h"

#include "base/fatal.h"
#include "base/mem.h"
#include "os/clock.h"
#include "sched/idle.h"
#include "trace/recorder.h"
#include "trace/trace.h"
#include "wait/blocked.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct scope *below(struct link *link) {
    return container_of(link, struct scope, beside);
}

static struct fiber *member(struct link *link) {
    return container_of(link, struct fiber_cold, member)->fiber;
}

static struct fiber_cold *cold_of(struct fiber *self) {
    return cc__get(&cc__get(&self->stack)->cold);
}

struct scope *cc__scope_current(void) {
    _Atomic uintptr_t *own = cc__cancel_word();
    return own != NULL ? cc__scope_of(cc__get(own)) : NULL;
}

bool cc__scope_below(const struct scope *s, const struct scope *above) {
    while (s != NULL && s->depth > above->depth) s = s->jump->depth >= above->depth ? s->jump : s->parent;
    return s == above;
}

/* ---- the tree ---- */

void *cc__scope_alloc(size_t size) {
    char *block = cc__mem_alloc_small(size + SCOPE_ALIGN - _Alignof(max_align_t));
    if (block == NULL) return NULL;
    struct scope *s = (struct scope *)(((uintptr_t)block + SCOPE_ALIGN - 1) & ~(uintptr_t)(SCOPE_ALIGN - 1));
    s->block = block;
    return s;
}

void cc__scope_free(struct scope *s) {
    cc__mem_free(s->block);
}

void cc__scope_init(struct scope *s, struct scope *parent, uint64_t grace_ns) {
    s->parent = parent;
    s->grace_ns = grace_ns;
    cc__set(&s->deadline, UINT64_MAX);
    cc__list_init(&s->inner);
    cc__list_init(&s->members);
    cc__list_init(&s->waiters);
    s->jump = s;
    if (parent == NULL) return;
    /* A skew-binary skip pointer: two equal jumps above are merged into one, plus this step. */
    const struct scope *j = parent->jump;
    s->depth = parent->depth + 1;
    s->jump = parent->depth - j->depth == j->depth - j->jump->depth ? j->jump : parent;
    cc__lock_take(&parent->lock);
    cc__list_push_back(&parent->inner, &s->beside);
    if (cc__get(&parent->cancelled)) { /* SCOPE-2 */
        s->reason = parent->reason;
        s->pierced = parent->pierced;
        cc__set(&s->cancelled, 1);
        cc__set(&s->owner_cancelled, 1); /* cc__scope_enter decides for an owner */
        s->grace_late = parent->grace_late;
    }
    cc__lock_release(&parent->lock);
}

void cc__scope_destroy(struct scope *s) {
    if (unlikely(!cc__list_empty(&s->inner)))
        cc__fatal("SCOPE-4: a nursery is freed, or a deadline block is left, while a nursery below it is still there");
    if (s->nursery && cc__trace_on(TRACE_RECORD)) cc__record_here(REC_SCOPE_END, 0, (uintptr_t)s, NULL);
    if (s->parent == NULL) return;
    cc__lock_take(&s->parent->lock);
    cc__list_remove(&s->beside);
    cc__lock_release(&s->parent->lock);
}

/* ---- members ---- */

/* Whether a cancellation from above is hidden from the owner: by its shield, or because it is hidden from it above
 * (SCOPE-5). Under the lock; meaningful if the parent is cancelled. */
static bool hidden(struct scope *s) {
    void *owner = cc__get(&s->owner);
    struct scope *above = s->parent;
    if (owner == NULL || s->pierced) return false;
    return s->shielded || (above != NULL && cc__get(&above->owner) == owner && !cc__get(&above->owner_cancelled));
}

/* Whether the owner has raised a shield between the parent of s, or what that is below, and s. The parent need not be
 * the scope that the owner comes from: then there are scopes of the owner in between. */
static bool is_shielded(const struct scope *s) {
    const void *owner = cc__get(&s->owner);
    const struct scope *parent = s->parent, *at = s;
    while ((at->entry & CANCEL_SHIELD) == 0) {
        at = at->outer;
        if (at == parent || at == NULL || cc__get(&at->owner) != owner) return false;
        if (parent == NULL || cc__scope_below(parent, at)) return false;
    }
    return true;
}

static bool is_cancelled_for(struct scope *s, const void *who) {
    return cc__get(cc__get(&s->owner) == who ? &s->owner_cancelled : &s->cancelled) != 0;
}

/* The caller that enters or leaves a scope. */
struct caller {
    struct fiber *fiber;       /* NULL: an OS thread */
    struct outsider *outsider; /* of an OS thread; NULL: it is in no scope yet */
};

static struct caller current_caller(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    return (struct caller){self, self == NULL ? cc__outsider() : NULL};
}

static _Atomic uintptr_t *word_of(struct caller v) {
    return v.fiber != NULL ? &v.fiber->scope : &v.outsider->scope;
}

/* Replaces the scope address in the caller's word. Its own bits stay; `shields` are set unless s is pierced. Under the
 * lock of s. */
static void set_scope(struct caller v, struct scope *s, uintptr_t shields) { /* SCOPE-3 */
    bool cancelled = s != NULL && is_cancelled_for(s, v.fiber != NULL ? (void *)v.fiber : v.outsider);
    if (s != NULL && s->pierced) shields = 0;
    if (cancelled && v.fiber != NULL) cc__cancel_adopt();
    uintptr_t word = cc__get(word_of(v)), wanted;
    do wanted = (uintptr_t)s | (word & (CANCEL_TASK | CANCEL_REPORTED)) | shields | (cancelled ? CANCEL_SCOPE : 0);
    while (!cc__cas(word_of(v), &word, wanted));
}

static void drop(struct caller v, struct scope *s) {
    if (s == NULL) return;
    cc__lock_take(&s->lock);
    if (v.fiber != NULL)
        cc__list_remove(&cold_of(v.fiber)->member);
    else
        s->inside = NULL;
    cc__lock_release(&s->lock);
}

static void add_locked(struct caller v, struct scope *s) {
    if (v.fiber != NULL)
        cc__list_push_back(&s->members, &cold_of(v.fiber)->member);
    else
        s->inside = v.outsider;
}

static const CCError passed = {.code = ETIMEDOUT, .text = "the deadline has passed"};

void cc__scope_enter(struct scope *s) {
    struct caller v = current_caller();
    if (v.fiber == NULL && v.outsider == NULL) cc__outsider_become(v.outsider = &s->outsider);
    s->outer = cc__scope_of(cc__get(word_of(v)));
    drop(v, s->outer);
    if (v.fiber != NULL) cold_of(v.fiber)->fiber = v.fiber;
    cc__lock_take(&s->lock);
    s->entry = cc__get(word_of(v)) & (CANCEL_SHIELD | CANCEL_OUTER);
    cc__set(&s->owner, v.fiber != NULL ? (void *)v.fiber : v.outsider);
    s->shielded = is_shielded(s);
    /* A later canceller takes this lock after us and finds the owner; an earlier one has marked children only. */
    bool hides = hidden(s);
    cc__set(&s->owner_cancelled, cc__get(&s->cancelled) && (s->own || !hides));
    if (unlikely(s->own && s->expired && hides)) s->reason = passed; /* the first that its owner sees */
    add_locked(v, s);
    set_scope(v, s, s->entry != 0 ? CANCEL_OUTER : 0);
    bool late = s->grace_late && v.fiber != NULL;
    cc__lock_release(&s->lock);
    if (unlikely(late)) cc__scope_begin_late_grace(s);
}

void cc__scope_leave(struct scope *s) {
    struct caller v = current_caller();
    struct scope *outer = s->outer;
    uintptr_t shields = s->entry; /* restored even if the end of a grace period cleared them inside */
    drop(v, s);
    cc__set(&s->owner, NULL);
    if (outer == NULL) {
        set_scope(v, NULL, shields);
        if (v.fiber == NULL) cc__outsider_become(NULL);
        return;
    }
    cc__lock_take(&outer->lock);
    add_locked(v, outer);
    set_scope(v, outer, shields);
    cc__lock_release(&outer->lock);
}

/* ---- cancelling ---- */

CCError cc__scope_reason(int code, const char *text) {
    CCError reason = {.code = code > 0 ? code : ECANCELED};
    struct fiber *self = cc__sched_current(cc__worker());
    if (self != NULL) {
        reason.who = cc__pool_id(self);
        memcpy(reason.name, cold_of(self)->name, sizeof reason.name);
    }
    if (text != NULL) snprintf(reason.text, sizeof reason.text, "%s", text);
    return reason;
}

/* Visits `top` and all scopes below, in preorder. The lock of a scope is held until all below it have been visited
 * (SCOPE-1). If `visit` returns false, the scopes below are skipped. It goes back up by `parent`: however deep the tree
 * is, this needs neither stack nor memory. */
static void walk_down(struct scope *top, bool (*visit)(struct scope *s, void *arg), void *arg) {
    struct scope *s = top;
    cc__lock_take(&s->lock);
    for (bool deeper = visit(s, arg);; deeper = visit(s, arg)) {
        struct link *next = deeper ? cc__get(&s->inner.next) : &s->inner;
        while (next == &s->inner) {
            struct scope *done = s;
            next = cc__get(&done->beside.next);
            s = done->parent;
            cc__lock_release(&done->lock);
            if (done == top) return;
        }
        s = below(next);
        cc__lock_take(&s->lock);
    }
}

static void mark_members(struct scope *s) {
    for (struct link *l = cc__get(&s->members.next); l != &s->members; l = cc__get(&l->next))
        if (is_cancelled_for(s, member(l))) cc__cancel_mark(member(l), CANCEL_SCOPE);
    if (s->inside != NULL && is_cancelled_for(s, s->inside)) cc__or(&s->inside->scope, CANCEL_SCOPE);
}

struct marking {
    const struct scope *top;
    const CCError *reason;
    bool origin; /* the reason is top's own */
    bool inside; /* a runtime runs */
    bool marked; /* a scope was */
    bool grace;  /* a grace period begins */
};

/* First the bits, all the way down. A scope that is already cancelled has marked everything below, except an owner from
 * which that was hidden. */
static bool mark(struct scope *s, void *marking) {
    struct marking *m = marking;
    bool top = s == m->top, was = cc__get(&s->cancelled) != 0, hides = !top && hidden(s);
    if (top) s->own = true;
    if (was && (hides || cc__get(&s->owner_cancelled))) return false;
    if (!was && s->grace_ns != UINT64_MAX) m->grace = true;
    s->reason = *m->reason;
    s->origin = top && m->origin;
    s->grace_late = !m->inside;
    cc__set(&s->cancelled, 1);
    if (!hides) cc__set(&s->owner_cancelled, 1);
    mark_members(s);
    m->marked = true;
    return true;
}

/* Then, after the barrier, waiting fibers and threads are claimed. */
static bool claim(struct scope *s, void *wakes) {
    for (struct link *l = cc__get(&s->members.next); l != &s->members; l = cc__get(&l->next))
        cc__cancel_claim(member(l), wakes);
    if (s->inside != NULL) cc__blocked_cancel(s->inside);
    return true;
}

/* Without a runtime: only OS threads wait. */
static bool claim_thread(struct scope *s, void *unused) {
    (void)unused;
    if (s->inside != NULL) cc__blocked_cancel(s->inside);
    return true;
}

static void wake_all(struct scope *s) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__cancel_barrier();
    walk_down(s, claim, &wakes);
    cc__cancel_end(&wakes);
}

static void begin_grace(struct scope *s, struct worker *w);
static void keep_for_grace(struct scope *s);
static void send_grace(struct scope *s);

void cc__scope_cancel(struct scope *s, const CCError *reason, bool origin) {
    struct worker *w = cc__worker();
    /* Without a runtime there are no fibers to wake; the bits are for later ones. A runtime that is about to stop may
     * still run on, with its fibers. */
    bool inside = w != NULL || cc__upcall_enter_locked();
    struct marking m = {.top = s, .reason = reason, .origin = origin, .inside = inside};
    if (inside) cc__cancel_begin();
    walk_down(s, mark, &m);
    if (m.marked && !inside) {
        inside = cc__upcall_enter_locked(); /* it may have started before the bits were set: fibers may wait */
        if (inside)
            cc__cancel_begin();
        else
            walk_down(s, claim_thread, NULL);
    }
    if (m.marked && inside) {
        cc__event(cancel, s, reason->code, reason->text);
        cc__probe3(cancel, s, reason->code, reason->text);
        bool sends = m.grace && w == NULL;
        if (sends) keep_for_grace(s); /* before a woken fiber can end the scope */
        wake_all(s);
        if (sends)
            send_grace(s);
        else if (m.grace)
            begin_grace(s, w);
    }
    if (inside && w == NULL) cc__upcall_leave();
}

void cc__scope_cancel_for_shutdown(struct scope *s) {
    CCError reason = cc__scope_reason(ECANCELED, "the runtime shuts down");
    cc__scope_cancel(s, &reason, true);
}

void cc__scope_wake_locked(struct scope *s, struct wakes *wakes) {
    while (!cc__list_empty(&s->waiters)) {
        struct arm *arm = container_of(cc__list_pop_front(&s->waiters), struct arm, link);
        (void)cc__arm_claim_locked(wakes, arm, 0);
    }
}

int cc__scope_wait_locked(struct scope *s, uint64_t deadline) {
    struct waiter waiter;
    int rc = cc__waiter_init(&waiter, cc__worker(), deadline);
    if (rc != 0) return rc;
    struct arm arm = {.waiter = &waiter, .linked = true};
    cc__list_push_back(&s->waiters, &arm.link);
    enum wake_reason reason = cc__wait_locked(&waiter, &s->lock, (struct wait_what){PARK_NURSERY, s});
    cc__lock_take(&s->lock);
    if (reason == WAKE_OBJECT) return 0;
    if (arm.linked) cc__list_remove(&arm.link);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}

/* ---- deadlines and grace periods ---- */

void cc__scope_expire(struct scope *s, uint64_t now) {
    cc__lock_take(&s->lock);
    bool over = now >= cc__get(&s->deadline); /* it may just have been removed or postponed */
    if (over) s->expired = true;
    cc__lock_release(&s->lock);
    if (over) cc__scope_cancel(s, &passed, true);
}

void cc__scope_expire_if_due(struct scope *s) {
    uint64_t deadline = cc__get(&s->deadline), now;
    if (deadline != UINT64_MAX && !cc__get(&s->cancelled) && (now = cc__clock_now()) >= deadline)
        cc__scope_expire(s, now);
}

/* A deadline seldom changes once scopes are below it: a change invalidates the cached values of all scopes. */
static _Atomic uint64_t epoch = 1;

void cc__scope_deadline_changed(void) {
    (void)cc__add_seq(&epoch, 1);
}

static bool remembered(struct scope *s, uint64_t now, uint64_t *earliest) {
    if (cc__get_acquire(&s->earliest_epoch) != now) return false; /* pairs with remember */
    *earliest = cc__get_acquire(&s->earliest);                    /* ordered before the load below */
    return cc__get(&s->earliest_epoch) == now;
}

static void remember(struct scope *s, uint64_t now, uint64_t earliest) {
    cc__lock_take(&s->lock);
    cc__set(&s->earliest_epoch, 0);
    cc__set_release(&s->earliest, earliest); /* pairs with remembered: the 0 above is visible before it */
    cc__set_release(&s->earliest_epoch, now);
    cc__lock_release(&s->lock);
}

uint64_t cc__scope_deadline(struct scope *s) {
    uint64_t now = cc__get_acquire(&epoch), earliest = UINT64_MAX, above; /* pairs with cc__scope_deadline_changed */
    if (likely(remembered(s, now, &earliest))) return earliest;
    earliest = UINT64_MAX;
    for (struct scope *at = s; at != NULL; at = cc__scope_around(at)) {
        bool known = at != s && remembered(at, now, &above);
        uint64_t own = known ? above : cc__get(&at->deadline);
        if (own < earliest) earliest = own;
        if (known) break;
    }
    remember(s, now, earliest);
    return earliest;
}

bool cc__scope_may_be_late(struct scope *s) {
    uint64_t earliest;
    if (unlikely(!remembered(s, cc__get_acquire(&epoch), &earliest))) return true; /* pairs as above */
    return earliest != UINT64_MAX && cc__clock_now() >= earliest;
}

/* Clears shields, here and below. */
static bool pierce(struct scope *s, void *arg) {
    (void)arg;
    s->pierced = true;
    cc__set(&s->owner_cancelled, 1); /* s is cancelled */
    for (struct link *l = cc__get(&s->members.next); l != &s->members; l = cc__get(&l->next))
        cc__cancel_pierce(&member(l)->scope);
    if (s->inside != NULL) cc__cancel_pierce(&s->inside->scope);
    mark_members(s);
    return true;
}

void cc__scope_pierce(struct scope *s) {
    cc__cancel_begin();
    walk_down(s, pierce, NULL);
    wake_all(s);
}

/* The body of a timed spawn. by_timer: false if it was started by a shutdown, which ends all waits. */
static void fire(struct scope *s, bool grace, bool by_timer) {
    if (grace) {
        cc__scope_pierce(s);
    } else if (by_timer) {
        cc__scope_expire(s, UINT64_MAX);
    } else {
        cc__scope_cancel_for_shutdown(s);
    }
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&s->lock);
    *(grace ? &s->grace_armed : &s->armed) = false;
    cc__scope_wake_locked(s, &wakes);
    cc__lock_release(&s->lock); /* the scope may be freed from here on */
    if (cc__wakes_any(&wakes)) cc__wakes_flush(&wakes);
}

static void *expire_fiber(void *scope) {
    fire(scope, false, cc__word_reason(cc__get(&cc__sched_current(cc__worker())->word)) == WAKE_TIMER);
    return NULL;
}

static void *end_grace_fiber(void *scope) {
    fire(scope, true, true);
    return NULL;
}

static void *begin_grace_fiber(void *scope);

bool cc__scope_is_alarm(CCTaskFn fn) {
    return fn == expire_fiber || fn == end_grace_fiber || fn == begin_grace_fiber;
}

bool cc__scope_fired_unstarted(struct fiber *f) {
    if (!cc__scope_is_alarm(f->fn)) return false;
    if (f->fn == begin_grace_fiber)
        (void)begin_grace_fiber(cc__scope_of(cc__get(&f->scope)));
    else
        fire(cc__scope_of(cc__get(&f->scope)), f->fn == end_grace_fiber,
             cc__word_reason(cc__get(&f->word)) == WAKE_TIMER);
    return true;
}

/* Only workers arm timers. Under the lock: a thread that reads `grace_armed` finds the timed spawn it stands for. */
static bool arm_grace(struct scope *s, void *worker) {
    if (s->grace_ns == UINT64_MAX || s->grace_armed || s->pierced || s->ending) return true;
    uint64_t when = cc_after_ns(s->grace_ns).ns;
    /* Without memory for a timer, shields hold for ever: what they protect matters more than the grace period. */
    s->grace_armed = cc__timed_spawn_arm(worker, &s->grace, when, end_grace_fiber, s, (uintptr_t)s) == 0;
    return true;
}

static bool disarm_deadline_locked(struct scope *s) {
    if (s->armed && cc__timed_spawn_disarm(&s->expiry)) s->armed = false;
    return !s->armed;
}

static int arm_deadline_locked(struct worker *w, struct scope *s, uint64_t deadline) {
    /* First what can fail: until then the old deadline stays in force. The new one reuses its record. */
    if (deadline != UINT64_MAX && !cc__timed_spawn_prepare(w)) return ENOMEM;
    if (s->expired || s->ending || !disarm_deadline_locked(s)) return ETIMEDOUT;
    int rc = 0;
    if (deadline != UINT64_MAX) rc = cc__timed_spawn_arm(w, &s->expiry, deadline, expire_fiber, s, (uintptr_t)s);
    s->armed = rc == 0 && deadline != UINT64_MAX;
    cc__set(&s->deadline, rc == 0 ? deadline : UINT64_MAX);
    return rc;
}

struct arming {
    struct scope *scope;
    uint64_t deadline;
    int rc;
};

static void *arm(void *arg) {
    struct arming *a = arg;
    struct worker *w = cc__worker();
    cc__lock_take(&a->scope->lock);
    a->rc = arm_deadline_locked(w, a->scope, a->deadline);
    cc__lock_release(&a->scope->lock);
    cc__idle_armed(); /* this worker may run on: a sleeping one has to watch the timer */
    return NULL;
}

/* A thread that is not a worker runs a fiber for it. */
static int arm_somewhere(struct arming *a) {
    if (cc__worker() != NULL) {
        (void)arm(a);
        return a->rc;
    }
    bool held = cc__cancel_hold(); /* also for a cancelled caller */
    int rc = cc_run(arm, a, NULL);
    cc__cancel_unhold(held);
    return rc != 0 ? rc : a->rc;
}

static void begin_grace(struct scope *s, struct worker *w) {
    walk_down(s, arm_grace, w); /* here and below */
    cc__idle_armed();           /* as in arm */
}

/* A thread that is not a worker starts a fiber for that too, but does not wait for it: all workers may be blocked, even
 * by the caller. The fiber keeps the scope alive (SCOPE-4). */
static void keep_for_grace(struct scope *s) {
    cc__lock_take(&s->lock);
    s->sent++;
    cc__lock_release(&s->lock);
}

static void let_go(struct scope *s) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&s->lock);
    s->sent--;
    cc__scope_wake_locked(s, &wakes);
    cc__lock_release(&s->lock); /* the scope may be freed from here on */
    if (cc__wakes_any(&wakes)) cc__wakes_flush(&wakes);
}

static void *begin_grace_fiber(void *scope) {
    begin_grace(scope, cc__worker());
    let_go(scope);
    return NULL;
}

/* Without memory for a fiber, shields hold for ever, as without a timer. */
static void send_grace(struct scope *s) {
    if (cc__upcall_spawn_in((uintptr_t)s, NULL, begin_grace_fiber, s, NULL, NULL) != 0) let_go(s);
}

void cc__scope_begin_grace(struct scope *s) {
    struct worker *w = cc__worker();
    if (w != NULL) {
        begin_grace(s, w);
    } else {
        keep_for_grace(s);
        send_grace(s);
    }
}

void cc__scope_begin_late_grace(struct scope *s) {
    struct worker *w = cc__worker();
    for (; s != NULL; s = s->parent) {
        cc__lock_take(&s->lock);
        if (s->grace_late) (void)arm_grace(s, w);
        s->grace_late = false;
        cc__lock_release(&s->lock);
    }
    cc__idle_armed();
}

int cc__scope_set_deadline(struct scope *s, uint64_t deadline) {
    struct arming a = {.scope = s, .deadline = deadline};
    int rc = arm_somewhere(&a);
    if (rc == 0) cc__scope_expire_if_due(s);
    return rc;
}

/* A cancellation from above may arrive until the scope leaves its parent's list: `ending` keeps it from arming. */
bool cc__scope_disarm_locked(struct scope *s) {
    s->ending = true;
    if (s->grace_armed && cc__timed_spawn_disarm(&s->grace)) s->grace_armed = false;
    return disarm_deadline_locked(s) && !s->grace_armed && s->sent == 0;
}

void cc__scope_settle(struct scope *s) {
    bool held = cc__cancel_hold();
    cc__lock_take(&s->lock);
    while (!cc__scope_disarm_locked(s)) (void)cc__scope_wait_locked(s, WAIT_FOREVER); /* a shutdown may end the wait */
    cc__lock_release(&s->lock);
    cc__cancel_unhold(held);
}
