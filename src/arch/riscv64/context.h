/* riscv64/context.h - the switch for the RISC-V psABI (LP64D).
 *
 * Callee-saved: s0-s11, sp, fs0-fs11. s0 is the frame pointer and cannot be a clobber, so it is stored by
 * hand; the others die. fcsr belongs to the OS thread (psABI) and is left alone.
 */

struct context {
    void *sp;
    const void *pc;
    void *fp;
    uint64_t unused;
};

/* start.S: cc__context_first calls the function in s0 with the value in a2;
 * cc__context_call_on goes on with the function in a3 on the stack in a2. */
CC_INLINE void cc__context_keep_modes(struct context *c) {
    (void)c;
}

/* What dies at a switch, a call and an escape alike. */
#define CC_CONTEXT_CLOBBERS                                                                                           \
    "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a4", "a5", "a6", "a7", "s1", "s2", "s3", "s4", "s5", "s6", "s7", \
        "s8", "s9", "s10", "s11", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "ft10",       \
        "ft11", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs0", "fs1", "fs2", "fs3", "fs4", "fs5",     \
        "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "memory"

CC_INLINE void *cc__context_switch(struct context *from_, struct context *to_, void *value_) {
    register struct context *from __asm__("a0") = from_;
    register struct context *to __asm__("a1") = to_;
    register void *value __asm__("a2") = value_;
    __asm__ volatile("lla t0, 1f\n\t"
                     "sd sp, 0(a0)\n\t"
                     "sd t0, 8(a0)\n\t"
                     "sd s0, 16(a0)\n\t"
                     "ld sp, 0(a1)\n\t"
                     "ld t0, 8(a1)\n\t"
                     "ld s0, 16(a1)\n\t"
                     "jr t0\n"
                     "1:"
                     : "+r"(from), "+r"(to), "+r"(value)
                     :
                     : "a3", CC_CONTEXT_CLOBBERS);
    return value;
}

CC_INLINE void *cc__context_call(struct context *from_, void *top_, context_call_fn fn_, void *value_) {
    register void *value __asm__("a0") = value_;
    register struct context *from __asm__("a1") = from_;
    register void *top __asm__("a2") = (void *)((uintptr_t)top_ & ~(uintptr_t)15);
    register context_call_fn fn __asm__("a3") = fn_;
    __asm__ volatile("lla t0, 1f\n\t"
                     "sd sp, 0(a1)\n\t"
                     "sd t0, 8(a1)\n\t"
                     "sd s0, 16(a1)\n\t"
                     "call cc__context_call_on\n"
                     "1:\tmv a0, a2\n\t"
                     : "+r"(value), "+r"(from), "+r"(top), "+r"(fn)
                     :
                     : CC_CONTEXT_CLOBBERS);
    return value;
}

CC_INLINE CC_NORETURN void cc__context_return(struct context *from_, void *value_) {
    register struct context *from __asm__("a1") = from_;
    register void *value __asm__("a2") = value_;
    __asm__ volatile("ld sp, 0(a1)\n\t"
                     "ld ra, 8(a1)\n\t"
                     "ld s0, 16(a1)\n\t"
                     "ret\n"
                     :
                     : "r"(from), "r"(value)
                     : "memory");
    __builtin_unreachable();
}

CC_INLINE CC_NORETURN void cc__context_jump(struct context *to_, void *value_) {
    register struct context *to __asm__("a1") = to_;
    register void *value __asm__("a2") = value_;
    __asm__ volatile("ld sp, 0(a1)\n\t"
                     "ld t0, 8(a1)\n\t"
                     "ld s0, 16(a1)\n\t"
                     "jr t0\n"
                     :
                     : "r"(to), "r"(value)
                     : "memory");
    __builtin_unreachable();
}
