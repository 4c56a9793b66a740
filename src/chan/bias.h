/* bias.h - which worker a channel is biased to; inline, because every operation checks it. The rules are in bias.c. */
#ifndef CC_CHAN_BIAS_H
#define CC_CHAN_BIAS_H

#include "chan/chan.h"
#include "sched/contention.h"

enum bias_by { BIAS_BY_USE = 1, BIAS_BY_SELECT };

/* Counts consecutive uses by the same worker, and changes between workers. Under the lock. */
CC_INLINE void cc__chan_count_locked(struct worker *w, CCChan *ch) {
    if (ch->last_user == w->core.tag) {
        ch->uses++;
    } else {
        if (cc__contention_with(ch->last_user) && !cc__chan_calls(ch)) cc__contention_moved(w);
        ch->last_user = w->core.tag;
        ch->uses = 0;
    }
}

/* The same for a plain operation, which biases the channel to the worker at the threshold. Under the lock. */
CC_INLINE void cc__chan_used_locked(struct worker *w, CCChan *ch) {
    if (w == NULL) return;
    cc__chan_count_locked(w, ch);
    if (unlikely(ch->uses >= ch->threshold) && ch->may_bias) {
        ch->bias_by = BIAS_BY_USE;
        cc__set(&ch->bias, w->core.tag);
    }
}

CC_INLINE bool cc__chan_biased_to(struct worker *w, const CCChan *ch) {
    return w != NULL && cc__get(&ch->bias) == w->core.tag;
}

/* True: the caller is inside its worker's biased lock, and the channel is biased to that worker. */
CC_INLINE bool cc__chan_bias_enter(struct worker *w, CCChan *ch) {
    if (!cc__chan_biased_to(w, ch)) return false;
    cc__bias_enter(&w->runq.bias);
    if (likely(cc__chan_biased_to(w, ch))) return true; /* CHANBIAS-1 */
    cc__bias_leave(&w->runq.bias);
    return false;
}

#endif
