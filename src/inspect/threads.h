/* threads.h - what the process's OS threads are doing, as the system sees them.
 *
 * Read from /proc without allocating. All of it may be called by any thread and keeps errno; all of it is about the
 * moment of the call.
 */
#ifndef CC_INSPECT_THREADS_H
#define CC_INSPECT_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* The threads that live, without the system's own for io_uring; one that was joined just now may still be among them.
 * Stores up to `max` and returns how many there are, which may be more; -1: it cannot be known. */
int cc__threads_list(int *tids, unsigned max);

/* The signals that the process handles: bit n - 1 for signal n. Those that the C library keeps for itself are not
 * among them; what this library or a sanitizer has installed is. */
uint64_t cc__threads_caught(void);

/* What a thread is in the middle of. */
struct thread_call {
    bool running; /* on a CPU or about to be: nothing else is known */
    long number;  /* of the system call; -1: it waits for the kernel, but in no call */
    uintptr_t args[6];
    uintptr_t sp, pc; /* on return to user space */
};

/* False: there is no such thread, or the system does not say. Under valgrind and qemu it tells of their own calls. */
bool cc__threads_call(int tid, struct thread_call *call);

/* Whether the thread blocks the signal; true if it cannot be known. */
bool cc__threads_blocks(int tid, int sig);

#endif
