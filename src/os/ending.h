/* ending.h - a last line on stderr when the program ends badly: by a signal of its own making, or with a status other
 * than 0. For what has to be known to see the same end again.
 */
#ifndef CC_OS_ENDING_H
#define CC_OS_ENDING_H

#include <signal.h>
#include <stdbool.h>

/* line: with its newline, as long as the program lives; NULL: none any more. A signal that the program, or a sanitizer, handles is left to it. */
void cc__ending_watch(const char *line);

/* Whether the action is what cc__ending_watch has installed: such a signal ends the program. */
bool cc__ending_handles(const struct sigaction *action);

/* Writes it, unless it was written before. Any thread, also in a signal handler. */
void cc__ending_say(void);

#endif
