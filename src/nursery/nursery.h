/* nursery.h - a scope that owns fibers. */
#ifndef CC_NURSERY_NURSERY_H
#define CC_NURSERY_NURSERY_H

#include "nursery/scope.h"

struct failure {
    struct failure *older;
    struct failure *jump; /* skip pointer: any older one is O(log n) steps away; the first: itself */
    size_t index;
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
    struct scope scope; /* first: a child's record holds this address */
    int mode;
    int *result;  /* CC_NURSERY's */
    bool entered; /* the block's fiber is in the scope */
    bool left;    /* the block has ended normally, not by a panic */
    /* NULL, or called with the argument of each child that could not get a stack, to release what that holds. Runs on
     * a worker, not in a fiber: it must not wait. Set before the first child is started. */
    void (*unstarted)(void *arg);
    CCDefer deferred; /* ends the block; its fn is set until that is done */
    char name[CC_FIBER_NAME_MAX];
    /* Under the scope's lock. */
    int code;      /* of the first failure */
    bool reported; /* a caller has been told of the failure */
    size_t failed;
    struct failure *first;             /* NULL if it is not kept */
    struct failure *newest;            /* of those that are kept */
    struct hook *hooks;                /* latest first */
    struct hook *closing, **close_end; /* in order */
    uint64_t exiting;                  /* the caller that runs them (cc__nursery_run_exits), or 0 */
    struct chunk *chunks;
    bool selected; /* a select has prepared an arm: `end` is kept up to date */
    /* A select takes `lock` among others in the order of their addresses, so no other lock is taken inside it. Changes
     * of the number of children take it inside the scope's. */
    struct {
        struct lock lock;
        bool reached;     /* there is no child */
        struct link arms; /* of waiting selects */
    } end;
};

/* Under the scope's lock: after the first child was counted; after the last one has left, which claims the waiting
 * selects. */
void cc__nursery_not_ended_locked(CCNursery *n);
void cc__nursery_ended_locked(CCNursery *n, struct wakes *wakes);

/* Whether the caller is a child of n or below one: waiting for n would then be a deadlock. */
bool cc__nursery_is_child(const CCNursery *n);

/* Records the calling child's failure and cancels its siblings. text may be NULL. False: it is ECANCELED in a cancelled
 * nursery, which is not a failure. */
bool cc__nursery_fail(CCNursery *n, int code, const char *text);
/* The same with the error of another fiber. */
bool cc__nursery_fail_with(CCNursery *n, const CCError *error);
/* Propagates the error of a block without .result to the nearest nursery above `s`, or else around the caller. False:
 * there is none. */
bool cc__nursery_pass_on(const struct scope *s, const CCError *error);

/* Exit hooks and autoclose, each once. */
void cc__nursery_run_exits(CCNursery *n);
/* The arena, the failures, the values. */
void cc__nursery_free_all(CCNursery *n);

#endif
