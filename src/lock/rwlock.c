/* rwlock.c - many readers or one writer.
 *
 *    31           30 ......... 1  0
 *    HAS_WAITERS  readers         WRITER
 *
 * RW-1  While HAS_WAITERS is set, the lock is taken only through the queue: no reader overtakes a waiting writer. It is
 *       not set while the lock is free.
 * RW-2  The last holder to leave while there are waiters designates the first waiter, or if that is a reader, the
 *       readers before the first writer: under the internal lock it dequeues them, clears HAS_WAITERS and releases the
 *       lock; then it wakes them. The first to arrive takes a free lock. While the queue is not empty and HAS_WAITERS
 *       is not set, a designated waiter is awake: it takes the lock, with HAS_WAITERS if others wait, or it sets
 *       HAS_WAITERS again and queues in front. So holders that leave in between need not wake any waiter.
 * RW-3  A designated waiter that lost PASSED_MAX races, or has waited for STARVING_NS, is starving. If the first waiter
 *       is starving, the last holder to leave hands the lock to it, and if it is a reader also to the readers right
 *       behind it. The lock is not free in between.
 * RW-4  The last access of a holder that leaves is one compare-and-swap on a word without HAS_WAITERS, or the release
 *       of the internal lock; queued waiters must wait for that release, or for the wake that comes after it. So a
 *       caller that returns from the lock may free it.
 */
#include "lock/holder.h"
#include "lock/parking_lot.h"
#include "lock/spin.h"
#include "lock/wait_word.h"
#include "os/clock.h"
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

struct rw_node {
    struct wait_node node; /* flag: a writer */
    bool starving;         /* RW-3 */
    bool granted;          /* it was handed the lock */
};

CC_INLINE struct rw_node *rw_node_of(struct wait_node *node) {
    return container_of(node, struct rw_node, node);
}

/* Under the lock. Removes and claims the first waiter, and if it is a reader the readers right behind it; `grant`:
 * hands them the lock, else designates them. others: readers hold the lock, only readers can join them. Returns their
 * sum in the word. */
static uint32_t claim_first_locked(struct wait_word *ww, bool others, bool grant, struct wakes *wakes) {
    uint32_t claimed = 0;
    for (struct wait_node *node; (node = cc__wait_queue_first(&ww->queue)) != NULL;) {
        bool write = node->flag;
        if (write && (others || claimed != 0)) break;
        cc__wait_queue_remove(&ww->queue, node);
        if (!cc__wakes_claim_locked(wakes, &node->waiter, WAKE_OBJECT)) continue;
        rw_node_of(node)->granted = grant; /* its frame stays until the flush */
        claimed += write ? WRITER : READER;
        if (write) break;
    }
    return claimed;
}

/* Under the lock. A waiter has left the queue: readers behind it may now join the holders. With HAS_WAITERS the lock is
 * held, and taken only through the queue (RW-1). Without it a writer may enter at any moment, and the queue is left to
 * the designated waiter, which is awake (RW-2). */
static void after_leave_locked(struct wait_word *ww, struct wakes *wakes) {
    if ((cc__get_acquire(&ww->word) & (HAS_WAITERS | WRITER)) == HAS_WAITERS) {
        uint32_t given = claim_first_locked(ww, true, true, wakes);
        if (given != 0) cc__add(&ww->word, given); /* pairs with the leaves of the previous holders */
    }
    cc__wait_word_left_locked(ww);
}

/* Under the lock. Takes the rwlock if possible (true); else sets HAS_WAITERS, which stays set until the caller is
 * queued. A designated waiter ignores HAS_WAITERS: it was queued before the present waiters. */
