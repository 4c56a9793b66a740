/* start.S - the first frame of a fiber on x86-64: the outermost frame, marked as such for the unwinder. */
        .text
        .globl  cc__context_first
        .hidden cc__context_first
        .type   cc__context_first, @function
        .p2align 4
cc__context_first:
        .cfi_startproc
        .cfi_undefined rip
#ifdef __CET__
        endbr64
#endif
        movq    %rbp, %rax              /* the function; rsp is 16-byte aligned here */
        xorl    %ebp, %ebp              /* the end of the chain of frames */
        movq    %rdx, %rdi
        callq   *%rax                   /* so that it is entered with rsp = 8 mod 16 */
        ud2                             /* it never returns */
        .cfi_endproc
        .size   cc__context_first, . - cc__context_first

/* A call on another stack. The caller is not its outer frame, because it may be resumed elsewhere. So the stack ends
 * here for the unwinder, which gets here by a return address that is never used. */
        .globl  cc__context_call_on
        .hidden cc__context_call_on
        .type   cc__context_call_on, @function
        .p2align 4
cc__context_call_on:
        .cfi_startproc
        .cfi_undefined rip
        movq    %rax, %rsp
        leaq    1f(%rip), %rax
        xorl    %ebp, %ebp              /* the end of the chain of frames */
        pushq   %rax                    /* so that the function is entered with rsp = 8 mod 16 */
        jmp     *%rcx
        nop
1:      ud2                             /* it never returns */
        .cfi_endproc
        .size   cc__context_call_on, . - cc__context_call_on

        .section .note.GNU-stack, "", @progbits
