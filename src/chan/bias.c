/* bias.c - a channel that only one worker uses is guarded by that worker's biased lock.
 *
 * README.md has the protocol. The worker: owner = INSIDE, light barrier, look at `bias`. Any other thread, under the
 * channel's lock: bias = 0, heavy barrier, wait until the owner is not INSIDE.
 *
 * CHANBIAS-1  By BARRIER-1 the worker sees bias == 0, or the other thread sees INSIDE and waits.
 * CHANBIAS-2  `bias` is written under the lock: set by the worker itself, cleared by the revoker.
 * CHANBIAS-3  A revocation by another thread costs some 20 us and makes the next threshold 32 times as high: a shared
 *             channel is revoked two or three times in all. A revocation by the worker itself (a deadline, a close)
 *             needs no barrier and doubles the threshold.
 * CHANBIAS-4  A select that parks inside the biased lock (select/select.c) is claimed by a store inside that lock,
 *             because all its claimants hold it. A thread that revokes the bias of one of its channels must claim by
 *             compare-and-swap, and so must all other claimants from then on: each revoker clears `sole` in the waiter
 *             and waits for the worker once more, as for the bias. `biased_selects` saves channels without such selects
 *             the walk.
 */
#include "chan/bias.h"

#include "sched/wake.h"

static uint32_t raised(uint32_t threshold, uint32_t times) { /* CHANBIAS-3 */
    uint64_t product = (uint64_t)threshold * times;
    return product < BIAS_USES_MAX ? (uint32_t)product : BIAS_USES_MAX;
}

/* True: a select waits here. A select that is already marked counts too: the revoker that marked it, for another of its
 * channels, may not have waited for the worker yet. */
static bool mark_selects_locked(struct link *list) {
    bool any = false;
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next)) {
        struct arm *arm = cc__chan_arm(l);
        if (arm->chosen == NULL) continue;
        cc__set(&arm->waiter->sole, false);
        any = true;
    }
    return any;
}

void cc__chan_revoke_locked(CCChan *ch) { /* CHANBIAS-2 */
    uint64_t tag = cc__get(&ch->bias);
    struct worker *w = cc__worker();
    bool ours = w != NULL && w->core.tag == tag;
    uint32_t times = ours ? BIAS_RAISE_OWN : BIAS_RAISE_OTHER;
    ch->threshold = raised(ch->threshold, times);
    if (!ours || ch->bias_by == BIAS_BY_SELECT) ch->select_threshold = raised(ch->select_threshold, times);
    if (!ours) ch->uses = 0;
    cc__set_seq(&ch->bias, 0);
    cc__sched_await_outside(tag);
    if (!ch->biased_selects) return;
    ch->biased_selects = false;
    bool receive = mark_selects_locked(&ch->receivers), send = mark_selects_locked(&ch->senders);
    if (receive || send) cc__sched_await_outside(tag); /* CHANBIAS-4 */
}
