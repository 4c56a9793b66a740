/* process.c - the explorer's own child process, in place of src/os/linux/process.c.
 *
 * It runs until it exits by itself, or a signal ends it; then its pidfd is readable, and its status can be collected
 * once. A signal to one whose status was collected may hit another process, and fails the scenario. A system call is
 * one step, as in io.c.
 */
#include "stubs/process.h"

#include "explore.h"
#include "os/process.h"
#include "stubs/io.h"
#include "sync/atomic.h"

#include <errno.h>
#include <signal.h>

enum { PID = 4711, PIDFD = 15 };

static struct {
    bool started, ended, reaped;
    struct os_status status;
} child;

static _Atomic uint32_t calls; /* system calls so far */

static void enter(void) {
    (void)cc__add_seq(&calls, 1);
    ex_touch(&child, sizeof child);
}

static void end(struct os_status status) {
    if (child.ended) return;
    child.ended = true;
    child.status = status;
    stub_put(PIDFD, 1);
}

void stub_process_exits(int code) {
    enter();
    end((struct os_status){.exited = true, .code = code});
}

bool stub_process_reaped(void) {
    return child.reaped;
}

/* ---- os/process.h ---- */

int cc__process_start(const struct os_start *start, struct os_process *process) {
    (void)start;
    enter();
    if (child.started) return EAGAIN;
    child.started = true;
    stub_open(PIDFD);
    *process = (struct os_process){.pid = PID, .pidfd = PIDFD};
    return 0;
}

int cc__process_reap(const struct os_process *process, struct os_status *status) {
    (void)process;
    enter();
    if (child.reaped) ex_fail("the status is collected twice");
    if (!child.ended) return EAGAIN;
    child.reaped = true;
    *status = child.status;
    return 0;
}

static int send_signal(int signal) {
    enter();
    if (child.reaped) ex_fail("signal %d is sent to a number that may be another process's", signal);
    if (signal == SIGKILL || signal == SIGTERM) end((struct os_status){.code = signal});
    return 0;
}
int cc__process_signal(const struct os_process *process, int signal) {
    (void)process;
    return send_signal(signal);
}
int cc__process_signal_group(const struct os_process *process, int signal) {
    (void)process;
    return send_signal(signal);
}

void cc__process_block(const struct os_process *process, int ms) {
    (void)process, (void)ms;
}

int cc__process_pipe(int ends[2]) {
    (void)ends;
    return ENOTSUP;
}
int cc__process_null(int *fd) {
    (void)fd;
    return ENOTSUP;
}

char *const *cc__process_environment(void) {
    static char *const none[] = {NULL};
    return none;
}
