/* start.S - the first frame of a fiber on aarch64: nothing is above it, and the unwinder is told so. */
        .text
        .globl  cc__context_first
        .hidden cc__context_first
        .type   cc__context_first, %function
        .p2align 4
cc__context_first:
        .cfi_startproc
        .cfi_undefined x30
#ifdef __ARM_FEATURE_BTI_DEFAULT
        bti     j
#endif
        mov     x9, x29                 /* the function */
        mov     x29, xzr                /* the end of the chain of frames */
        mov     x30, xzr
        mov     x0, x2
        blr     x9
        brk     #1                      /* it never returns */
        .cfi_endproc
        .size   cc__context_first, . - cc__context_first

        .section .note.GNU-stack, "", %progbits
