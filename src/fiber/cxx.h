/* cxx.h - the exception state of the C++ runtime, which belongs to OS threads and has to travel with fibers.
 *
 * A thread has a list of the exceptions that its catch blocks handle, and a count of those on their way to one
 * (__cxa_eh_globals; Itanium C++ ABI, "Exception handling", 2.2.2). A fiber that switches inside a catch block, or in
 * a destructor that an exception runs, leaves with both, and finds them on the thread that it comes back on
 * (sched/switch.h).
 *
 * The library does not need the C++ runtime. It is found by weak references, and if it is loaded later, with C++
 * code that includes our headers, by cc_cxx_attach. Until then all workers point to cc__cxx_none.
 *
 * CXX-1  A thread's state is empty whenever a fiber starts or resumes there: a fiber that leaves with some takes it
 *        along.
 */
#ifndef CC_FIBER_CXX_H
#define CC_FIBER_CXX_H

#include "base/attr.h"
#include "sync/atomic.h"

/* As the ABI has it. The race detector, which sees the fibers of one thread as threads, does not hear of it. */
struct cxx_globals {
    void *_Atomic caught;      /* the newest exception in a catch block; the next is in that */
    _Atomic uint32_t uncaught; /* thrown, and not in a catch block yet */
};

/* A copy of it. */
struct cxx_state {
    void *caught;
    uint32_t uncaught;
};

/* For threads without a C++ runtime: empty; when there is one after all, not empty, so that everybody looks again. */
extern struct cxx_globals cc__cxx_none;

/* The calling thread's. A fiber changes threads: never to be kept across a switch. */
struct cxx_globals *cc__cxx_here(void);

struct cxx_state cc__cxx_state(struct cxx_globals *g);
void cc__cxx_put(struct cxx_globals *g, struct cxx_state state);

/* Whether there is anything: every switch asks. */
#ifdef CC_TSAN
bool cc__cxx_busy(struct cxx_globals *g);
#else
CC_INLINE bool cc__cxx_busy(struct cxx_globals *g) {
    return ((uintptr_t)cc__get(&g->caught) | cc__get(&g->uncaught)) != 0;
}
#endif

/* The frames of a protected call were abandoned by a panic: ends the catch blocks among them, which destroys their
 * exceptions. `before`: the state when the protected call began. May switch, in a destructor of the user's. */
void cc__cxx_abandon(struct cxx_state before);

/* What the name of a type or a function is in the source, in `name`; as it is, if there is no C++ runtime.
 * Allocates. */
void cc__cxx_demangle(const char *mangled, char *name, size_t size);

/* The exception behind an _Unwind_Exception has reached the end of its way. Writes what it says, as a string, and
 * destroys it; context: the unwinder's, at cc__guard. */
void cc__cxx_consume(void *unwind_exception, void *context, char *text, size_t size);

#endif
