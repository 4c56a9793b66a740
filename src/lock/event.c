/* event.c - it has happened, or not yet; and once, which is an event with somebody who brings it about.
 *
 * EVENT-1  Whoever sets it first empties the line, then goes from "nobody waits" to SET in one step; if
 *          somebody came in between, again. SET is the last that is done to the event, which may then be
 *          gone; those who were claimed run after it.
 */
#include "lock/event.h"

#include "sim/sim.h"

#include <errno.h>

/* ---- for both ---- */

int cc__event_wait_slow(struct hall *h, uint32_t done, uint64_t deadline) {
    struct wait_node node;
    cc__lock_take(&h->lock);
    uint32_t word = cc__get_acquire(&h->word); /* pairs with cc__event_finish */
    while (word != done && !(word & HALL_WAITERS) && !cc__cas(&h->word, &word, word | HALL_WAITERS)) {
    }
    int rc = 0;
    if (word != done) {
        rc = cc__line_wait_locked(&h->line, &h->lock, &node, deadline, (struct wait_what){PARK_EVENT, h});
        if (likely(rc == 0)) return 0;
        cc__hall_left_locked(h);
    }
    cc__lock_release(&h->lock);
    return rc;
}

void cc__event_finish(struct hall *h, uint32_t done) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    uint32_t word = cc__get(&h->word);
    while (word != done) {
        if (word & HALL_WAITERS) {
            cc__lock_take(&h->lock);
            cc__line_claim_all_locked(&h->line, &wakes);
            cc__hall_left_locked(h);
            cc__lock_release(&h->lock);
            word = cc__get(&h->word);
        } else if (cc__cas(&h->word, &word, done)) { /* pairs with the waits that find it so */
            break;
        }
    }
    cc__line_flush(&wakes);
    cc__sim_point();
}

/* ---- the event ---- */

enum { UNSET, SET };

int cc_event_set(CCEvent *e) {
    if (unlikely(e == NULL)) return EINVAL;
    cc__event_finish(cc__hall_of(e), SET);
    return 0;
}

int cc_event_reset(CCEvent *e) {
    if (unlikely(e == NULL)) return EINVAL;
    uint32_t set = SET;
    cc__sim_point();
    (void)cc__cas(&cc__hall_of(e)->word, &set, UNSET);
    return 0;
}

int cc_event_wait_try(CCEvent *e) {
    if (unlikely(e == NULL)) return EINVAL;
    cc__sim_point();
    return cc__get_acquire(&cc__hall_of(e)->word) == SET ? 0 : EAGAIN; /* pairs with cc__event_finish */
}

int cc_event_wait_until(CCEvent *e, CCDeadline deadline) {
    int rc = cc_event_wait_try(e);
    return rc == EAGAIN ? cc__event_wait_slow(cc__hall_of(e), SET, cc__wait_deadline(deadline)) : rc;
}

int cc_event_wait(CCEvent *e) {
    return cc_event_wait_until(e, CC_FOREVER);
}
