/* blocking.h - blocking calls, and the thread pools that make them. README.md has the protocol. */
#ifndef CC_BLOCKING_BLOCKING_H
#define CC_BLOCKING_BLOCKING_H

#include "wait/wait.h"

#include <ccc/cc_blocking.h>

enum call_state { CALL_QUEUED, CALL_RUNS, CALL_DONE };

/* One call. On the caller's stack, or allocated if it may be abandoned. The pool's lock guards all but fn and arg. */
struct blocking_call {
    struct link link; /* QUEUED: the pool's queue; RUNS: its list of running calls */
    CCTaskFn fn;
    void *arg;
    void (*cleanup)(void *arg, void *result);
    struct waiter *waiter; /* NULL: no waiter at this moment */
    enum call_state state;
    bool abandoned; /* the thread that makes the call frees it */
    int status;
    int tid;        /* RUNS: on which thread */
    uint64_t since; /* when it entered its state */
    void *result;
};

/* ---- for rt ---- */

/* Sets the limits of the pools from now on. */
void cc__blocking_configure(unsigned max_threads, uint64_t idle_ns);
/* Waits until no call is in progress, or until that time. When all tasks have ended, only abandoned calls are left. */
bool cc__blocking_drain(uint64_t until);
uint32_t cc__blocking_calls(void);
/* Ends all threads. No call is in progress or follows. */
void cc__blocking_stop(void);
/* The program exits: joins threads that have ended, which the race detector would report otherwise. The others stay. */
void cc__blocking_exit(void);
/* In a forked child: drops all threads. */
void cc__blocking_forget(void);

/* ---- for diagnostics ---- */

/* True: that thread is idle and can wake no fiber. */
bool cc__blocking_is_idle(int tid);

struct blocking_seen {
    CCTaskFn fn;
    bool abandoned;
    int tid;
    uint64_t since;
};
/* Lists the running calls; returns how many there are, which may be more than `max`. */
unsigned cc__blocking_list(struct blocking_seen *seen, unsigned max);

#endif
