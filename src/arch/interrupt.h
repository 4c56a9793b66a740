/* interrupt.h - where a signal has interrupted a thread. */
#ifndef CC_ARCH_INTERRUPT_H
#define CC_ARCH_INTERRUPT_H

#include "base/attr.h"

#include <stdint.h>
#include <ucontext.h>

struct interrupted {
    uintptr_t pc, sp, fp;
    uintptr_t link; /* the return address in a register, if the CPU has one; 0: it has none */
};

/* From the third argument of a signal handler. All zero on a CPU that is not known. */
CC_INLINE struct interrupted cc__interrupted(const void *context) {
    const mcontext_t *m = &((const ucontext_t *)context)->uc_mcontext;
    (void)m;
#if defined(__x86_64__)
    return (struct interrupted){(uintptr_t)m->gregs[REG_RIP], (uintptr_t)m->gregs[REG_RSP],
                                (uintptr_t)m->gregs[REG_RBP], 0};
#elif defined(__aarch64__)
    return (struct interrupted){m->pc, m->sp, m->regs[29], m->regs[30]};
#elif defined(__riscv) && __riscv_xlen == 64
    return (struct interrupted){m->__gregs[REG_PC], m->__gregs[REG_SP], m->__gregs[REG_S0], m->__gregs[REG_RA]};
#else
    return (struct interrupted){0};
#endif
}

#endif
