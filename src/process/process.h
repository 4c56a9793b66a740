/* process.h - a child process, its fiber and those who wait for its end. See README.md.
 *
 * PROCESS-1  The status is collected under the lock, together with `done`: before, the number of the process and of its
 *            group are its own, and signals are sent under the lock while `done` is not set; after, to nobody.
 * PROCESS-2  `done` and the status are written once, under the lock, and then all who wait are claimed. Who looks at
 *            `done` without the lock acquires the status.
 * PROCESS-3  References: the program's, the fiber's, and one for each arm that is linked; who takes the arm off for
 *            good gives it back. So a process that is freed while others wait is there until they are out.
 * PROCESS-4  Whoever starts one waits until the fiber has reported how that went, or has ended without ever running:
 *            until then it uses the caller's frame.
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
    bool group; /* it has one of its own */
    uint64_t grace_ns;
    int error; /* ECHILD: the status is somebody else's */
    CCProcessStatus status;
    CCTask fiber;           /* that watches it: to be cancelled */
    _Atomic int streams[3]; /* the program's ends of the pipes; -1: none */
    char name[PROCESS_NAME_MAX];
};

#endif
