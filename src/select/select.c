/* select.c - execute a ready case; else link all arms, park, one claim wins, unlink the others.
 *
 * One loop over the cases, each of which has a table of operations (wait/arm.h): apart from two preparations in
 * wait_unbiased, this file does not know what a channel or a task is. ARCHITECTURE.md has the steps. The arms are
 * linked while all objects are guarded, by their locks or by the biased lock of the caller's worker, so all arms become
 * visible at once.
 *
 * SELECT-1  All selects take locks in address order, each once: no deadlock, even with the same object in two cases.
 * SELECT-2  At most one arm ends the wait: all share one waiter and one ticket.
 * SELECT-3  When select returns, no arm is on a list and no waker is about to touch one.
 * SELECT-4  An OS thread that waits for a task's end is counted as inside the runtime: the records stay mapped until
 *           every arm is unlinked.
 * SELECT-5  A select that has to wait biases all its objects to its worker, or none: the next select would revoke the
 *           bias of one object if another has none.
 * SELECT-6  A select with a deadline takes the locks: inside the biased lock no timer is armed and no lock is taken.
 * SELECT-7  A select that looks again after a wake without a result keeps its arms of channels until it ends: a channel
 *           without references stays allocated while an arm is linked or has lost its claim (ARM-2). Not if a case
 *           may call a pool's callback, which may panic past the arms.
 */
#include <ccc/cc_select.h>

#include "select/kinds.h"
#include "select/when.h"

#include "base/fatal.h"
#include "base/mem.h"
#include "base/rng.h"
#include "os/clock.h"
#include "sched/park.h"
#include "sim/sim.h"
#include "sync/backoff.h"
#include "trace/timing.h"
#include "trace/trace.h"
#include "wait/biased.h"
#include "wait/blocked.h"

#include <ccc/cc_panic.h>
#include <errno.h>
#include <string.h>

struct select {
    struct arm *arms;    /* of the cases that an object's wake can end; `count` of them */
    struct lock **locks; /* distinct, in address order; `locked` of them. With many arms there is room for two each */
    uint32_t count, locked;
    uint64_t deadline;         /* the earliest of all */
    size_t at;                 /* the case with that deadline; SIZE_MAX: the select's own deadline */
    size_t cancel;             /* the case for cancellation; SIZE_MAX: none */
    const struct again *again; /* NULL: it keeps no arms when it looks again */
};

/* How a select continues that keeps its arms (SELECT-7). */
struct again {
    CCSelectOrder order;
    uint64_t deadline;
};
static int select_within(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait, bool keeps,
                         size_t *chosen);

/* A random number below n. The state is per thread, so fibers that run on it in turn share it: hidden from the race
 * detector, and never inlined, because a fiber may change threads. */
static CC_NOINLINE CC_NO_TSAN uint32_t draw(uint32_t n) {
    static _Thread_local uint64_t state;
    if (state == 0) state = cc__sim_entropy(cc__clock_now() ^ (uintptr_t)&state);
    return (uint32_t)((cc__rng_next(&state) >> 32) * n >> 32);
}

/* ---- what is ready now ---- */

struct ready {
    uint8_t cases[CC_SELECT_MAX];
    uint32_t count;
    uint32_t wrong; /* the case that ended the look with an error */
    bool biased;    /* none is ready, and all objects are biased to the caller's worker */
    bool outside;   /* some cases returned LOOK_OUTSIDE and have not been checked */
};

/* 0; EINVAL: a case is malformed; EDEADLK. Then ready->wrong is that case. */
CC_INLINE int look_at_all(struct worker *w, const CCCase *cases, size_t n, struct ready *ready) {
    ready->count = 0;
    ready->biased = w != NULL;
    ready->outside = false;
    for (size_t i = 0; i < n; i++) {
        int seen = cc__kind_look(w, &cases[i]);
        if (seen == LOOK_BIASED) continue;
        ready->biased = false;
        if (seen == LOOK_READY)
            ready->cases[ready->count++] = (uint8_t)i;
        else if (unlikely(seen == LOOK_OUTSIDE))
            ready->outside = true;
        else if (unlikely(seen != LOOK_NOT_READY))
            return ready->wrong = (uint32_t)i, seen;
    }
    return 0;
}

/* Outside the biased lock; also checks the cases that returned LOOK_OUTSIDE. */
static CC_NOINLINE int look_outside(const CCCase *cases, size_t n, struct ready *ready) {
    return look_at_all(NULL, cases, n, ready);
}

