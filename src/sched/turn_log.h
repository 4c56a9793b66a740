/* turn_log.h - when was the worker's n-th turn?
 *
 * No clock is read when a fiber parks; it notes only in which turn of its worker that is. At every look at the
 * clock (next.c, about every 50 us while there is work, and before the worker sleeps) the worker writes down how many
 * turns there were by then. Old entries are thinned: level k keeps every 2^k-th look, four of them. So a turn is
 * placed between two looks that are at most half its age in looks apart.
 */
#ifndef CC_SCHED_TURN_LOG_H
#define CC_SCHED_TURN_LOG_H

#include "sync/atomic.h"

enum { TURN_LOG_LEVELS = 28, TURN_LOG_KEPT = 4 }; /* back to 2^28 looks: hours of work without a pause */

struct turn_log {
    uint64_t looks;         /* the owner's */
    _Atomic uint64_t begin; /* no turn was before; 0: not known */
    struct {
        _Atomic uint64_t turns, time;
    } entry[TURN_LOG_LEVELS][TURN_LOG_KEPT];
};

/* By the owner, before its first turn. */
CC_INLINE void cc__turn_log_begin(struct turn_log *d, uint64_t now) {
    if (cc__get(&d->begin) == 0) cc__set(&d->begin, now);
}

/* By the owner: so many turns until now. */
CC_INLINE void cc__turn_log_write(struct turn_log *d, uint64_t turns, uint64_t now) {
    uint64_t look = ++d->looks;
    for (unsigned k = 0; k < TURN_LOG_LEVELS && (look & ((UINT64_C(1) << k) - 1)) == 0; k++) {
        unsigned at = (unsigned)(look >> k) % TURN_LOG_KEPT;
        cc__set(&d->entry[k][at].turns, turns);
        cc__set(&d->entry[k][at].time, now);
    }
}

/* Bounds of when turn number `turn` ended: 0 and UINT64_MAX where nothing is known. Any thread. */
CC_INLINE void cc__turn_log_find(struct turn_log *d, uint64_t turn, uint64_t *not_before, uint64_t *not_after) {
    *not_before = cc__get(&d->begin);
    *not_after = UINT64_MAX;
    for (unsigned k = 0; k < TURN_LOG_LEVELS; k++) {
        for (unsigned i = 0; i < TURN_LOG_KEPT; i++) {
            uint64_t turns = cc__get(&d->entry[k][i].turns), time = cc__get(&d->entry[k][i].time);
            if (time == 0) continue;
            if (turns <= turn && time > *not_before) *not_before = time;
            if (turns > turn && time < *not_after) *not_after = time;
        }
    }
}

#endif
