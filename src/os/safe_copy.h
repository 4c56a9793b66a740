/* safe_copy.h - copies memory that may go away at any moment.
 *
 * A dump follows pointers that their owners are free to change, into memory that may be unmapped while it looks. The
 * kernel does the copying, so that a bad address is an answer and no fault, and so that no sanitizer sees a race.
 */
#ifndef CC_OS_SAFE_COPY_H
#define CC_OS_SAFE_COPY_H

#include <stdbool.h>
#include <stddef.h>

/* Copies n bytes. False: not all of it is there; then what `to` holds is undefined. What is written meanwhile may be
 * torn between words. Any thread, signal handlers included; errno is kept. */
bool cc__safe_copy(void *to, const void *from, size_t n);

/* The second way, for systems that refuse the first; tests go it on purpose. */
bool cc__safe_copy_by_pipe(void *to, const void *from, size_t n);

#endif
