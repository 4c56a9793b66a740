/* mem.h - the one door to malloc. */
#ifndef CC_BASE_MEM_H
#define CC_BASE_MEM_H

#include <stddef.h>

/* Zeroed memory, aligned to a cache line; NULL when there is none. */
void *cc__mem_alloc(size_t size);
void cc__mem_free(void *p);

#endif
