/* line.h - those who wait for one object, in the order of their coming.
 *
 * The line is one pointer, NULL when nobody waits, so that an object that is all zero is ready and one that
 * is idle holds no address of its own. The nodes, one on the stack of each waiter, form a ring.
 *
 * LINE-1  The line and `linked` are guarded by the object's lock.
 * LINE-2  Claim before give: what an object has to give (a lock, a permit, a signal) goes to a waiter that
 *         was claimed, and to no other. One that lost its claim to a deadline or a canceller gets nothing,
 *         and the next in line is tried: nothing is swallowed.
 * LINE-3  A claimed waiter does not run before the flush, which comes after the object's lock: whoever gives
 *         is through with the object's memory by then. So the one who is given something may free the object.
 */
#ifndef CC_LOCK_LINE_H
#define CC_LOCK_LINE_H

#include "wait/wait.h"

struct wait_node {
    struct link link;
    bool linked;
    bool mark; /* the object's own */
    struct waiter waiter;
};

struct line {
    struct link *_Atomic first;
};

CC_INLINE struct wait_node *cc__line_node(struct link *link) {
    return container_of(link, struct wait_node, link);
}

CC_INLINE bool cc__line_empty(struct line *line) {
    return cc__get(&line->first) == NULL;
}

CC_INLINE struct wait_node *cc__line_first(struct line *line) {
    struct link *first = cc__get(&line->first);
    return first != NULL ? cc__line_node(first) : NULL;
}

CC_INLINE void cc__line_push(struct line *line, struct wait_node *node) {
    struct link *first = cc__get(&line->first);
    node->linked = true;
    if (first != NULL) {
        cc__list_push_back(first, &node->link); /* before the first is behind the last */
    } else {
        cc__list_init(&node->link);
        cc__set(&line->first, &node->link);
    }
}

CC_INLINE void cc__line_remove(struct line *line, struct wait_node *node) {
    struct link *next = cc__get(&node->link.next);
    node->linked = false;
    if (cc__get(&line->first) == &node->link) cc__set(&line->first, next != &node->link ? next : NULL);
    cc__list_remove(&node->link);
}

/* Under the lock. The first in line who can be claimed, claimed and off the line; NULL: nobody is left. */
CC_INLINE struct wait_node *cc__line_claim_locked(struct line *line, struct wakes *wakes) {
    for (struct wait_node *node; (node = cc__line_first(line)) != NULL;) {
        cc__line_remove(line, node);
        if (cc__wakes_claim_locked(wakes, &node->waiter, WAKE_OBJECT)) return node;
    }
    return NULL;
}

/* Under the lock. Everybody. */
CC_INLINE void cc__line_claim_all_locked(struct line *line, struct wakes *wakes) {
    do {
        struct link *first = cc__get(&line->first);
        if (first != NULL) cc__list_foresee(first);
    } while (cc__line_claim_locked(line, wakes) != NULL);
}

CC_INLINE void cc__line_flush(struct wakes *wakes) {
    if (cc__wakes_any(wakes)) cc__wakes_flush(wakes);
}

/* Under the lock: stands in line and waits. 0: claimed; the lock is free. ETIMEDOUT, ECANCELED, ENOMEM: off
 * the line, and the lock is held. */
int cc__line_wait_locked(struct line *line, struct lock *lock, struct wait_node *node, uint64_t deadline,
                         struct wait_what what);

#endif
