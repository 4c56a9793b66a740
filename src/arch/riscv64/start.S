/* start.S - the first frame of a fiber on riscv64: nothing is above it, and the unwinder is told so. */
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

/* A call on another stack. The caller is no frame above it: somebody may resume that elsewhere. So here the stack ends
 * for the unwinder, which finds the way here by the return address that nobody uses. */
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
