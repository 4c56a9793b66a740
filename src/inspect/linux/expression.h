/* expression.h - the stack machine of DWARF, for call-frame information that no simple rule can say: entries of the
 * procedure linkage table, frames of signals. */
#ifndef CC_INSPECT_LINUX_EXPRESSION_H
#define CC_INSPECT_LINUX_EXPRESSION_H

#include "inspect/unwind.h"

/* Runs the expression at `at` (a length, and so many bytes) with `first` on the stack, unless that is NULL. False: it
 * is damaged, or needs a register that is not known, or memory that is not there. */
bool cc__expression_run(const struct picture *p, const struct registers *regs, uintptr_t at, const uintptr_t *first,
                        uintptr_t *result);

#endif
