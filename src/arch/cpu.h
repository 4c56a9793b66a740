/* cpu.h - hints to the CPU. */
#ifndef CC_ARCH_CPU_H
#define CC_ARCH_CPU_H

#include "base/attr.h"

/* A spinning thread says so. */
CC_INLINE void cc__cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* long enough to matter; yield is a no-op on most cores */
#elif defined(__riscv)
    __asm__ volatile(".insn i 0x0F, 0, x0, x0, 0x010" ::: "memory"); /* pause; a no-op fence on older cores */
#else
    __asm__ volatile("" ::: "memory");
#endif
}

#endif
