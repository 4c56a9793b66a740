/* cc_profile.h - profiles in the form of pprof: where fibers are, where they compute, where and for what they wait.
 *
 * `go tool pprof -top FILE`, `pprof -http=: FILE`, speedscope and others read them. Each sample has labels: `function`,
 * which the fiber was started with, `started` by which call, its `name`, its `nursery`, and what it waits for
 * (`reason`). So `-tagfocus`, `-tagroot` and the like sort by kinds of fibers.
 *
 * Any thread, fibers included. They block the thread while they write.
 */
#ifndef CCC_CC_PROFILE_H
#define CCC_CC_PROFILE_H

#include <ccc/cc_base.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

typedef enum CCProfile {
    CC_PROFILE_FIBERS,     /* how many fibers there are, by stack and by what they wait for */
    CC_PROFILE_LEAKS,      /* the same of those that can never go on, as far as it can be proved */
    CC_PROFILE_BLOCK,      /* how often and how long fibers waited; of what is recorded (cc_record.h) */
    CC_PROFILE_CONTENTION, /* the same of waits for locks, by the function of the fiber that let them go on */
} CCProfile;

/* Writes a profile. EINVAL: no such kind; ESRCH: the runtime does not run (FIBERS, LEAKS); EBUSY: for LEAKS
 * something moves, or it cannot be known; or another report has been under way for 2 s; ENODATA: nothing was recorded
 * (BLOCK, CONTENTION); ENOMEM; or an error of the descriptor. Does not switch. */
CC_API int cc_profile_write(int fd, CCProfile kind);

/* Where fibers compute, until that time: looks at all workers a hundred times a second, by a signal to those that run
 * (SIGURG, which is ignored unless somebody handles it), and writes what it saw. The caller sleeps in between: a fiber
 * parks. ENOTSUP: in a simulation; ESRCH: the runtime does not run; ECANCELED: the caller was cancelled, and nothing
 * was written; EINVAL: without a deadline; ENOMEM; or an error of the descriptor. */
CC_API int cc_profile_cpu(int fd, CCDeadline until);

CC_END_DECLS

#endif
