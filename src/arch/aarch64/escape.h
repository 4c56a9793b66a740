/* aarch64/escape.h - the escape for AAPCS64; context.h has the registers. */

CC_INLINE void *cc__escape_call(struct escape *e_, escape_fn fn_, void *arg_) {
    register void *arg __asm__("x0") = arg_;
    register struct escape *e __asm__("x1") = e_;
    register escape_fn fn __asm__("x2") = fn_;
    __asm__ volatile("adr x9, 2f\n\t"
                     "mov x10, sp\n\t"
                     "stp x10, x9, [x1]\n\t"
                     "str x29, [x1, #16]\n\t"
                     "bl cc__guard\n"
                     "2:\t" CC_CONTEXT_LANDING
                     : "+r"(arg), "+r"(e), "+r"(fn)
                     :
                     : "x3", CC_CONTEXT_CLOBBERS);
    return arg;
}

CC_INLINE CC_NORETURN void cc__escape_take(struct escape *e_, void *value_) {
    register void *value __asm__("x0") = value_;
    register struct escape *e __asm__("x1") = e_;
    __asm__ volatile("ldp x10, x16, [x1]\n\t"
                     "ldr x29, [x1, #16]\n\t"
                     "mov sp, x10\n\t"
                     "br x16\n"
                     :
                     : "r"(e), "r"(value)
                     : "memory");
    __builtin_unreachable();
}
