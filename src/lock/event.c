/* event.c - a one-way flag with waiters; once (once.c) is built on it.
 *
 * EVENT-1  cc__event_finish empties the queue, then changes the word from "no waiters" to its final value by one
 *          compare-and-swap, and retries if a waiter arrived in between. That compare-and-swap is the last access to
 *          the event, which may be freed from then on. The claimed waiters run after it.
 * EVENT-2  A set of an event that is already set is a compare-and-swap too. A reset that comes after it acquires what
 *          the setter did; one that comes before makes the set find the event reset. With a load instead, a caller that
 *          resets the event and then looks for work could miss work whose set has found the event still set.
 */
#include "lock/event.h"

#include "sim/sim.h"

#include <errno.h>

/* Under the lock: sets HAS_WAITERS (true), unless the word is final. */
static bool mark_locked(struct wait_word *ww, uint32_t pending) {
    uint32_t word = cc__get_acquire(&ww->word); /* pairs with cc__event_finish */
    while (word == pending && !cc__cas(&ww->word, &word, pending | HAS_WAITERS)) {
    }
    return (word & ~HAS_WAITERS) == pending;
}

int cc__event_wait_slow(struct wait_word *ww, uint32_t pending, uint64_t deadline, enum park_reason reason) {
    cc__lock_take(&ww->lock);
    if (mark_locked(ww, pending)) return cc__wait_word_wait_locked(ww, deadline, reason);
    cc__lock_release(&ww->lock);
    return 0;
}

void cc__event_finish(struct wait_word *ww, uint32_t done) { /* EVENT-1, EVENT-2 */
    struct wakes wakes;
    cc__wakes_init(&wakes);
    uint32_t word = cc__get(&ww->word);
    for (;;) {
        if (word & HAS_WAITERS) {
            cc__lock_take(&ww->lock);
            cc__wait_word_claim_all_locked(ww, &wakes);
            cc__wait_word_left_locked(ww);
            cc__lock_release(&ww->lock);
            word = cc__get(&ww->word);
        } else if (cc__cas(&ww->word, &word, done)) { /* pairs with the waits that read it, and with a reset */
            break;
        }
    }
    cc__wakes_flush_any(&wakes);
    cc__sim_point();
}

enum { UNSET, SET };

int cc_event_set(CCEvent *e) {
    if (unlikely(e == NULL)) return EINVAL;
    cc__event_finish(cc__wait_word_of(e), SET);
    return 0;
}

int cc_event_reset(CCEvent *e) {
    if (unlikely(e == NULL)) return EINVAL;
    uint32_t set = SET;
    cc__sim_point();
    (void)cc__cas(&cc__wait_word_of(e)->word, &set, UNSET); /* pairs with cc__event_finish: EVENT-2 */
    return 0;
}

int cc_event_wait_try(CCEvent *e) {
    if (unlikely(e == NULL)) return EINVAL;
    cc__sim_point();
    return cc__get_acquire(&cc__wait_word_of(e)->word) == SET ? 0 : EAGAIN; /* pairs with cc__event_finish */
}

int cc_event_wait_until(CCEvent *e, CCDeadline deadline) {
    int rc = cc_event_wait_try(e);
    if (rc != EAGAIN) return rc;
    return cc__event_wait_slow(cc__wait_word_of(e), UNSET, cc__wait_deadline(deadline), PARK_EVENT);
}

int cc_event_wait(CCEvent *e) {
    return cc_event_wait_until(e, CC_FOREVER);
}

/* ---- as an arm of a select ---- */

static bool is_set(const CCCase *c) {
    return cc__get_acquire(&cc__wait_word_of(c->event)->word) == SET; /* pairs with cc__event_finish */
}

static int look(struct worker *w, const CCCase *c) {
    (void)w;
    if (unlikely(c->event == NULL)) return EINVAL;
    return is_set(c) ? LOOK_READY : LOOK_NOT_READY;
}

static int try(const CCCase *c) {
    return is_set(c) ? 0 : ARM_WAIT;
}

static unsigned prepare(struct arm *arm, const CCCase *c) {
    return cc__wait_word_prepare(arm, cc__wait_word_of(c->event));
}

/* The next set clears a HAS_WAITERS without waiters. */
static int look_locked(struct arm *arm) {
    return mark_locked(arm->object, UNSET) ? 0 : ARM_AGAIN;
}

const struct arm_ops cc__arm_event = {.look = look,
                                      .try = try,
                                      .prepare = prepare,
                                      .link = cc__wait_word_link,
                                      .unlink = cc__wait_word_unlink,
                                      .look_locked = look_locked};
