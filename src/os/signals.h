/* signals.h - the signals that the library handles: faults, the request for a dump, those that the program wants to
 * receive, those that end it. */
#ifndef CC_OS_SIGNALS_H
#define CC_OS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether it calls a function of somebody's. */
static inline bool cc__signal_is_handled(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

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

/* aborts: called, in a signal handler, before SIGABRT has its effect, unless that is ignored; NULL: SIGABRT is left
 * alone. */
void cc__fault_install(fault_explain explain, void (*aborts)(void));
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

/* The one that asks for a dump at present; 0: none. */
int cc__dump_signal(void);

/* ---- signals that the program wants to receive (signal_pipe.c) ----
 *
 * The handler writes what came into a pipe, which a thread reads. It calls nothing but write and getpid, so it may
 * interrupt anything.
 */

struct signal_seen {
    int number, code; /* si_signo, si_code; number 0: cc__signal_pipe_end was called */
    int pid;
    unsigned uid;
    uint64_t value; /* of sigqueue(3) */
};

/* Opens the pipe, if it is not open; it stays so. 0 or an errno value. */
int cc__signal_pipe_open(void);
/* Waits for the next one. */
void cc__signal_pipe_read(struct signal_seen *seen);
/* The one who reads gets number 0. */
void cc__signal_pipe_end(void);
/* How often a signal came while the pipe was full. */
uint64_t cc__signal_pipe_lost(int signal);

enum signal_action { SIGNAL_BEFORE, SIGNAL_CAUGHT, SIGNAL_IGNORED };
/* Sets a signal's action; _BEFORE: what it was before the first of these calls, unless somebody else has changed it
 * since. 0 or an errno value. One thread at a time. */
int cc__signal_action_set(int signal, enum signal_action action);

/* In a forked child: all actions are as before; the pipe is the parent's. */
void cc__signal_pipe_forget(void);

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
