/* step.h - from a frame to its caller's: internals of unwind.c, simple.c, guess.c and expression.c. */
#ifndef CC_INSPECT_LINUX_STEP_H
#define CC_INSPECT_LINUX_STEP_H

#include "inspect/linux/cfi.h"
#include "inspect/unwind.h"

enum { UNWIND_STEPS = 256, UNWIND_FRAMES = 64 };

/* One word of a mapped stack, in any frame, which sanitizers would report. */
#if defined(CC_ASAN) || defined(CC_TSAN)
uintptr_t cc__stack_load(uintptr_t at);
#else
CC_INLINE uintptr_t cc__stack_load(uintptr_t at) {
    return *(const volatile uintptr_t *)at;
}
#endif

/* One word of a picture's stack. */
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

/* A mapped stack, and what simple rows need. */
struct walk {
    uintptr_t pc, fp, sp; /* of the frame; first: of an instruction */
    uintptr_t low, top;   /* the stack is [low, top) */
    uintptr_t back;       /* as in struct picture */
};

/* What a walk by simple rows depends on: the registers at its start, and these words of the stack. Another stack where
 * all of them are the same has the same frames. Addresses of the stack are relative to its stack pointer. */
enum { SHAPE_WORDS = 40 };
struct shape {
    unsigned count; /* may exceed SHAPE_WORDS: then the shape is not known */
    bool by_fp;     /* it depends on the frame pointer */
    uintptr_t fp;
    struct shape_word {
        uint32_t at : 31, is_address : 1; /* of the stack: a saved frame pointer; else a return address */
        uintptr_t value;
    } word[SHAPE_WORDS];
};

/* As cc__unwind, but 0 if a row is not simple (simple.c). shape: NULL, or cleared. */
unsigned cc__unwind_simple(struct walk w, const void **frames, unsigned max, struct shape *shape);

#endif
