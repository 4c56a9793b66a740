/* error.h - errno belongs to the user: code that makes system calls restores it.
 *
 * Never inlined: the compiler treats errno's address as constant for the thread, but a fiber may change threads. Hidden
 * from the race detector, to which two fibers of one thread that write its errno are two threads. */
#ifndef CC_BASE_ERROR_H
#define CC_BASE_ERROR_H

#include "base/attr.h"

/* "ENOENT"; "an error" if the C library does not know it. */
const char *cc__error_name(int code);

int cc__errno_get(void);
void cc__errno_set(int value);

/* A declaration: restores errno at the end of the block, however it is left. */
#define CC_KEEP_ERRNO __attribute__((cleanup(cc__errno_put_back), unused)) int kept_errno = cc__errno_get()
CC_INLINE void cc__errno_put_back(const int *kept) {
    cc__errno_set(*kept);
}

#endif
