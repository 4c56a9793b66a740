/* contention.c - what moves of cache lines cost a worker, and whether it goes on. */
#include "sched/contention.h"

#include "os/clock.h"
#include "sched/island.h"
#include "sched/sysmon.h"

/* A read of the clock takes as long as some operations, or much longer: its time is subtracted. */
struct timed_move cc__contention_begin(struct worker *w) {
    uint32_t tries = cc__get(&w->runq.timed);
    cc__set(&w->runq.timed, 0);
    uint64_t before = cc__clock_now(), now = cc__clock_now();
    return (struct timed_move){now + (now - before), cc__get(&w->moves.count), tries - 1};
}

void cc__contention_end(struct worker *w, struct timed_move begun) {
    if (cc__get(&w->moves.count) == begun.moves) { /* the object was used by this worker before */
        cc__set(&w->runq.timed, begun.tries);
        return;
    }
    uint64_t now = cc__clock_now(), ns = now > begun.start ? now - begun.start : 0;
    cc__set(&w->moves.ns, cc__get(&w->moves.ns) + ns);
    if (ns > cc__get(&w->moves.longest)) cc__set(&w->moves.longest, ns);
    cc__set(&w->moves.timed, cc__get(&w->moves.timed) + 1);
}

/* The average time of a move, without the longest, which may have been interrupted. 0: too few were timed. */
static uint64_t average(struct worker *w) {
    uint32_t timed = cc__get(&w->moves.timed);
    return timed > MOVES_JUDGED / MOVES_TIMED / 2 ? (cc__get(&w->moves.ns) - cc__get(&w->moves.longest)) / (timed - 1)
                                                  : 0;
}

/* Whether another worker has stopped since then: what was measured before may no longer be so. */
static bool stopped_after(uint64_t time) {
    return cc__get(&cc__sched.idle.contended_at) > time;
}

/* Ends the turn at the fiber's next call that may switch, and polls: there the worker gives its fibers back. */
static void give_back_soon(struct worker *w) {
    uint64_t turn = cc__get(&w->core.turns);
    cc__set(&w->moves.give_back, true);
    cc__set(&w->core.poll_at, turn);
    if (cc__sysmon_may_preempt()) cc__set(&w->runq.preempt, (uint32_t)turn);
}

void cc__contention_count(struct worker *w, uint32_t moves) {
    if (cc__sched.simulated || cc__worker_is_island(w)) return;
    cc__set(&w->runq.timed, MOVES_TRIES);
    if (moves % MOVES_JUDGED != 0) return;
    uint64_t now = cc__clock_now(), since = cc__get(&w->moves.since), each = average(w);
    cc__set(&w->moves.since, now);
    cc__set(&w->moves.ns, 0);
    cc__set(&w->moves.longest, 0);
    cc__set(&w->moves.timed, 0);
    if (each == 0 || stopped_after(since)) return;
    unsigned awake = cc__policy_awake(cc__get(&cc__sched.want));
    if (cc__policy_contended(each * MOVES_JUDGED, now - since, awake)) give_back_soon(w);
}

bool cc__contention_stops(struct worker *w) {
    uint64_t before = cc__get(&cc__sched.idle.contended_at);
    if (!stopped_after(cc__get(&w->moves.since)) && cc__cas_seq(&cc__sched.idle.contended_at, &before, cc__clock_now()))
        return true;
    cc__set(&w->moves.give_back, false);
    return false;
}
