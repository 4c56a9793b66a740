/* fail.h - makes the n-th system call fail, once or from then on, and counts the resources that are held.
 *
 * The linker redirects these calls of the library (and of the test itself) to the functions below; calls inside the C
 * library are not affected. A test arms, does one thing, disarms, and repeats with n + 1 until a run
 * has no failure. The call sites are recorded, so that a test can check that each of them has failed.
 *
 * A call fails with an error that it can return. Two never fail: a wake of a futex, and the asymmetric barrier once it
 * was registered, without which the runtime aborts with a message.
 */
#ifndef CCC_TESTS_FAULT_FAIL_H
#define CCC_TESTS_FAULT_FAIL_H

#include "harness.h"

#include "base/error.h"
#include "base/san.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kinds of calls that can be failed. */
enum {
    FAIL_MEMORY = 1,
    FAIL_MAP = 2,
    FAIL_ADVICE = 4,
    FAIL_THREAD = 8,
    FAIL_PIPE = 16,
    FAIL_ALL = 31,      /* essential calls, and calls that the runtime can do without */
    FAIL_SIGNAL = 32,   /* handlers and their stacks */
    FAIL_FILE = 64,     /* files that are read, most of them in /proc */
    FAIL_CALL = 128,    /* calls without a function in the C library: futex waits (EINTR), membarrier, … */
    FAIL_KEY = 256,     /* values with destructors at the end of a thread */
    FAIL_PROCESS = 512, /* children: clone, waitid */
    FAIL_EVERYTHING = 1023,
    FAIL_UNMAP = 1024 /* not one of them: the range stays */
};

enum { FAIL_SITES = 512 };

/* A place that calls, by its return address. */
struct fail_site {
    _Atomic(void *) at;
    _Atomic int kind;
    _Atomic long called, failed; /* since fail_forget */
};

static struct {
    _Atomic long left; /* how many more calls succeed; negative: not armed */
    _Atomic bool on;   /* those after the first failure fail too */
    _Atomic int kinds;
    _Atomic long turn;
    _Atomic long skip;    /* of those after the first failure, how many succeed between two that fail */
    _Atomic(void *) only; /* calls from this place alone; NULL: from all */
    _Atomic long failed;
    _Atomic(void (*)(void)) at_memory; /* called by every allocation of an aligned block */
    _Atomic(int (*)(long)) at_call;    /* by every call without a function: its error, or 0 */
    _Atomic long blocks, mapped;       /* what the program holds: blocks of memory, bytes of mappings */
    struct fail_site sites[FAIL_SITES];
} fail = {.left = -1};

/* Call it first in a case: what the harness holds does not count. */
static inline void fail_begin(void) {
    atomic_store(&fail.blocks, 0);
    atomic_store(&fail.mapped, 0);
}

/* Fails the n-th call of these kinds (1 is the next one); for_ever: all that follow as well. */
static inline void fail_arm(long n, int kinds, bool for_ever) {
    atomic_store(&fail.failed, 0);
    atomic_store(&fail.kinds, kinds);
    atomic_store(&fail.on, for_ever);
    atomic_store(&fail.only, NULL);
    atomic_store(&fail.skip, 0);
    atomic_store(&fail.left, n - 1);
}

/* Fails the n-th call that comes from one place. */
__attribute__((unused)) static void fail_arm_site(struct fail_site *site, long n) {
    fail_arm(n, atomic_load(&site->kind), false);
    atomic_store(&fail.only, atomic_load(&site->at));
}

/* Ends it; returns how many calls have failed. */
static inline long fail_disarm(void) {
    atomic_store(&fail.left, -1);
    return atomic_load(&fail.failed);
}

/* The entry for a place, NULL when the table is full: a table that is too small makes no test pass. */
static inline struct fail_site *fail_site(void *at, int kind) {
    for (size_t i = (uintptr_t)at / 4 % FAIL_SITES, tries = 0; tries < FAIL_SITES; tries++, i = (i + 1) % FAIL_SITES) {
        void *there = atomic_load(&fail.sites[i].at);
        if (there == NULL && atomic_compare_exchange_strong(&fail.sites[i].at, &there, at)) there = at;
        if (there != at) continue;
        atomic_store(&fail.sites[i].kind, kind);
        return &fail.sites[i];
    }
    test_fail(__FILE__, __LINE__, "more than %d places call the system", FAIL_SITES);
}

