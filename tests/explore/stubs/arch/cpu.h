/* cpu.h - the explorer's stub for src/arch/cpu.h: a spinning thread lets others run first. */
#ifndef CC_ARCH_CPU_H
#define CC_ARCH_CPU_H

#include "base/attr.h"
#include "explore.h"

CC_INLINE void cc__cpu_relax(void) {
    ex_relax();
}

CC_INLINE uint64_t cc__cpu_cycles(void) {
    return 0; /* the recorder uses the clock, which is the explorer's */
}

#endif
