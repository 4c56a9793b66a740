/* x86_64/registers.h - numbers as in the System V psABI. */

enum {
    CC_REGISTERS = 17,
    CC_REGISTER_FP = 6,
    CC_REGISTER_SP = 7,
    CC_MCONTEXT_WORDS = NGREG,
};

/* Where in an mcontext_t; -1 for the program counter. */
CC_INLINE int cc__registers_place(int number) {
    static const int8_t place[1 + CC_REGISTERS] = {
        REG_RIP, REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
    };
    return place[1 + number];
}

CC_INLINE void cc__registers_read(uintptr_t *pc, uintptr_t *sp) {
    __asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1" : "=r"(*pc), "=r"(*sp));
}

CC_INLINE uintptr_t cc__registers_strip(uintptr_t address) {
    return address;
}
