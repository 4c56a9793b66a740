/* pool.h - a pool of buffers: a channel that owns them, creates them on demand, and bounds their number.
 *
 * A task that needs a buffer waits until one is returned: this bounds the program's memory and slows down a reader that
 * is faster than the others.
 *
 * BUFFER-1  Every buffer is freed with the pool, wherever it is; so a pipeline that fails need not collect buffers that
 *           are in use. The tasks that use the buffers have ended by then. */
#ifndef CCPIGZ_POOL_H
#define CCPIGZ_POOL_H

#include <ccc/ccc.h>
#include <stdatomic.h>
#include <stddef.h>

struct pool {
    CCChan *free;
    void **made;
    atomic_size_t count;
    size_t capacity;
    void *(*make)(void *context); /* NULL: no memory */
    void (*unmake)(void *item);
    void *context;
};

/* 0, or ENOMEM. */
int pool_open(struct pool *pool, size_t capacity, void *(*make)(void *context), void (*unmake)(void *item),
              void *context, const char *name);
void pool_close(struct pool *pool); /* also one that was never opened, if it is zero */

/* NULL: no memory, or the caller was cancelled. Waits. */
void *pool_take(struct pool *pool);
void pool_give(struct pool *pool, void *item);

#endif
