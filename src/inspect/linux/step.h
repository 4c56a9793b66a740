/* step.h - from a frame to its caller's: what unwind.c, guess.c and expression.c have for each other. */
#ifndef CC_INSPECT_LINUX_STEP_H
#define CC_INSPECT_LINUX_STEP_H

#include "inspect/linux/cfi.h"
#include "inspect/unwind.h"

/* One word of the stack. */
bool cc__picture_word(const struct picture *p, uintptr_t at, uintptr_t *word);

enum step { STEP_UP, STEP_END, STEP_LOST };

/* From a frame to its caller's, the CFA being known. `exact`: pc is an instruction, and not where a call returns to. */
enum step cc__unwind_apply(const struct picture *p, const struct cfi_row *row, uintptr_t cfa, struct registers *regs,
                           bool *exact);

/* From a frame to its caller's by call-frame information alone. */
enum step cc__unwind_step(const struct picture *p, struct registers *regs, bool *exact);

/* The way up where call-frame information does not lead on (guess.c): the frame pointer of a thread in the kernel is
 * not known, or there is no such information. False: nothing is found. *sure becomes false if what was found may be
 * wrong. */
bool cc__guess_step(const struct picture *p, struct registers *regs, bool *exact, bool *sure);

/* The stack machine of DWARF, for call-frame information that no simple rule can say: entries of the procedure linkage
 * table, frames of signals (expression.c). Runs the expression at `at` (a length, and so many bytes) with `first` on
 * the stack, unless that is NULL. False: it is damaged, or needs a register that is not known, or memory that is not
 * there. */
bool cc__expression_run(const struct picture *p, const struct registers *regs, uintptr_t at, const uintptr_t *first,
                        uintptr_t *result);

#endif
