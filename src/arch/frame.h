/* frame.h - one step up the chain of frame pointers. Each CPU's file (machine.h) implements it.
 *
 *   CC_FRAME_UP(fp), CC_FRAME_RETURN(fp)   the caller's frame pointer, and the address to return to
 *   CC_FRAME_LOWEST                        the lower one of these words, counted from where the frame pointer points
 *   CC_FRAME_CHAIN                         1: the chain can be walked on this CPU
 *   CC_FRAME_ENDS                          1: the two words are the last of their frame
 */
#ifndef CC_ARCH_FRAME_H
#define CC_ARCH_FRAME_H

#include "arch/machine.h"

/* An address in the stack, at or below the caller's frame. */
CC_INLINE uintptr_t cc__frame_here(void) {
    return cc__machine_sp();
}

#endif
