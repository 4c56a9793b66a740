/* x86_64/escape.h - the escape for the System V psABI; context.h has the registers. */

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
                     : "rcx", CC_CONTEXT_CLOBBERS);
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
