/* trace.c - prints events, switches categories on and off, and reports latencies. */
#include "trace/trace.h"
#include "base/error.h"
#include "base/fatal.h"
#include "base/inspect.h"
#include "base/san.h"
#include "diag/diag.h"
#include "inspect/view.h"
#include "os/clock.h"
#include "os/thread.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"
#include "trace/recorder.h"
#include "trace/timing.h"
#include "wait/arm.h"

#include <ccc/cc_diag.h>
#include <ccc/cc_select.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- lines ---- */

/* Identifies an event. */
struct event_id {
    enum event_number number;
    uint32_t category;
};

/* An after-switch action runs when the next fiber is already current, and that one may never have run: its stack then
 * still has the name of the previous fiber, or none. So such actions name the fiber that the event belongs to. */
static void say(const struct event_id *event, struct fiber *f, bool ended, const char *fmt,
                va_list args) { /* TRACE-2 */
    CC_KEEP_ERRNO;
    char text[320], name[CC_FIBER_NAME_MAX] = "";
    (void)vsnprintf(text, sizeof text, fmt, args);
    if ((event->category & RECORDED) != 0 && cc__trace_on(TRACE_RECORD))
        cc__record_here(REC_EVENT, event->number, 0, text);
    if (!cc__trace_on(event->category)) return;
    uint64_t us = (cc__clock_now() - cc__get(&cc__trace.since)) / 1000;
    unsigned long long whole = us / 1000000, part = us % 1000000;
    struct worker *w = cc__worker();
    if (f != NULL && !ended) cc__view_name(f, name);
    if (f != NULL)
        cc__warn("%llu.%06llu worker %u fiber %u.%u%s%s%s: %s", whole, part, w->core.owner - 1, f->slot,
                 cc__get(&f->generation), cc__quoted(name), text);
    else if (w != NULL)
        cc__warn("%llu.%06llu worker %u: %s", whole, part, w->core.owner - 1, text);
    else
        cc__warn("%llu.%06llu thread %d: %s", whole, part, cc__thread_id(), text);
}

static CC_PRINTF(2, 3) void line(const struct event_id *event, const char *fmt, ...) {
    struct worker *w = cc__worker();
    struct fiber *behalf = w != NULL ? cc__get(&w->core.behalf) : NULL;
    va_list args;
    va_start(args, fmt);
    say(event, behalf != NULL ? behalf : cc__sched_current(w), behalf != NULL, fmt, args);
    va_end(args);
}

static CC_PRINTF(3, 4) void line_of(const struct event_id *event, struct fiber *f, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    say(event, f, false, fmt, args);
    va_end(args);
}

/* ---- formatting the arguments of events.def ---- */

enum { SHORT = 64, LONG_TEXT = 128 };

static const char *fiber_text(char *text, CCFiberId id) {
    snprintf(text, SHORT, "%u.%u", (uint32_t)id - 1, (uint32_t)(id >> 32));
    return text;
}

static const char *quoted(char *text, const char *name) {
    if (name[0] != '\0') snprintf(text, SHORT, " '%.*s'", CC_FIBER_NAME_MAX - 1, name);
    return text;
}

static const char *channel_text(char *text, const void *channel, const char *name) {
    if (name[0] != '\0')
        snprintf(text, SHORT, "'%s'", name);
    else
        snprintf(text, SHORT, "%p", channel);
    return text;
}

static const char *function_text(char *text, CCTaskFn fn) {
    cc__symbol_text((const char *)(uintptr_t)fn + 1, text, LONG_TEXT);
    return text;
}

static bool in_fiber(void) {
    return cc__sched_current(cc__worker()) != NULL;
}

/* What ended the wait of a send or a receive. */
static const char *result_name(int result) {
    switch (result) {
    case 0:
        return "done";
    case ARM_REST:
        return "to create an item";
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

static const char *case_name(unsigned kind) {
    static const char *const names[] = {"none",     "send",   "recv", "join",  "at",      "cancel",     "readable",
                                        "writable", "exited", "key",  "event", "acquire", "nursery_end"};
    _Static_assert(array_len(names) == CC_CASE_NURSERY_END + 1, "a name for each kind");
    return kind < array_len(names) ? names[kind] : "?";
}

#define FIBER(id) fiber_text((char[SHORT]){0}, (id))
#define QUOTED(name) quoted((char[SHORT]){0}, (name))
#define CHANNEL(channel, name) channel_text((char[SHORT]){0}, (channel), (name))
#define FUNCTION(fn) function_text((char[LONG_TEXT]){0}, (fn))
#define DIRECTION(sends) ((sends) ? "send" : "recv")
#define LONG(number) ((unsigned long long)(number))

/* ---- the events ---- */

/* If an after-switch action traces the event, the race detector takes the stack for that of another fiber. */
#define UNWRAPPED(...) __VA_ARGS__
#define EVENT_ID(id, category) (&(const struct event_id){EVENT_##id, TRACE_##category})
#define EVENT(id, category, name, text, parameters, arguments)   \
    void cc__event_##id parameters {                             \
        cc__san_ignore(true);                                    \
        line(EVENT_ID(id, category), text, UNWRAPPED arguments); \
        cc__san_ignore(false);                                   \
    }
#define EVENT_OF(id, category, name, text, parameters, arguments)       \
    void cc__event_##id parameters {                                    \
        cc__san_ignore(true);                                           \
        line_of(EVENT_ID(id, category), of, text, UNWRAPPED arguments); \
        cc__san_ignore(false);                                          \
    }
#include "trace/events.def"

/* ---- enabling ---- */

/* Notifies a running runtime; otherwise its start reads the categories. */
static void tell(void) {
    if (cc__worker() != NULL) {
        cc__sched_route_traces();
    } else if (cc__upcall_enter(false) == 0) {
        cc__sched_route_traces();
        cc__upcall_leave();
    }
}

int cc_trace_start(const char *categories) {
    const char *unknown;
    int length;
    if (categories == NULL) return EINVAL;
    uint32_t on = cc__trace_parse(categories, &unknown, &length);
    if (unknown != NULL) return EINVAL;
    cc__trace_add(on);
    tell();
    return 0;
}

void cc_trace_stop(void) {
    cc__trace_clear();
    tell();
}

/* ---- latencies ---- */

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
#define TIMED(id, name) [TIMED_##id] = name,
#include "trace/events.def"
    };
    if (!cc__trace_on(TRACE_TIMING)) return;
    for (int kind = 0; kind < TIMED_KINDS; kind++) {
        struct timing timing;
        cc__timing_take((enum timed)kind, &timing);
        if (timing.count > 0) report(names[kind], &timing);
    }
}
