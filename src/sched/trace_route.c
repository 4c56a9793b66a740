/* trace_route.c - while parks, wakes or spawns are traced, all of them take slow paths that exist for other reasons.
 *
 *   parks    check `cancels` after their switch; any bit there leads to cc__upcall_cancelled
 *   wakes    of waits that have no other claimant are a store unless `contested`; then all of them go through
 *            cc__state_claim
 *   spawns   check `spawns`
 *
 * The recorder uses the same routes for wakes and spawns if it cannot record them inline (record.h). So tracing costs
 * nothing while it is off. A thread that changes the categories publishes them, then checks whether the runtime runs;
 * the thread that starts the runtime publishes that it runs, then reads the categories: at least one of the two calls
 * cc__sched_route_traces.
 */
#include "base/inspect.h"
#include "sched/island.h"
#include "sched/record.h"
#include "sched/wake.h"
#include "trace/trace.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof((struct worker *)0)->island.name == RECORD_ISLAND_NAME, "a ring has it, too");

static void route(_Atomic uint32_t *word, uint32_t bit, bool on) {
    if (on)
        cc__or_seq(word, bit);
    else
        cc__and_seq(word, ~bit);
}

void cc__sched_route_traces(void) {
    cc__lock_take(&cc__sched.trace_route.lock);
    uint32_t on = cc__get_seq(&cc__trace.on);
    if (cc__recorder_level() == 0 || cc__get(&cc__recorder.cycles)) on &= ~(uint32_t)TRACE_RECORD;
    route(&cc__sched.spawns, SPAWNS_TRACED, on & (TRACE_SPAWN | TRACE_RECORD));
    route(&cc__sched.cancels, CANCELS_TRACED, on & (TRACE_PARK | TRACE_SPEC));
    bool wakes = (on & (TRACE_WAKE | TRACE_SPEC | TRACE_RECORD)) != 0;
    if (wakes != cc__sched.trace_route.wakes) cc__sched_contest(wakes);
    cc__sched.trace_route.wakes = wakes;
    cc__lock_release(&cc__sched.trace_route.lock);
}

/* ---- the recorder ---- */

_Static_assert((int)RECORD_NEAR <= (int)POOL_SLAB_RECORDS, "the records of these slots are one array");

static void attach_locked(struct worker *w, unsigned index, const char *island) {
    struct record_ring *r = cc__recorder_ring(index);
    if (r != NULL) {
        cc__record_ring_name(r, island);
        uintptr_t first = (uintptr_t)cc__pool_first();
        if (r->first != first) r->first = first; /* its writer may be reading it */
    }
    cc__set_release(&w->core.ring, r); /* pairs with record.h */
}

/* The recorder is turned on or off before this reads the islands. The lock orders it with cc__sched_route_island. */
void cc__sched_route_records(void) {
    cc__lock_take(&cc__sched.trace_route.lock);
    unsigned max = cc__sched.max, all = max + cc__get(&cc__sched.islands);
    for (unsigned i = 0; i < all; i++)
        attach_locked(&cc__sched.workers[i], i, i < max ? "" : cc__island_name(&cc__sched.workers[i]).text);
    cc__lock_release(&cc__sched.trace_route.lock);
    cc__sched_route_traces();
}

void cc__sched_route_island(struct worker *w, const char *name) {
    struct island_name copy = {{0}};
    uint64_t words[array_len(w->island.name)];
    snprintf(copy.text, sizeof copy.text, "%s", name);
    memcpy(words, copy.text, sizeof words);
    cc__lock_take(&cc__sched.trace_route.lock);
    for (size_t i = 0; i < array_len(words); i++) cc__set(&w->island.name[i], words[i]);
    attach_locked(w, w->core.owner - 1, copy.text);
    cc__lock_release(&cc__sched.trace_route.lock);
}

/* The race detector does not see what orders us after the thread that created the record. */
static CC_NOINLINE CC_NO_TSAN uint32_t slot_of(const struct fiber *f) {
    return ((const volatile struct fiber *)f)->slot;
}

struct origin {
    const void *site, *fn;
};

/* Nor what orders the next use of the record after us: the fiber, which runs on this thread, or is moved from it. */
static CC_NOINLINE CC_NO_TSAN struct origin origin_of(const struct fiber *f) {
    const volatile struct fiber *record = f;
    return (struct origin){record->site, (const void *)(uintptr_t)record->fn};
}

#ifdef CC_TSAN
uint32_t cc__sched_record_slot(const struct fiber *f) {
    return slot_of(f);
}
#endif

