/* fault.h - memory faults reach us first, on a stack of their own.
 *
 * The handler asks `explain`, which may print; then the default action follows (core dump). A fault that is not
 * explained goes to the handler that was installed before, and so does a signal that somebody has sent.
 */
#ifndef CC_OS_FAULT_H
#define CC_OS_FAULT_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
