/* escape.c - the portable escape. */
#include "arch/escape.h"

#ifdef CC_ESCAPE_BY_SETJMP

void *cc__escape_call(struct escape *e, escape_fn fn, void *arg) {
    if (_setjmp(e->buf) == 0) return cc__guard(arg, NULL, fn);
    return e->value;
}

void cc__escape_take(struct escape *e, void *value) {
    e->value = value;
    longjmp(e->buf, 1); /* the race detector intercepts longjmp, but not _longjmp */
}

#endif

#ifdef CC_TARGET_UNKNOWN /* else it is in guard.S */
void *cc__guard(void *arg, void *unused, escape_fn fn) {
    (void)unused;
    return fn(arg);
}
#endif
