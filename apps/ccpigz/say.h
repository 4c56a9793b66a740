/* say.h - messages on stderr, and the exit status.
 *
 * SAY-1  Every message is a line `ccpigz: name: what is wrong`. Only the fiber that iterates over the files prints; the
 *        others pass their errors to it with their results.
 * SAY-2  The status is gzip's: 1 after an error, else 2 after a warning, else 0. */
#ifndef CCPIGZ_SAY_H
#define CCPIGZ_SAY_H

#include <stdbool.h>

void say_quiet(bool quiet); /* no warnings; they still count */

/* name may be NULL: the message is about the program as a whole. */
void say_error(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
void say_warning(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line that is not an error: without "ccpigz:". */
void say_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes out what was printed to standard output. Returns the status to end with: 1, and a message, if that fails. */
int say_flush(void);

int say_status(void);

#endif
