/* ask.c - reports on request: dumps, by a call or a signal; unfinished fibers, when a shutdown gives up or for a leak
 * report. */
#include "base/error.h"
#include "diag/diag.h"
#include "diag/dump.h"
#include "inspect/waits.h"
#include "os/clock.h"
#include "os/thread.h"
#include "record/record.h"
#include "sched/sysmon.h"

#include <ccc/cc_diag.h>

#include <errno.h>

static struct lock dumping;

void cc__dump_begin(void) {
    cc__lock_take_long(&dumping);
}

bool cc__dump_begin_until(uint64_t until) {
    while (!cc__lock_try(&dumping)) {
        if (cc__clock_real() >= until) return false;
        cc__thread_nap(1000 * 1000);
    }
    return true;
}

void cc__diag_dump_forget(void) {
    dumping = (struct lock){0};
}

void cc__dump_end(void) {
    cc__lock_release(&dumping);
}

static int dump(FILE *file, int (*print)(struct out *)) {
    if (file == NULL) return EINVAL;
    struct out out = {.file = file};
    bool outside = cc__worker() == NULL;
    int saved = cc__errno_get(), rc = !outside || cc__upcall_enter(false) == 0 ? 0 : ESRCH;
    if (rc == 0) {
        cc__dump_begin();
        rc = print(&out);
        cc__dump_end();
        if (outside) cc__upcall_leave();
    }
    if (rc == 0 && (fflush(file) != 0 || ferror(file))) rc = EIO;
    cc__errno_set(saved);
    return rc;
}

int cc_dump(FILE *file) {
    return dump(file, cc__dump_text);
}

int cc_dump_json(FILE *file) {
    return dump(file, cc__dump_json);
}

static _Atomic uint32_t dump_asked;

/* In a signal handler. */
static void ask_for_dump(void) {
    cc__set_seq(&dump_asked, 1);
    (void)cc__sysmon_ask();
}

/* On the sysmon thread, which the runtime waits for before it ends. While another thread writes a report, to a pipe
 * that nobody reads, say, the request for a dump waits, and sysmon does not. */
void cc__upcall_asked(void) {
    struct out out = {0};
    if (!cc__dump_begin_until(0)) {
        cc__sysmon_ask_later();
        cc__record_asked();
        return;
    }
    bool crashed = cc__diag_crash_asked(), dumps = cc__swap(&dump_asked, 0) && !crashed;
    if (dumps) (void)cc__dump_text(&out);
    cc__dump_end();
    if (dumps) cc__record_save(true);
    cc__record_asked();
}

void cc__diag_dump_on(int signal) {
    if (signal == 0) return;
    if (cc__dump_signal_install(signal, ask_for_dump)) cc__quiet_signal_is_ours(signal);
}

/* ---- unfinished fibers ---- */

static void list_fibers(struct out *out) {
    struct survey survey;
    if (cc__survey_take(&survey) != 0) return;
    cc__dump_fibers(out, &survey, NULL);
    cc__survey_free(&survey);
}

void cc__diag_unfinished(void) {
    struct out out = {0};
    if (!cc__dump_begin_until(cc__clock_real() + DUMP_SOON_NS)) return;
    list_fibers(&out);
    cc__dump_abandoned(&out, cc__clock_now());
    cc__out_flush(&out);
    cc__dump_end();
}

/* A task has left its nursery, and can be joined, a moment before it has ended: waits while any is running. */
static void settle(void) {
    uint64_t until = cc__clock_real() + LEAKS_SETTLE_NS;
    while (cc__sched_active() != 0 && !cc__sched_all_asleep() && cc__clock_real() < until) cc__thread_nap(1000 * 1000);
}

void cc__diag_leaks(const char *when) {
    struct out out = {0};
    settle();
    uint64_t active = cc__sched_active();
    if (!cc__dump_begin_until(cc__clock_real() + DUMP_SOON_NS)) return;
    cc__out(&out, "ccc: leaks: %llu task%s not ended %s\n", (unsigned long long)active, active == 1 ? " has" : "s have",
            when);
    if (active != 0) {
        cc__dump_unreachable(&out, true);
        list_fibers(&out);
    }
    cc__out_flush(&out);
    cc__dump_end();
}
