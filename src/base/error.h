/* error.h - errno belongs to the user: what calls the system puts it back.
 *
 * Never inlined: errno's address is a constant of the thread to the compiler, and a fiber changes threads.
 * Hidden from the race detector, which sees two fibers of one thread write to that thread's errno. */
#ifndef CC_BASE_ERROR_H
#define CC_BASE_ERROR_H

#include "base/attr.h"

/* "ENOENT"; "an error" where the C library does not tell. */
const char *cc__error_name(int code);

int cc__errno_get(void);
void cc__errno_set(int value);

/* A declaration: errno is put back at the end of the block, however it is left. */
#define CC_KEEP_ERRNO __attribute__((cleanup(cc__errno_put_back), unused)) int kept_errno = cc__errno_get()
CC_INLINE void cc__errno_put_back(const int *kept) {
    cc__errno_set(*kept);
}

#endif
