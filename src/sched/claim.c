/* claim.c - ending a wait that only its object can end costs no read-modify-write, until somebody wants to
 * cancel it.
 *
 * A waker that is a worker claims inside its own biased lock: there it looks at `contested` and stores. A
 * canceller raises `contested` and then waits until it has seen each worker outside of its lock: whoever was
 * inside has finished its store, whoever comes later sees the flag and compares-and-swaps, as the canceller
 * does. Threads that are not workers always compare-and-swap. `contested` counts the cancellers.
 *
 *   worker                            canceller
 *   owner = INSIDE                    contested + 1
 *   -- light barrier --               -- heavy barrier --
 *   contested (acquire)?              while owner == INSIDE: wait
 *      compare-and-swap               claim, by compare-and-swap
 *   else store                        contested - 1 (release)
 *   owner = AWAY (release)
 *
 * CLAIM-1  A store and another claim never meet on one word: by BARRIER-1 the worker sees `contested`, or the
 *          canceller sees INSIDE and waits for the store's release.
 * CLAIM-2  A worker that does not see `contested` any more sees what the canceller claimed: the one acquires what the
 *          other's subtraction released. Else its look at the state word might be older than its look at the flag,
 *          and find PARKED.
 */
#include "sched/upcalls.h"

#include "sync/backoff.h"

/* A section takes tens of nanoseconds, unless the worker loses its CPU inside. */
static void await_outside(struct worker *w) {
    struct backoff backoff = {0};
    while (cc__get_acquire(&w->runq.bias.owner) == CC__BIAS_INSIDE) /* pairs with the leave */
        cc__backoff(&backoff);
}

bool cc__sched_claim(struct fiber *f, uint64_t ticket, enum wake_reason reason, bool sole) {
    struct worker *w = cc__worker();
    if (!sole || unlikely(w == NULL)) return cc__state_claim(f, ticket, reason) == CLAIM_WON;
    bool won;
    cc__bias_enter(&w->runq.bias);
    if (unlikely(cc__get_acquire(&cc__sched.contested))) /* CLAIM-2 */
        won = cc__state_claim(f, ticket, reason) == CLAIM_WON;
    else
        won = cc__state_wake_sole(f, reason);
    cc__bias_leave(&w->runq.bias);
    return won;
}

void cc__sched_contest(bool on) {
    if (!on) {
        cc__sub_seq(&cc__sched.contested,
                    1); /* CLAIM-2: pairs with the looks of cc__sched_claim and wait/local_wake.h */
        return;
    }
    cc__add_seq(&cc__sched.contested, 1);
    cc__barrier_heavy();
    /* A worker that gets its thread from now on sees the flag. */
    for (unsigned i = 0, n = cc__get_seq(&cc__sched.count); i < n; i++) await_outside(&cc__sched.workers[i]);
}

void cc__sched_await_outside(uint64_t tag) {
    struct worker *self = cc__worker();
    if (self != NULL && self->core.tag == tag) return;
    if (self == NULL && !cc__upcall_enter_locked()) return; /* there are no workers */
    unsigned owner = (unsigned)(tag & (WORD_OWNER >> WORD_OWNER_SHIFT));
    if (owner <= cc__sched.max && cc__sched.workers[owner - 1].core.tag == tag) {
        cc__barrier_heavy();
        await_outside(&cc__sched.workers[owner - 1]);
    }
    if (self == NULL) cc__upcall_leave();
}
