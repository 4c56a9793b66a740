/* error.c - errno, read and written in one place. */
#include "base/error.h"

#include "base/san.h"

#include <errno.h>
#include <string.h>

CC_NOINLINE CC_NO_TSAN int cc__errno_get(void) {
    return errno;
}

CC_NOINLINE CC_NO_TSAN void cc__errno_set(int value) {
    errno = value;
}

const char *cc__error_name(int code) {
    const char *name = NULL;
#if __GLIBC_PREREQ(2, 32)
    name = strerrorname_np(code);
#else
    (void)code;
#endif
    return name != NULL ? name : "an error";
}
