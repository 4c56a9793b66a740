/* threads.c - reads /proc/self/task. */
#include "inspect/threads.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/san.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By syscall(), as in safe_copy.c: no cancellation points, nothing for the sanitizers to watch. */
static int open_quietly(const char *path, int flags) {
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | flags, 0);
}

/* The file's beginning as a string; false if it cannot be read, and errno says why. */
static bool read_task_file(int tid, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    int fd = open_quietly(path, 0);
    if (fd < 0) return false;
    long n = syscall(SYS_read, fd, text, size - 1);
    int error = n == 0 ? EIO : cc__errno_get();
    (void)syscall(SYS_close, fd);
    cc__errno_set(error);
    if (n <= 0) return false;
    text[n] = '\0';
    return true;
}

/* A thread whose file is gone has ended. One that cannot be looked at, for want of a descriptor say, may live. */
static bool lives(int tid) {
    char stat[128];
    if (!read_task_file(tid, "stat", stat, sizeof stat)) return cc__errno_get() != ENOENT && cc__errno_get() != ESRCH;
    const char *name_end = strrchr(stat, ')'); /* a name may hold anything, but is short */
    if (name_end == NULL || name_end[1] == '\0') return false;
    return strchr("ZXx", name_end[2]) == NULL;
}

/* What the kernel hands out; the C library's readdir would allocate. */
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
    int fd = open_quietly("/proc/self/task", O_DIRECTORY);
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
            if (tid <= 0 || !lives(tid)) continue;
            if ((unsigned)count < max) tids[count] = tid;
            count++;
        }
    }
    if (fd >= 0) (void)syscall(SYS_close, fd);
    return count;
}

uint64_t cc__threads_caught(void) {
    /* Asked one by one rather than read from /proc/self/status, which under valgrind and qemu tells of their own. */
    uint64_t caught = 0;
    CC_KEEP_ERRNO;
    for (int n = 1; n <= 64; n++) {
        struct sigaction now;
        if (sigaction(n, NULL, &now) != 0) continue;
        if ((now.sa_flags & SA_SIGINFO) || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN))
            caught |= UINT64_C(1) << (n - 1);
    }
    if (cc__san_on_valgrind()) caught &= ~(UINT64_C(1) << 63); /* which it keeps for itself */
    return caught;
}

/* "running", or the number, six arguments, the stack pointer and the program counter; with -1 only the last two. */
static bool parse_call(const char *text, struct thread_call *call) {
    memset(call, 0, sizeof *call);
    if (strncmp(text, "running", 7) == 0) {
        call->running = true;
        return true;
    }
    uintptr_t words[8];
    unsigned count = 0;
    char *end;
    call->number = strtol(text, &end, 10);
    if (end == text) return false;
    for (const char *at = end; count < array_len(words); at = end) {
        words[count] = strtoul(at, &end, 16);
        if (end == at) break;
        count++;
    }
    if (count != (call->number < 0 ? 2 : 8)) return false;
    if (call->number >= 0) memcpy(call->args, words, sizeof call->args);
    call->sp = words[count - 2];
    call->pc = words[count - 1];
    return true;
}

bool cc__threads_call(int tid, struct thread_call *call) {
    char text[256];
    CC_KEEP_ERRNO;
    return read_task_file(tid, "syscall", text, sizeof text) && parse_call(text, call);
}

bool cc__threads_blocks(int tid, int sig) {
    static const char label[] = "\nSigBlk:";
    char text[2048]; /* the line is in its first half */
    CC_KEEP_ERRNO;
    bool known = read_task_file(tid, "status", text, sizeof text);
    const char *line = known ? strstr(text, label) : NULL;
    if (line == NULL) return true;
    return strtoull(line + sizeof label - 1, NULL, 16) >> (sig - 1) & 1;
}
