/* wait_word.h - the first fields of every object except the mutex: a word that holds most of its state, a lock, and a
 * wait queue.
 *
 * C++ has no _Atomic, so the public structs have plain fields; the library accesses their first fields through this
 * type.
 *
 * WAITWORD-1  HAS_WAITERS in the word is set and cleared under the lock: set before a waiter is queued, cleared when
 *             the queue is empty; by a rwlock also when a waiter is designated (RW-2). While it is set, no call takes
 *             or gives anything by the word alone, without the lock. A select that sets it and then does not wait
 *             leaves it set, with an empty queue.
 */
#ifndef CC_LOCK_WAIT_WORD_H
#define CC_LOCK_WAIT_WORD_H

#include "lock/wait_queue.h"
#include "sched/park.h"
#include "wait/arm.h"

#include <ccc/cc_sync.h>

struct wait_word {
    _Atomic uint32_t word;
    struct lock lock;
    struct wait_queue queue;
};

_Static_assert(sizeof(struct wait_word) == sizeof(CCSem) && offsetof(struct wait_word, lock) == offsetof(CCSem, lock) &&
                   offsetof(struct wait_word, queue) == offsetof(CCSem, first),
               "the public structs");

#define HAS_WAITERS UINT32_C(0x80000000)

CC_INLINE struct wait_word *cc__wait_word_of(void *object) {
    return object;
}

/* Under the lock, after a waiter left the queue: clears HAS_WAITERS if it was the last. */
CC_INLINE void cc__wait_word_left_locked(struct wait_word *ww) {
    if (!cc__wait_queue_empty(&ww->queue)) return;
    uint32_t word = cc__get(&ww->word);
    while ((word & HAS_WAITERS) && !cc__cas_weak(&ww->word, &word, word & ~HAS_WAITERS)) {
    }
}

/* For calls that may switch, before they take anything: yields if the fiber's turn has lasted too long (NEXT-3). */
CC_INLINE void cc__wait_word_may_preempt(void) {
    struct worker *w = cc__worker();
    if (likely(w != NULL)) (void)cc__sched_may_preempt(w);
}

/* ---- objects with a queue of arms, used by plain waits and selects ---- */

/* Under the lock. Removes and claims the first arm whose waiter can be claimed (WAITQ-2); false: none is left. */
CC_INLINE bool cc__wait_word_claim_locked(struct wait_word *ww, struct wakes *wakes) {
    for (struct link *first; (first = cc__get(&ww->queue.first)) != NULL;) {
        cc__wait_queue_unlink(&ww->queue, first);
        if (cc__arm_claim_locked(wakes, container_of(first, struct arm, link), 0)) return true;
    }
    return false;
}

/* Under the lock. Claims all waiters. */
CC_INLINE void cc__wait_word_claim_all_locked(struct wait_word *ww, struct wakes *wakes) {
    while (cc__wait_word_claim_locked(ww, wakes)) {
    }
}

/* Under the lock, with HAS_WAITERS set where the object uses it: waits, and returns without the lock. 0: claimed;
 * ETIMEDOUT, ECANCELED, ENOMEM. */
int cc__wait_word_wait_locked(struct wait_word *ww, uint64_t deadline, enum park_reason reason);

/* For arm_ops whose object is a wait word. */
CC_INLINE unsigned cc__wait_word_prepare(struct arm *arm, struct wait_word *ww) {
    arm->object = ww;
    arm->lock = &ww->lock;
    return WAKE_OBJECT;
}
void cc__wait_word_link(struct arm *arm);
void cc__wait_word_unlink(struct arm *arm);

#endif
