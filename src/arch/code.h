/* code.h - what machine code around calls looks like. Each CPU's file (machine.h) implements it.
 *
 *   cc__code_ends_with_call(code)          whether these bytes end with a call: then what comes after them may be a return
 *                                          address
 *   cc__code_call_target(code, address)    where the direct call goes that ends before `address`
 *   cc__code_jump_target(code, address)    where the direct jump goes that these bytes, at `address`, may be
 *   cc__code_jump_slot(code, address)      code that jumps to where a word in memory says, as the procedure linkage table
 *                                          does: the word's address
 *
 * The last three are 0 if the code does something else, or if it is not known on this CPU.
 */
#ifndef CC_ARCH_CODE_H
#define CC_ARCH_CODE_H

#include "arch/machine.h"

#endif
