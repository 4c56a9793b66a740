/* process.h - a child process, its fiber and its waiters. See README.md.
 *
 * PROCESS-1  The status is collected under the lock, together with setting `done`. Until then the process id and the
 *            group id cannot be reused; signals are sent under the lock, and only while `done` is not set.
 * PROCESS-2  `done` and the status are written once, under the lock, and then all waiters are claimed. A load of `done`
 *            without the lock acquires the status.
 * PROCESS-3  References: the program's, the fiber's, and one for each linked arm, dropped by the thread that finally
 *            unlinks the arm. So a process that is freed while others wait stays allocated until they are done.
 * PROCESS-4  The caller of a start waits until the fiber has reported the outcome, or has ended without ever running:
 *            until then the fiber uses the caller's frame.
 */
#ifndef CC_PROCESS_PROCESS_H
#define CC_PROCESS_PROCESS_H

#include "os/process.h"
#include "wait/arm.h"

#include <ccc/cc_process.h>

enum { PROCESS_NAME_MAX = 24 };

struct CCProcess {
    struct lock lock;
    _Atomic uint32_t done;
    _Atomic uint32_t refs;
    struct link waiters; /* of arm.link */
    struct os_process os;
    bool group; /* it has its own process group */
    uint64_t grace_ns;
    int error; /* ECHILD: other code has collected the status */
    CCProcessStatus status;
    CCTask fiber;           /* the fiber that watches it, for cancellation */
    _Atomic int streams[3]; /* the program's ends of the pipes; -1: none */
    char name[PROCESS_NAME_MAX];
};

#endif
