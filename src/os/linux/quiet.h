/* quiet.h - writes that raise no signal.
 *
 * A write to a pipe without a reader raises SIGPIPE, and one beyond the size limit of files raises SIGXFSZ. The signals
 * are blocked meanwhile, and one that this write has raised is consumed. */
#ifndef CC_OS_LINUX_QUIET_H
#define CC_OS_LINUX_QUIET_H

#include "os/linux/call.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

struct quiet {
    sigset_t signals, before, pending;
};

/* file: SIGXFSZ, too. */
static inline void quiet_begin(struct quiet *q, bool file) {
    sigemptyset(&q->signals);
    sigaddset(&q->signals, SIGPIPE);
    if (file) sigaddset(&q->signals, SIGXFSZ);
    sigpending(&q->pending);
    pthread_sigmask(SIG_BLOCK, &q->signals, &q->before);
}

static inline void quiet_end(const struct quiet *q, bool may_have_raised) {
    struct timespec now = {0, 0};
    bool was_pending =
        sigismember(&q->pending, SIGPIPE) || (sigismember(&q->pending, SIGXFSZ) && sigismember(&q->signals, SIGXFSZ));
    if (may_have_raised && !was_pending) (void)CALL(sigtimedwait(&q->signals, NULL, &now));
    pthread_sigmask(SIG_SETMASK, &q->before, NULL);
}

#endif
