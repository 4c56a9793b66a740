/* start.S - the first frame of a fiber on aarch64: the outermost frame, marked as such for the unwinder. */
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

/* A call on another stack. The caller is not its outer frame, because it may be resumed elsewhere. So the stack ends
 * here for the unwinder, which gets here by a return address that is never used. */
        .globl  cc__context_call_on
        .hidden cc__context_call_on
        .type   cc__context_call_on, %function
        .p2align 4
cc__context_call_on:
        .cfi_startproc
        .cfi_undefined x30
#ifdef __ARM_FEATURE_BTI_DEFAULT
        bti     c
#endif
        mov     sp, x2
        mov     x29, xzr                /* the end of the chain of frames */
        adr     x30, 1f
        mov     x16, x3
        br      x16
        nop
1:      brk     #1                      /* it never returns */
        .cfi_endproc
        .size   cc__context_call_on, . - cc__context_call_on

        .section .note.GNU-stack, "", %progbits
