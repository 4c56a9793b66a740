/* aarch64/registers.h - numbers as in DWARF for the Arm 64-bit architecture. */
#ifndef CC_ARCH_AARCH64_REGISTERS_H
#define CC_ARCH_AARCH64_REGISTERS_H

enum {
    CC_REGISTERS = 32,
    CC_REGISTER_FP = 29,
    CC_REGISTER_SP = 31,
    CC_MCONTEXT_WORDS = 34, /* the address of a fault, x0 to x30, sp, pc */
    CC_RETURN_ON_STACK = 0,
};

/* Where in an mcontext_t; -1 for the program counter. */
CC_INLINE int cc__registers_place(int number) {
    return number < 0 ? 33 : number + 1;
}

/* What a signal handler returns to, and how far above the stack pointer its ucontext_t is: the kernel's own call-frame
 * information there tells less. */
#define CC_SIGRETURN_CODE \
    { 0xd2801168u, 0xd4000001u } /* mov x8, #139; svc #0 */
#define CC_SIGRETURN_CONTEXT 128

#endif
