/* uring.h - calls on files that the system makes while the fiber waits: a ring for each worker that needs one.
 *
 * URING-1  Only fibers that run on a ring's worker submit to it, and they do not switch meanwhile: submitting needs no
 *          lock. Completions are taken by whoever looks, under the ring's lock.
 * URING-2  What was submitted is waited for: neither a cancellation nor a shutdown ends that wait. So what the system
 *          uses, the memory and the call itself on the fiber's stack, is there until the completion was taken.
 * URING-3  No more calls are under way than the ring has room for completions: none is dropped.
 * URING-4  Who fetches a ring's event takes completions after that, whether anybody seems to wait or not: the fiber may
 *          be about to, and finds it done then, under the lock. A worker also looks whenever it polls while somebody
 *          waits, and when the system has interrupted its sleep.
 */
#ifndef CC_IO_URING_H
#define CC_IO_URING_H

#include "os/uring.h"
#include "wait/wait.h"

/* One call that was submitted. */
struct uring_wait {
    struct uring_call call;
    struct waiter *waiter; /* NULL: nobody waits at this moment */
    bool done;
    int32_t result;
};

/* Waits for the call: its result or -errno. -EAGAIN: it was not made, and the caller has to find another way. A fiber,
 * or any other context, which is told -EAGAIN. */
long cc__uring_call(const struct uring_call *call);

/* What a ring has answered: whether it, or a thread that has ended meanwhile, could not make the call, which is not the
 * file's fault. */
bool cc__uring_is_refusal(enum uring_kind kind, long result);

/* How many wait. */
extern _Atomic uint32_t cc__uring_waiting;

/* ---- for the driver ---- */

/* The data of the rings' events. */
#define URING_EVENT (UINT64_MAX - 1)

/* Takes what has been completed; claims go to `wakes`. Any thread. */
void cc__uring_reap(struct wakes *wakes);
/* Whether that would find something. */
bool cc__uring_ready(void);
/* No fiber is left. */
void cc__uring_stop(void);
/* In a forked child: the rings are the parent's. */
void cc__uring_forget(void);

/* ---- for rt ---- */

/* Whether rings are used in the life that begins (CC_URING). */
void cc__uring_configure(bool use);

#endif
