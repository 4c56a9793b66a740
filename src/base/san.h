/* san.h - annotations for the sanitizers and Valgrind: every stack, every switch.
 *
 * No code in ordinary builds. The calls around a switch must be in the function that switches.
 *
 * TSan: a switch is made without synchronisation (flag 1); otherwise every switch would order the two fibers
 * and hide the user's races.
 */
#ifndef CC_BASE_SAN_H
#define CC_BASE_SAN_H

#include "base/attr.h"

#ifdef CC_TSAN
#include <sanitizer/tsan_interface.h>
void __tsan_release(void *addr);
void __tsan_acquire(void *addr);
void __tsan_write_range(void *addr, long size);
#endif
#ifdef CC_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
void __asan_handle_no_return(void);
void __asan_report_store_n(void *addr, long size);
#ifdef CC_VARIANT /* the program may use only the leak sanitizer */
#pragma weak __asan_handle_no_return
#pragma weak __asan_poison_memory_region
#pragma weak __asan_region_is_poisoned
#pragma weak __asan_report_store_n
#pragma weak __asan_unpoison_memory_region
#pragma weak __lsan_register_root_region
#pragma weak __lsan_unregister_root_region
#pragma weak __sanitizer_finish_switch_fiber
#pragma weak __sanitizer_start_switch_fiber
#define cc__san_has(fn) ((fn) != NULL)
#else
#define cc__san_has(fn) true
#endif
#endif

/* The library contains a numbered copy of itself for each sanitizer (cmake/dispatch.c): whether the program uses this
 * copy. */
#ifdef CC_VARIANT
int cc__variant(void);
#define cc__san_chosen() (cc__variant() == CC_VARIANT)
#else
#define cc__san_chosen() true
#endif

/* CC_AT_LOAD(fn) { ... }: called when the library is loaded, in the copy that the program uses. A constructor of
 * another copy would call a sanitizer that is not loaded. */
#define CC_AT_LOAD(fn)                                                         \
    static void fn(void);                                                      \
    __attribute__((constructor)) static CC_NO_TSAN void fn##_if_chosen(void) { \
        if (cc__san_chosen()) fn();                                            \
    }                                                                          \
    static CC_NOINLINE void fn(void)

/* What the tools know about one stack that can be switched to. */
struct san {
#ifdef CC_TSAN
    void *fiber;
#endif
#ifdef CC_ASAN
    void *fake_stack;
    const void *bottom;
    size_t size;
#endif
#if !defined(CC_TSAN) && !defined(CC_ASAN)
    char unused[1];
#endif
};

#ifdef CC_TSAN
/* Written in one fiber's context and read in another's, on one thread: hidden from the detector. */
void *cc__san_fiber_get(const struct san *san);
void cc__san_fiber_set(struct san *san, void *fiber);
/* A context that is ordered after nothing: created in one that has never run. */
void *cc__san_fiber_new(void);
#endif

/* The name, in -fsanitize, of a sanitizer that the program is built with and this library is not made for; or NULL. */
const char *cc__san_missing(void);

/* The calling thread's own stack; and its end, when the thread runs no more fibers. */
void cc__san_native(struct san *san);
void cc__san_native_end(void);
/* Before _exit, on any stack. */
void cc__san_exit(void);

/* A fiber is about to run on a new stack / has left its stack for the last time. */
CC_INLINE void cc__san_begin(struct san *san, const void *bottom, size_t size) {
    (void)san, (void)bottom, (void)size;
#ifdef CC_TSAN
    cc__san_fiber_set(san, cc__san_fiber_new());
#endif
#ifdef CC_ASAN
    san->fake_stack = NULL;
    san->bottom = bottom;
    san->size = size;
#endif
}
CC_INLINE void cc__san_end(struct san *san) {
    (void)san;
#ifdef CC_TSAN
    __tsan_destroy_fiber(cc__san_fiber_get(san));
#endif
}

/* Directly before the switch; from == NULL: the stack left behind will never run again. */
CC_INLINE void cc__san_leave(struct san *from, struct san *to) {
    (void)from, (void)to;
#ifdef CC_ASAN
    if (cc__san_has(__sanitizer_start_switch_fiber))
        __sanitizer_start_switch_fiber(from ? &from->fake_stack : NULL, to->bottom, to->size);
#endif
#ifdef CC_TSAN
    __tsan_switch_to_fiber(cc__san_fiber_get(to), 1);
#endif
}

/* Directly after the switch, on the stack that `self` describes. */
CC_INLINE void cc__san_arrive(struct san *self) {
    (void)self;
#ifdef CC_ASAN
    if (cc__san_has(__sanitizer_finish_switch_fiber)) __sanitizer_finish_switch_fiber(self->fake_stack, NULL, NULL);
#endif
}

/* An OS thread runs one function on another stack: before the switch there, after it, before the switch back, after it.
 * To the race detector this is a separate context, ordered as the thread is. */
