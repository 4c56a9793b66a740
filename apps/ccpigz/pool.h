/* pool.h - buffers that go round: a channel that owns them, makes them as they are needed, and never more than so many.
 *
 * Whoever waits for a buffer waits until one comes back: this is what bounds the program's memory and what holds a
 * reader back that is faster than the others.
 *
 * BUFFER-1  Every buffer that was made is freed with the pool, wherever it was lost on the way; so a pipeline that
 *           fails
 *         need not collect what is under way. The tasks that use the buffers have ended by then.
 */
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
