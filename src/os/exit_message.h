/* exit_message.h - a last line on stderr when the program ends badly: by a signal of its own making, or with a status
 * other than 0. For what has to be known to see the same end again.
 */
#ifndef CC_OS_EXIT_MESSAGE_H
#define CC_OS_EXIT_MESSAGE_H

#include <signal.h>
#include <stdbool.h>

/* line: with its newline, as long as the program lives; NULL: none any more. A signal that the program, or a sanitizer,
 * handles is left to it. */
void cc__exit_message_set(const char *line);

/* Whether the action is what cc__exit_message_set has installed: such a signal ends the program. */
bool cc__exit_message_handles(const struct sigaction *action);

/* Writes it, unless it was written before. Any thread, also in a signal handler. */
void cc__exit_message_write(void);

#endif
