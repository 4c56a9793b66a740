/* home.h - where a channel is at home, for those who ask all the time; home.c has the rules. */
#ifndef CC_CHAN_HOME_H
#define CC_CHAN_HOME_H

#include "chan/chan.h"

enum home_by { HOME_BY_USE = 1, HOME_BY_SELECT };

/* One more visit of the same worker in a row, or the first. Under the lock. */
CC_INLINE void cc__home_count_locked(struct worker *w, CCChan *ch) {
    if (ch->last == w->core.tag) {
        ch->visits++;
    } else {
        ch->last = w->core.tag;
        ch->visits = 0;
    }
}

/* A worker that comes again and again, and nobody else. Under the lock. */
CC_INLINE void cc__home_visit_locked(struct worker *w, CCChan *ch) {
    if (w == NULL || !ch->homely) return;
    cc__home_count_locked(w, ch);
    if (unlikely(ch->visits >= ch->need)) {
        ch->home_by = HOME_BY_USE;
        cc__set(&ch->home, w->core.tag);
    }
}

CC_INLINE bool cc__home_here(struct worker *w, const CCChan *ch) {
    return w != NULL && cc__get(&ch->home) == w->core.tag;
}

/* True: the caller is inside, and the channel is at home there. */
CC_INLINE bool cc__home_enter(struct worker *w, CCChan *ch) {
    if (!cc__home_here(w, ch)) return false;
    cc__bias_enter(&w->runq.bias);
    if (likely(cc__home_here(w, ch))) return true; /* HOME-1 */
    cc__bias_leave(&w->runq.bias);
    return false;
}

#endif
