/* step.h - from a frame to its caller's: internals of unwind.c, guess.c and expression.c. */
#ifndef CC_INSPECT_LINUX_STEP_H
#define CC_INSPECT_LINUX_STEP_H

#include "inspect/linux/cfi.h"
#include "inspect/unwind.h"

/* One word of the stack. */
bool cc__picture_word(const struct picture *p, uintptr_t at, uintptr_t *word);

enum step { STEP_UP, STEP_END, STEP_LOST };

/* From a frame with a known CFA to its caller's. `exact`: pc is an instruction, not a return address. */
enum step cc__unwind_apply(const struct picture *p, const struct cfi_row *row, uintptr_t cfa, struct registers *regs,
                           bool *exact);

/* From a frame to its caller's by call-frame information alone. */
enum step cc__unwind_step(const struct picture *p, struct registers *regs, bool *exact);

/* To the caller's frame without sufficient call-frame information (guess.c): there is none, or the frame pointer of a
 * thread in the kernel is unknown. False: none is found. *sure becomes false if the result may be wrong. */
bool cc__guess_step(const struct picture *p, struct registers *regs, bool *exact, bool *sure);

/* The stack machine of DWARF, for call-frame information beyond the simple rules: PLT entries, signal frames
 * (expression.c). Runs the expression at `at` (a length, and so many bytes) with `first` on the stack, unless that is
 * NULL. False: it is damaged, or needs an unknown register or unreadable memory. */
bool cc__expression_run(const struct picture *p, const struct registers *regs, uintptr_t at, const uintptr_t *first,
                        uintptr_t *result);

#endif
