/* memory.h - all of the process's memory that can be written, as far as it is there. */
#ifndef CC_PLAT_MEMORY_H
#define CC_PLAT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Calls fn for each range of resident pages of private or shared memory that can be written, in order of addresses.
 * False: it could not be done, or there is more than `limit` bytes of it. Any thread; keeps errno. */
bool cc__memory_each(uint64_t limit, void (*fn)(void *arg, uintptr_t low, uintptr_t high), void *arg);

#endif
