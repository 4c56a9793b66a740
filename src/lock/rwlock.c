/* rwlock.c - many readers or one writer, first come, first served.
 *
 *    31           30 ......... 1  0
 *    HAS_WAITERS  readers         WRITER
 *
 * RW-1  Nobody overtakes: while HAS_WAITERS is set, the lock is taken through the queue only.
 * RW-2  The last holder to leave while somebody waits hands the lock over, under the internal lock: to the first waiter
 *       if that is a writer, else to the readers before the first writer. The lock is not free in between.
 * RW-3  When all waiters have left for other reasons, HAS_WAITERS is cleared, and the holder leaves as if nobody had
 *       waited: by one compare-and-swap, its last access to the lock. After that, and after a hand-over, the lock may
 *       be freed.
 */
#include "lock/holder.h"
#include "lock/wait_word.h"
#include "sim/sim.h"
#include "wait/cancel.h"

#include <errno.h>

#define WRITER UINT32_C(1)
#define READER UINT32_C(2)
#define READERS (~(HAS_WAITERS | WRITER))

struct rwlock {
    struct wait_word ww;
    _Atomic uint64_t owner; /* the writer */
};

_Static_assert(sizeof(struct rwlock) == sizeof(CCRWLock), "the public struct");

static bool may_enter(uint32_t word, bool write) { /* RW-1 */
    return write ? word == 0 : !(word & (HAS_WAITERS | WRITER));
}

CC_INLINE bool try_enter(struct wait_word *ww, bool write) {
    uint32_t word = cc__get(&ww->word);
    while (may_enter(word, write))
        if (cc__cas_weak(&ww->word, &word, word + (write ? WRITER : READER))) return true; /* pairs with the leaves */
    return false;
}

/* Under the lock. Hands over to the first waiter, and with a reader to the readers right behind it; the same step takes
 * `mine` out of the word. others: readers hold the lock, only readers can join them. False: nobody was given anything,
 * and nothing was changed but HAS_WAITERS. */
static bool hand_over_locked(struct wait_word *ww, uint32_t mine, bool others, struct wakes *wakes) { /* RW-3 */
    uint32_t given = 0;
    for (struct wait_node *node; (node = cc__wait_queue_first(&ww->queue)) != NULL;) {
        bool write = node->flag;
        if (write && (others || given != 0)) break;
        cc__wait_queue_remove(&ww->queue, node);
        if (!cc__wakes_claim_locked(wakes, &node->waiter, WAKE_OBJECT)) continue;
        given += write ? WRITER : READER;
        if (write) break;
    }
    if (given != 0) cc__add(&ww->word, given - mine); /* pairs with the leaves of those who were here */
    cc__wait_word_left_locked(ww);
    return given != 0;
}

/* A waiter has left the queue: readers behind it may join now. The lock is never free while somebody waits (RW-2), so a
 * writer waits on, for the last holder. */
static void after_leave_locked(struct wait_word *ww, struct wakes *wakes) {
    if (cc__get_acquire(&ww->word) & WRITER)
        cc__wait_word_left_locked(ww);
    else
        (void)hand_over_locked(ww, 0, true, wakes);
}

static CC_NOINLINE int enter_slow(struct wait_word *ww, bool write, uint64_t deadline) {
    struct wait_node node = {.flag = write}; /* a writer */
    cc__lock_take(&ww->lock);
    uint32_t word = cc__get(&ww->word);
    for (;;) {
        if (may_enter(word, write)) {
            if (!cc__cas(&ww->word, &word, word + (write ? WRITER : READER))) continue;
            cc__lock_release(&ww->lock);
            return 0;
        }
        if ((word & HAS_WAITERS) || cc__cas(&ww->word, &word, word | HAS_WAITERS)) break;
    }
    int rc = cc__wait_queue_wait_locked(&ww->queue, &ww->lock, &node, deadline, (struct wait_what){PARK_RWLOCK, ww});
    if (likely(rc == 0)) return 0;
    struct wakes wakes;
    cc__wakes_init(&wakes);
    after_leave_locked(ww, &wakes);
    cc__lock_release(&ww->lock);
    cc__wakes_flush_any(&wakes);
    return rc;
}

/* Takes `mine` out of the word, and hands the lock over if it was the last. */
static CC_NOINLINE void leave_slow(struct wait_word *ww, uint32_t mine) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    uint32_t word = cc__get(&ww->word);
    for (;;) {
        bool last = (word & ~HAS_WAITERS) == mine;
        if (!last || !(word & HAS_WAITERS)) {
            if (cc__cas_weak(&ww->word, &word, word - mine)) return; /* pairs with the next to enter */
            continue;
        }
        cc__lock_take(&ww->lock);
        word = cc__get(&ww->word);
        bool gone = (word & ~HAS_WAITERS) == mine && (word & HAS_WAITERS) && hand_over_locked(ww, mine, false, &wakes);
        cc__lock_release(&ww->lock);
        if (gone) break;
        word = cc__get(&ww->word);
    }
    cc__wakes_flush_any(&wakes);
}

