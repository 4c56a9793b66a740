/* trace.c - the events of a channel. */
#include "chan/chan.h"

struct chan_label cc__chan_label(const CCChan *ch, bool sends) {
    struct chan_label label = {.channel = ch, .sends = sends};
    if (ch != NULL) memcpy(label.name, ch->name, sizeof label.name);
    return label;
}

void cc__chan_trace_wakes(struct wakes *wakes) {
    if (cc__get(&wakes->count) != 0)
        for (struct link *l = cc__get(&wakes->fibers.next); l != &wakes->fibers; l = cc__get(&l->next))
            cc__event(chan_close_wake, cc__pool_id(cc__fiber_of(l)));
    if (cc__get(&wakes->threads) != NULL) cc__event(chan_close_wake, 0);
}
