/* list.h - a circular doubly linked list whose links live in its members.
 *
 * A member can be removed without knowing its list. The user guards the list; the links are relaxed atomics because a
 * race detector sees the fibers of one OS thread as threads.
 */
#ifndef CC_SYNC_LIST_H
#define CC_SYNC_LIST_H

#include "sync/atomic.h"

struct link {
    struct link *_Atomic next;
    struct link *_Atomic prev;
};

CC_INLINE void cc__list_init(struct link *list) {
    cc__set(&list->next, list);
    cc__set(&list->prev, list);
}

CC_INLINE bool cc__list_empty(struct link *list) {
    return cc__get(&list->next) == list;
}

CC_INLINE void cc__list_insert(struct link *before, struct link *link, struct link *after) {
    cc__set(&link->next, after);
    cc__set(&link->prev, before);
    cc__set(&after->prev, link);
    cc__set(&before->next, link);
}

CC_INLINE void cc__list_push_back(struct link *list, struct link *link) {
    cc__list_insert(cc__get(&list->prev), link, list);
}

CC_INLINE void cc__list_push_front(struct link *list, struct link *link) {
    cc__list_insert(list, link, cc__get(&list->next));
}

CC_INLINE void cc__list_remove(struct link *link) {
    struct link *next = cc__get(&link->next), *prev = cc__get(&link->prev);
    cc__set(&prev->next, next);
    cc__set(&next->prev, prev);
}

/* The list must not be empty. */
CC_INLINE struct link *cc__list_pop_front(struct link *list) {
    struct link *link = cc__get(&list->next);
    cc__list_remove(link);
    return link;
}

CC_INLINE struct link *cc__list_pop_back(struct link *list) {
    struct link *link = cc__get(&list->prev);
    cc__list_remove(link);
    return link;
}

/* Appends all of `from` to `list`, in the same order. */
CC_INLINE void cc__list_append_all(struct link *list, struct link *from) {
    if (cc__list_empty(from)) return;
    struct link *first = cc__get(&from->next), *last = cc__get(&from->prev), *end = cc__get(&list->prev);
    cc__set(&end->next, first);
    cc__set(&first->prev, end);
    cc__set(&last->next, list);
    cc__set(&list->prev, last);
    cc__list_init(from);
}

/* ---- a wait queue: a ring without a head, found by its first link; all zero: empty ---- */

struct wait_queue {
    struct link *_Atomic first;
};

CC_INLINE bool cc__wait_queue_empty(struct wait_queue *queue) {
    return cc__get(&queue->first) == NULL;
}

CC_INLINE void cc__wait_queue_link(struct wait_queue *queue, struct link *link) {
    struct link *first = cc__get(&queue->first);
    if (first != NULL) {
        cc__list_push_back(first, link); /* before the first is behind the last */
    } else {
        cc__list_init(link);
        cc__set(&queue->first, link);
    }
}

CC_INLINE void cc__wait_queue_unlink(struct wait_queue *queue, struct link *link) {
    struct link *next = cc__get(&link->next);
    if (cc__get(&queue->first) == link) cc__set(&queue->first, next != link ? next : NULL);
    cc__list_remove(link);
}

#endif
