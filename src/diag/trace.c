/* trace.c - the lines of the trace categories, and the report of times. */
#include "probe/trace.h"
#include "base/fatal.h"
#include "diag/diag.h"
#include "plat/clock.h"
#include "plat/error.h"
#include "plat/thread.h"
#include "sched/sched.h"

#include <stdarg.h>
#include <stdio.h>

void cc__trace_line(const char *fmt, ...) {
    int saved = cc__errno_get();
    char text[320];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    uint64_t us = (cc__clock_now() - cc__get(&cc__trace.since)) / 1000;
    unsigned long long whole = us / 1000000, part = us % 1000000;
    struct worker *w = cc__worker();
    struct fiber *self = cc__sched_current(w);
    if (self != NULL) {
        const char *name = cc__get(&cc__get(&self->stack)->cold)->name;
        cc__warn("%llu.%06llu worker %u fiber %u.%u%s%s%s: %s", whole, part, w->core.owner - 1, self->slot,
                 cc__get(&self->generation), name[0] ? " '" : "", name, name[0] ? "'" : "", text);
    } else {
        cc__warn("%llu.%06llu thread %d: %s", whole, part, cc__thread_id(), text);
    }
    cc__errno_set(saved);
}

static void report(const char *name, const struct timing *t) {
    char shares[600] = "";
    int at = 0;
    for (unsigned k = 0; k < TIMING_BUCKETS; k++) {
        if (t->bucket[k] == 0 || at > (int)sizeof shares - 40) continue;
        double percent = 100.0 * (double)t->bucket[k] / (double)t->count;
        at += snprintf(shares + at, sizeof shares - (size_t)at, "%s%llu: %.3g%%", at > 0 ? ", " : "",
                       k > 0 ? 1ULL << k : 0, percent);
    }
    cc__warn("timing: %s: %llu calls, mean %.0f ns, least %llu, most %llu; from so many ns on: %s", name,
             (unsigned long long)t->count, (double)t->sum / (double)t->count, (unsigned long long)t->least,
             (unsigned long long)t->most, shares);
}

void cc__diag_timing(void) {
    static const char *const names[TIMED_KINDS] = {
        [TIMED_SEND] = "send",   [TIMED_SEND_TRY] = "send_try", [TIMED_SEND_UNTIL] = "send_until",
        [TIMED_RECV] = "recv",   [TIMED_RECV_TRY] = "recv_try", [TIMED_RECV_UNTIL] = "recv_until",
        [TIMED_CLOSE] = "close", [TIMED_SELECT] = "select",
    };
    if (!cc__trace_on(TRACE_TIMING)) return;
    for (int kind = 0; kind < TIMED_KINDS; kind++) {
        struct timing timing;
        cc__timing_take((enum timed)kind, &timing);
        if (timing.count > 0) report(names[kind], &timing);
    }
}
