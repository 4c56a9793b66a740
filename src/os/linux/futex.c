/* futex.c - an OS thread sleeps on a 32-bit word. */
#include "os/futex.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/fatal.h"
#include "base/san.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long futex(_Atomic uint32_t *word, int op, uint32_t val, const struct timespec *until) {
    int saved = cc__errno_get();
    long rc = syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, val, until, NULL, FUTEX_BITSET_MATCH_ANY);
    if (rc < 0) {
        rc = -cc__errno_get();
        cc__errno_set(saved);
    }
    return rc;
}

void cc__futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t until) {
    struct timespec ts, *at = NULL;
    if (until != CC_FUTEX_FOREVER) {
        ts.tv_sec = (time_t)(until / 1000000000u);
        ts.tv_nsec = (long)(until % 1000000000u);
        at = &ts;
    }
    /* WAIT_BITSET takes an absolute CLOCK_MONOTONIC time. */
    long rc = futex(word, FUTEX_WAIT_BITSET, expected, at);
    if (unlikely(rc < 0 && rc != -EAGAIN && rc != -EINTR && rc != -ETIMEDOUT))
        cc__fatal("the futex system call failed with error %ld; the runtime cannot sleep without it", -rc);
}

void cc__futex_wake(_Atomic uint32_t *word, int n) {
    cc__san_mute(true);
    (void)futex(word, FUTEX_WAKE, (uint32_t)n, NULL);
    cc__san_mute(false);
}
