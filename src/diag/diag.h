/* diag.h - the runtime's reports. The only room that prints at length. */
#ifndef CC_DIAG_DIAG_H
#define CC_DIAG_DIAG_H

#include "os/signals.h"

#include <stdint.h>

/* Reports a fault in a fiber or a hosted call (crash.c), if it is in the stack's guard or the program has no handler
 * for it. In a signal handler. */
bool cc__diag_fault(const struct fault *fault);
/* On the sysmon thread: true if a fault was waiting for its backtrace. */
bool cc__diag_crash_asked(void);

/* The fibers that have not ended, what each waits for, and where it is, on stderr. */
void cc__diag_unfinished(void);

/* CC_LEAK_REPORT: the tasks that have not ended, and which of them never can. when: "when the program exits" */
void cc__diag_leaks(const char *when);

/* The counters and the stacks' high-water marks, on stderr: a table with a column for each worker. While the runtime
 * runs. */
void cc__diag_stats(void);

/* When workers were added, and why others were not, on stderr. */
void cc__diag_pressure(void);

/* How long channel operations took so far, on stderr, if enabled; each call is reported once. */
void cc__diag_timing(void);

/* CC_DEBUG_LOCKS: reports fibers that wait while they hold a pthread mutex (pthreads.c); report false: only records
 * which ones they hold. */
void cc__diag_watch_locks(bool report);

/* Debug builds: reports waits that do not end although their descriptor is ready or closed (lost.c). On the sysmon
 * thread, while all workers sleep. */
void cc__diag_lost_events(void);

/* Whether a deadlock ends the program, and with which status. */
void cc__diag_deadlock_ends(bool ends, unsigned status);

/* In a forked child: the thread that held the lock does not exist. */
void cc__diag_deadlock_forget(void);
void cc__diag_dump_forget(void);

/* Makes that signal print a dump on stderr, unless the program handles or ignores it; 0: none. */
void cc__diag_dump_on(int signal);

#endif
