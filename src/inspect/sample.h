/* sample.h - where is another thread now?
 *
 * A thread that waits in the kernel is not disturbed: the system tells its stack pointer, and the frames are found from
 * there. One that runs is interrupted by a signal for the time of a copy.
 *
 * The signal is SIGURG, which is ignored unless somebody handles it. It is sent only to a thread that runs, so that no
 * call that a signal ends early (poll, nanosleep) is ended; one that enters such a call in that very moment may see
 * EINTR. The handler is installed with the first sample; a handler that was there gets all signals that are not ours.
 * If somebody installs another one after that, it stays, and running threads are no longer sampled.
 * Not sampled: under valgrind, anybody, since threads wait in its code; under the thread sanitizer, running threads,
 * since it delivers signals late; under qemu, waiting ones, of which the system tells qemu's own stack pointer.
 */
#ifndef CC_INSPECT_SAMPLE_H
#define CC_INSPECT_SAMPLE_H

#include "inspect/unwind.h"

#define CC_SAMPLE_SIGNAL SIGURG

/* The frames of thread `tid`, if it is on the stack [bottom, top): the instruction that it is at, plus one, so that all
 * can be named as return addresses (symbol.h); then return addresses, innermost first; *doubt as in unwind.h. Returns
 * how many; 0: it is elsewhere, or it cannot be known. The stack may go away meanwhile. Any thread; takes 0.4 s at
 * most; keeps errno. */
unsigned cc__sample_thread(int tid, const void *bottom, const void *top, const void **frames, unsigned max,
                           struct doubt *doubt);

/* True: the signal is handled by nobody but us, and so does nothing that the program could wait for. False also while a
 * sample is being taken. Any thread; keeps errno. */
bool cc__sample_is_alone(void);

/* The handler that was there before comes back, unless somebody else has installed one. */
void cc__sample_remove(void);

/* In a forked child: whoever took a sample is gone. */
void cc__sample_forget(void);

#endif
