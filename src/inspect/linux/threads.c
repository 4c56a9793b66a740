/* threads.c - reads /proc/self/task. */
#include "inspect/threads.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/san.h"
#include "os/signals.h"
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread without a file has ended. If the file cannot be opened for another reason, the thread may still exist. */
static bool exists(int tid) {
    char state = cc__thread_state(tid);
    return state != 0 ? strchr("ZXx", state) == NULL : cc__errno_get() != ENOENT && cc__errno_get() != ESRCH;
}

/* A kernel worker of io_uring (PF_IO_WORKER). The last one lives as long as the thread that submitted the calls. It
 * wakes waiters only through a descriptor, on which another thread waits. */
static bool serves_rings(int tid) {
    enum { IO_WORKER = 0x10 };
    char text[128];
    unsigned flags;
    if (!cc__thread_file(tid, "stat", text, sizeof text)) return false;
    const char *end = strrchr(text, ')'); /* then: state, ppid, pgrp, session, tty_nr, tpgid, flags */
    return end != NULL && sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & IO_WORKER) != 0;
}

/* struct linux_dirent64; the C library's readdir would allocate. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t type;
    char name[];
};

int cc__threads_list(int *tids, unsigned max) {
    CC_KEEP_ERRNO;
    int count = 0;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_CLOEXEC | O_DIRECTORY, 0);
    if (fd < 0) count = -1;
    while (count >= 0) {
        _Alignas(8) char buffer[1024];
        long n = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
        if (n < 0) count = -1;
        if (n <= 0) break;
        for (long at = 0; at < n;) {
            const struct entry *entry = (const struct entry *)(const void *)(buffer + at);
            at += entry->size;
            int tid = (int)strtol(entry->name, NULL, 10); /* 0 for "." and ".." */
            if (tid <= 0 || !exists(tid) || serves_rings(tid)) continue;
            if ((unsigned)count < max) tids[count] = tid;
            count++;
        }
    }
    if (fd >= 0) (void)syscall(SYS_close, fd);
    return count;
}

uint64_t cc__threads_caught(void) {
    /* One by one, not from /proc/self/status, which under valgrind and qemu reports their own handlers. */
    uint64_t caught = 0;
    CC_KEEP_ERRNO;
    for (int n = 1; n <= 64; n++) {
        struct sigaction now;
        if (sigaction(n, NULL, &now) == 0 && cc__signal_is_handled(&now)) caught |= UINT64_C(1) << (n - 1);
    }
    if (cc__san_on_valgrind()) caught &= ~(UINT64_C(1) << 63); /* reserved by valgrind */
    return caught;
}

/* "running", or the number, six arguments, the stack pointer and the program counter; with -1 only the last two. */
static bool parse_call(const char *text, struct thread_call *call) {
    unsigned long a[8];
    *call = (struct thread_call){.running = strncmp(text, "running", 7) == 0};
    int n = sscanf(text, "%ld %lx %lx %lx %lx %lx %lx %lx %lx", &call->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5],
                   &a[6], &a[7]);
    if (call->running || n != (call->number < 0 ? 3 : 9)) return call->running;
    for (int i = 0; call->number >= 0 && i < 6; i++) call->args[i] = a[i];
    call->sp = a[n - 3];
    call->pc = a[n - 2];
    return true;
}

bool cc__threads_call(int tid, struct thread_call *call) {
    char text[256];
    CC_KEEP_ERRNO;
    return cc__thread_file(tid, "syscall", text, sizeof text) && parse_call(text, call);
}

bool cc__threads_blocks(int tid, int sig) {
    static const char label[] = "\nSigBlk:";
    char text[2048]; /* the line is in its first half */
    CC_KEEP_ERRNO;
    bool known = cc__thread_file(tid, "status", text, sizeof text);
    const char *line = known ? strstr(text, label) : NULL;
    if (line == NULL) return true;
    return strtoull(line + sizeof label - 1, NULL, 16) >> (sig - 1) & 1;
}
