/* trace.h - the way that led here: return addresses, and what they are called. */
#ifndef CC_PLAT_TRACE_H
#define CC_PLAT_TRACE_H

#include <stddef.h>

/* The return addresses of the frames from `frame` (a __builtin_frame_address) up, at most `max`; those of
 * functions that keep no frame pointer are missed. Looks at no memory outside of [bottom, top), the stack.
 * Returns how many. */
unsigned cc__trace_walk(const void *frame, const void *bottom, const void *top, const void **frames, unsigned max);

/* "name+0x12 (program+0x1234)" as far as the dynamic linker knows; addr2line understands the second half. */
void cc__trace_name(const void *address, char *text, size_t size);

#endif
