/* fail.h - makes the n-th call to the system fail, once or from then on, and keeps account of what is held.
 *
 * The linker hands these calls of the library (and of the test itself) to the functions below; what the C
 * library does inside is not touched. A test arms, does one thing, disarms, and goes on with n + 1 until a run
 * has no failure.
 */
#ifndef CCC_TESTS_FAULT_FAIL_H
#define CCC_TESTS_FAULT_FAIL_H

#include "harness.h"

#include "plat/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>

/* The kinds of calls that can be failed. */
enum { FAIL_MEMORY = 1, FAIL_MAP = 2, FAIL_ADVICE = 4, FAIL_THREAD = 8, FAIL_PIPE = 16, FAIL_ALL = 31 };

static struct {
    _Atomic long left; /* how many more calls succeed; negative: not armed */
    _Atomic bool on;   /* those after the first failure fail too */
    _Atomic int kinds;
    _Atomic long failed;
    _Atomic long blocks, mapped; /* what the program holds: blocks of memory, bytes of mappings */
} fail = {.left = -1};

/* First thing in a case: what the harness holds does not count. */
static inline void fail_begin(void) {
    atomic_store(&fail.blocks, 0);
    atomic_store(&fail.mapped, 0);
}

/* Fails the n-th call of these kinds (1 is the next one); for_ever: all that follow as well. */
static inline void fail_arm(long n, int kinds, bool for_ever) {
    atomic_store(&fail.failed, 0);
    atomic_store(&fail.kinds, kinds);
    atomic_store(&fail.on, for_ever);
    atomic_store(&fail.left, n - 1);
}

/* Ends it; returns how many calls have failed. */
static inline long fail_disarm(void) {
    atomic_store(&fail.left, -1);
    return atomic_load(&fail.failed);
}

static inline bool fail_now(int kind) {
    if (!(atomic_load(&fail.kinds) & kind)) return false;
    long left = atomic_load(&fail.left);
    for (;;) {
        if (left < 0) return false;
        if (left == 0 && atomic_load(&fail.on)) break;
        if (!atomic_compare_exchange_weak(&fail.left, &left, left - 1)) continue;
        if (left > 0) return false;
        break;
    }
    atomic_fetch_add(&fail.failed, 1);
    return true;
}

int __real_posix_memalign(void **p, size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size) {
    if (fail_now(FAIL_MEMORY)) return ENOMEM;
    int rc = __real_posix_memalign(p, align, size);
    if (rc == 0) atomic_fetch_add(&fail.blocks, 1);
    return rc;
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
    if (fail_now(FAIL_MAP)) {
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
    atomic_fetch_sub(&fail.mapped, (long)size);
    return __real_munmap(p, size);
}

int __real_madvise(void *p, size_t size, int advice);
int __wrap_madvise(void *p, size_t size, int advice);
int __wrap_madvise(void *p, size_t size, int advice) {
    if (fail_now(FAIL_ADVICE)) {
        cc__errno_set(ENOMEM);
        return -1;
    }
    return __real_madvise(p, size, advice);
}

int __real_mprotect(void *p, size_t size, int prot);
int __wrap_mprotect(void *p, size_t size, int prot);
int __wrap_mprotect(void *p, size_t size, int prot) {
    if (fail_now(FAIL_ADVICE)) {
        cc__errno_set(ENOMEM);
        return -1;
    }
    return __real_mprotect(p, size, prot);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg) {
    if (fail_now(FAIL_THREAD)) return EAGAIN;
    return __real_pthread_create(thread, attr, fn, arg);
}

int __real_pipe(int fds[2]);
int __wrap_pipe(int fds[2]);
int __wrap_pipe(int fds[2]) {
    if (fail_now(FAIL_PIPE)) {
        cc__errno_set(EMFILE);
        return -1;
    }
    return __real_pipe(fds);
}

#endif