/* 0: a case was executed. EAGAIN: none was ready after all. In the order given, or in a random order drawn step by
 * step. */
CC_INLINE int try_ready(CCCase *cases, struct ready *ready, CCSelectOrder order, size_t *chosen) {
    for (uint32_t done = 0; done < ready->count; done++) {
        uint8_t index = ready->cases[done];
        if (order == CC_SELECT_FAIR && ready->count - done > 1) {
            uint32_t k = done + draw(ready->count - done);
            index = ready->cases[k];
            ready->cases[k] = ready->cases[done];
        }
        int error = cc__kind_ops(&cases[index])->try(&cases[index]);
        if (likely(error != ARM_WAIT)) return cc__case_chosen(cases, index, error, chosen);
    }
    return EAGAIN;
}

/* ---- the guard ---- */

/* Insertion sort, for few. */
static void add_lock(struct select *s, struct lock *lock) {
    uint32_t i = s->locked;
    for (; i > 0 && s->locks[i - 1] >= lock; i--)
        if (s->locks[i - 1] == lock) return;
    memmove(&s->locks[i + 1], &s->locks[i], (s->locked - i) * sizeof *s->locks);
    s->locks[i] = lock;
    s->locked++;
}

/* Merge sort, for many; the array has room for twice as many. Locks that are already in order are not moved. */
static void sort_locks(struct lock **locks, uint32_t n) {
    struct lock **left = locks + n;
    for (uint32_t half = 1; half < n; half *= 2)
        for (uint32_t at = 0; at + half < n; at += 2 * half) {
            uint32_t i = 0, right = at + half, end = right + half < n ? right + half : n;
            if (locks[right - 1] <= locks[right]) continue;
            memcpy(left, &locks[at], half * sizeof *locks);
            for (uint32_t to = at; i < half; to++)
                locks[to] = right < end && locks[right] < left[i] ? locks[right++] : left[i++];
        }
}

static void add_many_locks(struct select *s) {
    for (uint32_t i = 0; i < s->count; i++) s->locks[i] = s->arms[i].lock;
    sort_locks(s->locks, s->count);
    for (uint32_t i = 0; i < s->count; i++)
        if (i == 0 || s->locks[i] != s->locks[s->locked - 1]) s->locks[s->locked++] = s->locks[i];
}

static void lock_all(struct select *s) {
    if (unlikely(s->count > ARM_FEW))
        add_many_locks(s);
    else
        for (uint32_t i = 0; i < s->count; i++) add_lock(s, s->arms[i].lock);
    for (uint32_t i = 0; i < s->locked; i++) {
        cc__debug_assert(i == 0 || s->locks[i - 1] < s->locks[i], "SELECT-1: the locks are in order, each once");
        cc__lock_take(s->locks[i]);
    }
    for (uint32_t i = 0; i < s->count; i++) {
        const struct arm_bias *bias = s->arms[i].ops->bias;
        if (bias != NULL) bias->revoke_locked(&s->arms[i]);
    }
}

static void unlock_all(struct select *s) {
    for (uint32_t i = s->locked; i-- > 0;) cc__lock_release(s->locks[i]);
}

/* A fiber on `w` is about to wait: biases all objects to `w` if each has reached its threshold (SELECT-5). */
static void adopt_all_locked(struct worker *w, struct select *s) {
    bool all = true;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->arms[i].ops->bias == NULL) return;
    for (uint32_t i = 0; i < s->count; i++) all &= s->arms[i].ops->bias->used_locked(w, &s->arms[i]);
    for (uint32_t i = 0; all && i < s->count; i++) s->arms[i].ops->bias->adopt_locked(w, &s->arms[i]);
}

/* ---- waiting ---- */

/* Adds the arm of a case that an object's wake ends; NULL: a timer or a cancellation ends it, or nothing does. */
CC_INLINE struct arm *add_case(struct select *s, const CCCase *c, size_t index) {
    struct arm *arm = &s->arms[s->count];
    const struct arm_ops *ops = cc__kind_ops(c);
    unsigned reason = ops->prepare(arm, c);
    if (likely(reason == WAKE_OBJECT)) {
        arm->ops = ops;
        arm->kind = (uint8_t)c->kind;
        arm->value = c->value;
        arm->index = (uint32_t)index;
        arm->linked = true;
        arm->claim_lost = false;
        s->count++;
        return arm;
    }
    if (reason == WAKE_TIMER && arm->moment < s->deadline) {
        s->deadline = arm->moment;
        s->at = index;
    }
    if (reason == WAKE_CANCEL && s->cancel == SIZE_MAX) s->cancel = index;
    return NULL;
}

