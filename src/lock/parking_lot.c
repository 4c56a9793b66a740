/* parking_lot.c - the buckets: queues by address, hot and cold. */
#include "lock/parking_lot.h"

#include "os/membarrier.h"
#include "sim/sim.h"
#include "sync/barrier.h"

struct bucket cc__parking_lot[1 << BUCKETS_LOG2];

/* ---- queues ---- */

static struct bucket_node *of_link(struct link *link) {
    return container_of(link, struct bucket_node, link);
}

static struct bucket_node *of_queue(struct link *link) {
    return container_of(link, struct bucket_node, queue);
}

struct bucket_node *cc__bucket_first_locked(struct bucket *bucket, const void *key) {
    struct link *first = bucket->queues, *l = first;
    if (l == NULL) return NULL;
    do {
        if (of_link(l)->key == key) return of_link(l);
        l = cc__get(&l->next);
    } while (l != first);
    return NULL;
}

static void enter_ring(struct bucket *bucket, struct bucket_node *node) {
    node->head = true;
    if (bucket->queues != NULL) {
        cc__list_push_back(bucket->queues, &node->link);
    } else {
        cc__list_init(&node->link);
        bucket->queues = &node->link;
    }
}

static void leave_ring(struct bucket *bucket, struct bucket_node *node) {
    struct link *next = cc__get(&node->link.next);
    node->head = false;
    if (bucket->queues == &node->link) bucket->queues = next != &node->link ? next : NULL;
    cc__list_remove(&node->link);
}

void cc__bucket_push_locked(struct bucket *bucket, struct bucket_node *node, bool front) {
    struct bucket_node *first = cc__bucket_first_locked(bucket, node->key);
    node->linked = true;
    node->head = false;
    if (first == NULL) {
        cc__list_init(&node->queue);
        enter_ring(bucket, node);
        return;
    }
    cc__list_push_back(&first->queue, &node->queue); /* before the first is behind the last */
    if (front) {
        leave_ring(bucket, first);
        enter_ring(bucket, node);
    }
}

void cc__bucket_remove_locked(struct bucket *bucket, struct bucket_node *node) {
    struct link *next = cc__get(&node->queue.next);
    node->linked = false;
    if (node->head) {
        leave_ring(bucket, node);
        if (next != &node->queue) enter_ring(bucket, of_queue(next));
    }
    cc__list_remove(&node->queue);
}

struct bucket_node *cc__bucket_claim_locked(struct bucket *bucket, const void *key, struct wakes *wakes) {
    for (struct bucket_node *node; (node = cc__bucket_first_locked(bucket, key)) != NULL;) {
        cc__bucket_remove_locked(bucket, node);
        if (cc__wakes_claim_locked(wakes, &node->waiter, WAKE_OBJECT)) return node;
    }
    return NULL;
}

/* ---- hot and cold ---- */

void cc__bucket_enter(struct bucket *bucket) {
    cc__lock_take(&bucket->lock);
    cc__set(&bucket->quiet_unlocks, 0);
    if (likely(!cc__get(&bucket->fast_unlock) && bucket->disabling == 0)) return;
    cc__set(&bucket->fast_unlock, 0);
    bucket->disabling++;
    cc__lock_release(&bucket->lock);
    /* The heavy half of "hot, then look at the word" against "word = 0, then look for hot" in
     * cc_mutex_unlock. One who comes while another heats has its own: it cannot know how far the other is. */
    cc__membarrier();
    cc__lock_take(&bucket->lock);
    bucket->disabling--;
}

void cc__bucket_enable_fast_unlock(struct bucket *bucket) {
    cc__set(&bucket->quiet_unlocks, 0);
    /* A worker runs, so the runtime has started and knows whether membarrier works; it will for ever. */
    if (cc__worker() == NULL || !cc__barrier_asymmetric || cc__sim_on()) return;
    if (!cc__lock_try(&bucket->lock)) return;
    if (bucket->queues == NULL && bucket->disabling == 0) cc__set(&bucket->fast_unlock, 1);
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
        bucket->queues = NULL;
        bucket->disabling = 0;
        cc__set(&bucket->fast_unlock, 0); /* hot is always right */
    }
}
