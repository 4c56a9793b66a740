/* deadlock.c - detects that nothing can run or be woken any more, and reports it.
 *
 * Called by sysmon when all workers have slept for a while (cc__upcall_quiet), and again a little later; while no
 * runtime runs, by an OS thread that has blocked for as long (cc__upcall_threads_quiet).
 *
 * DEADLOCK-1  A deadlock is reported only if all of this holds at both checks, and no worker woke and no OS thread
 *             began or ended a wait in between: there are unfinished tasks, or OS threads that wait in a call of ours
 *             without a deadline; every worker sleeps, and all queues are empty; no timer is armed for a wait that
 *             lasts; every thread of the process is one of ours, or waits in a call of ours without a deadline; the
 *             program handles no signal that could come from outside. Anything else might still wake a waiter.
 */
#include "base/fatal.h"
#include "base/mem.h"
#include "diag/diag.h"
#include "diag/dump.h"
#include "inspect/waits.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/thread.h"
#include "record/record.h"
#include "sched/idle.h"
#include "trace/trace.h"

#include <ccc/cc_diag.h>

#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct {
    uint64_t epoch, blocked_epoch; /* at sysmon's first check */
    _Atomic uint64_t reported;     /* cc__blocked_epoch of a report by a thread, plus 1 */
    _Atomic uint32_t ends, status; /* whether the program ends, and with which status */
    struct lock lock;              /* of the next two */
    CCDeadlockFn fn;
    void *arg;
} deadlock = {.ends = 1, .status = 124};

void cc__diag_deadlock_ends(bool ends, unsigned status) {
    cc__set(&deadlock.ends, ends);
    cc__set(&deadlock.status, status);
}

void cc_on_deadlock(CCDeadlockFn fn, void *arg) {
    cc__lock_take(&deadlock.lock);
    deadlock.fn = fn;
    deadlock.arg = arg;
    cc__lock_release(&deadlock.lock);
}

void cc__diag_deadlock_forget(void) {
    if (cc__get(&deadlock.lock.word) != 0) deadlock.fn = NULL; /* fn and arg may not belong together */
    deadlock.lock = (struct lock){0};
}

static CCDeadlockFn hook(void **arg) {
    cc__lock_take(&deadlock.lock);
    CCDeadlockFn fn = deadlock.fn;
    *arg = deadlock.arg;
    cc__lock_release(&deadlock.lock);
    return fn;
}

bool cc__upcall_unfinished(void) {
    return cc__sched_active() != 0 || cc__blocked_waits_forever();
}

/* ---- buffered output ---- */

enum { FLUSH_NS = 1000 * 1000 * 1000 };
static _Atomic uint32_t flushed;

/* A stream that another thread has locked is skipped. */
static void flush(FILE *stream) {
    if (ftrylockfile(stream) != 0) return;
    (void)fflush(stream);
    funlockfile(stream);
}

static void *flush_streams(void *arg) {
    flush(stdout);
    flush(stderr);
    cc__set_release(&flushed, 1);
    cc__futex_wake(&flushed, 1);
    return arg;
}

/* Buffered output should not be lost; but if nobody reads it, the write never returns, so another thread makes it. */
static void flush_or_give_up(void) {
    pthread_t thread;
    uint64_t until = cc__clock_real() + FLUSH_NS; /* the simulated clock stands still */
    if (cc__thread_start_deaf(&thread, flush_streams, NULL) != 0)
        (void)flush_streams(NULL);
    else
        (void)pthread_detach(thread);
    while (cc__get_acquire(&flushed) == 0 && cc__clock_real() < until) cc__futex_wait(&flushed, 0, until);
}

/* The pthread mutexes that the fiber holds, and the fibers that could end its wait for a channel. For other waits the
 * line itself names them. */
static void print_servers(struct out *out, struct fiber *f, struct wait_what what) {
    enum { SHOWN = 3 };
    struct fiber *servers[SHOWN];
    cc__pthreads_print(out, f);
    enum wait_object object = cc__park_object(what.reason);
    if (object != OBJECT_CHANNEL && object != OBJECT_ARMS) return;
    unsigned n = cc__graph_servers(what, f, servers, SHOWN);
    cc__out(out, n == 0 ? "      no other fiber's stack refers to it" : "      referenced by: ");
    for (unsigned i = 0; i < n && i < SHOWN; i++) {
        char who[96];
        cc__describe_record(servers[i], who, sizeof who);
        cc__out(out, "%s%s", i > 0 ? ", " : "", who);
    }
    if (n > SHOWN) cc__out(out, " and %u more", n - SHOWN);
    cc__out(out, "\n");
}

