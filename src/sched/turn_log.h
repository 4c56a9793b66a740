/* turn_log.h - when did the worker's n-th turn end?
 *
 * A fiber that parks reads no clock: it notes the number of its worker's current turn. At every poll (next.c: about
 * every 50 us while there is work, and before the worker sleeps) the worker logs how many turns it has had. Old entries
 * are thinned out: level k keeps the last four of every 2^k-th entry. So a turn is located between two entries whose
 * distance is at most half its age, counted in entries.
 */
#ifndef CC_SCHED_TURN_LOG_H
#define CC_SCHED_TURN_LOG_H

#include "sync/atomic.h"

enum { TURN_LOG_LEVELS = 28, TURN_LOG_KEPT = 4 }; /* back to 2^28 entries: hours of continuous work */

struct turn_log {
    uint64_t entries;       /* used by the owner only */
    _Atomic uint64_t begin; /* before the first turn; 0: not known */
    struct {
        _Atomic uint64_t turns, time;
    } entry[TURN_LOG_LEVELS][TURN_LOG_KEPT];
};

/* By the owner, before its first turn. */
CC_INLINE void cc__turn_log_begin(struct turn_log *log, uint64_t now) {
    if (cc__get(&log->begin) == 0) cc__set(&log->begin, now);
}

/* By the owner: logs the number of turns so far. */
CC_INLINE void cc__turn_log_write(struct turn_log *log, uint64_t turns, uint64_t now) {
    uint64_t n = ++log->entries;
    for (unsigned k = 0; k < TURN_LOG_LEVELS && (n & ((UINT64_C(1) << k) - 1)) == 0; k++) {
        unsigned at = (unsigned)(n >> k) % TURN_LOG_KEPT;
        cc__set(&log->entry[k][at].turns, turns);
        cc__set(&log->entry[k][at].time, now);
    }
}

/* Bounds for the end of turn number `turn`: 0 and UINT64_MAX if unknown. Any thread. */
CC_INLINE void cc__turn_log_find(struct turn_log *log, uint64_t turn, uint64_t *not_before, uint64_t *not_after) {
    *not_before = cc__get(&log->begin);
    *not_after = UINT64_MAX;
    for (unsigned k = 0; k < TURN_LOG_LEVELS; k++) {
        for (unsigned i = 0; i < TURN_LOG_KEPT; i++) {
            uint64_t turns = cc__get(&log->entry[k][i].turns), time = cc__get(&log->entry[k][i].time);
            if (time == 0) continue;
            if (turns <= turn && time > *not_before) *not_before = time;
            if (turns > turn && time < *not_after) *not_after = time;
        }
    }
}

#endif