static inline bool fail_now(int kind, void *at) {
    struct fail_site *site = fail_site(at, kind);
    atomic_fetch_add(&site->called, 1);
    if (!(atomic_load(&fail.kinds) & kind)) return false;
    void *only = atomic_load(&fail.only);
    if (only != NULL && only != at) return false;
    long left = atomic_load(&fail.left);
    for (;;) {
        if (left < 0) return false;
        if (left == 0 && atomic_load(&fail.on)) {
            long skip = atomic_load(&fail.skip);
            if (skip > 0 && atomic_fetch_add(&fail.turn, 1) % (skip + 1) != 0) return false;
            break;
        }
        if (!atomic_compare_exchange_weak(&fail.left, &left, left - 1)) continue;
        if (left > 0) return false;
        break;
    }
    atomic_fetch_add(&fail.failed, 1);
    atomic_fetch_add(&site->failed, 1);
    return true;
}

/* In a wrapper: whether this call is to fail. A macro, so that the address is that of the library's call. */
#define FAIL_NOW(kind) fail_now(kind, __builtin_return_address(0))

int __real_posix_memalign(void **p, size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size) {
    void (*at_memory)(void) = atomic_load(&fail.at_memory);
    if (at_memory != NULL) at_memory();
    if (FAIL_NOW(FAIL_MEMORY)) return ENOMEM;
    int rc = __real_posix_memalign(p, align, size);
    if (rc == 0) atomic_fetch_add(&fail.blocks, 1);
    return rc;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
    if (FAIL_NOW(FAIL_MEMORY)) return NULL;
    void *p = __real_malloc(size);
    if (p != NULL) atomic_fetch_add(&fail.blocks, 1);
    return p;
}

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p) {
    if (p != NULL) atomic_fetch_sub(&fail.blocks, 1);
    __real_free(p);
}

void *__real_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset) {
    if (FAIL_NOW(FAIL_MAP)) {
        cc__errno_set(ENOMEM);
        return MAP_FAILED;
    }
    void *at = __real_mmap(p, size, prot, flags, fd, offset);
    if (at != MAP_FAILED) atomic_fetch_add(&fail.mapped, (long)size);
    return at;
}

int __real_munmap(void *p, size_t size);
int __wrap_munmap(void *p, size_t size);
int __wrap_munmap(void *p, size_t size) {
    if ((atomic_load(&fail.kinds) & FAIL_UNMAP) && FAIL_NOW(FAIL_UNMAP)) {
        cc__errno_set(ENOMEM);
        return -1;
    }
    atomic_fetch_sub(&fail.mapped, (long)size);
    return __real_munmap(p, size);
}

int __real_madvise(void *p, size_t size, int advice);
int __wrap_madvise(void *p, size_t size, int advice);
int __wrap_madvise(void *p, size_t size, int advice) {
    if (FAIL_NOW(FAIL_ADVICE)) {
        cc__errno_set(ENOMEM);
        return -1;
    }
    return __real_madvise(p, size, advice);
}

int __real_mprotect(void *p, size_t size, int prot);
int __wrap_mprotect(void *p, size_t size, int prot);
int __wrap_mprotect(void *p, size_t size, int prot) {
    if (FAIL_NOW(FAIL_ADVICE)) {
        cc__errno_set(ENOMEM);
        return -1;
    }
    return __real_mprotect(p, size, prot);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg) {
    if (FAIL_NOW(FAIL_THREAD)) return EAGAIN;
    return __real_pthread_create(thread, attr, fn, arg);
}

int __real_pipe(int fds[2]);
int __wrap_pipe(int fds[2]);
int __wrap_pipe(int fds[2]) {
    if (FAIL_NOW(FAIL_PIPE)) {
        cc__errno_set(EMFILE);
        return -1;
    }
    return __real_pipe(fds);
}

int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags) {
    if (FAIL_NOW(FAIL_PIPE)) {
        cc__errno_set(EMFILE);
        return -1;
    }
    return __real_pipe2(fds, flags);
}

/* As the library calls it: with a place for the pidfd. */
int __real_clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
int __wrap_clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
int __wrap_clone(int (*fn)(void *), void *stack, int flags, void *arg, ...) {
    va_list rest;
    va_start(rest, arg);
    int *pidfd = va_arg(rest, int *);
    va_end(rest);
    if (FAIL_NOW(FAIL_PROCESS)) {
        cc__errno_set(EAGAIN);
        return -1;
    }
    return __real_clone(fn, stack, flags, arg, pidfd);
}

