/* home.c - a channel that only one worker uses needs no lock of its own.
 *
 * Most channels connect fibers that sit on one worker. After a number of visits in a row such a channel makes that
 * worker its home: there its operations run inside the worker's biased lock (sync/bias.h), which costs two stores and
 * a load instead of a compare-and-swap. Anybody else takes the channel's lock, takes the home away, and waits until
 * the worker has been seen outside.
 *
 *   the worker                          anybody else
 *   owner = INSIDE                      lock(channel)
 *   -- light barrier --                 home = 0
 *   home == its tag? go on              -- heavy barrier --
 *   else AWAY, and as anybody else      while owner == INSIDE: wait
 *   ... the channel is ours ...         ... the channel is ours ...
 *   owner = AWAY (release)              unlock
 *
 * HOME-1  By BARRIER-1 the worker sees that the home is gone, or the other sees INSIDE and waits.
 * HOME-2  `home` is written under the lock: set by the worker itself, cleared by whoever needs the channel.
 * HOME-3  An eviction by another thread costs some 20 us: each makes the next home 32 times as hard to get, so that a
 *         channel which is shared pays two or three times in its life. One by the worker itself (a select, a close) costs
 *         nothing of that kind, and doubles the price.
 */
#include "chan/chan.h"

enum { NEED_MAX = 1 << 24 };

void cc__chan_evict_locked(CCChan *ch) {
    uint64_t tag = cc__get(&ch->home);
    struct worker *w = cc__worker();
    bool ours = w != NULL && w->core.tag == tag;
    uint64_t need = (uint64_t)ch->need * (ours ? 2 : 32);
    ch->need = need < NEED_MAX ? (uint32_t)need : NEED_MAX;
    ch->visits = 0;
    cc__set_seq(&ch->home, 0);
    cc__sched_await_outside(tag);
}