/* Only fibers are searched. The lines before this one name what each OS thread waits for, and who holds it. */
static void print_cycle(struct out *out, bool fibers) {
    enum { SHOWN = 16 };
    struct graph_wait cycle[SHOWN];
    unsigned length = cc__graph_cycle(cycle, SHOWN, true);
    if (length == 0) {
        cc__out(out, "%snothing will ever complete these waits\n",
                fibers ? "no cycle of waits among fibers was found: " : "");
        return;
    }
    cc__out(out, "a cycle of %u wait%s:\n", length, cc__out_s(length));
    for (unsigned i = 0; i < length && i < SHOWN; i++) {
        char who[96], wait[DESCRIBE_MAX], whom[96] = "the next one";
        cc__describe_record(cycle[i].fiber, who, sizeof who);
        cc__describe_wait(cycle[i].what, wait, sizeof wait);
        if ((i + 1) % length < SHOWN) cc__describe_record(cycle[(i + 1) % length].fiber, whom, sizeof whom);
        bool said = strstr(wait, whom) != NULL;
        cc__out(out, "  %s waits %s%s%s\n", who, wait, said ? "" : ", which is referenced by ", said ? "" : whom);
    }
    if (length > SHOWN) cc__out(out, "  and %u more\n", length - SHOWN);
}

static void report(FILE *file) {
    struct out out = {.file = file};
    struct survey survey;
    if (cc__survey_take(&survey) != 0) {
        cc__out(&out, "ccc: deadlock (not enough memory for details)\n");
        cc__out_flush(&out);
        return;
    }
    static const char *const stuck[] = {" waits, and nothing can wake it", "s wait, and nothing can wake any of them"};
    unsigned threads = cc__blocked_list(NULL, 0);
    if (survey.fibers > 0)
        cc__out(&out,
                "ccc: deadlock: %llu fiber%s: no fiber is ready to run, no timer is armed, and every thread of the "
                "program is waiting\n",
                (unsigned long long)survey.fibers, stuck[survey.fibers != 1]);
    else
        cc__out(
            &out,
            "ccc: deadlock: %u OS thread%s: there is no fiber, no timer is armed, and every thread of the program is "
            "waiting\n",
            threads, stuck[threads != 1]);
    cc__graph_begin();
    cc__dump_fibers(&out, &survey, print_servers);
    cc__dump_blocked(&out, survey.now);
    cc__dump_nurseries(&out);
    if (cc__trace_on(TRACE_INBOX_DUMP)) cc__dump_inboxes(&out, DUMP_INBOX_SHOWN);
    print_cycle(&out, survey.fibers > 0);
    cc__graph_end();
    cc__dump_events_all(&out);
    cc__survey_free(&survey);
    cc__out_flush(&out);
}

/* The report goes to stderr. If wanted, it is also returned as a string, which the caller frees; NULL: no memory. */
static char *report_twice(bool wanted) {
    char *text = NULL;
    size_t size;
    FILE *memory = wanted ? open_memstream(&text, &size) : NULL;
    cc__dump_begin();
    report(memory);
    if (memory != NULL) {
        bool whole = fflush(memory) == 0 && !ferror(memory);
        whole = fclose(memory) == 0 && whole;
        if (whole) cc__stderr_write(text, size);
        if (!whole) { /* stderr needs no memory */
            cc__mem_free_libc(text);
            text = NULL;
            report(NULL);
        }
    }
    cc__dump_end();
    return text;
}

void cc__upcall_stuck(void) {
    void *arg;
    CCDeadlockFn fn = hook(&arg);
    char *text = report_twice(fn != NULL);
    bool ends = cc__get(&deadlock.ends);
    if (fn != NULL && !fn(text != NULL ? text : "", arg)) {
        cc__warn("the program continues, as the function set by cc_on_deadlock decided");
        ends = false;
    } else if (ends) {
        cc__warn("exiting with status %u (set CC_DEADLOCK_ABORT=0 to continue instead)", cc__get(&deadlock.status));
    } else {
        cc__warn("the program continues, because of CC_DEADLOCK_ABORT=0");
    }
    cc__mem_free_libc(text);
    cc__record_save(true);
    cc__exit_message_write();
    if (!ends) return;
    flush_or_give_up();
    cc__san_exit();
    _exit((int)cc__get(&deadlock.status));
}

bool cc__upcall_quiet(unsigned look) {
#ifdef CC_DEBUG
    cc__diag_lost_events();
#endif
    uint64_t epoch = cc__idle_epoch(), blocked_epoch = cc__blocked_epoch();
    if (!cc__quiet_for_good() || cc__idle_epoch() != epoch || cc__blocked_epoch() != blocked_epoch) return false;
    if (look == 0) {
        deadlock.epoch = epoch;
        deadlock.blocked_epoch = blocked_epoch;
        return true;
    }
    if (deadlock.epoch != epoch || deadlock.blocked_epoch != blocked_epoch) return false;
    cc__upcall_stuck();
    return false;
}

/* The workers of a runtime that starts or stops meanwhile count as unknown threads here. */
bool cc__upcall_threads_quiet(unsigned look, uint64_t *epoch) {
    uint64_t now = cc__blocked_epoch();
    if (cc__quiet_signals_may_come() || !cc__quiet_threads() || cc__blocked_epoch() != now) return false;
    if (look == 0) {
        *epoch = now;
        return true;
    }
    if (*epoch != now) return false;
    uint64_t reported = cc__swap_seq(&deadlock.reported, now + 1);
    if (reported != now + 1) cc__upcall_stuck(); /* else another waiting thread has reported it */
    return true;
}
