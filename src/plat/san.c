/* san.c - the parts of the annotations that are not on a hot path. */
#include "plat/san.h"

#include <pthread.h>

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define HAVE_VALGRIND_H 1
#endif
#endif

void cc__san_native(struct san *san) {
    (void)san;
#ifdef CC_TSAN
    san->fiber = __tsan_get_current_fiber();
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

unsigned cc__san_stack_map(const void *bottom, const void *top) {
    (void)bottom, (void)top;
#ifdef CC_ASAN
    __lsan_register_root_region(bottom, (size_t)((const char *)top - (const char *)bottom));
#endif
#ifdef HAVE_VALGRIND_H
    return VALGRIND_STACK_REGISTER(bottom, top);
#else
    return 0;
#endif
}

void cc__san_stack_unmap(unsigned handle, const void *bottom, const void *top) {
    (void)handle, (void)bottom, (void)top;
#ifdef CC_ASAN
    __lsan_unregister_root_region(bottom, (size_t)((const char *)top - (const char *)bottom));
#endif
#ifdef HAVE_VALGRIND_H
    VALGRIND_STACK_DEREGISTER(handle);
#endif
}

bool cc__san_on_valgrind(void) {
#ifdef HAVE_VALGRIND_H
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}