CC_INLINE void cc__san_call(struct san *caller, struct san *callee, const void *bottom, size_t size) {
    (void)caller, (void)callee, (void)bottom, (void)size;
#ifdef CC_ASAN
    if (cc__san_has(__sanitizer_start_switch_fiber)) __sanitizer_start_switch_fiber(&caller->fake_stack, bottom, size);
#endif
#ifdef CC_TSAN
    caller->fiber = __tsan_get_current_fiber();
    callee->fiber = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(callee->fiber, 0);
#endif
}
CC_INLINE void cc__san_called(struct san *caller) {
    (void)caller;
#ifdef CC_ASAN
    if (cc__san_has(__sanitizer_finish_switch_fiber))
        __sanitizer_finish_switch_fiber(NULL, &caller->bottom, &caller->size);
#endif
}
CC_INLINE void cc__san_return(struct san *caller) {
    (void)caller;
#ifdef CC_ASAN
    if (cc__san_has(__sanitizer_start_switch_fiber)) __sanitizer_start_switch_fiber(NULL, caller->bottom, caller->size);
#endif
#ifdef CC_TSAN
    __tsan_switch_to_fiber(caller->fiber, 0);
#endif
}
CC_INLINE void cc__san_returned(struct san *caller, struct san *callee) {
    (void)caller, (void)callee;
#ifdef CC_ASAN
    if (cc__san_has(__sanitizer_finish_switch_fiber)) __sanitizer_finish_switch_fiber(caller->fake_stack, NULL, NULL);
#endif
#ifdef CC_TSAN
    __tsan_destroy_fiber(callee->fiber);
#endif
}

/* The frames below the caller's scope will never return: unpoisons their memory. */
CC_INLINE void cc__san_abandon(void) {
#ifdef CC_ASAN
    if (cc__san_has(__asan_handle_no_return)) __asan_handle_no_return();
#endif
}

/* A release by the calling context on `addr`, although another context will do the store. */
CC_INLINE void cc__san_release(void *addr) {
    (void)addr;
#ifdef CC_TSAN
    __tsan_release(addr);
#endif
}
CC_INLINE void cc__san_acquire(void *addr) {
    (void)addr;
#ifdef CC_TSAN
    __tsan_acquire(addr);
#endif
}

/* Copies from the stack of the fiber that just left this thread: ordered by being one thread, which the race
 * detector does not see. */
#ifdef CC_TSAN
void cc__san_copy(void *to, const void *from, size_t size);
#else
CC_INLINE void cc__san_copy(void *to, const void *from, size_t size) {
    __builtin_memcpy(to, from, size);
}
#endif

/* A range that holds stacks or workers is mapped and unmapped (LeakSanitizer searches it for pointers). */
void cc__san_range_map(const void *bottom, size_t size);
void cc__san_range_unmap(const void *bottom, size_t size);

/* One stack is mapped and unmapped (so that Valgrind can tell a switch from a deep call). Returns a handle for the
 * second call. */
unsigned cc__san_stack_map(const void *bottom, size_t size);
void cc__san_stack_unmap(unsigned handle);

/* A stack returns to the pool: unpoisons what its last fiber poisoned. */
CC_INLINE void cc__san_stack_clean(const void *bottom, size_t size) {
    (void)bottom, (void)size;
#ifdef CC_ASAN
    if (cc__san_has(__asan_unpoison_memory_region)) __asan_unpoison_memory_region(bottom, size);
#endif
}

/* All frames of the calling thread's own stack are gone but those of the caller. */
CC_INLINE void cc__san_native_clean(const struct san *native) {
    (void)native;
#ifdef CC_ASAN
    cc__san_stack_clean(native->bottom, native->size);
#endif
}

/* Forbids access to these bytes, or allows it again. */
CC_INLINE void cc__san_forbid(const void *bytes, size_t size, bool forbidden) {
    (void)bytes, (void)size, (void)forbidden;
#ifdef CC_ASAN
    if (!cc__san_has(__asan_poison_memory_region)) return;
    if (forbidden)
        __asan_poison_memory_region(bytes, size);
    else
        __asan_unpoison_memory_region(bytes, size);
#endif
}

/* The kernel has filled the first `size` bytes of a vector, by a call that the tools do not intercept. */
struct iovec;
#if defined(CC_ASAN) || defined(CC_TSAN)
void cc__san_written(const struct iovec *parts, size_t size);
#else
CC_INLINE void cc__san_written(const struct iovec *parts, size_t size) {
    (void)parts, (void)size;
}
#endif

/* What follows looks like a write to memory but is none (a mapping). */
void cc__san_ignore_writes(bool ignore);
/* Also ignores reads, until the call with false: for code that formats text in frames that several fibers use on one
 * worker's stack. */
void cc__san_ignore(bool ignore);

/* A worker's own stack, where no fiber runs, is used by several contexts in turn, without an order between them. Our
 * tests check the library's own accesses there; in a user's program they are ignored, or a compiler that instruments
 * other locals than the one we test with would report them. */
CC_INLINE void cc__san_ignore_native(bool ignore) {
    (void)ignore;
#if defined(CC_TSAN) && defined(CC_VARIANT)
    cc__san_ignore(ignore);
#endif
}

/* A separate context for what a worker does on behalf of one fiber: otherwise all fibers that ended here would seem
 * ordered. */
CC_INLINE void *cc__san_apart_begin(void) {
#ifdef CC_TSAN
    void *self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(cc__san_fiber_new(), 1);
    cc__san_ignore_native(true);
    return self;
#else
    return NULL;
#endif
}
CC_INLINE void cc__san_apart_end(void *self) {
    (void)self;
#ifdef CC_TSAN
    void *apart = __tsan_get_current_fiber();
    cc__san_ignore_native(false);
    __tsan_switch_to_fiber(self, 1);
    __tsan_destroy_fiber(apart);
#endif
}

/* Turns off Valgrind's check that memory passed to a system call is valid: for the word of a futex wake, of which the
 * kernel uses only the address; and for memory that is probed (safe_copy.h). */
void cc__san_mute(bool mute);

/* Marks these bytes as initialised for Valgrind: a word of a stack that was never written and is only inspected. */
void cc__san_define(void *from, size_t size);

bool cc__san_on_valgrind(void);

#endif
