/* layout.c - the table, and the note that points to it (LAYOUT-1). */
#include "inspect/layout.h"

#include "blocking/blocking.h"
#include "chan/chan.h"
#include "io/fd.h"
#include "io/uring.h"
#include "lock/mutex.h"
#include "nursery/nursery.h"
#include "process/process.h"
#include "timer/timer.h"
#include "wait/blocked.h"

#ifdef CC_ARCH_UCONTEXT
#define CONTEXT_IS_PLAIN 0
#else
#define CONTEXT_IS_PLAIN 1
#endif

__attribute__((used)) const struct layout cc__layout = {
    .magic = LAYOUT_MAGIC,
    .version = LAYOUT_VERSION,
    .size = sizeof(struct layout),
#define ADDRESS(name, object) .name = (uintptr_t) & (object),
#define SIZE(name, type) .name##_size = sizeof(type),
#define FIELD(name, type, member) .name = offsetof(type, member),
#define VALUE(name, value) .name = (value),
#include "inspect/layout.def"
};

/* Sizes of name and description, the type; the name; the description. */
__asm__(".pushsection .note.ccc, \"a\", %note\n"
        ".balign 4\n"
        ".long 4, 4, 1\n"
        ".asciz \"ccc\"\n"
        ".long cc__layout - .\n"
        ".popsection\n");

_Static_assert(LAYOUT_NOTE == 1, "the note says so");
