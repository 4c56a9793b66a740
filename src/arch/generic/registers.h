/* generic/registers.h - an unsupported CPU: no unwinding. */

enum { CC_REGISTERS = 1, CC_REGISTER_SP = 0, CC_REGISTER_FP = 0, CC_MCONTEXT_WORDS = 1 };
#define CC_REGISTERS_UNKNOWN 1

CC_INLINE void cc__registers_read(uintptr_t *pc, uintptr_t *sp) {
    (void)pc, (void)sp;
}

CC_INLINE uintptr_t cc__registers_strip(uintptr_t address) {
    return address;
}
