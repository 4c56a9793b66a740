/* select.c - take what is ready; else publish all, park, one winner, unpublish all.
 *
 * First a look at every case, without locks. One of those that seem ready is drawn and done alone, under its own
 * lock: most selects end here.
 *
 * Else all objects are locked, in the order of their addresses, while the arms are polled and linked: there is
 * no moment in which one arm is visible and another is not. The locks are released after the switch. The first
 * claim wins and says which arm it came by. Then every arm is unlinked from its object.
 *
 * SELECT-1  Locks are taken in one order by everybody, each once: no deadlock, the same object twice included.
 * SELECT-2  At most one arm ends the wait: all share one waiter and one ticket.
 * SELECT-3  When select returns, no arm is on a list and no waker is about to touch one.
 * SELECT-4  A thread that is no worker and waits for a task's end is inside the runtime: the records stay until every
 *           arm is unlinked.
 */
#include <ccc/cc_select.h>

#include "base/mem.h"
#include "base/rng.h"
#include "os/clock.h"
#include "sched/upcalls.h"
#include "sim/sim.h"
#include "sync/backoff.h"
#include "trace/timing.h"
#include "trace/trace.h"
#include "wait/arm.h"
#include "wait/cancel.h"

#include <errno.h>
#include <string.h>

struct select {
    struct arm *arms;    /* of the cases that can ever be ready; `count` of them */
    struct lock **locks; /* distinct, in address order; `locked` of them */
    uint32_t count, locked;
    bool mixed;        /* it has other arms than channels, or a deadline */
    uint64_t deadline; /* the earliest of all */
    size_t at;         /* the case whose moment that is; SIZE_MAX: the select's own deadline */
    size_t cancel;     /* the case that a cancellation is; SIZE_MAX: none */
};

/* A number below n. One state a thread, which fibers of different workers share over time: hidden from the race
 * detector, and never inlined, because a fiber changes threads. */
static CC_NOINLINE CC_NO_TSAN uint32_t draw(uint32_t n) {
    static _Thread_local uint64_t state;
    if (state == 0) state = cc__sim_entropy(cc__clock_now() ^ (uintptr_t)&state);
    return (uint32_t)((cc__rng_next(&state) >> 32) * n >> 32);
}

/* Insertion: selects are short, and usually sorted from the last time round. */
static void add_lock(struct select *s, struct lock *lock) {
    uint32_t i = s->locked;
    for (; i > 0 && s->locks[i - 1] >= lock; i--)
        if (s->locks[i - 1] == lock) return;
    memmove(&s->locks[i + 1], &s->locks[i], (s->locked - i) * sizeof *s->locks);
    s->locks[i] = lock;
    s->locked++;
}

/* ---- what is ready now ---- */

/* LOOK_READY, LOOK_NOT_READY, or EINVAL. */
static int look(const CCCase *c) {
    switch (c->kind) {
    case CC_CASE_NONE:
        return LOOK_NOT_READY;
    case CC_CASE_SEND:
        return c->ch != NULL ? cc__arm_look_send(c) : LOOK_NOT_READY;
    case CC_CASE_RECV:
        return c->ch != NULL ? cc__arm_look_recv(c) : LOOK_NOT_READY;
    case CC_CASE_JOIN:
        return cc__arm_look_join(c);
    case CC_CASE_AT:
        return cc__wait_deadline(c->deadline) != WAIT_FOREVER && cc__clock_now() >= c->deadline.ns ? LOOK_READY
                                                                                                   : LOOK_NOT_READY;
    case CC_CASE_CANCEL: {
        _Atomic uintptr_t *own = cc__cancel_word();
        return own != NULL && cc__cancel_holds(cc__get_acquire(own)) ? LOOK_READY : LOOK_NOT_READY;
    }
    default:
        return EINVAL;
    }
}

/* The case's error, or ARM_WAIT: it is not ready after all. */
static int do_alone(const CCCase *c) {
    switch (c->kind) {
    case CC_CASE_SEND:
        return cc__arm_do_send(c);
    case CC_CASE_RECV:
        return cc__arm_do_recv(c);
    case CC_CASE_JOIN:
        return cc__arm_do_join(c);
    default:
        return 0; /* a moment that has come, or a cancellation */
    }
}

