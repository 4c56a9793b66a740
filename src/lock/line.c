/* line.c - standing in line. */
#include "lock/line.h"

#include <errno.h>

int cc__line_wait_locked(struct line *line, struct lock *lock, struct seat *seat, uint64_t deadline,
                         struct wait_what what) {
    int rc = cc__waiter_init(&seat->waiter, cc__worker(), deadline);
    if (unlikely(rc != 0)) return rc;
    cc__line_push(line, seat);
    enum wake_reason reason = cc__wait_locked(&seat->waiter, lock, what);
    if (likely(reason == WAKE_OBJECT)) return 0;
    cc__lock_take(lock);
    if (seat->linked) cc__line_remove(line, seat);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}
