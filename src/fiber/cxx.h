/* cxx.h - the exception state of the C++ runtime, which is per OS thread and has to move with fibers.
 *
 * A thread has a list of the exceptions that its catch blocks handle, and a count of those in flight (__cxa_eh_globals;
 * Itanium C++ ABI, "Exception handling", 2.2.2). A fiber that switches inside a catch block, or in a destructor during
 * unwinding, takes both along to the thread on which it resumes (sched/switch.h).
 *
 * The library does not require the C++ runtime. Weak references find it; if it is loaded later, with C++ code that
 * includes our headers, cc_cxx_attach provides it. Until then all workers point to cc__cxx_none.
 *
 * CXX-1  A thread's state is empty whenever a fiber starts or resumes there: a fiber that switches away takes its state
 *        along.
 */
#ifndef CC_FIBER_CXX_H
#define CC_FIBER_CXX_H

#include "base/attr.h"
#include "sync/atomic.h"

/* The ABI's layout. Hidden from the race detector, which sees the fibers of one thread as threads. */
struct cxx_globals {
    void *_Atomic caught;      /* the newest exception in a catch block; the next is in that */
    _Atomic uint32_t uncaught; /* thrown and not yet caught */
};

/* A copy of it. */
struct cxx_state {
    void *caught;
    uint32_t uncaught;
};

/* For threads without a C++ runtime: empty. Made non-empty when one is attached, so that every worker looks it up
 * again. */
extern struct cxx_globals cc__cxx_none;

/* That of the calling thread. Must not be kept across a switch: a fiber may change threads. */
struct cxx_globals *cc__cxx_here(void);

struct cxx_state cc__cxx_state(struct cxx_globals *g);
void cc__cxx_put(struct cxx_globals *g, struct cxx_state state);

/* Whether the state is non-empty: checked at every switch. */
#ifdef CC_TSAN
bool cc__cxx_busy(struct cxx_globals *g);
#else
CC_INLINE bool cc__cxx_busy(struct cxx_globals *g) {
    return ((uintptr_t)cc__get(&g->caught) | cc__get(&g->uncaught)) != 0;
}
#endif

/* A panic has abandoned the frames of a protected call: ends their catch blocks, which destroys the exceptions.
 * `before`: the state when the protected call began. May switch, in a user's destructor. */
void cc__cxx_abandon(struct cxx_state before);

/* Demangles the name of a type or a function into `name`; copies it unchanged without a C++ runtime. Allocates. */
void cc__cxx_demangle(const char *mangled, char *name, size_t size);

/* Handles an exception that has reached cc__guard: writes its message and destroys it. context: the unwinder's, at
 * cc__guard. */
void cc__cxx_consume(void *unwind_exception, void *context, char *text, size_t size);

#endif
