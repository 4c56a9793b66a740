/* cc_profile.h - profiles in pprof format: fibers by stack, CPU time, blocking, lock contention.
 *
 * `go tool pprof -top FILE`, `pprof -http=: FILE`, speedscope and others read them. Each sample has labels: the
 * `function` that the fiber was started with, the call that `started` it, its `name`, its `nursery`, and what it waits
 * for (`reason`). So `-tagfocus`, `-tagroot` and the like select kinds of fibers.
 *
 * Any thread, fibers included. The calls block the thread while they write.
 */
#ifndef CCC_CC_PROFILE_H
#define CCC_CC_PROFILE_H

#include <ccc/cc_base.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

typedef enum CCProfile {
    CC_PROFILE_FIBERS,     /* the number of fibers, by stack and by wait reason */
    CC_PROFILE_LEAKS,      /* the same for fibers that provably can never run again */
    CC_PROFILE_BLOCK,      /* how often and how long fibers waited, from recorded events (cc_record.h) */
    CC_PROFILE_CONTENTION, /* the same for waits for locks, by the function of the fiber that released them */
} CCProfile;

/* Writes a profile. EINVAL: no such kind; ESRCH: the runtime is not running (FIBERS, LEAKS); EBUSY: LEAKS found the
 * program changing, or could not tell; or another report has been in progress for 2 s; ENODATA: nothing was recorded
 * (BLOCK, CONTENTION); ENOMEM; or an error of the descriptor. Does not switch. */
CC_API int cc_profile_write(int fd, CCProfile kind);

/* Writes a CPU profile of the time until the deadline: samples all workers a hundred times a second, by a signal to
 * those that are running (SIGURG, which is ignored by default). Samples of a worker count no more than its thread's CPU
 * time, also if the system runs other threads meanwhile. The caller sleeps in between: a fiber parks, and a thread
 * samples for it. ENOTSUP: in a simulation; ESRCH: the runtime is not running; ECANCELED: the caller was cancelled, and
 * nothing was written; EINVAL: without a deadline; EBUSY: another report has been in progress for 2 s; ENOMEM; EAGAIN:
 * no thread; or an error of the descriptor. */
CC_API int cc_profile_cpu(int fd, CCDeadline until);

CC_END_DECLS

#endif
