/* mem.h - the only file that uses malloc. */
#ifndef CC_BASE_MEM_H
#define CC_BASE_MEM_H

#include <stddef.h>

/* Zeroed memory, aligned to a cache line; NULL: no memory. */
void *cc__mem_alloc(size_t size);
/* The same for small short-lived objects, aligned to 16 bytes as by malloc, which caches such freed blocks but not
 * those with a larger alignment (measured: 700 instructions and the heap's lock for a block of 600 bytes). */
void *cc__mem_alloc_small(size_t size);
/* For a stack or a ring: not zeroed, so that unused parts are never touched. */
void *cc__mem_alloc_stack(size_t size);
void cc__mem_free(void *p);
/* Frees memory that a function of the C or C++ library has allocated. */
void cc__mem_free_libc(void *p);

#endif
