/* mem.c - all allocations, so that a test can fail any of them, and a program can provide its own allocator. */
#include "base/mem.h"

#include "base/attr.h"
#include "base/error.h"

#include <ccc/cc_sched.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Set before the first allocation and not changed later: memory is freed by the allocator that provided it. */
static CCAllocator own;
static _Atomic bool used;

int cc_allocator_set(const CCAllocator *allocator) {
    static const CCAllocator none;
    if (allocator == NULL) allocator = &none;
    for (size_t i = 0; i < sizeof none.reserved / sizeof none.reserved[0]; i++)
        if (allocator->reserved[i] != 0) return EINVAL;
    if ((allocator->alloc == NULL) != (allocator->free == NULL)) return EINVAL;
    if (used) return EBUSY;
    own = *allocator;
    return 0;
}

static bool is_own(void) {
    if (unlikely(!used)) used = true;
    return unlikely(own.alloc != NULL);
}

/* The program's functions may change errno at any time, those of the C library when they fail. */
static void *own_alloc(size_t size, size_t align) {
    CC_KEEP_ERRNO;
    return own.alloc(size, align, own.context);
}

static CC_COLD void *none(int kept_errno) {
    cc__errno_set(kept_errno);
    return NULL;
}

/* `p` is hidden from the race detector: a worker's stack is also used on behalf of fibers that have ended, and each
 * fiber is a thread to it. */
CC_NOINLINE CC_NO_TSAN void *cc__mem_alloc_stack(size_t size) {
    void *p = NULL;
    if (is_own()) return own_alloc(size, CC_LINE);
    int kept = cc__errno_get();
    return posix_memalign(&p, CC_LINE, size) == 0 ? p : none(kept);
}

void *cc__mem_alloc(size_t size) {
    void *p = cc__mem_alloc_stack(size);
    if (p != NULL) memset(p, 0, size);
    return p;
}

CC_NOINLINE void *cc__mem_alloc_small(size_t size) {
    int kept = cc__errno_get();
    void *p = is_own() ? own_alloc(size, 16) : malloc(size);
    __asm__("" : "+r"(p)); /* else compilers turn this into calloc, which does not use the cached free blocks */
    return p != NULL ? memset(p, 0, size) : none(kept);
}

void cc__mem_free(void *p) {
    if (likely(own.free == NULL)) {
        free(p);
    } else if (p != NULL) {
        CC_KEEP_ERRNO;
        own.free(p, own.context);
    }
}

void cc__mem_free_libc(void *p) {
    free(p);
}
