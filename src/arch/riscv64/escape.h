/* riscv64/escape.h - the escape for the RISC-V psABI; context.h has the registers. */

CC_INLINE void *cc__escape_call(struct escape *e_, escape_fn fn_, void *arg_) {
    register void *arg __asm__("a0") = arg_;
    register struct escape *e __asm__("a1") = e_;
    register escape_fn fn __asm__("a2") = fn_;
    __asm__ volatile("lla t0, 1f\n\t"
                     "sd sp, 0(a1)\n\t"
                     "sd t0, 8(a1)\n\t"
                     "sd s0, 16(a1)\n\t"
                     "call cc__guard\n"
                     "1:"
                     : "+r"(arg), "+r"(e), "+r"(fn)
                     :
                     : "a3", CC_CONTEXT_CLOBBERS);
    return arg;
}

CC_INLINE CC_NORETURN void cc__escape_take(struct escape *e_, void *value_) {
    register void *value __asm__("a0") = value_;
    register struct escape *e __asm__("a1") = e_;
    __asm__ volatile("ld sp, 0(a1)\n\t"
                     "ld t0, 8(a1)\n\t"
                     "ld s0, 16(a1)\n\t"
                     "jr t0\n"
                     :
                     : "r"(e), "r"(value)
                     : "memory");
    __builtin_unreachable();
}
