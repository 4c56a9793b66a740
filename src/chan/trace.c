/* trace.c - what is said about a channel (CC_CHAN_DEBUG), and how long its calls take (CC_CHANNEL_TIMING). */
#include "chan/chan.h"

#include "os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct chan_label cc__chan_label(const CCChan *ch, bool sends) {
    struct chan_label label = {.sends = sends};
    if (ch != NULL && ch->name[0] != '\0')
        snprintf(label.text, sizeof label.text, "'%s'", ch->name);
    else
        snprintf(label.text, sizeof label.text, "%p", (const void *)ch);
    return label;
}

void cc__chan_trace_created(const CCChan *ch) {
    struct chan_label label = cc__chan_label(ch, false);
    cc__trace_line("channel %s: create at %p, elements of %zu bytes, capacity %zu", label.text, (const void *)ch,
                   ch->size, ch->capacity);
}

void cc__chan_trace_state(CCChan *ch, const char *event) {
    struct chan_label label = cc__chan_label(ch, false);
    cc__trace_line("channel %s: %s, %zu of %zu buffered", label.text, event, cc__get(&ch->count), ch->capacity);
}

uint64_t cc__chan_trace_close(CCChan *ch, int error) {
    if (cc__trace_on(TRACE_CHAN)) {
        char event[64];
        if (cc__get(&ch->closed))
            snprintf(event, sizeof event, "close again");
        else
            snprintf(event, sizeof event, "close with error %d", error > 0 ? error : EPIPE);
        cc__chan_trace_state(ch, event);
    }
    return cc__clock_now();
}

void cc__chan_trace_time(enum timed kind, uint64_t start) {
    if (!cc__trace_on(TRACE_TIMING)) return;
    struct worker *w = cc__worker();
    cc__timing_add(kind, w != NULL ? w->core.owner : 0, cc__clock_now() - start);
}

static bool in_fiber(void) {
    return cc__sched_current(cc__worker()) != NULL;
}

void cc__chan_trace_park(const struct chan_label *label, CCChan *ch) {
    if (!cc__trace_on(TRACE_CHAN)) return;
    cc__trace_line("channel %s: %s %s, %zu of %zu buffered", label->text, label->sends ? "send" : "recv",
                   in_fiber() ? "parks" : "blocks", cc__get(&ch->count), ch->capacity);
}

static const char *ended_by(int rc) {
    switch (rc) {
    case 0:
        return "done";
    case ARM_AGAIN:
        return "to look again";
    case ETIMEDOUT:
        return "deadline";
    case ECANCELED:
        return "cancelled";
    case ENOMEM:
        return "no memory for a timer";
    default:
        return "closed";
    }
}

void cc__chan_trace_woken(const struct chan_label *label, int rc) {
    if (!cc__trace_on(TRACE_CHAN)) return;
    cc__trace_line("channel %s: %s %s, %s", label->text, label->sends ? "send" : "recv",
                   in_fiber() ? "woken" : "released", ended_by(rc));
}

static void say_whom(const char *by, CCFiberId whom) {
    cc__trace_line("%s wakes fiber %u.%u", by, (uint32_t)whom - 1, (uint32_t)(whom >> 32));
}

void cc__chan_trace_wake(const struct chan_label *label, CCFiberId whom) {
    if (!cc__trace_on(TRACE_CHAN_VERBOSE)) return;
    char by[sizeof label->text + 24];
    snprintf(by, sizeof by, "channel %s: %s", label->text, label->sends ? "send" : "recv");
    say_whom(by, whom);
}

void cc__chan_trace_wakes(struct wakes *wakes) {
    if (cc__get(&wakes->count) != 0)
        for (struct link *l = cc__get(&wakes->fibers.next); l != &wakes->fibers; l = cc__get(&l->next))
            say_whom("channel:", cc__pool_id(cc__fiber_of(l)));
    if (cc__get(&wakes->threads) != NULL) cc__trace_line("channel: releases an OS thread");
}