/* The same, not cancelled. */
static CC_NOINLINE int enter_always(struct wait_word *ww, bool write) {
    bool held = cc__cancel_hold(); /* as a mutex does */
    while (enter_slow(ww, write, WAIT_FOREVER) != 0) {
    }
    cc__cancel_unhold(held);
    return 0;
}

/* ---- the calls ---- */

enum how { TRY, WAIT, ALWAYS };

static int read_lock(CCRWLock *rw, uint64_t deadline, enum how how) {
    if (unlikely(rw == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(rw);
    cc__sim_point();
    if (likely(try_enter(ww, false))) return 0;
    if (how == TRY) return EAGAIN;
    cc__holder_again(&((struct rwlock *)(void *)rw)->owner, "cc_rwlock_read_lock: lock", rw);
    return how == ALWAYS ? enter_always(ww, false) : enter_slow(ww, false, deadline);
}

/* entry: cc__holder_entry of the call. */
static int write_lock(CCRWLock *lock, uint64_t deadline, enum how how, uint64_t entry) {
    if (unlikely(lock == NULL)) return EINVAL;
    struct rwlock *rw = (struct rwlock *)(void *)lock;
    cc__sim_point();
    if (unlikely(!try_enter(&rw->ww, true))) {
        if (how == TRY) return EAGAIN;
        cc__holder_again(&rw->owner, "cc_rwlock_write_lock: lock", lock);
        int rc = how == ALWAYS ? enter_always(&rw->ww, true) : enter_slow(&rw->ww, true, deadline);
        if (rc != 0) return rc;
    }
    cc__holder_enter_at(&rw->owner, entry);
    return 0;
}

int cc_rwlock_read_lock(CCRWLock *rw) {
    return read_lock(rw, WAIT_FOREVER, WAIT);
}

int cc_rwlock_read_lock_uncancellable(CCRWLock *rw) {
    return read_lock(rw, WAIT_FOREVER, ALWAYS);
}

int cc_rwlock_read_lock_try(CCRWLock *rw) {
    return read_lock(rw, 0, TRY);
}

int cc_rwlock_read_lock_until(CCRWLock *rw, CCDeadline deadline) {
    return read_lock(rw, cc__wait_deadline(deadline), WAIT);
}

static int read_unlock(CCRWLock *rw) {
    if (unlikely(rw == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(rw);
    cc__sim_point();
    uint32_t word = cc__get(&ww->word);
    if (unlikely((word & READERS) == 0)) {
        if (word & WRITER) cc__holder_otherwise("cc_rwlock_read_unlock: lock", rw, "by a writer");
        cc__holder_free("cc_rwlock_read_unlock: lock", rw);
    }
    if (likely(!(word & HAS_WAITERS) && cc__cas(&ww->word, &word, word - READER))) return 0; /* pairs with a writer */
    leave_slow(ww, READER);
    return 0;
}

int cc_rwlock_read_unlock(CCRWLock *rw) {
    int rc = read_unlock(rw);
    cc__sim_point();
    return rc;
}

int cc_rwlock_write_lock(CCRWLock *rw) {
    return write_lock(rw, WAIT_FOREVER, WAIT, cc__holder_entry());
}

int cc_rwlock_write_lock_uncancellable(CCRWLock *rw) {
    return write_lock(rw, WAIT_FOREVER, ALWAYS, cc__holder_entry());
}

int cc_rwlock_write_lock_try(CCRWLock *rw) {
    return write_lock(rw, 0, TRY, cc__holder_entry());
}

int cc_rwlock_write_lock_until(CCRWLock *rw, CCDeadline deadline) {
    return write_lock(rw, cc__wait_deadline(deadline), WAIT, cc__holder_entry());
}

static int write_unlock(CCRWLock *lock, uint64_t entry) {
    if (unlikely(lock == NULL)) return EINVAL;
    struct rwlock *rw = (struct rwlock *)(void *)lock;
    uint32_t word = WRITER;
    cc__sim_point();
    if (unlikely(!cc__holder_at(&rw->owner, entry))) {
        uint32_t now = cc__get(&rw->ww.word);
        if (now & READERS) cc__holder_otherwise("cc_rwlock_write_unlock: lock", lock, "by readers");
        cc__holder_check(&rw->owner, now & WRITER, "cc_rwlock_write_unlock: lock", lock);
    }
    cc__holder_clear(&rw->owner);
    if (likely(cc__cas(&rw->ww.word, &word, 0))) return 0; /* pairs with the next to enter */
    leave_slow(&rw->ww, WRITER);
    return 0;
}

int cc_rwlock_write_unlock(CCRWLock *lock) {
    int rc = write_unlock(lock, cc__holder_entry());
    cc__sim_point();
    return rc;
}
