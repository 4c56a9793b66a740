/* replace.c - atomic replacement of a file: by a second file in the same directory, which is renamed in the end. */
#include "base/mem.h"
#include "file/file.h"
#include "os/clock.h"
#include "os/file.h"
#include "sim/sim.h"
#include "sync/atomic.h"

#include <ccc/cc_fd.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct CCReplace {
    int fd;
    unsigned mode;
    size_t directory; /* bytes of path up to and including the last slash */
    char *path, *temp;
};

enum { TEMP_MAX = 32, TRIES = 100 }; /* ".ccc-" and 16 digits */

static void name_temp(CCReplace *r) {
    static _Atomic uint64_t names;
    uint64_t name = cc__sim_entropy(cc__clock_real() ^ (uint64_t)getpid() << 40 ^ cc__add_relaxed(&names, 1) << 56);
    memcpy(r->temp, r->path, r->directory);
    snprintf(r->temp + r->directory, TEMP_MAX, ".ccc-%016llx", (unsigned long long)name);
}

static long create(void *arg) {
    CCReplace *r = arg;
    for (int i = 0;; i++) {
        name_temp(r);
        r->fd = cc__os_file_open(r->temp, O_RDWR | O_CREAT | O_EXCL, (mode_t)r->mode);
        if (r->fd != -EEXIST || i == TRIES) return r->fd;
    }
}

int cc_replace_begin(CCReplace **replace, const char *path, unsigned mode) {
    if (replace == NULL) return EINVAL;
    *replace = NULL;
    if (path == NULL) return EINVAL;
    size_t length = strlen(path);
    const char *slash = strrchr(path, '/');
    CCReplace *r = cc__mem_alloc(sizeof *r + 2 * (length + 1) + TEMP_MAX);
    if (r == NULL) return ENOMEM;
    r->mode = mode;
    r->directory = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    r->path = memcpy((char *)(r + 1), path, length + 1);
    r->temp = r->path + length + 1;
    long rc = r->directory == length ? -EISDIR : cc__file_call("replace", create, r);
    if (rc < 0) {
        cc__mem_free(r);
        return (int)-rc;
    }
    *replace = r;
    return 0;
}

int cc_replace_fd(const CCReplace *replace) {
    return replace != NULL ? replace->fd : -1;
}

static int sync_directory(CCReplace *r) {
    r->path[r->directory] = '\0'; /* only the directory is needed from here on */
    int fd = cc__os_file_open(r->directory > 0 ? r->path : ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) return fd;
    int rc = cc__os_file_sync(fd, false);
    (void)cc_fd_close(fd);
    return rc;
}

static long commit(void *arg) {
    CCReplace *r = arg;
    int rc = cc__os_file_sync(r->fd, false), closed = cc_fd_close(r->fd);
    if (rc == 0) rc = -closed;
    if (rc == 0) rc = cc__os_path_rename(r->temp, r->path);
    if (rc == 0) return sync_directory(r);
    (void)cc__os_path_unlink(r->temp, false);
    return rc;
}

static long discard(void *arg) {
    CCReplace *r = arg;
    (void)cc_fd_close(r->fd);
    return cc__os_path_unlink(r->temp, false);
}

/* Committed as a whole or, if the caller is cancelled before, discarded. */
int cc_replace_commit(CCReplace *replace) {
    if (replace == NULL) return EINVAL;
    long rc = cc__file_call("replace", commit, replace);
    if (rc == -ECANCELED)
        cc_replace_abort(replace);
    else
        cc__mem_free(replace);
    return (int)-rc;
}

void cc_replace_abort(CCReplace *replace) {
    if (replace == NULL) return;
    (void)cc__file_call_always("replace", discard, replace);
    cc__mem_free(replace);
}
