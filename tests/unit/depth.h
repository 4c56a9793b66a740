/* depth.h - uses a given amount of the current stack. */
#ifndef CCC_TESTS_UNIT_DEPTH_H
#define CCC_TESTS_UNIT_DEPTH_H

#include "base/attr.h"

#include <stddef.h>
#include <stdint.h>

/* Uses `bytes` of stack below the caller's frame, writes there, and calls `then` (may be NULL) at the bottom. */
static CC_NOINLINE unsigned use_stack_below(uintptr_t top, size_t bytes, void (*then)(void *), void *arg) {
    volatile unsigned char frame[256];
    for (size_t i = 0; i < sizeof frame; i += 64) frame[i] = 1;
    if (top - (uintptr_t)__builtin_frame_address(0) < bytes)
        frame[0] = (unsigned char)use_stack_below(top, bytes, then, arg);
    else if (then != NULL)
        then(arg);
    return frame[0] + 0u;
}

#define use_stack(bytes, then, arg) ((void)use_stack_below((uintptr_t)__builtin_frame_address(0), bytes, then, arg))

#endif
