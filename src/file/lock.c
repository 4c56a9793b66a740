/* lock.c - advisory locks. The system call either fails or blocks the thread: so the locks are polled. */
#include "file/file.h"
#include "os/file.h"

#include <errno.h>

enum { PAUSE_FIRST_MS = 1, PAUSE_MAX_MS = 32 }; /* guesses: a latency that people do not notice, 30 calls a second */

int cc_file_lock_try(int fd, CCFileLock kind) {
    if (kind != CC_FILE_SHARED && kind != CC_FILE_EXCLUSIVE) return EINVAL;
    return -cc__os_file_lock(fd, kind == CC_FILE_SHARED ? OS_SHARED : OS_EXCLUSIVE);
}

int cc_file_lock_until(int fd, CCFileLock kind, CCDeadline deadline) {
    int rc;
    for (unsigned pause = PAUSE_FIRST_MS; (rc = cc_file_lock_try(fd, kind)) == EAGAIN;) {
        CCDeadline next = cc_after_ms(pause);
        if (deadline.ns != 0 && cc_now_ns() >= deadline.ns) return ETIMEDOUT;
        if (deadline.ns != 0 && deadline.ns < next.ns) next = deadline;
        rc = cc_sleep_until(next);
        if (rc != 0) return rc;
        if (pause < PAUSE_MAX_MS) pause *= 2;
    }
    return rc;
}

int cc_file_lock(int fd, CCFileLock kind) {
    return cc_file_lock_until(fd, kind, CC_FOREVER);
}

int cc_file_unlock(int fd) {
    return -cc__os_file_lock(fd, OS_UNLOCK);
}
