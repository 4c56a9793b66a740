/* riscv64/registers.h - numbers as in the RISC-V psABI. */

enum {
    CC_REGISTERS = 32,
    CC_REGISTER_FP = 8,
    CC_REGISTER_SP = 2,
    CC_MCONTEXT_WORDS = 32, /* pc in the place of the register that is always 0, then the others */
};

/* Where in an mcontext_t; -1 for the program counter, and -1 for what is not in it. */
CC_INLINE int cc__registers_place(int number) {
    return number < 0 ? 0 : number == 0 ? -1 : number;
}

/* What a signal handler returns to, and how far above the stack pointer its ucontext_t is: the kernel gives no
 * call-frame information for it. */
#define CC_SIGRETURN_CODE \
    { 0x08b00893u, 0x00000073u } /* li a7, 139; ecall */
#define CC_SIGRETURN_CONTEXT 128

CC_INLINE void cc__registers_read(uintptr_t *pc, uintptr_t *sp) {
    __asm__ volatile("auipc %0, 0\n\tmv %1, sp" : "=r"(*pc), "=r"(*sp));
}

CC_INLINE uintptr_t cc__registers_strip(uintptr_t address) {
    return address;
}
