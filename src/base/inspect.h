/* inspect.h - what any room may call in inspect/, which is above most of them.
 *
 * inspect/ implements these functions; declared here so that includes still point down the list of rooms.
 */
#ifndef CC_BASE_INSPECT_H
#define CC_BASE_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What this build cannot report because it was configured without inspection, as a sentence without a capital and a
 * full stop; NULL: nothing is missing. */
const char *cc__inspect_missing(void);

/* Which parts of a list of frames are uncertain. */
struct doubt {
    uint64_t guessed; /* bit n: frame n, or one below it, was not found by call-frame information */
    bool cut;         /* the walk ended before the stack's first frame, and not for lack of room */
};

/* The frames of the calling thread, which is on the stack [low, top), from the one that continues at `back`: with a
 * function's own __builtin_return_address(0), from its caller. NULL: all. At most `max` and 64; returns how many. Any
 * thread, not for signal handlers; takes 6 kB of stack, allocates nothing. */
unsigned cc__unwind_here(const void *low, const void *top, const void *back, const void **frames, unsigned max,
                         struct doubt *doubt);

/* The shapes of stacks that were unwound before; for one thread at a time. NULL: no memory, or nothing to unwind. To be
 * released by cc__mem_free. */
struct unwind_memo;
struct unwind_memo *cc__unwind_memo(void);

/* What `number_of` returns for the frames that cc__unwind_here would find, at most `max`. A stack whose shape is known
 * is not unwound again: its number was kept. memo: may be NULL. Takes 8 kB of stack. */
unsigned cc__unwind_number(struct unwind_memo *memo, const void *low, const void *top, const void *back, unsigned max,
                           unsigned (*number_of)(const void *const *frames, unsigned count));

/* The name of the code that returns to this address: "function (file.c:123)", with " in outer (file.c:140)" behind it
 * if the function was inlined there; "function+0x12 (module+0x3456)", "module+0x3456", or the bare address: as far as
 * it is known. addr2line understands the offset into a module. Any thread or fiber, not for signal handlers; takes up
 * to 7 kB of stack. Keeps errno. */
void cc__symbol_text(const void *return_address, char *text, size_t size);
/* The number of frames without those of this library at the outer end, which called the program. */
unsigned cc__symbol_without_own(const void *const *frames, unsigned count);

#endif
