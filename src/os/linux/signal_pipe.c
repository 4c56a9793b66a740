/* signal_pipe.c - a handler that writes into a pipe.
 *
 * CATCH-1  A record is shorter than PIPE_BUF: it is written as a whole or not at all, whatever handlers run at the same
 *          time. If the pipe is full, the signal is only counted: a handler never waits.
 * CATCH-2  The handler runs in the process that has opened the pipe. In a child that has not executed another program
 *          yet, it restores the former action and raises the signal again.
 * CATCH-3  Once open, the pipe stays open: a handler may have begun, on any thread, before its signal's action was
 *          restored, and must not write to a descriptor that was reused.
 */
#include "os/signals.h"

#include "base/attr.h"
#include "base/error.h"
#include "os/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIGNALS = 64, MASK_SIZE = 8 };

/* The kernel's struct: it begins with the handler; the rest depends on the CPU. */
union kernel_action {
    uintptr_t handler;
    char room[64];
};

static struct {
    int read_end, write_end;
    int owner; /* the process */
    _Atomic uint64_t stamp;
    _Atomic uint64_t lost[SIGNALS + 1];
    bool kept[SIGNALS + 1];   /* `before` holds the former action */
    bool caught[SIGNALS + 1]; /* by on_signal; otherwise it is ignored */
    struct sigaction before[SIGNALS + 1];
    union kernel_action kernel_before[SIGNALS + 1]; /* the same for the handler, which makes only system calls */
} signals = {.read_end = -1, .write_end = -1};

/* May interrupt any code, the race detector's own included: so it, and what it calls, is hidden from the detector. */
static CC_NO_TSAN void on_signal(int number, siginfo_t *info, void *context) {
    (void)context;
    CC_KEEP_ERRNO;
    if (getpid() != signals.owner) { /* CATCH-2 */
        (void)syscall(SYS_rt_sigaction, number, &signals.kernel_before[number], NULL, MASK_SIZE);
        (void)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
        return;
    }
    struct signal_seen seen = {.number = number, .code = info->si_code, .stamp = signals.stamp};
    if (info->si_code <= 0 || number == SIGCHLD) { /* it was sent; otherwise there is no sender */
        seen.pid = info->si_pid;
        seen.uid = info->si_uid;
    }
    if (info->si_code == SI_QUEUE) seen.value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
    ssize_t n;
    do n = syscall(SYS_write, signals.write_end, &seen, sizeof seen);
    while (n < 0 && cc__errno_get() == EINTR);
    if (n < 0) signals.lost[number]++; /* CATCH-1 */
}

int cc__signal_pipe_open(void) {
    CC_KEEP_ERRNO;
    int ends[2];
    if (signals.write_end >= 0) return 0; /* CATCH-3 */
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    if (fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) {
        int error = errno;
        (void)close(ends[0]);
        (void)close(ends[1]);
        return error;
    }
    signals.read_end = cc__os_above_standard(ends[0]);
    signals.write_end = cc__os_above_standard(ends[1]);
    signals.owner = getpid();
    return 0;
}

void cc__signal_pipe_stamp(uint64_t stamp) {
    signals.stamp = stamp;
}

void cc__signal_pipe_read(struct signal_seen *seen) {
    CC_KEEP_ERRNO;
    while (read(signals.read_end, seen, sizeof *seen) != (ssize_t)sizeof *seen) {
    }
}

/* If it is full, the reader makes room. */
void cc__signal_pipe_end(void) {
    CC_KEEP_ERRNO;
    struct signal_seen end = {0};
    while (write(signals.write_end, &end, sizeof end) < 0 && (errno == EAGAIN || errno == EINTR)) (void)usleep(1000);
}

uint64_t cc__signal_pipe_lost(int signal) {
    return signals.lost[signal];
}

/* ---- actions ---- */

/* The program may have set another action since, also to ignore a signal that we catch. */
static bool is_ours(int signal, const struct sigaction *action) {
    bool caught = (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal;
    return signals.caught[signal] ? caught : !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN;
}

/* The race detector wraps handlers. Its wrapper defers a signal until the thread makes a call that it intercepts, and a
 * worker that sleeps makes none: so the kernel gets our handler directly. */
static void set_directly(int signal) {
#ifdef CC_TSAN
    union kernel_action action;
    if (syscall(SYS_rt_sigaction, signal, NULL, &action, MASK_SIZE) != 0) return;
    action.handler = (uintptr_t)on_signal;
    (void)syscall(SYS_rt_sigaction, signal, &action, NULL, MASK_SIZE);
#else
    (void)signal;
#endif
}

static int restore(int signal) {
    struct sigaction now;
    if (!signals.kept[signal]) return 0;
    if (sigaction(signal, NULL, &now) != 0) return errno;
    if (is_ours(signal, &now) && sigaction(signal, &signals.before[signal], NULL) != 0) return errno;
    signals.kept[signal] = false;
    return 0;
}

int cc__signal_action_set(int signal, enum signal_action action) {
    CC_KEEP_ERRNO;
    if (action == SIGNAL_BEFORE) return restore(signal);
    struct sigaction new = {.sa_flags = SA_RESTART | SA_ONSTACK};
    sigfillset(&new.sa_mask);
    if (action == SIGNAL_CAUGHT) {
        new.sa_flags |= SA_SIGINFO;
        new.sa_sigaction = on_signal;
    } else {
        new.sa_handler = SIG_IGN;
    }
    struct sigaction before;
    if (sigaction(signal, NULL, &before) != 0) return errno;
    if (!signals.kept[signal] || !is_ours(signal, &before)) {
        signals.before[signal] = before;
        (void)syscall(SYS_rt_sigaction, signal, NULL, &signals.kernel_before[signal], MASK_SIZE);
    }
    if (sigaction(signal, &new, NULL) != 0) return errno;
    if (action == SIGNAL_CAUGHT) set_directly(signal);
    signals.caught[signal] = action == SIGNAL_CAUGHT;
    signals.kept[signal] = true;
    return 0;
}

void cc__signal_pipe_forget(void) {
    CC_KEEP_ERRNO;
    for (int signal = 1; signal <= SIGNALS; signal++) (void)restore(signal);
    if (signals.write_end < 0) return;
    (void)close(signals.read_end);
    (void)close(signals.write_end);
    signals.read_end = signals.write_end = -1;
}
