/* cancel.c - the slow path of parking, once something has been cancelled. */
#include "wait/cancel.h"

#include "fiber/spec.h"
#include "sched/wake.h"

/* The caller still holds the lock that wakers need; on an object without a lock the fiber may already run again. */
static CC_COLD void watch_parked(struct fiber *f, uint64_t ticket) {
    uint64_t word = cc__get(&f->word);
    if ((word & (WORD_TICKET | WORD_STATE)) != (ticket | FIBER_PARKED)) return;
    if (cc__spec_on()) cc__spec_parked(f, word, cc__worker()->core.owner);
    cc__event(park, f, cc__word_reason(word));
}

bool cc__upcall_cancelled(struct fiber *f, uint64_t ticket) {
    if (cc__get_acquire(&cc__sched.contested) != 0) cc__full_fence(); /* CLAIM-3 */
    if (unlikely(cc__get(&cc__sched.cancels) & CANCELS_TRACED)) watch_parked(f, ticket);
    if (likely(!cc__cancel_holds(cc__get_acquire(&f->scope)))) return false;
    return cc__state_claim(f, ticket, WAKE_CANCEL) == CLAIM_WON;
}

void cc__cancel_begin(void) {
    cc__or_seq(&cc__sched.cancels, CANCELS_MADE);
}

/* While contested, no wait is claimed by a plain store. Includes the barrier of CANCEL-1. */
void cc__cancel_barrier(void) {
    cc__sched_cancel_begins();
}

void cc__cancel_end(struct wakes *wakes) {
    cc__sched_cancel_ends();
    if (cc__wakes_any(wakes)) cc__wakes_flush(wakes);
}

void cc__cancel_claim(struct fiber *f, struct wakes *wakes) {
    uint64_t word = cc__get_acquire(&f->word);
    enum fiber_state state = cc__word_state(word);
    if (state != FIBER_PARKED && state != FIBER_PARKING) return;
    if (!cc__cancel_holds(cc__get_acquire(&f->scope))) return; /* CANCEL-2 */
    if (cc__state_claim(f, word & WORD_TICKET, WAKE_CANCEL) == CLAIM_WON) cc__wakes_add(wakes, f);
}

/* ---- OS threads ---- */

static _Thread_local struct outsider *own __attribute__((tls_model("initial-exec")));

CC_NOINLINE struct outsider *cc__outsider(void) {
    return own;
}

CC_NOINLINE void cc__outsider_become(struct outsider *outsider) {
    own = outsider;
}
