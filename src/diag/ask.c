/* ask.c - dumps: by a call, or by a signal. */
#include "base/error.h"
#include "base/fatal.h"
#include "diag/diag.h"
#include "diag/dump.h"
#include "inspect/quiet.h"
#include "os/signals.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"

#include <ccc/cc_diag.h>

#include <errno.h>

static struct lock dumping;

void cc__dump_begin(void) {
    cc__lock_take(&dumping);
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
    int saved = cc__errno_get(), rc = outside ? cc__upcall_enter(false) : 0;
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

/* On the sysmon thread, which the runtime waits for before it ends. */
void cc__upcall_asked(void) {
    struct out out = {0};
    cc__dump_begin();
    if (!cc__diag_crash_asked()) (void)cc__dump_text(&out);
    cc__dump_end();
}

void cc__diag_dump_on(int signal) {
    if (signal == 0) return;
    if (cc__dump_signal_install(signal, cc__sysmon_ask)) cc__quiet_signal_is_ours(signal);
}

void cc__diag_dump_off(void) {
    cc__dump_signal_remove();
}
