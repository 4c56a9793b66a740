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

        .section .note.GNU-stack, "", @progbits
