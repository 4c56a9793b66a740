/* parking_lot.c - buckets with a queue for each mutex, and the switch between unlocks by store and by
 * compare-and-swap. */
#include "lock/parking_lot.h"

#include "os/membarrier.h"
#include "sim/sim.h"

struct bucket cc__parking_lot[1 << BUCKETS_LOG2];

/* ---- queues ----
 *
 * The tree of first nodes: below[0] and below[1] of a node at depth d have the keys whose hashes have 0 and 1 as their
 * d-th bit behind those that choose the bucket. So a node may be replaced by any node below it, and the depth is that
 * of random bits: about the logarithm of the number of keys, at most the number of bits. */

/* Where the first node with that key is, or would be. */
static struct bucket_node *_Atomic *find_locked(struct bucket *bucket, const void *key) {
    struct bucket_node *_Atomic *at = &bucket->heads, *head;
    for (uint64_t bits = cc__bucket_hash(key) << BUCKETS_LOG2; (head = cc__get(at)) != NULL && head->key != key;
         bits <<= 1)
        at = &head->below[bits >> 63];
    return at;
}

struct bucket_node *cc__bucket_first_locked(struct bucket *bucket, const void *key) {
    return cc__get(find_locked(bucket, key));
}

/* Puts `to` into the place of `from`, with what is below that; NULL: nothing is. */
static void replace_locked(struct bucket_node *_Atomic *at, struct bucket_node *from, struct bucket_node *to) {
    for (int i = 0; i < 2; i++) cc__set(&to->below[i], from != NULL ? cc__get(&from->below[i]) : NULL);
    cc__set(at, to);
}

/* The node of a key without waiters: one of the lowest nodes below it takes its place. */
static void take_out_locked(struct bucket_node *_Atomic *at) {
    struct bucket_node *_Atomic *lowest = at, *gone = cc__get(at), *node = gone;
    for (;;) {
        int side = cc__get(&node->below[0]) != NULL ? 0 : 1;
        if (cc__get(&node->below[side]) == NULL) break;
        lowest = &node->below[side];
        node = cc__get(lowest);
    }
    cc__set(lowest, NULL);
    if (node != gone) replace_locked(at, gone, node);
}

void cc__bucket_push_locked(struct bucket *bucket, struct bucket_node *node, bool front) { /* BUCKET-1 */
    struct bucket_node *_Atomic *at = find_locked(bucket, node->key), *head = cc__get(at);
    cc__set(&node->queue.first, NULL);
    cc__wait_queue_push(head != NULL ? &head->queue : &node->queue, &node->node);
    if (head != NULL && !front) return;
    replace_locked(at, head, node);
    cc__set(&node->queue.first, &node->node.link);
}

void cc__bucket_remove_locked(struct bucket *bucket, struct bucket_node *node) {
    struct bucket_node *_Atomic *at = find_locked(bucket, node->key), *head = cc__get(at);
    cc__wait_queue_remove(&head->queue, &node->node);
    if (node != head) return;
    struct wait_node *next = cc__wait_queue_first(&head->queue);
    if (next == NULL) {
        take_out_locked(at);
        return;
    }
    struct bucket_node *successor = container_of(next, struct bucket_node, node);
    replace_locked(at, head, successor);
    cc__set(&successor->queue.first, &successor->node.link);
}

struct bucket_node *cc__bucket_claim_locked(struct bucket *bucket, const void *key, struct wakes *wakes) {
    for (struct bucket_node *first; (first = cc__bucket_first_locked(bucket, key)) != NULL;) {
        cc__bucket_remove_locked(bucket, first);
        if (cc__wakes_claim_locked(wakes, &first->node.waiter, WAKE_OBJECT)) return first;
    }
    return NULL;
}

/* ---- fast unlock ---- */

void cc__bucket_enter(struct bucket *bucket) {
    cc__lock_take(&bucket->lock);
    cc__set(&bucket->quiet_unlocks, 0);
    if (likely(!cc__get(&bucket->fast_unlock) && bucket->disabling == 0)) return;
    cc__set(&bucket->fast_unlock, 0);
    bucket->disabling++;
    cc__lock_release(&bucket->lock);
    /* The heavy half of "fast_unlock off, then look at the word" against "word = 0, then look at fast_unlock" in
     * cc_mutex_unlock. A waiter that arrives while another is disabling issues its own: it cannot know whether the
     * other's is complete. */
    cc__membarrier();
    cc__lock_take(&bucket->lock);
    bucket->disabling--;
}

void cc__bucket_enable_fast_unlock(struct bucket *bucket) { /* BUCKET-3 */
    cc__set(&bucket->quiet_unlocks, 0);
    /* A worker runs, so the runtime has started and knows whether membarrier works; that does not change later. */
    if (cc__worker() == NULL || !cc__barrier_asymmetric || cc__sim_on()) return;
    if (!cc__lock_try(&bucket->lock)) return;
    if (cc__get(&bucket->heads) == NULL && bucket->disabling == 0) cc__set(&bucket->fast_unlock, 1);
    cc__lock_release(&bucket->lock);
}

void cc__parking_lot_disable_fast_unlock(void) {
    for (size_t i = 0; i < array_len(cc__parking_lot); i++) {
        if (!cc__get(&cc__parking_lot[i].fast_unlock)) continue;
        cc__bucket_enter(&cc__parking_lot[i]);
        cc__lock_release(&cc__parking_lot[i].lock);
    }
}

void cc__parking_lot_forget(void) {
    for (size_t i = 0; i < array_len(cc__parking_lot); i++) {
        struct bucket *bucket = &cc__parking_lot[i];
        bucket->lock = (struct lock){0};
        cc__set(&bucket->heads, NULL);
        bucket->disabling = 0;
        cc__set(&bucket->fast_unlock, 0); /* off is always safe */
    }
}
