/* signals.h - the signals that the library handles: faults, the request for a dump, those that the program receives
 * through the library, those that end it. */
#ifndef CC_OS_SIGNALS_H
#define CC_OS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the action calls a function. */
static inline bool cc__signal_is_handled(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* ---- memory faults, which this library handles first, on a separate stack (fault.c) ----
 *
 * The handler calls `explain`, which may print; then the default action follows (core dump). A fault that is not
 * explained is passed to the handler that was installed before, and so is a signal that was sent.
 */

struct fault {
    int signal;
    const void *addr;    /* the address that was accessed; NULL if unknown */
    const void *context; /* the handler's third argument, see arch/registers.h */
    bool last;           /* no handler of the program follows: the process will end */
};

/* True: the fault has been explained, and ends the process. Runs in a signal handler. */
typedef bool (*fault_explain)(const struct fault *fault);

/* aborts: called, in a signal handler, before SIGABRT has its effect, unless that is ignored; NULL: SIGABRT is not
 * handled. */
void cc__fault_install(fault_explain explain, void (*aborts)(void));
void cc__fault_remove(void);

/* The calling thread's alternate signal stack: `size` bytes at `stack`; _clear removes it. */
size_t cc__fault_stack_size(void);
bool cc__fault_stack_have(void);
void cc__fault_stack_set(void *stack, size_t size);
void cc__fault_stack_clear(void);

/* ---- the dump signal (dump_signal.c) ---- */

/* Calls `fn`, in the handler, when the signal arrives. False: the program handles or ignores that signal itself, and
 * continues to. One signal at a time. */
bool cc__dump_signal_install(int signal, void (*fn)(void));
/* Restores the action, unless it was changed by others since. */
void cc__dump_signal_remove(void);

/* The present dump signal; 0: none. */
int cc__dump_signal(void);

/* ---- signals that the program receives through the library (signal_pipe.c) ----
 *
 * The handler writes the signal into a pipe, which a thread reads. It only makes system calls, so it may interrupt any
 * code.
 */

struct signal_seen {
    int number, code; /* si_signo, si_code; number 0: cc__signal_pipe_end was called */
    int pid;
    unsigned uid;
    uint64_t value; /* of sigqueue(3) */
    uint64_t stamp; /* what cc__signal_pipe_stamp has set, when the signal came */
};

/* Opens the pipe if need be; it stays open. 0 or an errno value. */
int cc__signal_pipe_open(void);
/* From now on signals have this stamp. */
void cc__signal_pipe_stamp(uint64_t stamp);
/* Waits for the next one. */
void cc__signal_pipe_read(struct signal_seen *seen);
/* The reader gets number 0. */
void cc__signal_pipe_end(void);
/* How often a signal arrived while the pipe was full. */
uint64_t cc__signal_pipe_lost(int signal);

enum signal_action { SIGNAL_BEFORE, SIGNAL_CAUGHT, SIGNAL_IGNORED };
/* Sets a signal's action; _BEFORE: what others have set last, before the first of these calls or since. 0 or an errno
 * value. One thread at a time. */
int cc__signal_action_set(int signal, enum signal_action action);

/* In a forked child: restores all actions; the pipe is the parent's. */
void cc__signal_pipe_forget(void);

/* ---- a last line on stderr when the program fails (exit_message.c) ----
 *
 * When it ends by a signal that it has caused itself, or with a status other than 0. For what is needed to reproduce
 * the failure.
 */

/* line: with its newline, valid until the program ends; NULL: none. A signal that the program, or a sanitizer, handles
 * is left to it. */
void cc__exit_message_set(const char *line);

/* Whether the action was installed by cc__exit_message_set: such a signal ends the program. */
bool cc__exit_message_handles(const struct sigaction *action);

/* Writes the line, unless it was written before. Any thread, also in a signal handler. */
void cc__exit_message_write(void);

#endif
