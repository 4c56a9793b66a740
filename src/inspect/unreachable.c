/* unreachable.c - finds fibers that can never continue, by a conservative reachability analysis.
 *
 * Live at the beginning are fibers that run, are ready, sleep, or wait with a deadline or for an object of which it is
 * unknown who could end the wait (enum wait_object), and all OS threads. The search follows (reach.h) what is reachable
 * from their stacks and from all memory of the program that is not a fiber's stack. A fiber that waits for a reachable
 * object is live too, and its stack is scanned; this is repeated until nothing changes.
 *
 * UNREACHABLE-1  There are no false positives as long as addresses are stored where REACH-1 finds them; stale words can
 *                only hide fibers. The stack of an unreachable fiber is scanned once a scanned word points into it: a
 *                child often works with variables of its parent.
 * UNREACHABLE-2  Nothing moves during the search: all workers sleep, and every thread but the caller's waits in a call
 *                of ours. Otherwise an address could be moved past the scan, and there is no result.
 * UNREACHABLE-3  The report of the result says what it means: only a cancellation could end such a wait.
 * UNREACHABLE-4  A thread's registers are in its stack: it saved them there before it waits (BLOCKED-2), or called us.
 */
#include "inspect/waits.h"

#include "base/mem.h"
#include "inspect/reach.h"
#include "inspect/threads.h"
#include "inspect/view.h"
#include "lock/parking_lot.h"
#include "os/clock.h"
#include "os/safe_copy.h"
#include "sched/idle.h"

#include <string.h>

enum { CANDIDATES_MAX = UNREACHABLE_MAX };
#define MEMORY_LIMIT (UINT64_C(4) << 30)
#define PATIENCE_NS UINT64_C(2000000000)

struct candidate {
    struct fiber *fiber;
    struct wait_what what;
    uintptr_t stack, block; /* the private memory of each; 0: none */
    uintptr_t cold;
    uintptr_t result, deferred; /* pointers into its stack in the nursery that it waits for */
    const void *child;          /* the nursery whose child it is */
    bool live;
};

struct search {
    unsigned count;
    bool too_many;
    struct candidate candidate[CANDIDATES_MAX];
    struct reach reach;
};

/* ---- candidates ---- */

/* Whether a deadline of this scope or of one around it ends the wait. */
static bool has_deadline(const struct scope *at) {
    struct scope scope;
    for (int up = 0; at != NULL && up < 256; up++, at = scope.parent)
        if (!cc__safe_copy(&scope, at, sizeof scope) || cc__get(&scope.deadline) != UINT64_MAX || scope.grace_armed ||
            scope.sent != 0)
            return true;
    return at != NULL;
}

static bool is_candidate(const struct view *v) {
    return v->state == FIBER_PARKED && !v->moves && v->started && cc__park_object(v->reason) >= OBJECT_TASK &&
           !has_deadline(v->scope);
}

static void want_what(struct search *s, struct wait_what what) {
    struct arm arms[8];
    if (cc__park_object(what.reason) == OBJECT_CHANNEL) cc__reach_want(&s->reach, what.object);
    uint32_t n = cc__wait_arms(what, arms, 8);
    for (uint32_t i = 0; i < n && i < 8; i++)
        if (arms[i].kind != CC_CASE_JOIN && arms[i].kind != CC_CASE_NURSERY_END && !cc__arm_is_fd(&arms[i]))
            cc__reach_want(&s->reach, arms[i].object);
}

/* Candidates are sorted by slot. */
static struct candidate *find(struct search *s, const struct fiber *f) {
    unsigned low = 0, high = s->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (s->candidate[middle].fiber == f) return &s->candidate[middle];
        if (s->candidate[middle].fiber->slot < f->slot)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Its stack from the stack pointer up, and its arguments if they were allocated, are private. */
static void keep_private(struct search *s, struct candidate *c, const struct view *v) {
    struct reach *r = &s->reach;
    unsigned number = (unsigned)(c - s->candidate);
    const struct stack *stack = cc__get(&v->fiber->stack);
    struct fiber_cold cold;
    struct fiber_block block;
    CCNursery nursery;
    c->stack = v->sp != 0 ? v->sp : v->low;
    cc__reach_keep_private(r, c->stack, v->high, number);
    if (cc__park_object(v->reason) == OBJECT_NURSERY &&
        cc__safe_copy(&nursery, (const void *)v->object, sizeof nursery) && nursery.scope.nursery) {
        c->result = (uintptr_t)nursery.result;
        c->deferred = (uintptr_t)nursery.deferred.next;
    }
    c->cold = stack != NULL ? (uintptr_t)cc__get(&stack->cold) : 0;
    if (c->cold == 0 || !cc__safe_copy(&cold, (const void *)c->cold, sizeof cold)) return;
    c->child = cold.base;
    if (cold.block == NULL || !cc__safe_copy(&block, cold.block, sizeof block)) return;
    c->block = (uintptr_t)cold.block;
    cc__reach_keep_private(r, c->block, (uintptr_t)(cold.block + 1) + block.args_size, number);
}

static void collect(struct search *s) {
    struct view v;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        if (!cc__view_take(slot, false, &v) || !is_candidate(&v)) continue;
        if (s->count == CANDIDATES_MAX) {
            s->too_many = true;
            return;
        }
        struct candidate *c = &s->candidate[s->count++];
        *c = (struct candidate){.fiber = v.fiber, .what = cc__view_what(&v)};
        keep_private(s, c, &v);
        want_what(s, c->what);
    }
}

