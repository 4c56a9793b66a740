/* start.S - the first frame of a fiber on riscv64: the outermost frame, marked as such for the unwinder. */
        .text
        .globl  cc__context_first
        .hidden cc__context_first
        .type   cc__context_first, @function
        .p2align 2
cc__context_first:
        .cfi_startproc
        .cfi_undefined ra
        mv      t0, s0                  /* the function */
        li      s0, 0                   /* the end of the chain of frames */
        li      ra, 0
        mv      a0, a2
        jalr    t0
        ebreak                          /* it never returns */
        .cfi_endproc
        .size   cc__context_first, . - cc__context_first

/* A call on another stack. The caller is not its outer frame, because it may be resumed elsewhere. So the stack ends
 * here for the unwinder, which gets here by a return address that is never used. */
        .globl  cc__context_call_on
        .hidden cc__context_call_on
        .type   cc__context_call_on, @function
        .p2align 2
cc__context_call_on:
        .cfi_startproc
        .cfi_undefined ra
        mv      sp, a2
        li      s0, 0                   /* the end of the chain of frames */
        lla     ra, 1f
        jr      a3
        nop
1:      ebreak                          /* it never returns */
        .cfi_endproc
        .size   cc__context_call_on, . - cc__context_call_on

        .section .note.GNU-stack, "", @progbits