static bool enter_or_mark_locked(struct wait_word *ww, bool write, bool designated) {
    uint32_t word = cc__get(&ww->word);
    for (;;) {
        if (may_enter(designated ? word & ~HAS_WAITERS : word, write)) {
            uint32_t with = designated && !cc__wait_queue_empty(&ww->queue) ? HAS_WAITERS : 0; /* RW-2 */
            if (cc__cas(&ww->word, &word, (word + (write ? WRITER : READER)) | with)) return true;
        } else if ((word & HAS_WAITERS) || cc__cas(&ww->word, &word, word | HAS_WAITERS)) {
            return false;
        }
    }
}

/* Under the lock. Designated waiters queue in front. If the first waiter is starving, they queue right behind it and
 * count as starving too: so starving waiters are in front of all others, and a place is found without a search. Only
 * those that are already awake come in front of a starving waiter, because none is designated meanwhile (RW-3). */
static void queue_locked(struct wait_word *ww, struct rw_node *me, bool front) {
    struct link *mine = &me->node.link, *first = cc__get(&ww->queue.first), *at = first;
    cc__wait_queue_push(&ww->queue, &me->node); /* at the end, which in a ring is before the first */
    if (!front || first == NULL) return;
    if (rw_node_of(container_of(first, struct wait_node, link))->starving) {
        me->starving = true;
        at = cc__get(&first->next);
    }
    if (at == mine) return; /* there is only one other */
    cc__list_remove(mine);
    cc__list_push_back(at, mine);
    if (at == first) cc__set(&ww->queue.first, mine);
}

static bool try_enter_again(void *ww, uint32_t write) {
    return try_enter(ww, write);
}

static CC_NOINLINE int enter_slow(struct wait_word *ww, bool write, uint64_t deadline) {
    if (cc__spin(&cc__bucket_of(ww)->spin_failures, RW_SPIN_PAUSES, NULL, try_enter_again, ww, write)) return 0;
    struct rw_node me = {.node.flag = write};
    uint64_t since = cc__clock_now();
    for (unsigned passed = 0;; passed++) {
        bool starving = passed >= PASSED_MAX || (passed > 0 && cc__clock_now() - since >= STARVING_NS);
        cc__lock_take(&ww->lock);
        if (enter_or_mark_locked(ww, write, passed > 0)) {
            cc__lock_release(&ww->lock);
            return 0;
        }
        int rc = cc__waiter_init(&me.node.waiter, cc__worker(), deadline);
        if (likely(rc == 0)) {
            me.starving = starving;
            queue_locked(ww, &me, passed > 0);
            rc = cc__wait_queue_park_locked(&ww->queue, &ww->lock, &me.node, (struct wait_what){PARK_RWLOCK, ww});
            if (likely(rc == 0)) {
                if (me.granted) return 0;
                continue;
            }
        }
        struct wakes wakes;
        cc__wakes_init(&wakes);
        after_leave_locked(ww, &wakes);
        cc__lock_release(&ww->lock);
        cc__wakes_flush_any(&wakes);
        return rc;
    }
}

/* Under the lock. The caller is the last holder and there are waiters, so no other thread writes the word. */
static void pass_on_locked(struct wait_word *ww, uint32_t mine, struct wakes *wakes) {
    bool grant = rw_node_of(cc__wait_queue_first(&ww->queue))->starving;
    uint32_t claimed = claim_first_locked(ww, false, grant, wakes);
    if (grant && claimed != 0) {
        cc__add(&ww->word, claimed - mine); /* pairs with the leaves of the previous holders */
        cc__wait_word_left_locked(ww);
    } else {
        cc__sub(&ww->word, mine | HAS_WAITERS); /* pairs with the next to enter */
    }
}

/* A read unlock without readers. */
static CC_NORETURN CC_COLD void no_reader(const struct wait_word *ww, uint32_t word) {
    if (word & WRITER) cc__holder_otherwise("cc_rwlock_read_unlock: lock", ww, "by a writer", "read");
    cc__holder_free("cc_rwlock_read_unlock: lock", ww);
}

/* Subtracts `mine` from the word; the last holder wakes or hands over to waiters. The caller has seen a reader; a wrong
 * unlock by another caller may have released that read lock meanwhile. */
