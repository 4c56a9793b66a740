/* aarch64/registers.h - numbers as in DWARF for the Arm 64-bit architecture. */

enum {
    CC_REGISTERS = 32,
    CC_REGISTER_FP = 29,
    CC_REGISTER_SP = 31,
    CC_MCONTEXT_WORDS = 34, /* the address of a fault, x0 to x30, sp, pc */
};

/* Where in an mcontext_t; -1 for the program counter. */
CC_INLINE int cc__registers_place(int number) {
    return number < 0 ? 33 : number + 1;
}

/* What a signal handler returns to, and how far above the stack pointer its ucontext_t is: the kernel's own call-frame
 * information there is less complete. */
#define CC_SIGRETURN_CODE \
    { 0xd2801168u, 0xd4000001u } /* mov x8, #139; svc #0 */
#define CC_SIGRETURN_CONTEXT 128

CC_INLINE void cc__registers_read(uintptr_t *pc, uintptr_t *sp) {
    __asm__ volatile("adr %0, .\n\tmov %1, sp" : "=r"(*pc), "=r"(*sp));
}

CC_INLINE uintptr_t cc__registers_strip(uintptr_t address) {
    register uintptr_t x30 __asm__("x30") = address;
    __asm__("hint #7" : "+r"(x30)); /* xpaclri; a no-op on a CPU that does not sign */
    return x30;
}