static void has_timer(void *search, struct fiber *f, uint64_t ticket) {
    (void)ticket;
    struct candidate *c = find(search, f);
    if (c != NULL) c->live = true;
}

/* ---- the runtime's own pointers (REACH-2) ---- */

static bool waits_here(const struct candidate *c, const struct waiter *at) {
    struct waiter waiter;
    return cc__safe_copy(&waiter, at, sizeof waiter) && waiter.fiber == c->fiber;
}

/* Wait queues of objects point to the arm or the wait node in a waiter's stack; a nursery to its members, to where it
 * stores its result and to its owner's previous deferred call; the stack's header to its top. */
static bool is_runtimes(void *search, unsigned number, uintptr_t word) {
    const struct candidate *c = &((struct search *)search)->candidate[number];
    if (word >= c->cold && word < c->cold + sizeof(struct fiber_cold)) return true;
    if (word == c->result || word == c->deferred) return true;
    const struct bucket_node *queued = (const struct bucket_node *)word;
    if (cc__park_object(c->what.reason) == OBJECT_MUTEX) return waits_here(c, &queued->node.waiter);
    struct arm arm;
    return cc__safe_copy(&arm, (const void *)word, sizeof arm) && waits_here(c, arm.waiter);
}

/* ---- roots ---- */

/* The stacks of sleeping workers hold only the runtime's frames and stale words. Their thread-locals are outside of
 * these ranges and are scanned. */
static void skip_workers(struct reach *r) {
    cc__reach_skip(r, (uintptr_t)cc__sched.workers, (uintptr_t)(cc__sched.workers + cc__sched.max + ISLANDS_MAX));
    for_all_workers(i, w) {
        struct worker_remote *remote = &w->remote;
        if (cc__get(&remote->status) == WORKER_OPEN)
            cc__reach_skip(r, cc__get(&remote->stack_low), cc__get(&remote->stack_high));
    }
}

/* The records hold addresses of objects that fibers have waited for. */
static void skip_rings(struct reach *r) {
    for (unsigned i = 0; i < RECORDER_RINGS; i++) {
        const struct record_ring *ring = cc__get_acquire(&cc__recorder.ring[i]); /* pairs with its creation */
        for (; ring != NULL; ring = ring->replaced)
            cc__reach_skip(r, (uintptr_t)ring->at, (uintptr_t)(ring->at + ring->size));
    }
}

/* Fibers' stacks and records are no roots, nor is this search's own memory. */
static void find_skips(struct search *s, uintptr_t below) {
    struct reach *r = &s->reach;
    const void *bottom, *top;
    uintptr_t low, high;
    cc__thread_stack(&bottom, &top);
    /* Not if the caller is on another stack: in a hosted call or a signal handler. */
    if (below >= (uintptr_t)bottom && below <= (uintptr_t)top) cc__reach_skip(r, (uintptr_t)bottom, below);
    cc__reach_skip(r, (uintptr_t)s, (uintptr_t)(s + 1));
    for (unsigned i = 0; cc__stack_arena(i, &low, &high); i++) cc__reach_skip(r, low, high);
    for (unsigned i = 0; cc__pool_slab(i, &low, &high); i++) cc__reach_skip(r, low, high);
    skip_workers(r);
    skip_rings(r);
}

/* From live fibers, and from the results of fibers that have ended. */
static void reach_from_live(struct search *s) { /* UNREACHABLE-4 */
    struct view v;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct fiber *f = cc__pool_at(slot);
        const struct candidate *c = find(s, f);
        if (cc__word_state(cc__get(&f->word)) == FIBER_IDLE || (c != NULL && !c->live)) continue;
        cc__reach_range(&s->reach, (uintptr_t)f, (uintptr_t)(f + 1)); /* arguments, registers, a result */
        if (cc__view_take(slot, false, &v) && v.started) cc__reach_range(&s->reach, v.sp != 0 ? v.sp : v.low, v.high);
        if (c != NULL) cc__reach_open(&s->reach, c->block);
    }
}

/* ---- the fixed point ---- */

static bool is_live(struct search *s, const struct fiber *f) {
    const struct candidate *c = find(s, f);
    return c == NULL || c->live;
}

/* Whether all children are live: only then can the wait for them end. */
static bool children_are_live(struct search *s, const void *nursery) {
    for (unsigned i = 0; i < s->count; i++)
        if (!s->candidate[i].live && s->candidate[i].child == nursery) return false;
    return true;
}

