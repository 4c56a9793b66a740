/* diag.h - what the runtime says about itself. The only room that prints at length. */
#ifndef CC_DIAG_DIAG_H
#define CC_DIAG_DIAG_H

#include <stdbool.h>
#include <stdint.h>

/* A fault at addr: if it lies in the guard of the running fiber's stack, says so, with its name. Signal-safe. */
bool cc__diag_overflow(const void *addr);

/* The fiber's name, at most CC_FIBER_NAME_MAX bytes with the NUL, "" without one. Any thread: what cannot be read from
 * outside is cut. */
struct fiber;
void cc__diag_name(struct fiber *f, char *name);

/* Names up to `max` fibers that have not ended, on stderr: what each does, and what it was started as. */
void cc__diag_unfinished(unsigned max);

/* What is in the workers' inboxes, up to `max` fibers of each: a call of `line` for each line, without a newline. While the
 * runtime runs; what it says is of use when nothing moves. */
typedef void (*diag_line_fn)(void *arg, const char *line);
void cc__diag_inboxes(diag_line_fn line, void *arg, unsigned max);

/* The counters and the stacks' high-water marks, on stderr: a table with a column for each worker. While the runtime
 * runs. */
void cc__diag_stats(void);

/* How long the calls on channels took so far, on stderr, if that is asked for; each call is reported once. */
void cc__diag_timing(void);

#endif
