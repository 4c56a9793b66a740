/* line.c - standing in line. */
#include "lock/line.h"

#include <errno.h>

int cc__line_wait_locked(struct line *line, struct lock *lock, struct wait_node *node, uint64_t deadline,
                         struct wait_what what) {
    int rc = cc__waiter_init(&node->waiter, cc__worker(), deadline);
    if (unlikely(rc != 0)) return rc;
    cc__line_push(line, node);
    enum wake_reason reason = cc__wait_locked(&node->waiter, lock, what);
    if (likely(reason == WAKE_OBJECT)) return 0;
    cc__lock_take(lock);
    if (node->linked) cc__line_remove(line, node);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}
