/* fault.h - memory faults reach us first, on a stack of their own.
 *
 * The handler asks `explain`, which may print; then the default action follows (core dump). A fault that is not
 * ours goes to the handler that was installed before.
 */
#ifndef CC_PLAT_FAULT_H
#define CC_PLAT_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/* True: the address was ours and has been explained. Runs in a signal handler. */
typedef bool (*fault_explain)(const void *addr);

void cc__fault_install(fault_explain explain);
void cc__fault_remove(void);

/* The calling thread's alternate signal stack: `size` bytes at `stack`; _clear takes it away. */
size_t cc__fault_stack_size(void);
bool cc__fault_stack_have(void);
void cc__fault_stack_set(void *stack, size_t size);
void cc__fault_stack_clear(void);

#endif
