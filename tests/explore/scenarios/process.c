/* process.c - src/process: the end of a process against waits, signals and abandoning it. */
#include "stubs/process.h"
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <signal.h>

enum { CODE = 7 };

static CCProcess *process;
static CCProcessStatus status;
static CCTask waiter;
static CCChan *values;
static int rc;

static void starts(void) {
    static const char *const argv[] = {"/child", NULL};
    CCProcessOptions options = {.argv = argv, .root = true};
    EX_EQ(cc_process_start(&process, &options), 0);
    ex_settle();
}
static void exits(void) {
    stub_process_exits(CODE);
}
static void collected(void) {
    EX_CHECK(stub_process_reaped());
    EX_EQ(cc_io_waiters(), 0);
}

/* ---- PROCESS-2 ---- */

static void *waits(void *arg) {
    rc = cc_process_wait(process, &status);
    return arg;
}
static void fiber_waits(void) {
    EX_EQ(cc_spawn(&waiter, waits, NULL, NULL), 0);
    EX_EQ(cc_task_join(&waiter, NULL), 0);
    EX_EQ(rc, 0);
    EX_EQ(status.code, CODE);
}
static void thread_waits(void) {
    (void)waits(NULL);
    EX_EQ(rc, 0);
    EX_EQ(status.code, CODE);
}
SCENARIO(process_exit_fiber, "PROCESS-2: it ends before, during and after a fiber's check", .workers = 1,
         .setup = starts, .threads = {exits, fiber_waits}, .check = collected, .no_timer = true);
SCENARIO(process_exit_thread, "PROCESS-2: it ends before, during and after an OS thread's check", .workers = 1,
         .setup = starts, .threads = {exits, thread_waits}, .check = collected, .no_timer = true);

/* A call that does not wait sees all of the status, or nothing. */
static void looks(void) {
    int error = cc_process_wait_try(process, &status);
    EX_CHECK(error == EAGAIN || (error == 0 && status.code == CODE));
}
SCENARIO(process_exit_look, "PROCESS-2: the status of one that has ended is complete", .workers = 1, .setup = starts,
         .threads = {exits, looks}, .check = collected, .no_timer = true);

static void *selects(void *arg) {
    int value = 0;
    size_t chosen = 9;
    CCCase cases[] = {CC_EXITED(process, &status, NULL), CC_RECV(values, &value, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    EX_CHECK(chosen == 0 ? status.code == CODE : value == CODE);
    return arg;
}
static void starts_beside_channel(void) {
    EX_CHECK((values = cc_chan_create(sizeof(int), 1)) != NULL);
    starts();
}
static void sends(void) {
    int value = CODE;
    EX_EQ(cc_chan_send(values, &value, sizeof value), 0);
}
static void fiber_selects(void) {
    EX_EQ(cc_spawn(&waiter, selects, NULL, NULL), 0);
    EX_EQ(cc_task_join(&waiter, NULL), 0);
}
SCENARIO(process_exit_selected, "PROCESS-2: a process and a channel end one select", .workers = 1,
         .setup = starts_beside_channel, .threads = {exits, sends, fiber_selects}, .check = collected,
         .no_timer = true);

/* ---- PROCESS-1 ---- */

static void signals(void) {
    int error = cc_process_signal(process, SIGUSR1);
    EX_CHECK(error == 0 || error == ESRCH);
}
SCENARIO(process_exit_signal, "PROCESS-1: a signal does not reach one whose status was collected", .workers = 1,
         .setup = starts, .threads = {exits, signals}, .check = collected, .no_timer = true);

/* ---- PROCESS-3 ---- */

/* It ends by itself, or is stopped. */
static void gives_up(void) {
    cc_process_free(process);
}
SCENARIO(process_exit_free, "PROCESS-3: it ends while it is freed", .workers = 1, .setup = starts,
         .threads = {exits, gives_up}, .check = collected);

/* A waiter is cancelled or served while the process is freed. */
static void starts_and_waits(void) {
    starts();
    EX_EQ(cc_spawn(&waiter, waits, NULL, NULL), 0);
    ex_settle();
}
static void cancels(void) {
    EX_EQ(cc_task_cancel(&waiter), 0);
    EX_EQ(cc_task_join(&waiter, NULL), 0);
    EX_CHECK(rc == 0 || rc == ECANCELED);
}
SCENARIO(process_exit_cancel, "PROCESS-3: a wait is cancelled while the process ends and is freed", .workers = 1,
         .setup = starts_and_waits, .threads = {exits, cancels, gives_up}, .check = collected);