static bool arm_is_live(struct search *s, const struct arm *arm) {
    if (arm->kind == CC_CASE_JOIN) return is_live(s, arm->object);
    if (arm->kind == CC_CASE_NURSERY_END) return children_are_live(s, arm->object);
    return cc__reach_has(&s->reach, arm->object);
}

static bool select_is_live(struct search *s, struct wait_what what) {
    struct arm arms[8];
    uint32_t n = cc__wait_arms(what, arms, 8);
    if (n == 0 || n > 8) return true; /* not all arms are known */
    for (uint32_t i = 0; i < n; i++)
        if (cc__arm_is_outside(&arms[i])) return true;
    for (uint32_t i = 0; i < n; i++)
        if (arm_is_live(s, &arms[i])) return true;
    return false;
}

static bool may_go_on(struct search *s, const struct candidate *c) { /* UNREACHABLE-1 */
    enum holder kind;
    struct fiber *holder;
    switch (cc__park_object(c->what.reason)) {
    case OBJECT_CHANNEL:
        return cc__reach_has(&s->reach, c->what.object);
    case OBJECT_ARMS:
        return select_is_live(s, c->what);
    case OBJECT_TASK:
        return is_live(s, c->what.object);
    case OBJECT_MUTEX:
        holder = cc__wait_holder(c->what, &kind);
        return holder == NULL || is_live(s, holder);
    case OBJECT_NURSERY:
        return children_are_live(s, c->what.object);
    default:
        return true;
    }
}

static void follow(struct search *s) {
    for (bool changed = true; changed;) {
        changed = false;
        for (unsigned i = 0; i < s->count; i++) {
            struct candidate *c = &s->candidate[i];
            if (c->live || !may_go_on(s, c)) continue;
            c->live = changed = true;
            cc__reach_range(&s->reach, (uintptr_t)c->fiber, (uintptr_t)(c->fiber + 1));
            cc__reach_open(&s->reach, c->stack);
            cc__reach_open(&s->reach, c->block);
        }
    }
}

/* ---- the result ---- */

static void note(const struct search *s, struct unreachable *found) { /* UNREACHABLE-3 */
    found->count = 0;
    for (unsigned i = 0; i < s->count; i++) {
        if (s->candidate[i].live) continue;
        if (found->count < found->max) found->slot[found->count] = s->candidate[i].fiber->slot;
        found->count++;
    }
}

/* NULL: the search is complete; else why it is not. */
static const char *search(struct search *s, uintptr_t below) {
    s->reach.harmless = is_runtimes;
    s->reach.arg = s;
    collect(s);
    find_skips(s, below);
    if (s->too_many || s->reach.too_many) return "too many waiting fibers";
    cc__timer_each(has_timer, s);
    if (!cc__reach_begin(&s->reach, MEMORY_LIMIT)) return "too much memory to scan";
    reach_from_live(s);
    follow(s);
    return NULL;
}

/* NULL, or why there is no result. A worker that wakes and finds nothing to do invalidates a search (UNREACHABLE-2);
 * the next one may succeed. Workers do so a few times after they ran out of work, at growing intervals. */
static CC_NOINLINE const char *look(struct unreachable *found, uint64_t patience, uintptr_t below) {
    uint64_t until = cc__clock_real() + patience;
    const char *why = "a fiber or another thread is running";
    if (cc__threads_list(NULL, 0) < 0)
        return "the threads of the process cannot be listed (no /proc, or no descriptor)";
    for (bool again = true; again;) {
        uint64_t epoch = cc__idle_epoch();
        if (!cc__quiet_but_me()) {
            found->again = true;
            again = cc__clock_real() < until;
            if (again) cc__thread_nap(1000 * 1000);
            continue;
        }
        struct search *s = cc__mem_alloc(sizeof *s);
        if (s == NULL) break;
        const char *failed = search(s, below);
        bool undisturbed = cc__idle_epoch() == epoch;
        if (undisturbed && failed == NULL) note(s, found);
        explicit_bzero(s, sizeof *s); /* or the next search would find these addresses */
        cc__mem_free(s);
        why = failed != NULL || undisturbed ? failed : "workers keep waking up";
        found->again = failed == NULL && !undisturbed;
        again = found->again && cc__clock_real() < until;
    }
    return why;
}

CC_NOINLINE const char *cc__unreachable_find(struct unreachable *found, bool patient) {
    found->count = 0;
    found->again = false;
    if (cc__inspect_missing() != NULL) return "this build of the library cannot";
#if defined(CC_ASAN) || defined(CC_TSAN)
    (void)patient, (void)look;
    return "not possible under a sanitizer (its memory is too large)";
#else
    __builtin_unwind_init(); /* saves the callers' registers in this frame, which is scanned */
    return look(found, patient ? PATIENCE_NS : 0, cc__machine_sp());
#endif
}
