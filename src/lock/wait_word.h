/* wait_word.h - how every object but the mutex begins: a word that holds most of its state, a lock, and a wait queue.
 *
 * C++ has no _Atomic, so the public structs have plain fields; this is how the library sees their beginning.
 *
 * WAITWORD-1  HAS_WAITERS in the word is set and cleared under the lock: set before a waiter is queued, cleared when
 *             the queue is empty. While it is set, nobody takes or gives anything by the word alone, without the lock.
 */
#ifndef CC_LOCK_WAIT_WORD_H
#define CC_LOCK_WAIT_WORD_H

#include "lock/wait_queue.h"

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

/* Under the lock, with HAS_WAITERS set where the object uses it: waits, and returns without the lock. 0: claimed;
 * ETIMEDOUT, ECANCELED, ENOMEM. */
int cc__wait_word_wait_locked(struct wait_word *ww, uint64_t deadline, enum park_reason reason);

#endif
