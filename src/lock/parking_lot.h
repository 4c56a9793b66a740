/* parking_lot.h - the waiters of mutexes, looked up by the mutex's address and not through its memory.
 *
 * A mutex is one word. An unlock by a plain store has to look for waiters after the store, when the mutex may already
 * have another holder, or be freed. So the waiters, and the flag that says whether there may be some, are in one of a
 * fixed number of buckets, chosen by a hash of the address.
 *
 * README.md has the protocol of `fast_unlock` and the argument for it.
 *
 * BUCKET-1  The bucket's lock guards nodes and queues. There is a queue for each key, and the first nodes of all queues
 *           are in a tree, ordered by the bits of the hash: neither a long queue nor many keys slow down the others.
 * BUCKET-2  fast_unlock is turned on only while the bucket has no node and no waiter is disabling it.
 * BUCKET-3  It is turned on only where membarrier works.
 */
#ifndef CC_LOCK_PARKING_LOT_H
#define CC_LOCK_PARKING_LOT_H

#include "lock/policy.h"
#include "lock/wait_queue.h"

struct bucket {
    _Alignas(CC_LINE) _Atomic uint32_t fast_unlock;
    _Atomic uint32_t quiet_unlocks; /* since the last wait; relaxed, lost counts do not matter */
    struct lock lock;
    struct bucket_node *_Atomic heads; /* the root of the tree of first nodes */
    uint32_t disabling;                /* waiters that turn fast_unlock off: their membarrier is in progress */
    /* How many spins have failed recently; on a cache line that the mutex's holder does not read. Relaxed. */
    _Alignas(CC_LINE) _Atomic uint32_t spin_failures;
};

struct bucket_node {
    struct wait_node node; /* flag: starving, the next unlock hands it the lock */
    const void *key;
    struct bucket_node *_Atomic below[2]; /* of the first node of its key: by the next bit of the hash */
    struct wait_queue queue;              /* likewise: the nodes of the key */
    bool granted;                         /* it was handed the lock */
};

extern struct bucket cc__parking_lot[1 << BUCKETS_LOG2];

/* In a forked child: drops all waiters and the buckets' locks. */
void cc__parking_lot_forget(void);

/* Two keys have different hashes. The first BUCKETS_LOG2 bits choose the bucket. */
CC_INLINE uint64_t cc__bucket_hash(const void *key) {
    return (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
}
CC_INLINE struct bucket *cc__bucket_of(const void *key) {
    return &cc__parking_lot[cc__bucket_hash(key) >> (64 - BUCKETS_LOG2)];
}

/* Takes the bucket's lock, with fast_unlock off and a membarrier after that. */
void cc__bucket_enter(struct bucket *bucket);

/* Counts an unlock without a waiter while fast_unlock is off, and turns it on after FAST_UNLOCK_AFTER of them. */
void cc__bucket_enable_fast_unlock(struct bucket *bucket);
CC_INLINE void cc__bucket_count_unlock(struct bucket *bucket) {
    uint32_t unlocks = cc__get(&bucket->quiet_unlocks) + 1;
    cc__set(&bucket->quiet_unlocks, unlocks);
    if (unlikely(unlocks >= FAST_UNLOCK_AFTER)) cc__bucket_enable_fast_unlock(bucket);
}

/* In all buckets. For a simulation, whose points are on the slow unlock path, and for a start without membarrier. */
void cc__parking_lot_disable_fast_unlock(void);

/* Under the bucket's lock. */
void cc__bucket_push_locked(struct bucket *bucket, struct bucket_node *node, bool front);
void cc__bucket_remove_locked(struct bucket *bucket, struct bucket_node *node);
struct bucket_node *cc__bucket_first_locked(struct bucket *bucket, const void *key);
/* Removes and claims the first waiter with that key that can be claimed; NULL: none is left. */
struct bucket_node *cc__bucket_claim_locked(struct bucket *bucket, const void *key, struct wakes *wakes);

#endif
