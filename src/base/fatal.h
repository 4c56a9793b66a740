/* fatal.h - fatal errors: one sentence on stderr, then abort. */
#ifndef CC_BASE_FATAL_H
#define CC_BASE_FATAL_H

#include "base/attr.h"

/* Prints "ccc: fatal: <sentence>" and aborts. Any context, signal handlers included. */
CC_NORETURN CC_COLD void cc__fatal(const char *fmt, ...) CC_PRINTF(1, 2);

/* What cc__fatal calls between its sentence and the abort; NULL: nothing. fn may be called in any context. */
void cc__fatal_also(void (*fn)(void));

/* Prints "ccc: <sentence>" on stderr. Any context, signal handlers included. */
CC_COLD void cc__warn(const char *fmt, ...) CC_PRINTF(1, 2);

/* Writes as much of it as stderr accepts. Any context, signal handlers included. */
void cc__stderr_write(const char *text, size_t size);
/* Whatever the calling thread writes from now on is dropped if nobody reads stderr for a second. For sysmon, which must
 * not wait for a reader. */
void cc__stderr_bound(void);

/* An invariant that is cheap enough to check in every build; `rule` names it (STATE-2: ...). */
#define cc__assert(cond, rule)                                                                 \
    do {                                                                                       \
        if (unlikely(!(cond))) cc__fatal("%s (%s at %s:%d)", rule, #cond, __FILE__, __LINE__); \
    } while (0)

/* The same, in debug builds only. */
#ifdef CC_DEBUG
#define cc__debug_assert(cond, rule) cc__assert(cond, rule)
#else
#define cc__debug_assert(cond, rule) ((void)0)
#endif

#endif
