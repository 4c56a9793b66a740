/* buffers.h - a common pool of buffers of one size, and larger ones of their own.
 *
 * At most BUFFERS_KEPT that nobody uses are kept; the others go back to the heap.
 */
#ifndef CC_NET_BUFFERS_H
#define CC_NET_BUFFERS_H

#include <stddef.h>

enum { BUFFER_SIZE = 16 * 1024, BUFFERS_KEPT = 64 };

/* NULL: no memory. size: BUFFER_SIZE, or more: then it is not one of the pool's. Not zeroed. */
void *cc__buffer_take(size_t size);
void cc__buffer_give(void *buffer, size_t size);

/* In a forked child: whoever held the lock is gone. */
void cc__buffers_forget(void);

#endif