/* 0: a case was done. EAGAIN: none is ready. EINVAL: one is malformed, and nothing was done. */
static int take_ready(CCCase *cases, size_t n, CCSelectOrder order, size_t *chosen) {
    uint8_t ready[CC_SELECT_MAX];
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++) {
        int seen = look(&cases[i]);
        if (seen == LOOK_READY)
            ready[count++] = (uint8_t)i;
        else if (unlikely(seen != LOOK_NOT_READY))
            return seen;
    }
    /* In the order given, or in one that is drawn while it is used. */
    for (uint32_t done = 0; done < count; done++) {
        if (order == CC_SELECT_FAIR && count - done > 1) {
            uint32_t k = done + draw(count - done);
            uint8_t drawn = ready[k];
            ready[k] = ready[done];
            ready[done] = drawn;
        }
        int error = do_alone(&cases[ready[done]]);
        if (likely(error != ARM_WAIT)) return cc__case_chosen(cases, ready[done], error, chosen);
    }
    return EAGAIN;
}

/* ---- waiting ---- */

static void add_case(struct select *s, const CCCase *c, size_t index) {
    struct arm *arm = &s->arms[s->count];
    arm->fiber = NULL;
    switch (c->kind) {
    case CC_CASE_SEND:
        if (c->ch == NULL) return;
        cc__arm_send(arm, c);
        break;
    case CC_CASE_RECV:
        if (c->ch == NULL) return;
        cc__arm_recv(arm, c);
        break;
    case CC_CASE_JOIN:
        cc__arm_join(arm, c);
        s->mixed = true;
        break;
    case CC_CASE_AT:
        s->mixed = true;
        if (cc__wait_deadline(c->deadline) < s->deadline) {
            s->deadline = c->deadline.ns;
            s->at = index;
        }
        return;
    case CC_CASE_CANCEL:
        s->mixed = true;
        if (s->cancel == SIZE_MAX) s->cancel = index;
        return;
    default:
        return;
    }
    arm->linked = arm->claim_lost = arm->taken = arm->reap = false;
    arm->index = (uint32_t)index;
    add_lock(s, arm->lock);
    arm->kind = (uint8_t)c->kind;
    s->count++;
}

static void lock_all(struct select *s) {
    for (uint32_t i = 0; i < s->locked; i++) cc__lock_take(s->locks[i]);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->arms[i].ops->seize_locked != NULL) s->arms[i].ops->seize_locked(&s->arms[i]);
}

static void unlock_all(struct select *s) {
    for (uint32_t i = s->locked; i-- > 0;) cc__lock_release(s->locks[i]);
}

/* The arm that could be done at once; NULL: none. Under all locks. */
static struct arm *poll_all(struct select *s, CCSelectOrder order, struct wakes *wakes) {
    if (order == CC_SELECT_FIRST || s->count < 2) {
        for (uint32_t i = 0; i < s->count; i++)
            if (s->arms[i].ops->poll_locked(&s->arms[i], wakes)) return &s->arms[i];
        return NULL;
    }
    /* A random permutation, drawn as it is used. */
    uint8_t turn[CC_SELECT_MAX];
    for (uint32_t i = 0; i < s->count; i++) turn[i] = (uint8_t)i;
    for (uint32_t left = s->count; left > 0; left--) {
        uint32_t k = draw(left);
        struct arm *arm = &s->arms[turn[k]];
        if (arm->ops->poll_locked(arm, wakes)) return arm;
        turn[k] = turn[left - 1];
    }
    return NULL;
}

/* Every arm but the one that was served unlinks. */
static void unlink_all(struct select *s, const struct arm *served) {
    for (uint32_t i = 0; i < s->count; i++) {
        struct arm *arm = &s->arms[i];
        if (arm == served && !arm->reap) continue;
        arm->ops->unlink(arm);
    }
}

