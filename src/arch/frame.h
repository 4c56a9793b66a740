/* frame.h - one step up the chain of frame pointers. */
#ifndef CC_ARCH_FRAME_H
#define CC_ARCH_FRAME_H

/* What a frame pointer points beside: the caller's frame pointer, and the address to return to. */
#if defined(__riscv)
#define CC_FRAME_UP(fp) ((fp)[-2])
#define CC_FRAME_RETURN(fp) ((fp)[-1])
#else
#define CC_FRAME_UP(fp) ((fp)[0])
#define CC_FRAME_RETURN(fp) ((fp)[1])
#endif

/* Whether the chain can be walked on this CPU. */
#if defined(__x86_64__) || defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
#define CC_FRAME_CHAIN 1
#else
#define CC_FRAME_CHAIN 0
#endif

#endif
