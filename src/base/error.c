/* error.c - errno, read and written in one place. */
#include "base/error.h"

#include "base/san.h"

#include <ccc/cc_base.h>
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

static const char *text_of_system(int code) {
    const char *text = NULL;
#if __GLIBC_PREREQ(2, 32)
    text = strerrordesc_np(code); /* strerror's may be overwritten */
#else
    (void)code;
#endif
    return text != NULL ? text : "an unknown error";
}

const char *cc_error_text(int code) {
    switch (code) {
    case 0:
        return "no error";
    case ECANCELED:
        return "cancelled";
    case EDEADLK:
        return "the caller would wait for itself";
    case ENOTRECOVERABLE:
        return "the task has panicked";
    case EPIPE:
        return "closed";
    case ESRCH:
        return "it is over, or never was";
    case ETIMEDOUT:
        return "the deadline has passed";
    default:
        return text_of_system(code);
    }
}
