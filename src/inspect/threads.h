/* threads.h - the state of the process's OS threads as the system reports it.
 *
 * Read from /proc without allocating. Any thread; keeps errno. Results may be outdated when a function returns.
 */
#ifndef CC_INSPECT_THREADS_H
#define CC_INSPECT_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* The live threads, without the kernel's io_uring workers; a thread that was just joined may still be among them.
 * Stores up to `max` and returns how many there are, which may be more; -1: unknown. */
int cc__threads_list(int *tids, unsigned max);

/* The signals that the process handles: bit n - 1 for signal n. Without those that the C library reserves for itself;
 * with those of this library and of sanitizers. */
uint64_t cc__threads_caught(void);

/* The system call that a thread is in. */
struct thread_call {
    bool running; /* running or runnable: nothing else is known */
    long number;  /* of the system call; -1: it waits in the kernel, but in no call */
    uintptr_t args[6];
    uintptr_t sp, pc; /* on return to user space */
};

/* False: there is no such thread, or the system does not tell. Under valgrind and qemu it reports their own calls. */
bool cc__threads_call(int tid, struct thread_call *call);

/* Whether the thread blocks the signal; true if unknown. */
bool cc__threads_blocks(int tid, int sig);

#endif
