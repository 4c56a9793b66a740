/* trace.h - the way that led here, as return addresses; symbol.h says what they are called. */
#ifndef CC_PLAT_TRACE_H
#define CC_PLAT_TRACE_H

#include <stddef.h>

/* The return addresses of the frames from `frame` (a __builtin_frame_address) up, at most `max`; those of
 * functions that keep no frame pointer are missed. Looks at no memory outside of [bottom, top), the stack.
 * Returns how many. */
unsigned cc__trace_walk(const void *frame, const void *bottom, const void *top, const void **frames, unsigned max);

#endif
