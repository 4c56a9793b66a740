/* call.c - calls that wait for a disk, on a pool thread. */
#include "file/file.h"

#include "io/fd.h"
#include "trace/trace.h"

#include <ccc/cc_blocking.h>
#include <ccc/cc_nursery.h>
#include <errno.h>

struct file_call {
    file_fn fn;
    void *args;
    long result;
};

static void *make(void *arg) {
    struct file_call *call = arg;
    call->result = call->fn(call->args);
    return NULL;
}

static int hand_over(const char *what, struct file_call *call) {
    static const CCBlockingOptions files = {.pool = CC_POOL_FILE};
    cc__event(file_waits, what);
    int rc = cc_blocking_ex(make, call, NULL, &files, CC_FOREVER);
    if (rc != EAGAIN) return rc;
    (void)make(call);
    return 0;
}

long cc__file_call(const char *what, file_fn fn, void *args) {
    struct file_call call = {fn, args, 0};
    int rc = hand_over(what, &call);
    return rc != 0 ? -rc : call.result;
}

long cc__file_call_always(const char *what, file_fn fn, void *args) {
    struct file_call call = {fn, args, 0};
    bool begun = cc_shield_begin();
    int rc = hand_over(what, &call);
    cc_shield_end(begun);
    if (rc != 0) (void)make(&call); /* a shutdown ends shielded waits too */
    return call.result;
}

/* Once per process: the file system or the kernel does not support such calls. */
static void say_once(const char *what, int error) {
    static _Atomic uint32_t said;
    if (cc__get(&said) == 0 && cc__swap_seq(&said, 1) == 0) cc__event(file_fallback, what, error);
}

bool cc__file_missed(const char *what, long result) {
    if (result == -EOPNOTSUPP || result == -ENOSYS) say_once(what, (int)-result);
    if (result == -EAGAIN || result == -EOPNOTSUPP || result == -ENOSYS) return true;
    cc__fd_maybe_yield();
    return false;
}
