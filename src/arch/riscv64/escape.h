/* riscv64/escape.h - the escape for the RISC-V psABI; context.h has the registers. */
#ifndef CC_ARCH_RISCV64_ESCAPE_H
#define CC_ARCH_RISCV64_ESCAPE_H

struct escape {
    void *sp;
    const void *pc;
    void *fp;
};

_Static_assert(offsetof(struct escape, sp) == 0 && offsetof(struct escape, pc) == 8 &&
                   offsetof(struct escape, fp) == 16,
               "the assembly knows these offsets");

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
                     : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a3", "a4", "a5", "a6", "a7", "s1", "s2", "s3",
                       "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5",
                       "ft6", "ft7", "ft8", "ft9", "ft10", "ft11", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6",
                       "fa7", "fs0", "fs1", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11",
                       "memory");
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

#endif
