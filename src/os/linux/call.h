/* call.h - system calls whose result is a number or -errno. */
#ifndef CC_OS_LINUX_CALL_H
#define CC_OS_LINUX_CALL_H

#include "base/attr.h"
#include "base/error.h"

#include <errno.h>
#include <sys/uio.h>

/* Of preadv2 and pwritev2: fail with EAGAIN instead of waiting. */
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

/* The result of a system call. Repeats it while a signal interrupts it, and preserves errno, which only a failure
 * changes. */
#define CALL(expression)                                                            \
    ({                                                                              \
        int saved_ = cc__errno_get();                                               \
        __typeof__(expression) result_ = (expression);                              \
        if (unlikely(result_ < 0)) {                                                \
            while (result_ < 0 && cc__errno_get() == EINTR) result_ = (expression); \
            if (result_ < 0) result_ = -cc__errno_get();                            \
            cc__errno_set(saved_);                                                  \
        }                                                                           \
        result_;                                                                    \
    })

#endif
