/* api.c - cc_record.h: start and stop, files, notes and regions; and CC_RECORD of the environment. */
#include "record/record.h"

#include "base/error.h"
#include "base/fatal.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/file.h"
#include "os/futex.h"
#include "os/thread.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"
#include "trace/trace.h"

#include <ccc/cc_record.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- start and stop ---- */

static const unsigned level_of[] = {[CC_RECORD_TIMES] = 1, [CC_RECORD_TURNS] = 0, [CC_RECORD_STACKS] = 2};

/* A running runtime gets its rings here; otherwise its start attaches them. */
static void tell(void) {
    if (cc__worker() != NULL) {
        cc__sched_route_records();
    } else if (cc__upcall_enter(false) == 0) {
        cc__sched_route_records();
        cc__upcall_leave();
    }
}

static unsigned workers_now(void) {
    bool outside = cc__worker() == NULL;
    if (outside && cc__upcall_enter(false) != 0) return 0;
    unsigned n = cc__sched.max + cc__get_acquire(&cc__sched.islands);
    if (outside) cc__upcall_leave();
    return n;
}

int cc_record_start(const CCRecordConfig *config) {
    static const CCRecordConfig defaults;
    const CCRecordConfig *c = config != NULL ? config : &defaults;
    if ((unsigned)c->level >= array_len(level_of) || cc__reserved_used(c)) return EINVAL;
    if (c->events != 0 && (c->events < 64 || c->events > CC_RECORD_EVENTS_MAX || (c->events & (c->events - 1)) != 0))
        return EINVAL;
    size_t events = c->events != 0 ? c->events : CC_RECORD_EVENTS_DEFAULT;
    int rc = cc__recorder_start(level_of[c->level], workers_now(), events);
    if (rc == 0) tell();
    return rc;
}

int cc_record_stop(void) {
    if (!cc__recorder_stop()) return EALREADY;
    tell();
    return 0;
}

int cc__record_attach(unsigned workers) {
    if (!cc__recorder_on()) return 0;
    return cc__recorder_restart(workers);
}

/* ---- files ---- */

static struct lock writing; /* one file at a time: symbol lookup and memory are expensive */

static int write_to(int fd, CCRecordFormat format, bool inside, unsigned patience_ms) {
    static int (*const formats[])(struct history *, struct vec *) = {[CC_RECORD_GO] = cc__record_go,
                                                                     [CC_RECORD_PERFETTO] = cc__record_perfetto,
                                                                     [CC_RECORD_TEXT] = cc__record_lines};
    if ((unsigned)format >= array_len(formats)) return EINVAL;
    CC_KEEP_ERRNO;
    struct history h;
    struct vec out = {0};
    int rc = cc__history_take(&h, inside);
    if (rc != 0) return rc;
    rc = formats[format](&h, &out);
    cc__history_free(&h);
    if (rc == 0) rc = cc__bytes_write(&out, fd, patience_ms);
    cc__vec_free(&out);
    return rc;
}

int cc_record_write(int fd, CCRecordFormat format) {
    return write_to(fd, format, false, 0);
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static CCRecordFormat format_of(const char *path) {
    if (ends_with(path, ".pftrace") || ends_with(path, ".perfetto-trace")) return CC_RECORD_PERFETTO;
    return ends_with(path, ".txt") ? CC_RECORD_TEXT : CC_RECORD_GO;
}

enum { PATIENCE_MS = 5000 }; /* a guess: a million records take half a second */

/* Without blocking: the process may be about to end, and a fifo may have no reader, or one that does not read. */
static int write_file(const char *path, bool inside) {
    if (cc__get(&cc__recorder.recorded) == 0) return ENODATA;
    int fd = cc__os_file_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) return -fd;
    int rc = write_to(fd, format_of(path), inside, PATIENCE_MS), closed = cc__os_close(fd);
    return rc != 0 ? rc : closed < 0 ? -closed : closed;
}

int cc_record_snapshot(const char *path) {
    return path != NULL ? write_file(path, false) : EINVAL;
}

/* ---- notes and regions ---- */

void cc_note(const char *format, ...) {
    if (!cc__recorder_on() || format == NULL) return;
    CC_KEEP_ERRNO;
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c != '\0'; c++) /* in text form an event is one line */
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = ' ';
    cc__record_here(REC_NOTE, 0, 0, text);
}

