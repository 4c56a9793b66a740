/* nursery.h - a scope that owns fibers. */
#ifndef CC_NURSERY_NURSERY_H
#define CC_NURSERY_NURSERY_H

#include "nursery/scope.h"

struct failure {
    struct failure *next;
    CCError error;
};

struct hook {
    struct hook *next;
    void (*fn)(void *arg);
    void *arg;
    CCChan *ch; /* autoclose */
};

struct chunk {
    struct chunk *next;
    size_t size, used;
    _Alignas(max_align_t) unsigned char bytes[];
};

struct CCNursery {
    struct scope scope; /* first: children know it by this address */
    int mode;
    int *result;      /* CC_NURSERY's */
    bool entered;     /* the block's fiber is in the scope */
    bool left;        /* the block is left as it should be, not by a panic */
    CCDefer deferred; /* else a panic ends it; its function is there as long as the block has to be ended */
    char name[CC_FIBER_NAME_MAX];
    /* Under the scope's lock. */
    int code;      /* the first failure's */
    bool reported; /* and somebody has asked for it */
    uint32_t kept;
    size_t failed;
    struct failure *failures, **last;
    struct hook *hooks;                /* the latest first */
    struct hook *closing, **close_end; /* in order */
    struct chunk *chunks;
};

/* The failure of a child, by the child: recorded, and the siblings are cancelled. text may be NULL. False: it is the
 * echo of a cancellation. */
bool cc__nursery_fail(CCNursery *n, int code, const char *text);
/* The same with an error that somebody else has had. */
bool cc__nursery_fail_with(CCNursery *n, const CCError *error);
/* A block without .result has ended with that error: the nearest nursery above `s` (or, without one, around the caller)
 * fails with it. False: there is none. */
bool cc__nursery_pass_on(const struct scope *s, const CCError *error);

/* Exit hooks and autoclose; once. */
void cc__nursery_run_exits(CCNursery *n);
/* The arena, the failures, what the hooks left. */
void cc__nursery_free_all(CCNursery *n);

#endif
