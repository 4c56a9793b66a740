/* trace_route.c - while parks, wakes or spawns are traced, all of them take slow paths, which exist anyway.
 *
 *   parks    check `cancels` after their switch; any bit there leads to cc__cancel_parked_slow
 *   wakes    of waits that have no other claimant are a store unless `contested`; contested, all of them go through
 *            cc__state_claim
 *   spawns   check `spawns`
 *
 * So what is not traced costs nothing. A thread that changes the categories publishes them, then checks whether the
 * runtime runs; the thread that starts the runtime publishes that it runs, then reads the categories: at least one of
 * the two calls cc__sched_route_traces.
 */
#include "sched/wake.h"
#include "trace/trace.h"

static void route(_Atomic uint32_t *word, uint32_t bit, bool on) {
    if (on)
        cc__or_seq(word, bit);
    else
        cc__and_seq(word, ~bit);
}

void cc__sched_route_traces(void) {
    cc__lock_take(&cc__sched.trace_route.lock);
    uint32_t on = cc__get_seq(&cc__trace.on);
    route(&cc__sched.spawns, SPAWNS_TRACED, on & TRACE_SPAWN);
    route(&cc__sched.cancels, CANCELS_TRACED, on & (TRACE_PARK | TRACE_SPEC));
    bool wakes = (on & (TRACE_WAKE | TRACE_SPEC)) != 0;
    if (wakes != cc__sched.trace_route.wakes) cc__sched_contest(wakes);
    cc__sched.trace_route.wakes = wakes;
    cc__lock_release(&cc__sched.trace_route.lock);
}
