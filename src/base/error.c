/* error.c - errno, read and written in one place. */
#include "base/error.h"

#include "base/attr.h"
#include "base/san.h"

#include <errno.h>

CC_NOINLINE CC_NO_TSAN int cc__errno_get(void) {
    return errno;
}

CC_NOINLINE CC_NO_TSAN void cc__errno_set(int value) {
    errno = value;
}
