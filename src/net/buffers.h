/* buffers.h - a shared pool of buffers of one size; larger ones are allocated.
 *
 * At most BUFFERS_KEPT unused buffers are kept; the others are freed.
 */
#ifndef CC_NET_BUFFERS_H
#define CC_NET_BUFFERS_H

#include <stddef.h>

enum { BUFFER_SIZE = 16 * 1024, BUFFERS_KEPT = 64 };

/* NULL: no memory. size: BUFFER_SIZE, or more: then it does not come from the pool. Not zeroed. */
void *cc__buffer_take(size_t size);
void cc__buffer_give(void *buffer, size_t size);

/* In a forked child: resets the lock, whose holder no longer exists. */
void cc__buffers_forget(void);

#endif
