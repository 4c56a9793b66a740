/* cpu.h - hints to the CPU. */
#ifndef CC_ARCH_CPU_H
#define CC_ARCH_CPU_H

#include "arch/machine.h"

/* A spinning thread says so. */
CC_INLINE void cc__cpu_relax(void) {
    cc__machine_pause();
}

#endif
