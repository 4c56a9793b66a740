/* diag.h - what the runtime says about itself. The only room that prints at length. */
#ifndef CC_DIAG_DIAG_H
#define CC_DIAG_DIAG_H

#include "os/signals.h"

#include <stdint.h>

/* A fault in a fiber or a hosted call: if it lies in the guard of its stack, or no handler of the program's wants it,
 * says who it was and where (crash.c). In a signal handler. */
bool cc__diag_fault(const struct fault *fault);
/* On the sysmon thread: true if a fault was waiting for its backtrace. */
bool cc__diag_crash_asked(void);

/* The fibers that have not ended, what each waits for, and where it is, on stderr. */
void cc__diag_unfinished(void);

/* CC_LEAK_REPORT: the tasks that have not ended, and those of them that never can. when: "when the program exits" */
void cc__diag_leaks(const char *when);

/* The counters and the stacks' high-water marks, on stderr: a table with a column for each worker. While the runtime
 * runs. */
void cc__diag_stats(void);

/* When workers were added and why not, on stderr. */
void cc__diag_pressure(void);

/* How long the calls on channels took so far, on stderr, if that is asked for; each call is reported once. */
void cc__diag_timing(void);

/* CC_DEBUG_LOCKS: fibers that wait while they hold a pthread mutex are reported (pthreads.c); or it is only known which
 * they hold. */
void cc__diag_watch_locks(bool report);

/* Debug builds: waits for descriptors that are ready or closed, and nobody ends them, are reported (lost.c). On the
 * sysmon thread, while all workers sleep. */
void cc__diag_lost_events(void);

/* Whether a deadlock ends the program, and with which status. */
void cc__diag_deadlock_ends(bool ends, unsigned status);

/* In a forked child: whoever held the locks of these is gone. */
void cc__diag_deadlock_forget(void);
void cc__diag_dump_forget(void);

/* A signal asks for a dump on stderr; 0: none does. Not if the program handles or ignores it. */
void cc__diag_dump_on(int signal);

#endif
