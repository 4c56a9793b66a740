/* signals.h - the signals that the runtime handles: faults, the request for a dump, those that end the program. */
#ifndef CC_OS_SIGNALS_H
#define CC_OS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- memory faults, which reach us first, on a stack of their own (fault.c) ----
 *
 * The handler asks `explain`, which may print; then the default action follows (core dump). A fault that is not
 * explained goes to the handler that was installed before, and so does a signal that somebody has sent.
 */

struct fault {
    int signal;
    const void *addr;    /* that was touched; NULL if it is not known */
    const void *context; /* the handler's third argument, see arch/registers.h */
    bool last;           /* no handler of the program's comes after us: the process will end */
};

/* True: it has been explained, and ends the process. Runs in a signal handler. */
typedef bool (*fault_explain)(const struct fault *fault);

void cc__fault_install(fault_explain explain);
void cc__fault_remove(void);

/* The calling thread's alternate signal stack: `size` bytes at `stack`; _clear takes it away. */
size_t cc__fault_stack_size(void);
bool cc__fault_stack_have(void);
void cc__fault_stack_set(void *stack, size_t size);
void cc__fault_stack_clear(void);

/* ---- the signal that asks for a dump (dump_signal.c) ---- */

/* Calls `fn`, in the handler, when the signal comes. False: the program handles or ignores that signal itself, and goes
 * on doing so. One signal at a time. */
bool cc__dump_signal_install(int signal, void (*fn)(void));
/* As it was before, unless somebody else has changed it since. */
void cc__dump_signal_remove(void);

/* ---- a last line on stderr when the program ends badly (exit_message.c) ----
 *
 * By a signal of its own making, or with a status other than 0. For what has to be known to see the same end again.
 */

/* line: with its newline, as long as the program lives; NULL: none any more. A signal that the program, or a sanitizer,
 * handles is left to it. */
void cc__exit_message_set(const char *line);

/* Whether the action is what cc__exit_message_set has installed: such a signal ends the program. */
bool cc__exit_message_handles(const struct sigaction *action);

/* Writes it, unless it was written before. Any thread, also in a signal handler. */
void cc__exit_message_write(void);

#endif
