/* cpu.h - hints to the CPU, and its cycle counter. */
#ifndef CC_ARCH_CPU_H
#define CC_ARCH_CPU_H

#include "arch/machine.h"

/* A hint that the thread is spinning. */
CC_INLINE void cc__cpu_relax(void) {
    cc__machine_pause();
}

/* A counter that grows at a constant rate, on all CPUs alike where the system uses it as its clock; 0: there is none.
 * */
CC_INLINE uint64_t cc__cpu_cycles(void) {
    return cc__machine_cycles();
}

#endif