CC_NOINLINE void cc__sched_record_slow(struct worker *w, struct record_ring *r, enum record_kind kind, unsigned arg,
                                       uint64_t body) {
    cc__record(r, cc__get(&w->core.turns), kind, arg, body);
}

CC_NOINLINE void cc__sched_record_run_slow(struct worker *w, struct record_ring *r, const struct fiber *next,
                                           enum record_kind before) {
    cc__sched_record_slow(w, r, REC_RUN, before, slot_of(next));
}

/* A timed spawn begins to exist when its timer fires; one that is disarmed never does. */
void cc__record_wake(const struct fiber *f, unsigned by) {
    if (cc__get(&f->stack) != NULL) {
        cc__record_here(REC_WAKE, by, slot_of(f), NULL);
    } else if (by == WAKE_TIMER) {
        uintptr_t scope = cc__get(&f->scope) & ~(uintptr_t)FIBER_SCOPE_BITS;
        struct origin from = origin_of(f);
        cc__record_spawn(slot_of(f), cc__get(&f->generation), from.site, from.fn, (const void *)scope, "");
    }
}

static unsigned stack_number(struct worker *w, const void *back) {
    const struct stack *s = cc__get(&cc__get(&w->core.current)->stack);
    struct unwind_memo *memo = NULL;
#ifndef CC_TSAN /* to which the fibers of a worker are threads */
    if (unlikely(w->memo == NULL)) w->memo = cc__unwind_memo();
    memo = w->memo;
#endif
    return cc__unwind_number(memo, s->base + cc__stack_guard_size(s), s->base + cc__stack_size(s), back, RECORD_FRAMES,
                             cc__record_stack);
}

CC_NOINLINE void cc__sched_record_park_slow(struct worker *w, struct record_ring *r, unsigned reason,
                                            const struct fiber *next) {
    uint64_t object = (uint64_t)cc__fiber_object(cc__get(&w->core.current)) & ((UINT64_C(1) << RECORD_OBJECT_BITS) - 1);
    uint32_t slot = next != NULL ? slot_of(next) : 0;
    bool stacks = cc__recorder_level() == 2;
    uint64_t stack = stacks ? stack_number(w, __builtin_return_address(0)) : 0;
    uint64_t when = cc__record_time(cc__get(&w->core.turns));
    if (next != NULL && !stacks && slot >> RECORD_SLOT_BITS == 0) {
        cc__record_at(r, when, REC_SWITCH, reason, cc__record_switch_body((uintptr_t)object, slot));
        return;
    }
    cc__record_at(r, when, REC_PARK, reason, object | stack << RECORD_OBJECT_BITS);
    if (next != NULL) cc__record_at(r, when, REC_RUN, REC_NONE, slot);
}

/* The ring of the calling thread, or NULL. */
static struct record_ring *take_ring(struct worker *w) {
    return w != NULL ? cc__get_acquire(&w->core.ring) : cc__recorder_take_others(); /* as in record.h */
}

static void release_ring(struct worker *w) {
    if (w == NULL) cc__recorder_release_others();
}

static uint64_t turn_of(struct worker *w) {
    return w != NULL ? cc__get(&w->core.turns) : RECORD_NO_TURN;
}

void cc__record_here(enum record_kind kind, unsigned arg, uint64_t body, const char *text) {
    struct worker *w = cc__worker();
    struct record_ring *r = take_ring(w);
    if (r == NULL) return;
    cc__record(r, turn_of(w), kind, arg, body);
    if (text != NULL) cc__record_text(r, text);
    release_ring(w);
}

void cc__record_spawn(uint32_t slot, uint32_t generation, const void *site, const void *fn, const void *scope,
                      const char *name) {
    struct worker *w = cc__worker();
    struct record_ring *r = take_ring(w);
    if (r == NULL) return;
    cc__record(r, turn_of(w), REC_SPAWN, 0, slot | (uint64_t)generation << 32);
    cc__record_write(r, (uint64_t)(uintptr_t)site << RECORD_TIME_SHIFT | REC_SPAWN_AT, (uintptr_t)fn);
    if (scope != NULL) cc__record_write(r, REC_SPAWN_IN, (uintptr_t)scope);
    cc__record_text(r, name);
    release_ring(w);
}

void cc__record_scope(const void *scope, const void *parent, const char *name) {
    struct worker *w = cc__worker();
    struct record_ring *r = take_ring(w);
    if (r == NULL) return;
    cc__record(r, turn_of(w), REC_SCOPE, 0, (uintptr_t)scope);
    if (parent != NULL) cc__record_write(r, REC_SPAWN_IN, (uintptr_t)parent);
    cc__record_text(r, name);
    release_ring(w);
}