int __real_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    if (FAIL_NOW(FAIL_PROCESS)) {
        cc__errno_set(EINTR);
        return -1;
    }
    return __real_waitid(type, id, info, options);
}

/* ---- what the race detector calls itself, before it is ready for anything ---- */

#ifndef CC_TSAN
enum { FAIL_KNOWS_ALL = 1 };

int __real_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
int __wrap_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
int __wrap_sigaction(int signal, const struct sigaction *action, struct sigaction *old) {
    if (FAIL_NOW(FAIL_SIGNAL)) {
        cc__errno_set(EINVAL);
        return -1;
    }
    return __real_sigaction(signal, action, old);
}

int __real_sigaltstack(const stack_t *stack, stack_t *old);
int __wrap_sigaltstack(const stack_t *stack, stack_t *old);
int __wrap_sigaltstack(const stack_t *stack, stack_t *old) {
#ifndef CC_ASAN /* which unmaps the thread's stack at its end, as if it had allocated it */
    if (FAIL_NOW(FAIL_SIGNAL)) {
        cc__errno_set(EPERM);
        return -1;
    }
#endif
    return __real_sigaltstack(stack, old);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    if (FAIL_NOW(FAIL_FILE)) {
        cc__errno_set(EMFILE);
        return -1;
    }
    return __real_open(path, flags, 0); /* nothing is created */
}

/* Never fails, and never closes a number that is not open: another thread may have reused it. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) {
    int rc = __real_close(fd);
    CHECK(rc == 0 || cc__errno_get() != EBADF);
    return rc;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) {
    if (FAIL_NOW(FAIL_FILE)) {
        cc__errno_set(EMFILE);
        return NULL;
    }
    return __real_fopen(path, mode);
}

ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size) {
    if (FAIL_NOW(FAIL_FILE)) {
        cc__errno_set(EINTR);
        return -1;
    }
    return __real_read(fd, to, size);
}

int __real_pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int __wrap_pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int __wrap_pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    if (FAIL_NOW(FAIL_KEY)) return EAGAIN;
    return __real_pthread_key_create(key, destructor);
}

int __real_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value) {
    if (FAIL_NOW(FAIL_KEY)) return ENOMEM;
    return __real_pthread_setspecific(key, value);
}

/* The error that a call without a function of its own can have; 0: it is never failed. */
static inline int fail_errno(long number, long second) {
    switch (number) {
    case SYS_futex:
        return (second & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? EINTR : 0;
    case SYS_membarrier:
        return second == 0 ? ENOSYS : 0; /* the query; `second` is the command there */
    case SYS_openat2:
        return ENOSYS;
    case SYS_process_vm_readv:
        return EPERM;
    case SYS_pipe2:
    case SYS_openat:
        return EMFILE;
    case SYS_getdents64:
        return ENOENT;
    case SYS_read:
        return EINTR;
    case SYS_rt_tgsigqueueinfo:
        return EAGAIN;
    case SYS_pidfd_open:
    case SYS_fcntl:
        return EMFILE;
    case SYS_close_range:
    case 452: /* fchmodat2 */
        return ENOSYS;
    case SYS_pidfd_send_signal:
    case SYS_setpgid:
    case SYS_setsid:
    case SYS_prlimit64:
        return EPERM;
    case SYS_chdir:
    case SYS_execve:
        return EACCES;
    case SYS_dup3:
        return EBUSY;
    case SYS_io_uring_setup:
        return EPERM;
    case SYS_io_uring_enter:
        return EAGAIN;
    case SYS_io_uring_register:
        return EINVAL;
    default:
        return 0;
    }
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(args, long);
    va_end(args);
    int (*at_call)(long) = atomic_load(&fail.at_call), error = at_call != NULL ? at_call(number) : 0;
    if (error != 0) {
        cc__errno_set(error);
        return -1;
    }
    error = fail_errno(number, number == SYS_membarrier ? a[0] : a[1]);
    if (error != 0 && FAIL_NOW(FAIL_CALL)) {
        cc__errno_set(error);
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
#else
enum { FAIL_KNOWS_ALL = 0 };
#endif

/* Call it first in a case that fails signals, files, keys or bare calls. */
__attribute__((unused)) static void fail_needs_all(void) {
    if (!FAIL_KNOWS_ALL) SKIP("the race detector's own calls would fail with the library's");
}

#endif