static CC_NOINLINE void leave_slow(struct wait_word *ww, uint32_t mine) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    for (bool passed_on = false; !passed_on;) {
        uint32_t word = cc__get(&ww->word);
        while (word != (mine | HAS_WAITERS))
            if (unlikely(mine == READER && (word & READERS) == 0))
                no_reader(ww, word);
            else if (cc__cas_weak(&ww->word, &word, word - mine))
                return; /* pairs with the next to enter */
        cc__lock_take(&ww->lock);
        /* All waiters may have left meanwhile, for other reasons. */
        passed_on = cc__get(&ww->word) == (mine | HAS_WAITERS);
        if (passed_on) pass_on_locked(ww, mine, &wakes);
        cc__lock_release(&ww->lock);
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

static int enter_read(CCRWLock *rw, uint64_t deadline, enum how how) {
    if (unlikely(rw == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(rw);
    cc__sim_point();
    if (how != TRY) cc__wait_word_may_preempt();
    if (likely(try_enter(ww, false))) return 0;
    if (how == TRY) return EAGAIN;
    cc__holder_again(&((struct rwlock *)(void *)rw)->owner, "cc_rwlock_read_lock: lock", rw);
    return how == ALWAYS ? enter_always(ww, false) : enter_slow(ww, false, deadline);
}

static int read_lock(CCRWLock *rw, uint64_t deadline, enum how how) {
    int rc = enter_read(rw, deadline, how);
    if (rc == 0) cc__holder_read_entered(rw);
    return rc;
}

static int write_lock(CCRWLock *lock, uint64_t deadline, enum how how) {
    if (unlikely(lock == NULL)) return EINVAL;
    struct rwlock *rw = (struct rwlock *)(void *)lock;
    cc__sim_point();
    if (how != TRY) cc__wait_word_may_preempt();
    if (unlikely(!try_enter(&rw->ww, true))) {
        if (how == TRY) return EAGAIN;
        cc__holder_again(&rw->owner, "cc_rwlock_write_lock: lock", lock);
        int rc = how == ALWAYS ? enter_always(&rw->ww, true) : enter_slow(&rw->ww, true, deadline);
        if (rc != 0) return rc;
    }
    cc__holder_enter(&rw->owner);
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
    if (unlikely((word & READERS) == 0)) no_reader(ww, word);
    cc__holder_read_left("cc_rwlock_read_unlock: lock", rw);
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
    return write_lock(rw, WAIT_FOREVER, WAIT);
}

int cc_rwlock_write_lock_uncancellable(CCRWLock *rw) {
    return write_lock(rw, WAIT_FOREVER, ALWAYS);
}

int cc_rwlock_write_lock_try(CCRWLock *rw) {
    return write_lock(rw, 0, TRY);
}

int cc_rwlock_write_lock_until(CCRWLock *rw, CCDeadline deadline) {
    return write_lock(rw, cc__wait_deadline(deadline), WAIT);
}

static int write_unlock(CCRWLock *lock) {
    if (unlikely(lock == NULL)) return EINVAL;
    struct rwlock *rw = (struct rwlock *)(void *)lock;
    uint32_t word = WRITER;
    cc__sim_point();
    if (unlikely(!cc__holder_is_self(&rw->owner))) {
        uint32_t now = cc__get(&rw->ww.word);
        if (now & READERS) cc__holder_otherwise("cc_rwlock_write_unlock: lock", lock, "by readers", "write");
        cc__holder_check(&rw->owner, now & WRITER, "cc_rwlock_write_unlock: lock", lock);
    }
    cc__holder_clear(&rw->owner);
    if (likely(cc__cas(&rw->ww.word, &word, 0))) return 0; /* pairs with the next to enter */
    leave_slow(&rw->ww, WRITER);
    return 0;
}

int cc_rwlock_write_unlock(CCRWLock *lock) {
    int rc = write_unlock(lock);
    cc__sim_point();
    return rc;
}
