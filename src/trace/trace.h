/* trace.h - which categories of events are on, and telling of an event. The list is events.def.
 *
 * Off means free. Where an event is rare, it costs one load of a word that nobody writes. Where it is not, there is
 * a branch already that leads to a slow path, and tracing makes everybody take it: parks look whether anything was
 * cancelled, wakes whether somebody cancels, spawns whether they are refused (sched/trace_route.c); channels and
 * selects have a second, cold form of themselves.
 *
 * TRACE-1  An event never touches the object after the operation: it may be gone. What is said about it is copied
 *          before.
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
    /* No categories, and asked for by the environment only. */
    TRACE_SPEC = 1 << 29,       /* CC_SPEC_ASSERT: fiber/spec.h */
    TRACE_INBOX_DUMP = 1 << 30, /* CC_DEBUG_INBOX_DUMP: a dump shows the inboxes */
    TRACE_SIM = 1 << 28,        /* a simulation: channels and selects take their cold form, where its points are */
    TRACE_RECORD = 1 << 27,     /* the recorder is on: recorder.h */
    /* Whose events the recorder keeps as text. What happens more often has a kind of record of its own. */
    RECORDED = TRACE_SYSMON | TRACE_STEAL | TRACE_NURSERY | TRACE_PANIC | TRACE_FILE,
};

extern struct trace {
    _Alignas(CC_LINE) _Atomic uint32_t on; /* of the above; in a line of its own */
    _Atomic uint64_t since;                /* lines count their time from here */
} cc__trace;

/* Whether any of the categories is on. */
CC_INLINE bool cc__trace_on(uint32_t categories) {
    return unlikely((cc__get(&cc__trace.on) & categories) != 0);
}

/* What the environment wants, in place of what it wanted before; and what the program wants besides. */
void cc__trace_set(uint32_t categories);
void cc__trace_add(uint32_t categories);
/* A simulation begins, or is over. */
void cc__trace_simulated(bool on);
/* The recorder begins, or stops. */
void cc__trace_recording(bool on);
/* All categories off, whoever wanted them; the recorder goes on. */
void cc__trace_clear(void);
/* In a forked child: whoever held the lock is gone. */
void cc__trace_forget(void);

/* The categories of a list "park,wake", or "all". Unknown names are left out: the first of them is stored in *unknown,
 * with its length; NULL: all are known. */
uint32_t cc__trace_parse(const char *list, const char **unknown, int *length);
extern const char cc__trace_known[]; /* all names, for a sentence */

/* ---- events ---- */

struct fiber;

/* One function for each event, implemented by diag/, which prints a line: time, worker and fiber, or thread; then the
 * text; or records it. They keep errno. */
#define EVENT(id, category, name, text, parameters, arguments) CC_COLD void cc__event_##id parameters;
#define EVENT_OF EVENT
#include "trace/events.def"

enum {
#define EVENT(id, category, name, text, parameters, arguments) \
    EVENT_IN_##id = TRACE_##category | ((TRACE_##category & RECORDED) != 0 ? TRACE_RECORD : 0),
#define EVENT_OF EVENT
#include "trace/events.def"
};

/* It happens here and now. The arguments are evaluated only if the category is on, or recorded. */
#define cc__event(id, ...)                                            \
    do {                                                              \
        if (cc__trace_on(EVENT_IN_##id)) cc__event_##id(__VA_ARGS__); \
    } while (0)

#endif
