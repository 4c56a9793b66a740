/* trace.c - walks frame pointers. */
#include "plat/trace.h"

#include "arch/frame.h"
#include "plat/san.h"

#include <stdint.h>

/* Reads other functions' frames: not the sanitizers' business. */
CC_NOINLINE __attribute__((no_sanitize("address", "undefined"))) CC_NO_TSAN unsigned
cc__trace_walk(const void *frame, const void *bottom, const void *top, const void **frames, unsigned max) {
    unsigned n = 0;
    if (!CC_FRAME_CHAIN) return 0;
    uintptr_t low = (uintptr_t)bottom + 2 * sizeof(void *), high = (uintptr_t)top;
    for (uintptr_t at = (uintptr_t)frame; n < max;) {
        if (at < low || at > high - 2 * sizeof(void *) || at % sizeof(void *) != 0) break;
        const volatile uintptr_t *fp = (const volatile uintptr_t *)at;
        uintptr_t back = CC_FRAME_RETURN(fp), up = CC_FRAME_UP(fp);
        if (back == 0) break;
        frames[n++] = (const void *)back;
        low = at + sizeof(void *); /* a caller's frame is further up, or the chain is none */
        at = up;
    }
    return n;
}
