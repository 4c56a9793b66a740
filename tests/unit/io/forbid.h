/* forbid.h - forbids system calls in this process, as a sandbox does. */
#ifndef CCC_TESTS_IO_FORBID_H
#define CCC_TESTS_IO_FORBID_H

#include "harness.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From now on these calls fail with that error, in all threads of the process. */
static inline void forbid(const int *calls, unsigned n, int error) {
    enum { MOST = 4 };
    struct sock_filter code[2 * MOST + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned length = 1;
    CHECK(n <= MOST);
    for (unsigned i = 0; i < n; i++) {
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)length, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        SKIP("the system has no seccomp filters");
}

#endif
