/* trace.h - which categories of events are on, and how to emit an event. The list is events.def.
 *
 * Disabled tracing is nearly free. A rare event costs one load of a word that is not written. For frequent events there
 * is already a branch to a slow path, and tracing forces it: parks check whether anything was cancelled, wakes whether
 * a cancellation is in progress, spawns whether they are refused (sched/trace_route.c); channels and selects have a
 * second, cold version.
 *
 * TRACE-1  An event never touches the object after the operation, when it may be freed. What the event says about it is
 *          copied before.
 * TRACE-2  A line is one write: lines of several threads do not mix.
 */
#ifndef CC_TRACE_TRACE_H
#define CC_TRACE_TRACE_H

#include "base/attr.h"
#include "sync/atomic.h"

#include <ccc/cc_sched.h>

/* ---- categories ---- */

enum {
#define CATEGORY(id, name, meaning) CATEGORY_##id,
#include "trace/events.def"
    CATEGORIES,
};

enum {
#define CATEGORY(id, name, meaning) TRACE_##id = 1 << CATEGORY_##id,
#include "trace/events.def"
    TRACE_ALL = (1 << CATEGORIES) - 1,
    /* Not categories; set only by the environment. */
    TRACE_SPEC = 1 << 29,       /* CC_SPEC_ASSERT: fiber/spec.h */
    TRACE_INBOX_DUMP = 1 << 30, /* CC_DEBUG_INBOX_DUMP: a dump shows the inboxes */
    TRACE_SIM = 1 << 28,        /* a simulation: channels and selects use their cold version, which has its points */
    TRACE_RECORD = 1 << 27,     /* the recorder is on: recorder.h */
    /* Categories whose events the recorder keeps as text. More frequent events have their own kind of record. */
    RECORDED = TRACE_SYSMON | TRACE_STEAL | TRACE_NURSERY | TRACE_PANIC | TRACE_FILE,
};

extern struct trace {
    _Alignas(CC_LINE) _Atomic uint32_t on; /* of the above; in its own cache line */
    _Atomic uint64_t since;                /* lines count their time from here */
} cc__trace;

/* Whether any of the categories is on. */
CC_INLINE bool cc__trace_on(uint32_t categories) {
    return unlikely((cc__get(&cc__trace.on) & categories) != 0);
}

/* Sets the categories of the environment, replacing the previous ones; and those of the program, in addition. */
void cc__trace_set(uint32_t categories);
void cc__trace_add(uint32_t categories);
/* A simulation begins, or is over. */
void cc__trace_simulated(bool on);
/* The recorder begins, or stops. */
void cc__trace_recording(bool on);
/* Turns all categories off, whatever enabled them; the recorder continues. */
void cc__trace_clear(void);
/* In a forked child: resets the lock, whose holder no longer exists. */
void cc__trace_forget(void);

/* The categories of a list "park,wake", or "all". Unknown names are ignored: *unknown and *length get the first of
 * them; NULL: all are known. */
uint32_t cc__trace_parse(const char *list, const char **unknown, int *length);
extern const char cc__trace_known[]; /* all names, for messages */

/* ---- events ---- */

struct fiber;

/* One function per event, implemented in diag/, which prints a line (time, worker and fiber, or thread; then the text)
 * or records it. They keep errno. */
#define EVENT(id, category, name, text, parameters, arguments) CC_COLD void cc__event_##id parameters;
#define EVENT_OF EVENT
#include "trace/events.def"

enum {
#define EVENT(id, category, name, text, parameters, arguments) \
    EVENT_IN_##id = TRACE_##category | ((TRACE_##category & RECORDED) != 0 ? TRACE_RECORD : 0),
#define EVENT_OF EVENT
#include "trace/events.def"
};

/* Emits an event. The arguments are evaluated only if the category is on, or recorded. */
#define cc__event(id, ...)                                            \
    do {                                                              \
        if (cc__trace_on(EVENT_IN_##id)) cc__event_##id(__VA_ARGS__); \
    } while (0)

#endif
