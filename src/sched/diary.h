/* diary.h - when did the worker's n-th park happen?
 *
 * No clock is read when a fiber parks; it notes only the how manyth park of its worker that is. At every look at the
 * clock (next.c, about every 50 us while there is work, and before the worker sleeps) the worker writes down how many
 * parks there were by then. Old entries are thinned: level k keeps every 2^k-th look, four of them. So a park is
 * placed between two looks that are at most half its age in looks apart.
 */
#ifndef CC_SCHED_DIARY_H
#define CC_SCHED_DIARY_H

#include "sync/atomic.h"

enum { DIARY_LEVELS = 28, DIARY_KEPT = 4 }; /* back to 2^28 looks: hours of work without a pause */

struct diary {
    uint64_t looks; /* the owner's */
    struct {
        _Atomic uint64_t parks, time;
    } entry[DIARY_LEVELS][DIARY_KEPT];
};

/* By the owner: so many parks until now. */
CC_INLINE void cc__diary_write(struct diary *d, uint64_t parks, uint64_t now) {
    uint64_t look = ++d->looks;
    for (unsigned k = 0; k < DIARY_LEVELS && (look & ((UINT64_C(1) << k) - 1)) == 0; k++) {
        unsigned at = (unsigned)(look >> k) % DIARY_KEPT;
        cc__set(&d->entry[k][at].parks, parks);
        cc__set(&d->entry[k][at].time, now);
    }
}

/* Bounds of when park number `park` happened: 0 and UINT64_MAX where nothing is known. Any thread. */
CC_INLINE void cc__diary_find(struct diary *d, uint64_t park, uint64_t *not_before, uint64_t *not_after) {
    *not_before = 0;
    *not_after = UINT64_MAX;
    for (unsigned k = 0; k < DIARY_LEVELS; k++) {
        for (unsigned i = 0; i < DIARY_KEPT; i++) {
            uint64_t parks = cc__get(&d->entry[k][i].parks), time = cc__get(&d->entry[k][i].time);
            if (time == 0) continue;
            if (parks < park && time > *not_before) *not_before = time;
            if (parks >= park && time < *not_after) *not_after = time;
        }
    }
}

#endif
