/* ucontext/escape.h - by setjmp, for every CPU. The code is in arch/escape.c. */

#define CC_ESCAPE_BY_SETJMP 1

#include <setjmp.h>

struct escape {
    jmp_buf buf;
    void *value;
};

void *cc__escape_call(struct escape *e, escape_fn fn, void *arg);
CC_NORETURN void cc__escape_take(struct escape *e, void *value);
