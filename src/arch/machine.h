/* machine.h - properties of the CPU, apart from its context switch. Each CPU's file defines:
 *
 *   cc__machine_pause()                  a hint that the thread spins
 *   cc__machine_sp()                     the stack pointer, or an address near it; its user need not have a frame
 *   cc__machine_cycles()                 a counter of constant rate; 0: there is none
 *   CC_RETURN_ON_STACK                   1: a call puts its return address right below the CFA
 *   CC_RELOCATION_IS_SLOT(type)          whether a relocation fills an entry of a global offset table; names of <elf.h>
 *
 *   CC_FRAME_CHAIN                       1: frame pointers can be followed
 *   CC_FRAME_UP(fp), CC_FRAME_RETURN(fp) the caller's frame pointer, and the address to return to
 *   CC_FRAME_LOWEST                      the lower one of these words, counted from where the frame pointer points
 *   CC_FRAME_ENDS                        1: the two words are the last of their frame
 *
 *   cc__code_ends_with_call(code)        whether these bytes end with a call: then a return address may come after them
 *   cc__code_call_target(code, address)  where the direct call goes that ends before `address`
 *   cc__code_jump_target(code, address)  where the direct jump goes that these bytes, at `address`, may be
 *   cc__code_jump_slot(code, address)    code that jumps to where a word in memory says, as the procedure linkage table
 *                                        does: the word's address
 *
 * The last three return 0 if the code does something else; a CPU without support omits them. generic/ supports nothing:
 * such a CPU has no frame chains, no PLT hooks and no unwinding.
 */
#ifndef CC_ARCH_MACHINE_H
#define CC_ARCH_MACHINE_H

#include "arch/target.h"
#include "base/attr.h"

#include <string.h>

/* How many bytes of code are examined: before a return address, at the start of a function, of a jump. */
enum { CODE_BEFORE = 8, CODE_ENTRY = 16, CODE_JUMP = 6 };

#include CC_TARGET(machine.h)

#ifndef CC_CODE_CALL_TARGET
#define cc__code_call_target(code, address) ((void)(code), (void)(address), (uintptr_t)0)
#endif
#ifndef CC_CODE_JUMP_TARGET
#define cc__code_jump_target(code, address) ((void)(code), (void)(address), (uintptr_t)0)
#endif
#ifndef CC_CODE_JUMP_SLOT
#define cc__code_jump_slot(code, address) ((void)(code), (void)(address), (uintptr_t)0)
#endif

#endif