void cc_region_begin(const char *name) {
    if (cc__recorder_on() && name != NULL) cc__record_here(REC_REGION, 0, (uintptr_t)name, NULL);
}

void cc_region_end(const char *name) {
    if (cc__recorder_on() && name != NULL) cc__record_here(REC_REGION_END, 0, (uintptr_t)name, NULL);
}

/* ---- the environment ---- */

/* Without a file the events are only for reports and snapshots: 64 KiB per worker, which stays in the CPU's caches. */
enum { EVENTS_FOR_REPORTS = 4096 };

static struct {
    const char *file;       /* NULL: none */
    _Atomic uint64_t saved; /* time of the last file; 0: never */
    _Atomic uint32_t asked; /* futex; ASKED_ bits */
} wanted;

enum { ASKED_SOON = 1, ASKED_NOW = 2 };
/* Replaces "%p" by the process id. False: the name is too long. */
static bool name_of_file(char *name, size_t size) {
    size_t n = 0;
    for (const char *at = wanted.file; *at != '\0' && n + 16 < size; at++) {
        if (at[0] == '%' && at[1] == 'p')
            n += (size_t)snprintf(name + n, size - n, "%d", (int)getpid()), at++;
        else
            name[n++] = *at;
    }
    name[n] = '\0';
    return n + 16 < size;
}

int cc__record_configure(const char *file, int level) {
    wanted.file = file;
    if ((file == NULL && level < 0) || cc__recorder_on()) return 0;
    uint64_t events = file == NULL ? EVENTS_FOR_REPORTS : CC_RECORD_EVENTS_DEFAULT;
    int rc = cc__recorder_start(level >= 0 ? (unsigned)level : 1, 0, events);
    return rc == EALREADY ? 0 : rc;
}

/* Explains an error whose name is not enough; else "". */
static const char *reason_of(const char *name, int error) {
    struct stat status;
    bool fifo = error == ENXIO && cc__os_path_stat(name, true, &status) == 0 && S_ISFIFO(status.st_mode);
    return fifo                 ? ": nobody reads from this fifo"
           : error == EPIPE     ? ": its reader has gone"
           : error == ETIMEDOUT ? ": its reader does not read"
                                : "";
}

void cc__record_save(bool end) {
    enum { PAUSE_S = 10 };
    if (wanted.file == NULL || cc__get(&cc__recorder.recorded) == 0) return;
    uint64_t now = cc__clock_real(), saved = cc__get(&wanted.saved);
    if (!end && saved != 0 && now - saved < PAUSE_S * UINT64_C(1000000000)) return;
    cc__set(&wanted.saved, now);
    cc__lock_take_long(&writing);
    char name[1024];
    int rc = name_of_file(name, sizeof name) ? write_file(name, true) : ENAMETOOLONG;
    cc__lock_release(&writing);
    if (rc != 0)
        cc__warn("CC_RECORD=%.200s cannot be written: %s (%d)%s", wanted.file, cc__error_name(rc), rc,
                 reason_of(name, rc));
}

/* A crashing thread may hold a lock that writing needs, or be inside the allocator: so another thread writes the file,
 * and the wait for it is bounded. */
void cc__record_ask(bool end) {
    if (wanted.file == NULL || cc__get(&cc__recorder.recorded) == 0) return;
    if (cc__sysmon_thread() == cc__thread_id()) return;
    cc__or_seq(&wanted.asked, end ? ASKED_NOW : ASKED_SOON);
    if (!cc__sysmon_ask()) return; /* no sysmon thread: the end of the runtime has written it */
    uint64_t until = cc__clock_real() + (PATIENCE_MS + 1000) * UINT64_C(1000000); /* 1 s more, for its warning */
    for (uint32_t asked; end && (asked = cc__get_seq(&wanted.asked)) & ASKED_NOW && cc__clock_real() < until;)
        cc__futex_wait(&wanted.asked, asked, until);
}

void cc__record_asked(void) {
    uint32_t asked = cc__get_seq(&wanted.asked);
    if (asked == 0) return;
    cc__record_save(asked & ASKED_NOW);
    cc__and_seq(&wanted.asked, ~asked);
    cc__futex_wake(&wanted.asked, INT32_MAX);
}

/* After a fork: the file and the sysmon thread belong to the parent. */
void cc__record_forget(void) {
    wanted.file = NULL;
    writing = (struct lock){0};
    cc__set(&wanted.asked, 0);
}
