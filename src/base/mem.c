/* mem.c - the one door to malloc, so that a test can fail any allocation. */
#include "base/mem.h"

#include "base/attr.h"

#include <stdlib.h>
#include <string.h>

/* The race detector does not see `p`: a worker's stack is also used on behalf of fibers that have ended, each of which
 * is a thread to it. */
CC_NOINLINE CC_NO_TSAN void *cc__mem_alloc_stack(size_t size) {
    void *p = NULL;
    return posix_memalign(&p, CC_LINE, size) == 0 ? p : NULL;
}

void *cc__mem_alloc(size_t size) {
    void *p = cc__mem_alloc_stack(size);
    if (p != NULL) memset(p, 0, size);
    return p;
}

CC_NOINLINE void *cc__mem_alloc_small(size_t size) {
    void *p = malloc(size);
    __asm__("" : "+r"(p)); /* else compilers make calloc of it, which has nothing at hand */
    if (p != NULL) memset(p, 0, size);
    return p;
}

void cc__mem_free(void *p) {
    free(p);
}
