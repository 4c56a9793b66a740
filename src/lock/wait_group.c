/* wait_group.c - a count, and waiters for it to become 0.
 *
 * GROUP-1  The count becomes 0 under the lock, in the critical section that claims all waiters: a wait ends if and only
 *          if the count was 0 at some moment during it. So the group may be used again at once.
 * GROUP-2  A wait reads the count under the lock. Otherwise it could return, and the group be freed, while the call
 *          that counted down to 0 still holds the lock.
 */
#include "lock/wait_word.h"

#include "base/fatal.h"
#include "sim/sim.h"

#include <errno.h>

static uint32_t sum(uint32_t count, int32_t n) {
    int64_t after = (int64_t)count + n;
    if (unlikely(after < 0 && n == -1)) cc__fatal("cc_wait_group_done: the count is 0: more is done than was added");
    if (unlikely(after < 0))
        cc__fatal("cc_wait_group_add: the count is %u, and %d more makes it negative: more is done than was added",
                  count, n);
    if (unlikely(after > INT32_MAX)) cc__fatal("cc_wait_group_add: the count is %u, and %d more is too much", count, n);
    return (uint32_t)after;
}

static CC_NOINLINE void add_locked(struct wait_word *ww, int32_t n) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&ww->lock);
    uint32_t count = cc__get(&ww->word), after;
    do after = sum(count, n);
    while (!cc__cas_weak(&ww->word, &count, after)); /* acquires what the other calls did, for the waiters */
    if (after == 0) cc__wait_word_claim_all_locked(ww, &wakes);
    cc__lock_release(&ww->lock);
    cc__wakes_flush_any(&wakes);
}

int cc_wait_group_add(CCWaitGroup *wg, int32_t n) {
    if (unlikely(wg == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(wg);
    cc__sim_point();
    uint32_t count = cc__get(&ww->word);
    for (;;) {
        uint32_t after = sum(count, n);
        if (after == 0) break;
        if (likely(cc__cas_weak(&ww->word, &count, after))) return 0; /* pairs with the call that makes it 0 */
    }
    if (n != 0) add_locked(ww, n);
    cc__sim_point(); /* a wait that finds 0 may return, and the group be freed */
    return 0;
}

int cc_wait_group_done(CCWaitGroup *wg) {
    return cc_wait_group_add(wg, -1);
}

static int wait(CCWaitGroup *wg, uint64_t deadline, bool may_wait) {
    if (unlikely(wg == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(wg);
    cc__sim_point();
    cc__lock_take(&ww->lock);
    uint32_t count = cc__get_acquire(&ww->word); /* pairs with the calls that counted down */
    if (count != 0 && may_wait) return cc__wait_word_wait_locked(ww, deadline, PARK_GROUP);
    cc__lock_release(&ww->lock);
    return count == 0 ? 0 : EAGAIN;
}

int cc_wait_group_wait(CCWaitGroup *wg) {
    return wait(wg, WAIT_FOREVER, true);
}

int cc_wait_group_wait_try(CCWaitGroup *wg) {
    return wait(wg, 0, false);
}

int cc_wait_group_wait_until(CCWaitGroup *wg, CCDeadline deadline) {
    return wait(wg, cc__wait_deadline(deadline), true);
}
