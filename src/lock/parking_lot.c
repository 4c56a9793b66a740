/* parking_lot.c - buckets with a queue for each mutex, and the switch between unlocks by store and by
 * compare-and-swap. */
#include "lock/parking_lot.h"

#include "os/membarrier.h"
#include "sim/sim.h"

struct bucket cc__parking_lot[1 << BUCKETS_LOG2];

/* ---- queues ---- */

struct bucket_node *cc__bucket_first_locked(struct bucket *bucket, const void *key) {
    struct link *first = cc__get(&bucket->heads.first), *l = first;
    if (l == NULL) return NULL;
    do {
        struct bucket_node *head = container_of(l, struct bucket_node, head_link);
        if (head->key == key) return head;
        l = cc__get(&l->next);
    } while (l != first);
    return NULL;
}

/* Replaces the first node of a queue, `from`, by `to`; NULL: the queue was empty, or is now. */
static void change_head(struct bucket *bucket, struct bucket_node *from, struct bucket_node *to) {
    if (from != NULL) cc__wait_queue_unlink(&bucket->heads, &from->head_link);
    if (to == NULL) return;
    cc__set(&to->queue.first, &to->node.link);
    cc__wait_queue_link(&bucket->heads, &to->head_link);
}

void cc__bucket_push_locked(struct bucket *bucket, struct bucket_node *node, bool front) { /* BUCKET-1 */
    struct bucket_node *head = cc__bucket_first_locked(bucket, node->key);
    cc__set(&node->queue.first, NULL);
    cc__wait_queue_push(head != NULL ? &head->queue : &node->queue, &node->node);
    if (head == NULL || front) change_head(bucket, head, node);
}

void cc__bucket_remove_locked(struct bucket *bucket, struct bucket_node *node) {
    struct bucket_node *head = cc__bucket_first_locked(bucket, node->key);
    cc__wait_queue_remove(&head->queue, &node->node);
    if (node != head) return;
    struct wait_node *next = cc__wait_queue_first(&head->queue);
    change_head(bucket, head, next != NULL ? container_of(next, struct bucket_node, node) : NULL);
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
    if (cc__wait_queue_empty(&bucket->heads) && bucket->disabling == 0) cc__set(&bucket->fast_unlock, 1);
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
        bucket->heads = (struct wait_queue){NULL};
        bucket->disabling = 0;
        cc__set(&bucket->fast_unlock, 0); /* off is always safe */
    }
}
