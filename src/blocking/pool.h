/* pool.h - a pool: threads, a queue of calls, and the calls that run. */
#ifndef CC_BLOCKING_POOL_H
#define CC_BLOCKING_POOL_H

#include "blocking/blocking.h"

#include <pthread.h>

struct CCPool {
    struct lock lock; /* of all that follows, and of the calls */
    struct link queue, running;
    struct link idle;         /* of struct pool_thread; the last to become idle first, so that the others end */
    _Atomic uint32_t threads; /* those that have been started, or are about to be; futex of whoever ends them */
    uint32_t calls;           /* that are queued, or keep a thread (BLOCK-4) */
    unsigned max;
    bool closing; /* threads do not become idle */
    bool ended;   /* `last` is a thread that has ended, and has yet to be joined */
    pthread_t last;
    struct CCPool *_Atomic next; /* all pools that programs have created */
};

/* The pool that a program means. */
CCPool *cc__pool_resolve(CCPool *pool);

/* Puts a call into the queue, and sees to a thread for it. The lock is not held. */
void cc__pool_submit(CCPool *pool, struct blocking_call *call);
/* A call that is QUEUED goes, and was never made. */
void cc__pool_withdraw_locked(CCPool *pool, struct blocking_call *call);

/* The calling thread is one of a pool. */
bool cc__pool_is_own(void);

/* Calls fn(arg): 0, or ENOTRECOVERABLE after a panic, which has been reported. */
int cc__pool_call(CCTaskFn fn, void *arg, void **result);

#endif
