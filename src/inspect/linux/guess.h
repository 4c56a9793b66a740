/* guess.h - the way up where call-frame information does not lead on.
 *
 * There are two cases. A thread that waits in the kernel is seen with its stack and instruction pointer only; then a
 * frame that is found by its frame pointer cannot be found, and everything above it. And there is code without any
 * call-frame information.
 */
#ifndef CC_INSPECT_LINUX_GUESS_H
#define CC_INSPECT_LINUX_GUESS_H

#include "inspect/unwind.h"

/* From a frame to its caller's. False: nothing is found. *sure becomes false if what was found may be wrong. */
bool cc__guess_step(const struct picture *p, struct registers *regs, bool *exact, bool *sure);

#endif
