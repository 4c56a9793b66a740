/* safe_copy.h - copies memory that may be unmapped at any moment.
 *
 * A dump follows pointers that their owners may change, into memory that may be unmapped meanwhile. The kernel does the
 * copying, so that a bad address is an error and not a fault, and no sanitizer sees a race.
 */
#ifndef CC_OS_SAFE_COPY_H
#define CC_OS_SAFE_COPY_H

#include <stdbool.h>
#include <stddef.h>

/* Copies n bytes. False: not all of them are mapped; then the contents of `to` are undefined. Concurrent writes may be
 * torn between words. Any thread, signal handlers included; errno is kept. */
bool cc__safe_copy(void *to, const void *from, size_t n);

/* The fallback for systems that refuse the first way; tests call it directly. */
bool cc__safe_copy_by_pipe(void *to, const void *from, size_t n);

#endif
