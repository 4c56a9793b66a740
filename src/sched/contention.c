/* contention.c - what moves of cache lines cost a worker, and whether it goes on. */
#include "sched/contention.h"

#include "os/clock.h"
#include "sched/island.h"
#include "sched/sysmon.h"

struct timed_move cc__contention_begin(struct worker *w) {
    cc__set(&w->runq.timed, 0);
    return (struct timed_move){cc__clock_now(), cc__get(&w->moves.count)};
}

void cc__contention_end(struct worker *w, struct timed_move begun) {
    if (cc__get(&w->moves.count) == begun.moves) return; /* the object was used by this worker before */
    uint64_t ns = cc__clock_now() - begun.start;
    cc__set(&w->moves.ns, cc__get(&w->moves.ns) + (ns < MOVE_NS_MAX ? ns : MOVE_NS_MAX));
    cc__set(&w->moves.timed, cc__get(&w->moves.timed) + 1);
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
    cc__set(&w->runq.timed, 1);
    if (moves % MOVES_JUDGED != 0) return;
    uint64_t now = cc__clock_now(), span = now - cc__get(&w->moves.since), ns = cc__get(&w->moves.ns);
    uint32_t timed = cc__get(&w->moves.timed);
    cc__set(&w->moves.since, now);
    cc__set(&w->moves.ns, 0);
    cc__set(&w->moves.timed, 0);
    if (timed == 0) return;
    if (cc__policy_contended(ns / timed * MOVES_JUDGED, span, cc__policy_awake(cc__get(&cc__sched.want))))
        give_back_soon(w);
}
