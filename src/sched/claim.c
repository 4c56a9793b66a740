/* claim.c - ending a wait that only its object can end costs no read-modify-write, until somebody wants to
 * cancel it.
 *
 * A waker that is a worker claims inside its own biased lock: there it looks at `contested` and stores. A
 * canceller sets `contested` and then takes every worker's biased lock away for a moment: whoever was inside
 * has finished its store, whoever comes later sees the flag and compares-and-swaps, as the canceller does.
 * Threads that are not workers always compare-and-swap.
 *
 * CLAIM-1  A store and another claim never meet on one word: stores happen only inside a biased lock whose
 *          owner has not seen `contested`, and the canceller claims only after each lock was revoked once since
 *          it set `contested`.
 */
#include "sched/sched.h"

#include "plat/thread.h"

bool cc__sched_claim(struct fiber *f, uint64_t ticket, enum wake_reason reason, bool sole) {
    struct worker *w = cc__worker();
    if (!sole || unlikely(w == NULL)) return cc__state_claim(f, ticket, reason) == CLAIM_WON;
    bool won = true;
    cc__bias_enter(&w->runq.bias);
    if (unlikely(cc__get(&cc__sched.contested)))
        won = cc__state_claim(f, ticket, reason) == CLAIM_WON;
    else
        cc__state_wake_sole(f, reason);
    cc__bias_leave(&w->runq.bias);
    return won;
}

void cc__sched_contest(bool on) {
    cc__set_seq(&cc__sched.contested, on);
    if (!on) return;
    for (unsigned i = 0; i < cc__sched.count; i++) {
        struct bias *bias = &cc__sched.workers[i].runq.bias;
        while (!cc__bias_revoke(bias)) cc__thread_yield(); /* another robs, or the owner lost its CPU inside */
        cc__bias_release(bias);
    }
}
