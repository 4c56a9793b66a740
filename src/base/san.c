/* san.c - the parts of the annotations that are not on a hot path. */
#include "base/san.h"

#include <pthread.h>
#include <sys/uio.h>
#ifdef CC_TSAN
#include <link.h>
#endif

/* A request to Valgrind writes to the stack, which the race detector would see; the two are never used together. */
#if defined(CC_VALGRIND) && !defined(CC_TSAN)
#include <valgrind/memcheck.h>
#define HAVE_VALGRIND_H 1
#endif

#ifdef CC_TSAN
CC_NOINLINE CC_NO_TSAN void *cc__san_fiber_get(const struct san *san) {
    return san->fiber;
}

CC_NOINLINE CC_NO_TSAN void cc__san_fiber_set(struct san *san, void *fiber) {
    san->fiber = fiber;
}

/* Contexts of this thread: the one on its own stack, and one that has never run. */
static _Thread_local void *native, *blank;

CC_NOINLINE CC_NO_TSAN void *cc__san_fiber_new(void) {
    void *self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(blank, 1);
    void *fiber = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(self, 1);
    return fiber;
}

CC_NOINLINE CC_NO_TSAN void cc__san_copy(void *to, const void *from, size_t size) {
    volatile char *t = to; /* volatile: not turned into a call of memcpy, which is intercepted */
    for (size_t i = 0; i < size; i++) t[i] = ((const volatile char *)from)[i];
}

void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateBenignRaceSized(const char *file, int line, const volatile void *at, size_t size, const char *why);

/* The fibers of a worker use its thread-local variables, including errno, one after the other; to the detector each
 * fiber is a thread, and nothing orders them. Variables of modules that are loaded later are not covered. */
static int share_module(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    for (int i = 0; info->dlpi_tls_data != NULL && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            AnnotateBenignRaceSized(__FILE__, __LINE__, info->dlpi_tls_data, info->dlpi_phdr[i].p_memsz,
                                    "thread-local variables, which the fibers of a worker share");
    return arg != NULL;
}

#endif

void cc__san_native(struct san *san) {
    (void)san;
#ifdef CC_TSAN
    (void)dl_iterate_phdr(share_module, NULL);
    native = __tsan_get_current_fiber();
    cc__san_fiber_set(san, native);
    if (blank == NULL) blank = __tsan_create_fiber(0);
    cc__san_ignore_native(true);
#endif
#ifdef CC_ASAN
    pthread_attr_t attr;
    void *bottom = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &bottom, &size);
        pthread_attr_destroy(&attr);
    }
    san->fake_stack = NULL;
    san->bottom = bottom;
    san->size = size;
#endif
}

void cc__san_native_end(void) {
#ifdef CC_TSAN
    cc__san_ignore_native(false);
    if (blank != NULL) __tsan_destroy_fiber(blank);
    native = blank = NULL;
#endif
}

void cc__san_exit(void) {
#ifdef CC_TSAN
    if (native != NULL && __tsan_get_current_fiber() == native) cc__san_ignore_native(false);
#endif
}

void cc__san_range_map(const void *bottom, size_t size) {
    (void)bottom, (void)size;
#ifdef CC_ASAN
    if (cc__san_has(__lsan_register_root_region)) __lsan_register_root_region(bottom, size);
#endif
}

void cc__san_range_unmap(const void *bottom, size_t size) {
    (void)bottom, (void)size;
#ifdef CC_ASAN
    if (cc__san_has(__lsan_unregister_root_region)) __lsan_unregister_root_region(bottom, size);
#endif
}

#if defined(CC_ASAN) || defined(CC_TSAN)
static void check_write(void *at, size_t size) {
#ifdef CC_TSAN
    __tsan_write_range(at, (long)size);
#endif
#ifdef CC_ASAN
    void *bad = cc__san_has(__asan_region_is_poisoned) ? __asan_region_is_poisoned(at, size) : NULL;
    if (bad != NULL) __asan_report_store_n(bad, 1);
#endif
}

void cc__san_written(const struct iovec *parts, size_t size) {
    for (; size > 0; parts++) {
        size_t n = parts->iov_len < size ? parts->iov_len : size;
        check_write(parts->iov_base, n);
        size -= n;
    }
}
#endif

void cc__san_ignore_writes(bool ignore) {
    (void)ignore;
#ifdef CC_TSAN
    (ignore ? AnnotateIgnoreWritesBegin : AnnotateIgnoreWritesEnd)(__FILE__, __LINE__);
#endif
}

void cc__san_ignore(bool ignore) {
    cc__san_ignore_writes(ignore);
#ifdef CC_TSAN
    (ignore ? AnnotateIgnoreReadsBegin : AnnotateIgnoreReadsEnd)(__FILE__, __LINE__);
#endif
}

unsigned cc__san_stack_map(const void *bottom, size_t size) {
    (void)bottom, (void)size;
#ifdef HAVE_VALGRIND_H
    return VALGRIND_STACK_REGISTER(bottom, (const char *)bottom + size);
#else
    return 0;
#endif
}

void cc__san_stack_unmap(unsigned handle) {
    (void)handle;
#ifdef HAVE_VALGRIND_H
    VALGRIND_STACK_DEREGISTER(handle);
#endif
}

void cc__san_mute(bool mute) {
    (void)mute;
#ifdef HAVE_VALGRIND_H
    if (mute)
        VALGRIND_DISABLE_ERROR_REPORTING;
    else
        VALGRIND_ENABLE_ERROR_REPORTING;
#endif
}

void cc__san_define(void *from, size_t size) {
    (void)from, (void)size;
#ifdef HAVE_VALGRIND_H
    (void)VALGRIND_MAKE_MEM_DEFINED(from, size);
#endif
}

bool cc__san_on_valgrind(void) {
#ifdef HAVE_VALGRIND_H
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}

#if defined(CC_VARIANT) || defined(CC_ASAN) || defined(CC_TSAN)
const char *cc__san_missing(void) {
    return NULL;
}
#else
/* As in cmake/dispatch.c. */
__attribute__((weak)) void __tsan_init(void);
__attribute__((weak)) void __asan_init(void);
__attribute__((weak)) void __lsan_register_root_region(const void *p, unsigned long size);

const char *cc__san_missing(void) {
    return __tsan_init != NULL ? "thread"
           : __asan_init != NULL ? "address"
           : __lsan_register_root_region != NULL ? "leak"
                                                 : NULL;
}
#endif
