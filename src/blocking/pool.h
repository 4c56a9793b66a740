/* pool.h - a pool: threads, a queue of calls, and the calls that run. */
#ifndef CC_BLOCKING_POOL_H
#define CC_BLOCKING_POOL_H

#include "blocking/blocking.h"

#include <pthread.h>

struct CCPool {
    struct lock lock; /* of all that follows, and of the calls */
    struct link queue, running;
    struct link idle;         /* of struct pool_thread; LIFO, so that the others time out */
    _Atomic uint32_t threads; /* started, or about to be; futex of the caller that ends them */
    uint32_t calls;           /* that are queued or occupy a thread (BLOCK-4) */
    unsigned max;
    bool closing; /* threads do not become idle */
    bool ended;   /* `last` is a thread that has ended and is not joined yet */
    pthread_t last;
    struct CCPool *_Atomic next; /* all pools that programs have created */
};

/* Resolves the pool that a program passes. */
CCPool *cc__pool_resolve(CCPool *pool);

/* Enqueues a call and ensures a thread for it. False: none could be started, and the call has failed or waits for those
 * that are busy. The lock is not held. */
bool cc__pool_submit(CCPool *pool, struct blocking_call *call);
/* Tries again, for a call that is still QUEUED. True: a thread was started. The lock is not held. */
bool cc__pool_submit_again(CCPool *pool);
/* Removes a QUEUED call, which is never made. */
void cc__pool_withdraw_locked(CCPool *pool, struct blocking_call *call);

/* Whether the calling thread belongs to a pool. */
bool cc__pool_is_own(void);

/* Calls fn(arg): 0, or ENOTRECOVERABLE after a panic, which has been reported. */
int cc__pool_call(CCTaskFn fn, void *arg, void **result);

#endif
