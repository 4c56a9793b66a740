/* machine.h - what is known of the CPU, beside its context switch. One file a CPU provides:
 *
 *   cc__machine_pause()           a hint that the thread spins
 *   cc__machine_sp()              the stack pointer, which costs no frame to be had
 *   CC_RETURN_ON_STACK            1: a call puts its return address right below the CFA
 *   CC_FRAME_...                  what a frame pointer points to (frame.h)
 *   CC_RELOCATION_IS_SLOT(type)   whether a relocation fills an entry of a global offset table; constants of <elf.h>
 *   cc__code_...                  what machine code around calls looks like (code.h)
 *
 * generic/ knows nothing: such a CPU has no frame chains, no PLT hooks and no unwinding.
 */
#ifndef CC_ARCH_MACHINE_H
#define CC_ARCH_MACHINE_H

#include "base/attr.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Code before a return address, at the start of a function, of a jump: so many bytes are looked at. */
enum { CODE_BEFORE = 8, CODE_ENTRY = 16, CODE_JUMP = 6 };

#if defined(__x86_64__) && defined(__LP64__)
#include "arch/x86_64/machine.h"
#elif defined(__aarch64__)
#include "arch/aarch64/machine.h"
#elif defined(__riscv) && __riscv_xlen == 64
#include "arch/riscv64/machine.h"
#else
#include "arch/generic/machine.h"
#endif

#endif
