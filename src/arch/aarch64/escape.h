/* aarch64/escape.h - the escape for AAPCS64; context.h has the registers. */
#ifndef CC_ARCH_AARCH64_ESCAPE_H
#define CC_ARCH_AARCH64_ESCAPE_H

struct escape {
    void *sp;
    const void *pc;
    void *fp;
};

_Static_assert(offsetof(struct escape, sp) == 0 && offsetof(struct escape, pc) == 8 &&
                   offsetof(struct escape, fp) == 16,
               "the assembly knows these offsets");

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
                     : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
                       "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1",
                       "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
                       "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",
                       "v31", "memory", "cc");
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

#endif
