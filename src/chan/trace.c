/* trace.c - the events of a channel, and how long its calls take. */
#include "chan/chan.h"

#include "os/clock.h"

#include <errno.h>
#include <string.h>

struct chan_label cc__chan_label(const CCChan *ch, bool sends) {
    struct chan_label label = {.channel = ch, .sends = sends};
    if (ch != NULL) memcpy(label.name, ch->name, sizeof label.name);
    return label;
}

void cc__chan_trace_created(const CCChan *ch) {
    cc__event(chan_create, ch, ch->name, ch->size, ch->capacity);
}

void cc__chan_trace_free(CCChan *ch, bool gone) {
    cc__event(chan_free, ch, ch->name, gone, cc__get(&ch->count), ch->capacity);
}

uint64_t cc__chan_trace_close(CCChan *ch, int error) {
    cc__event(chan_close, ch, ch->name, error > 0 ? error : EPIPE, cc__get(&ch->closed), cc__get(&ch->count),
              ch->capacity);
    return cc__clock_now();
}

void cc__chan_trace_time(enum timed kind, uint64_t start) {
    if (!cc__trace_on(TRACE_TIMING)) return;
    struct worker *w = cc__worker();
    cc__timing_add(kind, w != NULL ? w->core.owner : 0, cc__clock_now() - start);
}

void cc__chan_trace_park(const struct chan_label *label, CCChan *ch) {
    cc__event(chan_wait, label->channel, label->name, label->sends, cc__get(&ch->count), ch->capacity);
}

void cc__chan_trace_woken(const struct chan_label *label, int rc) {
    cc__event(chan_woken, label->channel, label->name, label->sends, rc);
}

void cc__chan_trace_wake(const struct chan_label *label, CCFiberId whom) {
    cc__event(chan_wake, label->channel, label->name, label->sends, whom);
}

void cc__chan_trace_wakes(struct wakes *wakes) {
    if (cc__get(&wakes->count) != 0)
        for (struct link *l = cc__get(&wakes->fibers.next); l != &wakes->fibers; l = cc__get(&l->next))
            cc__event(chan_close_wake, cc__pool_id(cc__fiber_of(l)));
    if (cc__get(&wakes->threads) != NULL) cc__event(chan_close_wake, 0);
}