/* The arm was served; the locks are free. ARM_AGAIN: by somebody who wants us to look again. */
static int finish(CCCase *cases, struct arm *arm, size_t *chosen) {
    CCCase *c = &cases[arm->index];
    if (unlikely(arm->error == ARM_AGAIN)) return ARM_AGAIN;
    if (unlikely(arm->error == ARM_SETTLE)) arm->error = arm->ops->settle(arm);
    if (c->kind == CC_CASE_JOIN && arm->taken) c->task->id = 0;
    return cc__case_chosen(cases, arm->index, arm->error, chosen);
}

static int time_is_up(CCCase *cases, const struct select *s, size_t *chosen) {
    return s->at == SIZE_MAX ? ETIMEDOUT : cc__case_chosen(cases, s->at, 0, chosen);
}

static int park(CCCase *cases, struct select *s, size_t *chosen) {
    struct waiter waiter;
    uint32_t winner = UINT32_MAX;
    int rc = cc__waiter_init(&waiter, cc__worker(), s->deadline);
    if (rc != 0) {
        unlock_all(s);
        return rc;
    }
    if (s->count != 1) cc__set(&waiter.sole, false); /* each arm tries to claim it */
    if (!s->mixed && waiter.fiber != NULL) cc__chan_adopt_locked(cc__worker(), s->arms, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        struct arm *arm = &s->arms[i];
        arm->waiter = &waiter;
        arm->chosen = &winner;
        arm->ops->link_locked(arm);
    }
    cc__event(select_wait, s->count, s->locked);
    struct arms all = {s->arms, s->count};
    enum wake_reason reason = cc__wait_locked_all(&waiter, s->locks, s->locked, (struct wait_what){PARK_SELECT, &all});
    struct arm *served = NULL;
    if (reason == WAKE_OBJECT)
        for (uint32_t i = 0; i < s->count && served == NULL; i++)
            if (s->arms[i].index == winner) served = &s->arms[i];
    unlink_all(s, served);
    if (served != NULL) return finish(cases, served, chosen);
    if (reason == WAKE_TIMER) return time_is_up(cases, s, chosen);
    return s->cancel == SIZE_MAX ? ECANCELED : cc__case_chosen(cases, s->cancel, 0, chosen);
}

/* A look under the locks is exact. */
static bool any_ready(const CCCase *cases, const struct select *s) {
    for (uint32_t i = 0; i < s->count; i++)
        if (look(&cases[s->arms[i].index]) != LOOK_NOT_READY) return true;
    return false;
}

/* Nothing was ready. Room for n arms and locks is there. */
static int wait_for_one(CCCase *cases, size_t n, CCSelectOrder order, struct select *s, size_t *chosen) {
    for (size_t i = 0; i < n; i++) add_case(s, &cases[i], i);
    struct wakes wakes;
    cc__wakes_init(&wakes);
    lock_all(s);
    struct arm *served = NULL;
    if (unlikely(any_ready(cases, s))) served = poll_all(s, order, &wakes);
    if (unlikely(served != NULL)) {
        unlock_all(s);
        if (cc__wakes_any(&wakes)) cc__wakes_flush(&wakes);
        if (served->reap) served->ops->unlink(served);
        return finish(cases, served, chosen);
    }
    if (s->deadline != WAIT_FOREVER && cc__clock_now() >= s->deadline) {
        unlock_all(s);
        return time_is_up(cases, s, chosen);
    }
    return park(cases, s, chosen);
}

static CC_NOINLINE int wait_few(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, size_t *chosen) {
    struct arm arms[ARM_FEW];
    struct lock *locks[ARM_FEW];
    struct select s = {.arms = arms,
                       .locks = locks,
                       .mixed = deadline != WAIT_FOREVER,
                       .deadline = deadline,
                       .at = SIZE_MAX,
                       .cancel = SIZE_MAX};
    return wait_for_one(cases, n, order, &s, chosen);
}

