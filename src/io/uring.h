/* uring.h - calls on files that the kernel executes while the fiber waits: a ring for each worker that needs one.
 *
 * URING-1  Only fibers that run on a ring's worker submit to it, and they do not switch meanwhile: submission needs no
 *          lock. Any thread may take completions, under the ring's lock.
 * URING-2  A submitted call is waited for: neither a cancellation nor a shutdown ends that wait. So the memory that the
 *          kernel uses, and the call itself on the fiber's stack, stay valid until the completion was taken.
 * URING-3  No more calls are in flight than the ring has room for completions: none is dropped.
 * URING-4  A thread that fetches a ring's event takes completions after that, whether there seem to be waiters or not:
 *          the fiber may be about to wait, and then finds its call done, under the lock. A worker also checks whenever
 *          it polls while fibers wait, and when the system has interrupted its sleep.
 */
#ifndef CC_IO_URING_H
#define CC_IO_URING_H

#include "os/uring.h"
#include "wait/wait.h"

/* One submitted call. */
struct uring_wait {
    struct uring_call call;
    struct waiter *waiter; /* NULL: no fiber waits for it now */
    bool done;
    int32_t result;
};

/* Executes the call and waits for it: its result or -errno. -EAGAIN: it was not executed, and the caller has to use
 * another way. Any context; only a fiber gets something other than -EAGAIN. */
long cc__uring_call(const struct uring_call *call);

/* Whether a result means that the ring, or a thread that has ended meanwhile, could not execute the call, rather than
 * an error of the file. */
bool cc__uring_is_refusal(enum uring_kind kind, long result);

/* The number of waiters. */
extern _Atomic uint32_t cc__uring_waiting;

/* ---- for the driver ---- */

/* The data of the rings' events. */
#define URING_EVENT (UINT64_MAX - 1)

/* Takes completions; claims go to `wakes`. Any thread. */
void cc__uring_reap(struct wakes *wakes);
/* Whether that would find something. */
bool cc__uring_ready(void);
/* After the last fiber has ended. */
void cc__uring_stop(void);
/* In a forked child: the rings are the parent's. */
void cc__uring_forget(void);

/* ---- for rt ---- */

/* Whether the next run of the runtime uses rings (CC_URING). */
void cc__uring_configure(bool use);

#endif
