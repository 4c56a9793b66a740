/* x86_64/escape.h - the escape for the System V psABI; context.h has the registers. */
#ifndef CC_ARCH_X86_64_ESCAPE_H
#define CC_ARCH_X86_64_ESCAPE_H

struct escape {
    void *sp;
    const void *pc;
    void *fp;
};

_Static_assert(offsetof(struct escape, sp) == 0 && offsetof(struct escape, pc) == 8 &&
                   offsetof(struct escape, fp) == 16,
               "the assembly knows these offsets");

CC_INLINE void *cc__escape_call(struct escape *e, escape_fn fn, void *arg) {
    void *result;
    __asm__ volatile("leaq 2f(%%rip), %%rax\n\t"
                     "movq %%rsp, 0(%%rsi)\n\t"
                     "movq %%rax, 8(%%rsi)\n\t"
                     "movq %%rbp, 16(%%rsi)\n\t"
                     "callq cc__guard\n"
                     "2:\t" CC_CONTEXT_LANDING
                     : "=a"(result), "+S"(e), "+d"(fn), "+D"(arg)
                     :
                     : "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0",
                       "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                       "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)",
                       "st(7)" CC_CONTEXT_MORE_CLOBBERS);
    return result;
}

CC_INLINE CC_NORETURN void cc__escape_take(struct escape *e, void *value) {
    __asm__ volatile("movq 0(%%rsi), %%rsp\n\t"
                     "movq 16(%%rsi), %%rbp\n\t"
                     "jmpq *8(%%rsi)\n"
                     :
                     : "S"(e), "a"(value)
                     : "memory");
    __builtin_unreachable();
}

#endif
