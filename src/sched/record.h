/* record.h - what a worker writes to the recorder (trace/recorder.h). While that is off: one load.
 *
 * A switch is one record: why the running fiber stops, and which one runs next. It is written when the next one is
 * known, before the switch, so the records of a ring are in the order of what the worker did. Level 0 is inline: a few
 * stores into the worker's own ring. At other levels switches are a call (trace_route.c). So are wakes and spawns if
 * the CPU's cycle counter is not the clock: then they take their slow paths, which record them.
 */
#ifndef CC_SCHED_RECORD_H
#define CC_SCHED_RECORD_H

#include "arch/cpu.h"
#include "sched/sched.h"

/* In trace_route.c; for any level, and any slot. */
void cc__sched_record_run_slow(struct worker *w, struct record_ring *r, const struct fiber *next,
                               enum record_kind before);
void cc__sched_record_slow(struct worker *w, struct record_ring *r, enum record_kind kind, unsigned arg, uint64_t body);
void cc__sched_record_park_slow(struct worker *w, struct record_ring *r, unsigned reason, const struct fiber *next);

/* A fiber's number; constant. */
#ifdef CC_TSAN
uint32_t cc__sched_record_slot(const struct fiber *f); /* in trace_route.c */
#else
CC_INLINE uint32_t cc__sched_record_slot(const struct fiber *f) {
    return f->slot;
}
#endif

/* The same if it is below r->turns, else at least that: from the address. */
CC_INLINE uint64_t cc__sched_record_near(struct record_ring *r, const struct fiber *f) {
    return ((uintptr_t)f - r->first) / sizeof *f;
}

/* The worker's ring; NULL: nothing is recorded. */
CC_INLINE struct record_ring *cc__sched_ring(struct worker *w) {
    return cc__get_acquire(&w->core.ring); /* pairs with attach_locked */
}

CC_INLINE void cc__sched_record_turn(struct worker *w, struct record_ring *r, enum record_kind kind, unsigned arg,
                                     uint64_t body) {
    cc__record_at(r, cc__get(&w->core.turns), kind, arg, body);
}

/* The time of a wake or spawn. False: it is not recorded inline. */
CC_INLINE bool cc__sched_record_time(struct worker *w, struct record_ring *r, uint64_t *when) {
    *when = cc__get(&w->core.turns);
    if (likely(cc__ring_has_turns(r))) return true;
    if (!cc__get(&cc__recorder.cycles)) return false;
    *when = cc__cpu_cycles();
    return true;
}

/* The running fiber yields, or ends, and the next one is chosen on the worker's own stack. */
CC_INLINE void cc__sched_record(struct worker *w, enum record_kind kind) {
    struct record_ring *r = cc__sched_ring(w);
    if (unlikely(r != NULL)) cc__sched_record_slow(w, r, kind, 0, 0);
}

/* `next` is about to run. before: what the last fiber did, REC_YIELD or REC_END; REC_NONE: that is recorded already, or
 * there was none. */
CC_INLINE void cc__sched_record_run(struct worker *w, const struct fiber *next, enum record_kind before) {
    struct record_ring *r = cc__sched_ring(w);
    if (likely(r == NULL)) return;
    uint64_t slot = cc__sched_record_near(r, next);
    if (likely(slot < cc__get(&r->turns)))
        cc__sched_record_turn(w, r, REC_RUN, before, slot);
    else
        cc__sched_record_run_slow(w, r, next, before);
}

/* The running fiber, which has noted its object, is about to park, and `next` is about to run. */
CC_INLINE void cc__sched_record_switch(struct worker *w, struct fiber *self, unsigned reason,
                                       const struct fiber *next) {
    struct record_ring *r = cc__sched_ring(w);
    if (likely(r == NULL)) return;
    uint64_t slot = cc__sched_record_near(r, next);
    if (likely(slot < cc__get(&r->turns)))
        cc__sched_record_turn(w, r, REC_SWITCH, reason, cc__record_switch_body(cc__fiber_object(self), (uint32_t)slot));
    else
        cc__sched_record_park_slow(w, r, reason, next);
}

/* The same where the next one is chosen on the worker's own stack. */
CC_INLINE void cc__sched_record_park(struct worker *w, unsigned reason) {
    struct record_ring *r = cc__sched_ring(w);
    if (unlikely(r != NULL)) cc__sched_record_park_slow(w, r, reason, NULL);
}

/* `f`'s wait was ended by a store, not by cc__state_claim, which would have recorded it. */
CC_INLINE void cc__sched_record_wake(struct worker *w, const struct fiber *f, unsigned by) {
    struct record_ring *r = cc__sched_ring(w);
    uint64_t when;
    if (likely(r == NULL) || !cc__sched_record_time(w, r, &when)) return;
    uint64_t slot = cc__sched_record_near(r, f);
    if (unlikely(slot >= RECORD_NEAR)) slot = cc__sched_record_slot(f); /* no call, which would cost without it, too */
    cc__record_at(r, when, REC_WAKE, by, slot);
}

/* A task without a name is about to start, on this worker, in no scope. */
CC_INLINE void cc__sched_record_spawn(struct worker *w, const struct fiber *f) {
    struct record_ring *r = cc__sched_ring(w);
    uint64_t when;
    if (likely(r == NULL) || !cc__sched_record_time(w, r, &when)) return;
    cc__record_at(r, when, REC_SPAWN, 0, f->slot | (uint64_t)cc__get(&f->generation) << 32);
    cc__record_write(r, (uint64_t)(uintptr_t)f->site << RECORD_TIME_SHIFT | REC_SPAWN_AT, (uintptr_t)f->fn);
}

#endif
