/* aarch64/context.h - the switch for AAPCS64.
 *
 * Callee-saved: x19-x28, x29, sp, d8-d15 and fpcr. x29 cannot be a clobber, so it is stored by hand, like fpcr;
 * the others die.
 */

struct context {
    void *sp;
    const void *pc;
    void *fp;
    uint64_t fpcr;
};

_Static_assert(offsetof(struct context, fpcr) == 24, "the assembly knows this offset");

/* start.S: cc__context_first calls the function in x29 with the value in x2;
 * cc__context_call_on goes on with the function in x3 on the stack in x2. */
CC_INLINE void cc__context_keep_modes(struct context *c) {
    __asm__ volatile("mrs %0, fpcr" : "=r"(c->fpcr));
}

#ifdef __ARM_FEATURE_BTI_DEFAULT
#define CC_CONTEXT_LANDING "bti j\n\t"
#else
#define CC_CONTEXT_LANDING
#endif

/* What dies at a switch, a call and an escape alike. */
#define CC_CONTEXT_CLOBBERS                                                                                            \
    "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20",   \
        "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", \
        "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",  \
        "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory", "cc"

CC_INLINE void *cc__context_switch(struct context *from_, struct context *to_, void *value_) {
    register struct context *from __asm__("x0") = from_;
    register struct context *to __asm__("x1") = to_;
    register void *value __asm__("x2") = value_;
    __asm__ volatile("adr x9, 2f\n\t"
                     "mov x10, sp\n\t"
                     "mrs x11, fpcr\n\t"
                     "stp x10, x9, [x0]\n\t"
                     "stp x29, x11, [x0, #16]\n\t"
                     "ldp x10, x16, [x1]\n\t"
                     "ldp x29, x12, [x1, #16]\n\t"
                     "cmp x11, x12\n\t"
                     "b.eq 1f\n\t"
                     "msr fpcr, x12\n"
                     "1:\tmov sp, x10\n\t"
                     "br x16\n"
                     "2:\t" CC_CONTEXT_LANDING
                     : "+r"(from), "+r"(to), "+r"(value)
                     :
                     : "x3", CC_CONTEXT_CLOBBERS);
    return value;
}

CC_INLINE void *cc__context_call(struct context *from_, void *top_, context_call_fn fn_, void *value_) {
    register void *value __asm__("x0") = value_;
    register struct context *from __asm__("x1") = from_;
    register void *top __asm__("x2") = (void *)((uintptr_t)top_ & ~(uintptr_t)15);
    register context_call_fn fn __asm__("x3") = fn_;
    __asm__ volatile("adr x9, 2f\n\t"
                     "mov x10, sp\n\t"
                     "mrs x11, fpcr\n\t"
                     "stp x10, x9, [x1]\n\t"
                     "stp x29, x11, [x1, #16]\n\t"
                     "bl cc__context_call_on\n"
                     "2:\t" CC_CONTEXT_LANDING "mov x0, x2\n\t"
                     : "+r"(value), "+r"(from), "+r"(top), "+r"(fn)
                     :
                     : CC_CONTEXT_CLOBBERS);
    return value;
}

CC_INLINE CC_NORETURN void cc__context_return(struct context *from_, void *value_) {
    register struct context *from __asm__("x1") = from_;
    register void *value __asm__("x2") = value_;
    __asm__ volatile("ldp x10, x16, [x1]\n\t"
                     "ldp x29, x12, [x1, #16]\n\t"
                     "mrs x11, fpcr\n\t"
                     "cmp x11, x12\n\t"
                     "b.eq 1f\n\t"
                     "msr fpcr, x12\n"
                     "1:\tmov sp, x10\n\t"
                     "ret x16\n"
                     :
                     : "r"(from), "r"(value)
                     : "memory", "cc");
    __builtin_unreachable();
}

CC_INLINE CC_NORETURN void cc__context_jump(struct context *to_, void *value_) {
    register struct context *to __asm__("x1") = to_;
    register void *value __asm__("x2") = value_;
    __asm__ volatile("ldp x10, x16, [x1]\n\t"
                     "ldp x29, x12, [x1, #16]\n\t"
                     "msr fpcr, x12\n\t"
                     "mov sp, x10\n\t"
                     "br x16\n"
                     :
                     : "r"(to), "r"(value)
                     : "memory");
    __builtin_unreachable();
}
