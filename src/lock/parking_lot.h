/* parking_lot.h - where those who wait for a mutex are, found by the mutex's address and not through its memory.
 *
 * A mutex is one word. When it is given back with a plain store, the giver must look for waiters after the
 * store, and by then the mutex may belong to somebody else, or be gone. So waiters and the sign that there
 * are some live here: in one of a fixed number of buckets, by a hash of the address.
 *
 * A bucket is cold while nobody in it waits: then an unlock is a store between two looks at `cold`. It is hot
 * otherwise: then an unlock is a compare-and-swap that notices the mark of a waiter. Whoever waits first
 * makes the bucket hot, with a heavy barrier, before it marks the word: of an unlock that saw the bucket cold,
 * either the store is visible to the waiter, or its second look finds the bucket hot. README.md has the whole
 * of it.
 *
 * BUCKET-1  Nodes and queues are guarded by the bucket's lock. A queue is one address; its first node stands for
 *          it in the bucket, so a long queue does not slow its neighbours down.
 * BUCKET-2  A bucket with nodes, or with somebody who is making it hot, is not made cold.
 * BUCKET-3  `cold` is set only where membarrier works; elsewhere every bucket stays hot.
 */
#ifndef CC_LOCK_PARKING_LOT_H
#define CC_LOCK_PARKING_LOT_H

#include "wait/wait.h"

enum {
    BUCKETS_LOG2 = 8, /* 32 KiB; two mutexes that are waited for at a time rarely meet. Guess */
    /* Unlocks without a waiter after which a bucket cools: by then they have cost as much (6 ns each) as the
     * barrier of the next waiter may (20 us). */
    FAST_UNLOCK_AFTER = 4096,
};

struct bucket {
    _Alignas(CC_LINE) _Atomic uint32_t fast_unlock;
    _Atomic uint32_t quiet_unlocks; /* unlocks since somebody last waited; relaxed, lost counts do not matter */
    struct lock lock;
    struct link *queues; /* ring of first nodes, by bucket_node.link */
    uint32_t disabling;  /* who has set cold to 0 and not finished the barrier */
    /* How often spinning has been in vain of late; on a cache line that the mutex's holder does not read. Relaxed. */
    _Alignas(CC_LINE) _Atomic uint32_t spin_failures;
};

struct bucket_node {
    struct link link;  /* the bucket's ring; of first nodes */
    struct link queue; /* the ring of those with the same key */
    const void *key;
    bool linked;
    bool head;     /* the first of its queue */
    bool starving; /* is to be handed the lock */
    bool granted;  /* has been */
    struct waiter waiter;
};

extern struct bucket cc__parking_lot[1 << BUCKETS_LOG2];

/* In a forked child: nobody waits, and nobody holds a lock of these. */
void cc__parking_lot_forget(void);

CC_INLINE struct bucket *cc__bucket_of(const void *key) {
    uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
    return &cc__parking_lot[hash >> (64 - BUCKETS_LOG2)];
}

/* Takes the bucket's lock with the bucket hot, and the barrier behind it. */
void cc__bucket_enter(struct bucket *bucket);

/* A quiet unlock in a hot bucket; now and then the bucket cools. */
void cc__bucket_enable_fast_unlock(struct bucket *bucket);
CC_INLINE void cc__bucket_count_unlock(struct bucket *bucket) {
    uint32_t unlocks = cc__get(&bucket->quiet_unlocks) + 1;
    cc__set(&bucket->quiet_unlocks, unlocks);
    if (unlikely(unlocks >= FAST_UNLOCK_AFTER)) cc__bucket_enable_fast_unlock(bucket);
}

/* No bucket stays cold: a simulation begins, whose points are on the way of hot ones. */
void cc__parking_lot_disable_fast_unlock(void);

/* Under the bucket's lock. */
void cc__bucket_push_locked(struct bucket *bucket, struct bucket_node *node, bool front);
void cc__bucket_remove_locked(struct bucket *bucket, struct bucket_node *node);
struct bucket_node *cc__bucket_first_locked(struct bucket *bucket, const void *key);
/* The first with that key who can be claimed, claimed and off its queue; NULL: nobody is left. */
struct bucket_node *cc__bucket_claim_locked(struct bucket *bucket, const void *key, struct wakes *wakes);

#endif
