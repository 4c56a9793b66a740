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
    int *result;  /* CC_NURSERY's */
    bool entered; /* the block's fiber is in the scope */
    bool left;    /* the block is left as it should be, not by a panic */
    /* NULL, or called for each child that has never run, because it found no stack, with its argument: what that holds
     * is to be given back. On a worker, not in a fiber: it does not wait. Set before the first child is started. */
    void (*unstarted)(void *arg);
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
    uint64_t exiting;                  /* who runs them (cc__nursery_run_exits); 0: nobody */
    struct chunk *chunks;
    bool selected; /* a select has waited, or is about to: `end` is kept */
    /* Under `lock`, which a select takes among others in the order of their addresses: so no other lock is taken inside
     * it. Whoever changes the number of children takes it inside the scope's. */
    struct {
        struct lock lock;
        bool reached;     /* there is no child */
        struct link arms; /* of selects that wait for that */
    } end;
};

/* Under the scope's lock: there are children again; or the last one is gone, and claims the selects that wait. */
void cc__nursery_not_ended_locked(CCNursery *n);
void cc__nursery_ended_locked(CCNursery *n, struct wakes *wakes);

/* Whether the caller is a child of it, or below: one of those that it would wait for. */
bool cc__nursery_is_child(const CCNursery *n);

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
