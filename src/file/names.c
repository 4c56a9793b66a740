/* names.c - opening files, and operations on whole files and on names. */
#include "file/file.h"
#include "io/call.h"
#include "io/uring.h"
#include "os/descriptor.h"
#include "os/file.h"
#include "os/simulated.h"
#include "sim/sim.h"

#include <ccc/cc_nursery.h>
#include <errno.h>

struct name_call {
    const char *path, *to;
    int fd, flags;
    unsigned mode;
    int64_t size;
    bool flag;
    struct stat *status;
};

static int error_of(long result) {
    return result < 0 ? (int)-result : 0;
}

/* ---- open ---- */

static long open_waiting(void *arg) {
    struct name_call *c = arg;
    return cc__os_file_open(c->path, c->flags, (mode_t)c->mode);
}

int cc_file_open(int *fd, const char *path, int flags, unsigned mode) {
    if (fd == NULL) return EINVAL;
    *fd = -1;
    if (path == NULL) return EINVAL;
    struct name_call c = {.path = path, .flags = flags, .mode = mode};
    bool waits;
    int over = cc__call_check_cancel(); /* CALL-4 */
    if (over != 0) return over;
    long known = cc__os_file_open_cached(path, flags, &waits), got = known;
    if (cc__file_missed("open", known) || waits) got = cc__file_call("open", open_waiting, &c);
    /* A FIFO's first reader stays open until the second is, or a writer in between would get SIGPIPE. */
    if (waits && known >= 0) (void)cc__os_close((int)known);
    if (got >= 0) *fd = (int)got;
    return error_of(got);
}

static long temp_waiting(void *arg) {
    return cc__os_file_temp(((struct name_call *)arg)->path);
}

int cc_file_temp(int *fd, const char *directory) {
    if (fd == NULL) return EINVAL;
    *fd = -1;
    if (directory == NULL) return EINVAL;
    if (directory[0] == 0) return ENOENT; /* with a name behind it, it would be the root directory */
    struct name_call c = {.path = directory};
    long got = cc__file_call("temp", temp_waiting, &c);
    if (got >= 0) *fd = (int)got;
    return error_of(got);
}

/* ---- descriptors ---- */

static long sync_waiting(void *arg) {
    struct name_call *c = arg;
    return cc__os_file_sync(c->fd, c->flag);
}

/* In a simulation other fibers run meanwhile, and the host may crash. */
static int await_simulated(int fd) {
    return likely(fd < OS_SIMULATED) ? 0 : cc_sleep_until(cc_after_ns(cc__sim_sync_delay()));
}

static int sync_file(int fd, bool data_only) {
    int error = await_simulated(fd);
    if (error != 0) return error;
    struct uring_call call = {.kind = data_only ? URING_DATASYNC : URING_SYNC, .fd = fd};
    long rc = cc_cancelled() ? -EAGAIN : cc__uring_call(&call);
    if (rc == -EAGAIN) rc = cc__file_call("sync", sync_waiting, &(struct name_call){.fd = fd, .flag = data_only});
    return error_of(rc);
}

int cc_file_sync(int fd) {
    return sync_file(fd, false);
}

int cc_file_datasync(int fd) {
    return sync_file(fd, true);
}

static long truncate_waiting(void *arg) {
    struct name_call *c = arg;
    return cc__os_file_truncate(c->fd, c->size);
}

int cc_file_truncate(int fd, int64_t size) {
    return error_of(cc__file_call("truncate", truncate_waiting, &(struct name_call){.fd = fd, .size = size}));
}

/* At once: the inode of an open file is in memory. */
int cc_file_stat(int fd, struct stat *status) {
    return status != NULL ? error_of(cc__os_file_fstat(fd, status)) : EINVAL;
}

/* ---- names ---- */

static long stat_waiting(void *arg) {
    struct name_call *c = arg;
    return cc__os_path_stat(c->path, c->flag, c->status);
}

static int stat_by_name(const char *path, bool follow, struct stat *status) {
    if (path == NULL || status == NULL) return EINVAL;
    struct name_call c = {.path = path, .flag = follow, .status = status};
    int over = cc__call_check_cancel(); /* CALL-4 */
    if (over != 0) return over;
    long rc = cc__os_path_stat_cached(path, follow, status);
    if (cc__file_missed("stat", rc)) rc = cc__file_call("stat", stat_waiting, &c);
    return error_of(rc);
}

int cc_path_stat(const char *path, struct stat *status) {
    return stat_by_name(path, true, status);
}

int cc_path_lstat(const char *path, struct stat *status) {
    return stat_by_name(path, false, status);
}

static long rename_waiting(void *arg) {
    struct name_call *c = arg;
    return cc__os_path_rename(c->path, c->to);
}

int cc_path_rename(const char *from, const char *to) {
    if (from == NULL || to == NULL) return EINVAL;
    return error_of(cc__file_call("rename", rename_waiting, &(struct name_call){.path = from, .to = to}));
}

static long unlink_waiting(void *arg) {
    struct name_call *c = arg;
    return cc__os_path_unlink(c->path, c->flag);
}

int cc_path_unlink(const char *path) {
    if (path == NULL) return EINVAL;
    return error_of(cc__file_call("unlink", unlink_waiting, &(struct name_call){.path = path}));
}

int cc_path_rmdir(const char *path) {
    if (path == NULL) return EINVAL;
    return error_of(cc__file_call("rmdir", unlink_waiting, &(struct name_call){.path = path, .flag = true}));
}

static long mkdir_waiting(void *arg) {
    struct name_call *c = arg;
    return cc__os_path_mkdir(c->path, (mode_t)c->mode);
}

int cc_path_mkdir(const char *path, unsigned mode) {
    if (path == NULL) return EINVAL;
    return error_of(cc__file_call("mkdir", mkdir_waiting, &(struct name_call){.path = path, .mode = mode}));
}
