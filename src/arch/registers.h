/* registers.h - a CPU's registers, numbered as in call-frame information.
 *
 * Each CPU's file defines how many are tracked (CC_REGISTERS), which of them are the stack pointer and the frame
 * pointer, and where in a signal's mcontext_t they are (cc__registers_place). It reads the program counter and the
 * stack pointer (cc__registers_read), and removes the signature that some CPUs put into the upper bits of a return
 * address (cc__registers_strip). Floating-point registers have higher numbers; unwinding does not need them, so they
 * are omitted.
 */
#ifndef CC_ARCH_REGISTERS_H
#define CC_ARCH_REGISTERS_H

#include "arch/machine.h"

#include <ucontext.h>

#include CC_TARGET(registers.h)

struct registers {
    uintptr_t pc;
    uintptr_t value[CC_REGISTERS];
    uint64_t known; /* bit n: value[n] is known */
};

CC_INLINE bool cc__registers_get(const struct registers *r, unsigned number, uintptr_t *value) {
    if (number >= CC_REGISTERS || !(r->known >> number & 1)) return false;
    *value = r->value[number];
    return true;
}

CC_INLINE void cc__registers_set(struct registers *r, unsigned number, uintptr_t value) {
    r->value[number] = value;
    r->known |= UINT64_C(1) << number;
}

/* With only these known: for a stack that was switched away from, and for a thread in a system call. */
CC_INLINE struct registers cc__registers_at(uintptr_t pc, uintptr_t sp) {
    struct registers r = {.pc = pc};
    cc__registers_set(&r, CC_REGISTER_SP, sp);
    return r;
}

/* All of them, from the first words of an mcontext_t. */
CC_INLINE struct registers cc__registers_unpack(const uintptr_t words[CC_MCONTEXT_WORDS]) {
    struct registers r = {0};
#ifndef CC_REGISTERS_UNKNOWN
    r.pc = words[cc__registers_place(-1)];
    for (int i = 0; i < CC_REGISTERS; i++)
        if (cc__registers_place(i) >= 0) cc__registers_set(&r, (unsigned)i, words[cc__registers_place(i)]);
#else
    (void)words;
#endif
    return r;
}

/* Where a signal interrupted a thread: from the third argument of the handler. */
CC_INLINE struct registers cc__registers_interrupted(const void *context) {
    uintptr_t words[CC_MCONTEXT_WORDS];
    memcpy(words, &((const ucontext_t *)context)->uc_mcontext, sizeof words);
    return cc__registers_unpack(words);
}

/* Those of the function that this is inlined into, as needed to unwind to its callers. */
CC_INLINE struct registers cc__registers_here(void) {
    uintptr_t pc = 0, sp = 0;
    cc__registers_read(&pc, &sp);
    struct registers r = cc__registers_at(pc, sp);
#ifndef CC_REGISTERS_UNKNOWN
    cc__registers_set(&r, CC_REGISTER_FP, (uintptr_t)__builtin_frame_address(0));
#endif
    return r;
}

#endif
