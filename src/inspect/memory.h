/* memory.h - all of the process's memory in which something may have been written. */
#ifndef CC_INSPECT_MEMORY_H
#define CC_INSPECT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Calls fn for each range of pages that hold something, in order of addresses: all that is there, or swapped out, of
 * what can be written; and of what can only be read, what is the process's own. Some of it may turn out not to be
 * there. False: it could not be done, or there is more than `limit` bytes of it. Any thread; keeps errno. */
bool cc__memory_each(uint64_t limit, void (*fn)(void *arg, uintptr_t low, uintptr_t high), void *arg);

#endif
