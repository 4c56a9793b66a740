/* sample.h - the current stack of another thread.
 *
 * A thread that waits in the kernel is not disturbed: the system reports its stack pointer, and it is unwound from
 * there. A running thread is interrupted by a signal while its stack is copied.
 *
 * The signal is SIGURG, whose default is to be ignored. It is sent only to a running thread, so that it does not end a
 * call such as poll or nanosleep; a thread that enters such a call at that moment may see EINTR. The handler is
 * installed with the first sample; it passes signals that are not ours to the handler that was there before. If the
 * program installs another one after that, it stays, and running threads are no longer sampled.
 * Not sampled: under valgrind, any thread, since threads wait in its code; under the thread sanitizer, running threads,
 * since it delivers signals late; under qemu, waiting ones, for which the system reports qemu's own stack pointer.
 */
#ifndef CC_INSPECT_SAMPLE_H
#define CC_INSPECT_SAMPLE_H

#include "inspect/unwind.h"

#define CC_SAMPLE_SIGNAL SIGURG

/* The frames of thread `tid`, if it is on the stack [bottom, top): first the current pc plus one, so that symbol.h can
 * treat all as return addresses; then return addresses, innermost first; *doubt as in unwind.h. Returns how many; 0: it
 * is on another stack, or this is unknown. The stack may be unmapped meanwhile. Any thread; takes 0.4 s at most; keeps
 * errno. */
unsigned cc__sample_thread(int tid, const void *bottom, const void *top, const void **frames, unsigned max,
                           struct doubt *doubt);

/* True: only this file handles the signal, so that it cannot wake anything in the program. False also while a sample is
 * being taken. Any thread; keeps errno. */
bool cc__sample_is_alone(void);

/* Restores the previous handler, unless the program has installed another one since. */
void cc__sample_remove(void);

/* In a forked child: a thread that was taking a sample does not exist. */
void cc__sample_forget(void);

#endif
