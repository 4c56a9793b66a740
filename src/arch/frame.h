/* frame.h - one step up the chain of frame pointers. */
#ifndef CC_ARCH_FRAME_H
#define CC_ARCH_FRAME_H

#include "base/attr.h"

#include <stdint.h>

/* What a frame pointer points beside: the caller's frame pointer, and the address to return to. */
#if defined(__riscv)
#define CC_FRAME_UP(fp) ((fp)[-2])
#define CC_FRAME_RETURN(fp) ((fp)[-1])
#define CC_FRAME_LOWEST (-2) /* the lower one of these words, counted from where the frame pointer points */
#else
#define CC_FRAME_UP(fp) ((fp)[0])
#define CC_FRAME_RETURN(fp) ((fp)[1])
#define CC_FRAME_LOWEST 0
#endif

/* Whether the chain can be walked on this CPU; whether its two words are the last of their frame. */
#if defined(__x86_64__) || defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
#define CC_FRAME_CHAIN 1
#else
#define CC_FRAME_CHAIN 0
#endif
#if defined(__aarch64__)
#define CC_FRAME_ENDS 0
#else
#define CC_FRAME_ENDS 1
#endif

/* An address in the stack, at or below the caller's frame: the stack pointer, which costs no frame to be had. */
CC_INLINE uintptr_t cc__frame_here(void) {
    uintptr_t sp;
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %0" : "=r"(sp));
#elif defined(__aarch64__)
    __asm__ volatile("mov %0, sp" : "=r"(sp));
#elif defined(__riscv)
    __asm__ volatile("mv %0, sp" : "=r"(sp));
#else
    sp = (uintptr_t)__builtin_frame_address(0);
#endif
    return sp;
}

#endif
