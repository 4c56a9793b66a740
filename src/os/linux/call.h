/* call.h - system calls whose result is a number or -errno. */
#ifndef CC_OS_LINUX_CALL_H
#define CC_OS_LINUX_CALL_H

#include "base/attr.h"
#include "base/error.h"

#include <errno.h>

/* Repeats a system call while a signal interrupts it, and preserves errno, which only a failure changes. */
#define CALL(result, expression)                                                      \
    do {                                                                              \
        int saved_ = cc__errno_get();                                                 \
        (result) = (expression);                                                      \
        if (unlikely((result) < 0)) {                                                 \
            while ((result) < 0 && cc__errno_get() == EINTR) (result) = (expression); \
            if ((result) < 0) (result) = -cc__errno_get();                            \
            cc__errno_set(saved_);                                                    \
        }                                                                             \
    } while (0)

#endif