CC_INLINE void link_arm(struct arm *arm, struct fiber *biased, struct waiter *waiter, uint32_t *winner) {
    arm->fiber = biased; /* FAST-2 */
    arm->waiter = waiter;
    arm->chosen = winner;
    arm->ops->link(arm);
}

/* Unlinks every arm except the one that was served. */
static void unlink_all(struct select *s, const struct arm *served) {
    for (uint32_t i = 0; i < s->count; i++)
        if (&s->arms[i] != served) s->arms[i].ops->unlink(&s->arms[i]);
}

static int time_is_up(CCCase *cases, const struct select *s, size_t *chosen) {
    return s->at == SIZE_MAX ? ETIMEDOUT : cc__case_chosen(cases, s->at, 0, chosen);
}

static int is_cancelled(CCCase *cases, const struct select *s, size_t *chosen) {
    return s->cancel == SIZE_MAX ? ECANCELED : cc__case_chosen(cases, s->cancel, 0, chosen);
}

/* 0: none is ready. ARM_AGAIN: one is. Otherwise the result of case *which. */
static int look_locked(const CCCase *cases, const struct select *s, uint32_t *which) {
    for (uint32_t i = 0; i < s->count; i++) {
        struct arm *arm = &s->arms[i];
        *which = arm->index;
        if (likely(arm->ops->look_locked == NULL)) {
            if (arm->ops->look(NULL, &cases[arm->index]) != LOOK_NOT_READY) return ARM_AGAIN;
            continue;
        }
        int seen = arm->ops->look_locked(arm);
        if (seen != 0) return seen;
    }
    return 0;
}

/* Turns the result of look_locked into that of the select. The locks are released. */
static int end_by_look(CCCase *cases, const struct select *s, int seen, uint32_t which, size_t *chosen) {
    if (likely(seen == ARM_AGAIN)) return ARM_AGAIN;
    return seen == ECANCELED ? is_cancelled(cases, s, chosen) : cc__case_chosen(cases, which, seen, chosen);
}

/* Takes all locks and links all arms. WAIT_BEGUN, or the result of the select; ARM_AGAIN: a case has become ready. */
enum { WAIT_BEGUN = -7 };
static CC_NOINLINE int lock_and_link(struct worker *w, CCCase *cases, struct select *s, struct waiter *waiter,
                                     uint32_t *winner, size_t *chosen) {
    lock_all(s);
    uint32_t which = 0;
    int seen = look_locked(cases, s, &which);
    bool over = s->deadline != WAIT_FOREVER && cc__clock_now() >= s->deadline;
    int rc = seen != 0 || over ? 0 : cc__waiter_init(waiter, w, s->deadline);
    if (unlikely(seen != 0 || over || rc != 0)) {
        unlock_all(s);
        return seen != 0 ? end_by_look(cases, s, seen, which, chosen) : over ? time_is_up(cases, s, chosen) : rc;
    }
    if (s->count != 1) cc__set(&waiter->sole, false); /* several claimants: one per arm */
    if (w != NULL && s->deadline == WAIT_FOREVER) adopt_all_locked(w, s);
    for (uint32_t i = 0; i < s->count; i++) link_arm(&s->arms[i], NULL, waiter, winner);
    return WAIT_BEGUN;
}

/* The locks are held, and all arms are linked. */
static CC_NOINLINE enum wake_reason block_thread(struct select *s, struct waiter *waiter, const struct arms *all) {
    unlock_all(s);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->arms[i].ops->thread_waits != NULL) s->arms[i].ops->thread_waits(&s->arms[i]);
    return cc__blocked_block(waiter, (struct wait_what){PARK_SELECT, all});
}

/* Starts over with the arms of channels still linked, which keeps these allocated (SELECT-7). */
static CC_NOINLINE int select_again(CCCase *cases, size_t n, struct select *s, const struct arm *served,
                                    size_t *chosen) {
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->arms[i].ops->freeable && &s->arms[i] != served) s->arms[i].ops->unlink(&s->arms[i]);
    int rc = select_within(cases, n, s->again->order, s->again->deadline, true, false, chosen);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->arms[i].ops->freeable && &s->arms[i] != served) s->arms[i].ops->unlink(&s->arms[i]);
    return rc;
}

