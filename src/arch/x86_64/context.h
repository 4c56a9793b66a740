/* x86_64/context.h - the switch for the System V psABI.
 *
 * Callee-saved: rbx, rbp, rsp, r12-r15, the control bits of mxcsr and the x87 control word. rbp cannot be a
 * clobber, so it is stored by hand; the other general registers die. The two control words are stored, and
 * loaded only when they differ from what the CPU holds: a load that changes nothing still costs 2 ns.
 */

struct context {
    void *sp;
    const void *pc;
    void *fp;
    uint32_t mxcsr;
    uint16_t fcw;
    uint16_t unused;
};

_Static_assert(offsetof(struct context, mxcsr) == 24 && offsetof(struct context, fcw) == 28,
               "the assembly knows these offsets");

/* start.S: cc__context_first calls the function in rbp with the value in rdx;
 * cc__context_call_on goes on with the function in rcx on the stack in rax. */
CC_INLINE void cc__context_keep_modes(struct context *c) {
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(c->mxcsr), "=m"(c->fcw));
}

#ifdef __AVX512F__
#define CC_CONTEXT_MORE_CLOBBERS                                                                                  \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define CC_CONTEXT_MORE_CLOBBERS
#endif

#ifdef __CET__
#define CC_CONTEXT_LANDING "endbr64\n\t"
#else
#define CC_CONTEXT_LANDING
#endif

/* What dies at a switch, a call and an escape alike. */
#define CC_CONTEXT_CLOBBERS                                                                                         \
    "rbx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3",    \
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st", \
        "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)" CC_CONTEXT_MORE_CLOBBERS

CC_INLINE void *cc__context_switch(struct context *from, struct context *to, void *value) {
    __asm__ volatile("stmxcsr 24(%%rdi)\n\t"
                     "fnstcw 28(%%rdi)\n\t"
                     "leaq 2f(%%rip), %%rax\n\t"
                     "movq %%rsp, 0(%%rdi)\n\t"
                     "movq %%rax, 8(%%rdi)\n\t"
                     "movq %%rbp, 16(%%rdi)\n\t"
                     "movl 24(%%rsi), %%eax\n\t"
                     "cmpl 24(%%rdi), %%eax\n\t"
                     "jne 1f\n\t"
                     "movzwl 28(%%rsi), %%eax\n\t"
                     "cmpw 28(%%rdi), %%ax\n\t"
                     "je 3f\n"
                     "1:\tldmxcsr 24(%%rsi)\n\t"
                     "fldcw 28(%%rsi)\n"
                     "3:\tmovq 0(%%rsi), %%rsp\n\t"
                     "movq 16(%%rsi), %%rbp\n\t"
                     "jmpq *8(%%rsi)\n"
                     "2:\t" CC_CONTEXT_LANDING
                     : "+D"(from), "+S"(to), "+d"(value)
                     :
                     : "rax", "rcx", CC_CONTEXT_CLOBBERS);
    return value;
}

/* The caller must make ordinary calls too: a leaf may keep variables below its stack pointer. */
CC_INLINE void *cc__context_call(struct context *from, void *top, context_call_fn fn, void *value) {
    void *end = (void *)((uintptr_t)top & ~(uintptr_t)15);
    __asm__ volatile("stmxcsr 24(%%rsi)\n\t"
                     "fnstcw 28(%%rsi)\n\t"
                     "leaq 2f(%%rip), %%rdx\n\t"
                     "movq %%rsp, 0(%%rsi)\n\t"
                     "movq %%rdx, 8(%%rsi)\n\t"
                     "movq %%rbp, 16(%%rsi)\n\t"
                     "callq cc__context_call_on\n"
                     "2:\t" CC_CONTEXT_LANDING "movq %%rdx, %%rdi\n\t"
                     : "+S"(from), "+a"(end), "+c"(fn), "+D"(value)
                     :
                     : "rdx", CC_CONTEXT_CLOBBERS);
    return value;
}

CC_INLINE CC_NORETURN void cc__context_return(struct context *from, void *value) {
    struct {
        uint32_t mxcsr;
        uint16_t fcw;
    } modes;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(modes.mxcsr), "=m"(modes.fcw));
    if (unlikely(modes.mxcsr != from->mxcsr || modes.fcw != from->fcw))
        __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(from->mxcsr), "m"(from->fcw));
    __asm__ volatile("movq 16(%%rsi), %%rbp\n\t"
                     "movq 0(%%rsi), %%rsp\n\t"
                     "subq $8, %%rsp\n\t" /* where the call has left its return address, which is the context's */
                     "ret\n"
                     :
                     : "S"(from), "d"(value)
                     : "memory");
    __builtin_unreachable();
}

CC_INLINE CC_NORETURN void cc__context_jump(struct context *to, void *value) {
    __asm__ volatile("ldmxcsr 24(%%rsi)\n\t"
                     "fldcw 28(%%rsi)\n\t"
                     "movq 0(%%rsi), %%rsp\n\t"
                     "movq 16(%%rsi), %%rbp\n\t"
                     "jmpq *8(%%rsi)\n"
                     :
                     : "S"(to), "d"(value)
                     : "memory");
    __builtin_unreachable();
}
