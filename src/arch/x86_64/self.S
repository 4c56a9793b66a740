/* self.S - one pointer per thread. Defined here, not in C, so that link-time optimisation keeps its name for the
 * assembly in arch/self.h. */
        .section .tbss, "awT", @nobits
        .globl  cc__self
        .hidden cc__self
        .type   cc__self, @object
        .size   cc__self, 8
        .p2align 3
cc__self:
        .zero   8

        .section .note.GNU-stack, "", @progbits
