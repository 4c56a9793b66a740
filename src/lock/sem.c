/* sem.c - a semaphore: the word counts permits, and a release hands permits to waiters.
 *
 * SEM-1  While there are waiters, the word holds no permits: a release hands permits to waiters in FIFO order, and only
 *        the rest goes into the word. So no caller overtakes the queue.
 * SEM-2  A release's last access to the semaphore is the compare-and-swap that adds permits, or the release of the
 *        lock, before any waiter that it has claimed can run. After that the semaphore may be freed.
 * SEM-3  A release that finds HAS_WAITERS hands over and adds in one critical section: all of its permits or none. The
 *        rest stays in the word beside HAS_WAITERS, although the queue is empty: a caller that takes such a permit
 *        takes the lock first, and so comes after the release has unlocked it (SEM-2).
 */
#include "lock/sem.h"

#include "lock/wait_word.h"
#include "sim/sim.h"
#include "wait/cancel.h"

#include <errno.h>

/* Under the lock: takes a permit if there is one, and clears the leftover HAS_WAITERS (SEM-3). */
static bool take_locked(struct wait_word *ww) {
    uint32_t word = cc__get(&ww->word), permits;
    while ((permits = word & ~HAS_WAITERS) != 0)
        if (cc__cas_weak(&ww->word, &word, permits - 1)) return true;
    return false;
}

static CC_NOINLINE bool take_with_lock(struct wait_word *ww) {
    cc__lock_take(&ww->lock);
    bool taken = take_locked(ww);
    cc__lock_release(&ww->lock);
    return taken;
}

static bool take(struct wait_word *ww) {
    uint32_t word = cc__get(&ww->word);
    while (word != 0 && !(word & HAS_WAITERS))
        if (cc__cas_weak(&ww->word, &word, word - 1)) return true; /* pairs with the release that added it */
    return unlikely(word > HAS_WAITERS) && take_with_lock(ww);     /* permits beside HAS_WAITERS */
}

/* Under the lock: takes a permit (true), or sets HAS_WAITERS. */
static bool take_or_mark_locked(struct wait_word *ww) {
    uint32_t word = 0;
    while (!take_locked(ww)) {
        word = 0;
        if (cc__cas(&ww->word, &word, HAS_WAITERS) || word == HAS_WAITERS) return false;
    }
    return true;
}

static CC_NOINLINE int acquire_slow(struct wait_word *ww, uint64_t deadline, enum park_reason reason) {
    cc__lock_take(&ww->lock);
    if (!take_or_mark_locked(ww)) return cc__wait_word_wait_locked(ww, deadline, reason);
    cc__lock_release(&ww->lock);
    return 0;
}

static CC_NOINLINE int acquire_always(struct wait_word *ww) {
    bool held = cc__cancel_hold(); /* as a mutex does */
    while (acquire_slow(ww, WAIT_FOREVER, PARK_SEM) != 0) {
    }
    cc__cancel_unhold(held);
    return 0;
}

int cc_sem_acquire_try(CCSem *s) {
    if (unlikely(s == NULL)) return EINVAL;
    cc__sim_point();
    return take(cc__wait_word_of(s)) ? 0 : EAGAIN;
}

int cc_sem_acquire_until(CCSem *s, CCDeadline deadline) {
    if (unlikely(s == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(s);
    cc__sim_point();
    cc__wait_word_may_preempt();
    return likely(take(ww)) ? 0 : acquire_slow(ww, cc__wait_deadline(deadline), PARK_SEM);
}

int cc__sem_acquire_for(CCSem *s, enum park_reason reason) {
    struct wait_word *ww = cc__wait_word_of(s);
    cc__sim_point();
    return take(ww) ? 0 : acquire_slow(ww, WAIT_FOREVER, reason);
}

int cc_sem_acquire(CCSem *s) {
    return cc_sem_acquire_until(s, CC_FOREVER);
}

int cc_sem_acquire_uncancellable(CCSem *s) {
    if (unlikely(s == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(s);
    cc__sim_point();
    cc__wait_word_may_preempt();
    return likely(take(ww)) ? 0 : acquire_always(ww);
}

/* HAS_WAITERS was set. 0: waiters have got their permits, and the rest is in the word; EOVERFLOW: nothing was released;
 * EAGAIN: it is no longer set. While it is set, the word changes only under the lock. */
static CC_NOINLINE int release_to_waiters(struct wait_word *ww, uint32_t n, struct wakes *wakes) { /* SEM-1 */
    int rc = 0;
    cc__lock_take(&ww->lock);
    uint32_t word = cc__get(&ww->word), permits = word & ~HAS_WAITERS;
    if (!(word & HAS_WAITERS)) {
        rc = EAGAIN;
    } else if (permits > CC_SEM_MAX - n) {
        rc = EOVERFLOW;
    } else {
        while (n > 0 && cc__wait_word_claim_locked(ww, wakes)) n--;
        if (n > 0)
            cc__set_release(&ww->word, HAS_WAITERS | (permits + n)); /* SEM-3; pairs with take_locked */
        else if (permits == 0)
            cc__wait_word_left_locked(ww);
    }
    cc__lock_release(&ww->lock);
    return rc;
}

int cc_sem_release(CCSem *s, uint32_t n) {
    if (unlikely(s == NULL)) return EINVAL;
    if (unlikely(n > CC_SEM_MAX)) return EOVERFLOW;
    struct wait_word *ww = cc__wait_word_of(s);
    struct wakes wakes;
    cc__wakes_init(&wakes);
    int rc = 0;
    uint32_t word = cc__get(&ww->word);
    while (n > 0) {
        if (unlikely(word & HAS_WAITERS)) {
            if ((rc = release_to_waiters(ww, n, &wakes)) != EAGAIN) break;
            rc = 0;
            word = cc__get(&ww->word);
        } else if (unlikely(word > CC_SEM_MAX - n)) {
            rc = EOVERFLOW;
            break;
        } else if (cc__cas_weak(&ww->word, &word, word + n)) { /* pairs with take */
            break;
        }
    }
    cc__wakes_flush_any(&wakes);
    cc__sim_point();
    return rc;
}

/* ---- as an arm of a select ----
 *
 * A queued arm is a waiter like any other (SEM-1): a release that claims it gives it a permit; if the claim is lost,
 * the permit goes to the next. So the select has the permit if and only if this arm was chosen. */

static int look(struct worker *w, const CCCase *c) {
    (void)w;
    if (unlikely(c->sem == NULL)) return EINVAL;
    return (cc__get(&cc__wait_word_of(c->sem)->word) & ~HAS_WAITERS) != 0 ? LOOK_READY : LOOK_NOT_READY;
}

static int try(const CCCase *c) {
    return take(cc__wait_word_of(c->sem)) ? 0 : ARM_WAIT;
}

static unsigned prepare(struct arm *arm, const CCCase *c) {
    return cc__wait_word_prepare(arm, cc__wait_word_of(c->sem));
}

/* Takes no permit: another arm may be ready. Taking the next permit clears a HAS_WAITERS without waiters. */
static int look_locked(struct arm *arm) {
    struct wait_word *ww = arm->object;
    uint32_t word = 0;
    return cc__cas(&ww->word, &word, HAS_WAITERS) || word == HAS_WAITERS ? 0 : ARM_AGAIN;
}

const struct arm_ops cc__arm_acquire = {.look = look,
                                        .try = try,
                                        .prepare = prepare,
                                        .link = cc__wait_word_link,
                                        .unlink = cc__wait_word_unlink,
                                        .look_locked = look_locked};
