/* watch.c - while somebody wants to see every park, wake or spawn, all of them take the longer way that exists anyway.
 *
 *   parks    look at `cancels` after their switch; any bit there leads to cc__cancel_parked_slow
 *   wakes    of waits that have no other claimant are a store unless `contested`; contested, all of them come to
 *            cc__state_claim
 *   spawns   look at `spawns`
 *
 * So what is not watched costs nothing. Whoever changes the categories publishes them and then looks whether the runtime
 * runs; who starts it says that it runs and then looks at the categories: one of the two comes here.
 */
#include "sched/sched.h"
#include "trace/trace.h"

static void watch(_Atomic uint32_t *word, uint32_t bit, bool on) {
    if (on)
        cc__or_seq(word, bit);
    else
        cc__and_seq(word, ~bit);
}

void cc__sched_route_traces(void) {
    cc__lock_take(&cc__sched.trace_route.lock);
    uint32_t on = cc__get_seq(&cc__trace.on);
    watch(&cc__sched.spawns, SPAWNS_TRACED, on & TRACE_SPAWN);
    watch(&cc__sched.cancels, CANCELS_TRACED, on & (TRACE_PARK | TRACE_SPEC));
    bool wakes = (on & (TRACE_WAKE | TRACE_SPEC)) != 0;
    if (wakes != cc__sched.trace_route.wakes) cc__sched_contest(wakes);
    cc__sched.trace_route.wakes = wakes;
    cc__lock_release(&cc__sched.trace_route.lock);
}