/* Waits; no case seemed ready. `s` has room for n arms and locks. ARM_AGAIN: retry. ARM_REST: *chosen is the case; the
 * caller completes it when the arms are freed, as that may panic. With `biased` the caller holds its worker's biased
 * lock, which is released. */
CC_INLINE int wait_for_one(struct worker *w, CCCase *cases, size_t n, struct select *s, bool biased, size_t *chosen) {
    struct waiter waiter;
    uint32_t winner = UINT32_MAX;
    enum wake_reason reason;
    struct fiber *self = biased ? cc__get(&w->core.current) : NULL;
    if (biased) cc__waiter_init_sole(&waiter, self);
    for (size_t i = 0; i < n; i++) {
        struct arm *arm = add_case(s, &cases[i], i);
        if (biased && likely(arm != NULL)) link_arm(arm, self, &waiter, &winner);
    }
    struct arms all = {s->arms, s->count, (uint16_t)n, s->deadline != WAIT_FOREVER, s->cancel != SIZE_MAX};
    if (biased) {
        reason = cc__wait_biased(w, self, PARK_SELECT, &all);
    } else {
        int rc = lock_and_link(w, cases, s, &waiter, &winner, chosen);
        if (rc != WAIT_BEGUN) return rc;
        cc__event(select_wait, s->count, s->locked);
        if (likely(waiter.fiber != NULL))
            reason = cc__wait_locked_all(&waiter, s->locks, s->locked, (struct wait_what){PARK_SELECT, &all});
        else
            reason = block_thread(s, &waiter, &all);
    }
    struct arm *served = NULL;
    if (likely(reason == WAKE_OBJECT))
        for (served = s->arms; served->index != winner; served++) {
        }
    if (served != NULL && unlikely(served->error == ARM_AGAIN) && s->again != NULL)
        return select_again(cases, n, s, served, chosen);
    unlink_all(s, served);
    if (likely(served != NULL)) {
        *chosen = winner;
        if (unlikely(served->error < 0)) return served->error; /* ARM_AGAIN, ARM_REST */
        return cc__case_chosen(cases, winner, served->error, chosen);
    }
    if (reason == WAKE_TIMER) return time_is_up(cases, s, chosen);
    return is_cancelled(cases, s, chosen);
}

static CC_NOINLINE int wait_biased(struct worker *w, CCCase *cases, size_t n, size_t *chosen) {
    struct arm arms[ARM_FEW];
    struct select s = {.arms = arms, .deadline = WAIT_FOREVER, .at = SIZE_MAX, .cancel = SIZE_MAX};
    return wait_for_one(w, cases, n, &s, true, chosen);
}

static CC_NOINLINE int wait_few(struct worker *w, CCCase *cases, size_t n, uint64_t deadline, const struct again *again,
                                size_t *chosen) {
    struct arm arms[ARM_FEW];
    struct lock *locks[ARM_FEW];
    struct select s = {
        .arms = arms, .locks = locks, .deadline = deadline, .at = SIZE_MAX, .cancel = SIZE_MAX, .again = again};
    return wait_for_one(w, cases, n, &s, false, chosen);
}

static CC_NOINLINE int wait_many(struct worker *w, CCCase *cases, size_t n, uint64_t deadline,
                                 const struct again *again, size_t *chosen) {
    struct select s = {.deadline = deadline, .at = SIZE_MAX, .cancel = SIZE_MAX, .again = again};
    s.arms = cc__mem_alloc_small(n * (sizeof *s.arms + 2 * sizeof *s.locks));
    if (s.arms == NULL) return ENOMEM;
    s.locks = (struct lock **)(void *)(s.arms + n);
    int rc = wait_for_one(w, cases, n, &s, false, chosen);
    cc__mem_free(s.arms);
    return rc;
}

static CC_NOINLINE int wait_unbiased(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool keeps,
                                     size_t *chosen) {
    const struct again again = {order, deadline};
    for (size_t i = 0; i < n; i++) {
        keeps = keeps && !cc__arm_calls_back(&cases[i]);
        if (cases[i].kind == CC_CASE_SEND)
            cc__arm_reset_send(&cases[i]);
        else if (cases[i].kind == CC_CASE_READABLE || cases[i].kind == CC_CASE_WRITABLE)
            cc__arm_may_wait_fd();
    }
    struct worker *w = cc__worker(); /* a pool's on_reset may have waited */
    return (n <= ARM_FEW ? wait_few : wait_many)(w, cases, n, deadline, keeps ? &again : NULL, chosen);
}

