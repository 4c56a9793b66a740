/* membarrier.c - the system call behind the asymmetric barrier. */
#include "os/membarrier.h"

#include "base/error.h"
#include "base/fatal.h"
#include "base/san.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static long membarrier(int cmd) {
    CC_KEEP_ERRNO;
    return syscall(SYS_membarrier, cmd, 0, 0);
}

bool cc__membarrier_register(void) {
    /* Valgrind runs one thread at a time and does not know the call. */
    if (cc__san_on_valgrind()) return false;
    long offered = membarrier(MEMBARRIER_CMD_QUERY);
    return offered > 0 && (offered & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
           membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void cc__membarrier(void) {
    CC_KEEP_ERRNO;
    if (unlikely(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)) {
        int error = cc__errno_get();
        cc__fatal(
            "membarrier worked when the runtime started and fails now (errno %d%s). A program that restricts its system calls later "
            "has to allow it, or to start with CC_MEMBARRIER=0 or CCRuntimeConfig.no_membarrier",
            error, error == EPERM || error == EACCES || error == ENOSYS ? ", a seccomp filter perhaps" : "");
    }
}