static CC_NOINLINE int wait_many(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, size_t *chosen) {
    struct select s = {.mixed = true, .deadline = deadline, .at = SIZE_MAX, .cancel = SIZE_MAX};
    s.arms = cc__mem_alloc_small(n * (sizeof *s.arms + sizeof *s.locks));
    if (s.arms == NULL) return ENOMEM;
    s.locks = (struct lock **)(void *)(s.arms + n);
    int rc = wait_for_one(cases, n, order, &s, chosen);
    cc__mem_free(s.arms);
    return rc;
}

/* ---- the calls ---- */

static int select_within(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait, size_t *chosen) {
    for (;;) {
        int rc = take_ready(cases, n, order, chosen);
        if (rc != EAGAIN || !wait) return rc;
        rc = (n <= ARM_FEW ? wait_few : wait_many)(cases, n, order, deadline, chosen);
        if (likely(rc != ARM_AGAIN)) return rc;
    }
}

/* On a thread that is no worker. */
static CC_NOINLINE int select_on_thread(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait,
                                        size_t *chosen) {
    size_t i = 0;
    while (i < n && cases[i].kind != CC_CASE_JOIN) i++;
    int entered = ESRCH;
    struct backoff backoff = {0};
    while (i < n && (entered = cc__upcall_enter(false)) == ECANCELED)
        cc__backoff(&backoff); /* a shutdown that may change its mind */
    int rc = select_within(cases, n, order, deadline, wait, chosen);
    if (entered == 0) cc__upcall_leave();
    return rc;
}

static int select_one(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait, size_t *chosen) {
    if (chosen == NULL || (cases == NULL && n > 0) || n > CC_SELECT_MAX) return EINVAL;
    if (order != CC_SELECT_FAIR && order != CC_SELECT_FIRST) return EINVAL;
    struct worker *w = cc__worker();
    if (unlikely(w == NULL)) return select_on_thread(cases, n, order, deadline, wait, chosen);
    if (n <= ARM_FEW) {
        int rc = cc__select_biased(w, cases, n, order, deadline, wait, chosen);
        if (likely(rc != ARM_ELSEWHERE)) return rc;
    }
    return select_within(cases, n, order, deadline, wait, chosen);
}

/* The objects may be gone when it is over: the line names places in the array (TRACE-1). */
static CC_NOINLINE CC_COLD int select_traced(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait,
                                             size_t *chosen) {
    cc__sim_point();
    uint64_t start = cc__clock_now();
    int rc = select_one(cases, n, order, deadline, wait, chosen);
    if (cc__trace_on(TRACE_TIMING)) {
        struct worker *w = cc__worker();
        cc__timing_add(TIMED_SELECT, w != NULL ? w->core.owner : 0, cc__clock_now() - start);
    }
    cc__sim_point();
    if (rc == 0)
        cc__event(select_done, n, *chosen, cases[*chosen].kind, cases[*chosen].error);
    else
        cc__event(select_failed, n, rc);
    return rc;
}

CC_INLINE int select_any(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait, size_t *chosen) {
    if (cc__trace_on(TRACE_CHAN_VERBOSE | TRACE_TIMING | TRACE_SIM))
        return select_traced(cases, n, order, deadline, wait, chosen);
    return select_one(cases, n, order, deadline, wait, chosen);
}

int cc_select_ordered(CCCase *cases, size_t n, CCSelectOrder order, CCDeadline deadline, size_t *chosen) {
    return select_any(cases, n, order, cc__wait_deadline(deadline), true, chosen);
}

int cc_select(CCCase *cases, size_t n, CCDeadline deadline, size_t *chosen) {
    return select_any(cases, n, CC_SELECT_FAIR, cc__wait_deadline(deadline), true, chosen);
}

int cc_select_try(CCCase *cases, size_t n, size_t *chosen) {
    return select_any(cases, n, CC_SELECT_FAIR, WAIT_FOREVER, false, chosen);
}

int cc_match(CCCase *cases, size_t n, bool wait) {
    size_t chosen;
    int rc = select_any(cases, n, CC_SELECT_FAIR, WAIT_FOREVER, wait, &chosen);
    return rc == 0 ? (int)chosen : rc == EAGAIN ? CC_MATCH_NONE : CC_MATCH_FAILED;
}