/* ---- the calls ---- */

/* keeps: SELECT-7. */
static int select_within(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait, bool keeps,
                         size_t *chosen) {
    for (;;) {
        struct worker *w = cc__worker();
        struct ready ready;
        if (w != NULL) cc__bias_enter(&w->runq.bias);
        int rc = look_at_all(w, cases, n, &ready);
        if (ready.biased && wait && rc == 0 && deadline == WAIT_FOREVER && n <= ARM_FEW) { /* SELECT-6 */
            rc = wait_biased(w, cases, n, chosen);
        } else {
            if (w != NULL) cc__bias_leave(&w->runq.bias);
            if (unlikely(ready.outside) && rc == 0) rc = look_outside(cases, n, &ready);
            if (unlikely(rc != 0)) return cases[ready.wrong].error = rc;
            if (ready.count > 0) {
                rc = try_ready(cases, &ready, order, chosen);
                if (likely(rc == 0)) return 0;
                if (wait) continue;
            }
            if (!wait) return EAGAIN;
            rc = wait_unbiased(cases, n, order, deadline, keeps, chosen);
        }
        if (unlikely(rc == ARM_REST))
            return cc__case_chosen(cases, *chosen, cc__kind_ops(&cases[*chosen])->rest(&cases[*chosen]), chosen);
        if (likely(rc != ARM_AGAIN)) return rc;
    }
}

static void leave_runtime(void *unused) {
    (void)unused;
    cc__upcall_leave();
}

/* On an OS thread that is not a worker. */
static CC_NOINLINE int select_on_thread(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait,
                                        size_t *chosen) {
    size_t i = 0;
    while (i < n && !cc__kind_ops(&cases[i])->enters) i++; /* SELECT-4 */
    int entered = ESRCH;
    struct backoff backoff = {0};
    while (i < n && (entered = cc__upcall_enter(false)) == ECANCELED)
        cc__backoff(&backoff); /* a shutdown is in progress, and may be called off */
    if (entered != 0) return select_within(cases, n, order, deadline, wait, true, chosen);
    CC_DEFER(leave_runtime, NULL); /* a pool's callback may panic */
    return select_within(cases, n, order, deadline, wait, true, chosen);
}

/* A select that has to wait does so at once: when it waits its channels may be freed. Apart: others need no frame while
 * they wait. */
static CC_NOINLINE CC_COLD int select_and_yield(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline,
                                                size_t *chosen) {
    int rc = select_within(cases, n, order, deadline, true, true, chosen);
    (void)cc__sched_may_preempt(cc__worker()); /* NEXT-3 */
    return rc;
}

static int select_one(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait, size_t *chosen) {
    if (chosen == NULL || (cases == NULL && n > 0) || n > CC_SELECT_MAX) return EINVAL;
    if (order != CC_SELECT_FAIR && order != CC_SELECT_FIRST) return EINVAL;
    struct worker *w = cc__worker();
    if (unlikely(w == NULL)) return select_on_thread(cases, n, order, deadline, wait, chosen);
    if (unlikely(wait && cc__get(&w->runq.preempt) != 0)) return select_and_yield(cases, n, order, deadline, chosen);
    return select_within(cases, n, order, deadline, wait, true, chosen);
}

/* The objects may be freed by the end of the select: the event has indices into the array (TRACE-1). */
static CC_NOINLINE CC_COLD int select_traced(CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait,
                                             size_t *chosen) {
    cc__sim_point();
    uint64_t start = cc__clock_now();
    int rc = select_one(cases, n, order, deadline, wait, chosen);
    cc__timing_since(TIMED_SELECT, start);
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

CC_INLINE bool choose(CCWhen *when, CCSelectOrder order) {
    CCCase *cases = cc__when_cases(when);
    size_t chosen = 0;
    int rc = select_any(cases, when->count, order, WAIT_FOREVER, when->otherwise == UINT32_MAX, &chosen);
    when->at = 0;
    when->error = 0;
    if (unlikely(rc != 0 || cases[chosen].error != 0)) return cc__when_ended(when, rc, chosen);
    when->chosen = (uint32_t)chosen;
    return true;
}

bool cc_when_choose(CCWhen *when) {
    return choose(when, CC_SELECT_FAIR);
}

bool cc_when_choose_ordered(CCWhen *when) {
    return choose(when, CC_SELECT_FIRST);
}
