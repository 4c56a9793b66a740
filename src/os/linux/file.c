/* file.c - system calls on files. */
#include "os/file.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/san.h"
#include "os/linux/quiet.h"
#include "os/simulated.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

/* ---- bytes ---- */

ssize_t cc__os_file_read_cached(int fd, const struct iovec *parts, int n, off_t offset) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->file_read(fd, parts, n, offset);
    ssize_t got = CALL(preadv2(fd, parts, n, offset, RWF_NOWAIT));
    if (got > 0) cc__san_written(parts, (size_t)got);
    return got;
}

/* A write beyond the limit raises SIGXFSZ. */
static bool is_limited(void) {
    struct rlimit limit;
    return CALL(getrlimit(RLIMIT_FSIZE, &limit)) < 0 || limit.rlim_cur != RLIM_INFINITY;
}

static ssize_t write_plain(int fd, const struct iovec *parts, int n, off_t offset) {
    return offset == OS_POSITION ? CALL(writev(fd, parts, n)) : CALL(pwritev(fd, parts, n, offset));
}

ssize_t cc__os_file_write_here(int fd, const struct iovec *parts, int n, off_t offset) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->file_write(fd, parts, n, offset);
    return is_limited() ? -EAGAIN : write_plain(fd, parts, n, offset);
}

ssize_t cc__os_file_read(int fd, const struct iovec *parts, int n, off_t offset) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->file_read(fd, parts, n, offset);
    return offset == OS_POSITION ? CALL(readv(fd, parts, n)) : CALL(preadv(fd, parts, n, offset));
}

ssize_t cc__os_file_write(int fd, const struct iovec *parts, int n, off_t offset) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->file_write(fd, parts, n, offset);
    struct quiet quiet;
    quiet_begin(&quiet, true);
    ssize_t put = write_plain(fd, parts, n, offset);
    quiet_end(&quiet, put == -EFBIG || put == -EPIPE);
    return put;
}

off_t cc__os_file_position(int fd) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->is_socket(fd) ? -ESPIPE : -s->valid(fd);
    return CALL(lseek(fd, 0, SEEK_CUR));
}

unsigned cc__os_file_waits(int fd) {
    if (unlikely(cc__os_simulation_of(fd) != NULL)) return 0;
    int flags = CALL(fcntl(fd, F_GETFL));
    if (flags < 0) return 0;
    return (flags & O_DIRECT ? OS_READS_WAIT | OS_WRITES_WAIT : 0u) | (flags & O_DSYNC ? OS_WRITES_WAIT : 0u);
}

/* ---- open ---- */

/* An open that succeeds only if all names are in the cache. */
static int open_known(const char *path, uint64_t flags) {
    if (cc__san_on_valgrind()) return -ENOSYS; /* it warns about every such call */
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_CACHED};
    int fd = CALL((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
    bool known = fd >= 0 || fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES || fd == -ENOSYS;
    return known ? fd : -EAGAIN; /* openat2 is stricter than open about flags, and a sandbox may forbid it */
}

static void close_quietly(int fd) {
    (void)CALL(close(fd));
}

/* Non-blocking, because the open itself could wait: for a FIFO's other end, a lease, a device. */
int cc__os_file_open_cached(const char *path, int flags, bool *waits) {
    const struct os_simulated *s = cc__os_simulation_of_files();
    if (unlikely(s != NULL)) {
        *waits = false;
        return -EAGAIN;
    }
    struct stat status;
    *waits = false;
    if (flags & (O_CREAT | O_TRUNC)) return -EAGAIN;
    int fd = open_known(path, (uint64_t)(unsigned)flags | O_NONBLOCK);
    if (fd < 0 || (flags & O_NONBLOCK)) return fd;
    int rc = CALL(fstat(fd, &status));
    if (rc == 0) rc = CALL(fcntl(fd, F_SETFL, flags & ~(O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY)));
    if (rc != 0) {
        close_quietly(fd);
        return -EAGAIN;
    }
    *waits = S_ISFIFO(status.st_mode) && (flags & O_ACCMODE) == O_RDONLY;
    return fd;
}

int cc__os_file_open(const char *path, int flags, mode_t mode) {
    const struct os_simulated *s = cc__os_simulation_of_files();
    if (unlikely(s != NULL)) return s->file_open(path, flags, mode);
    return CALL(openat(AT_FDCWD, path, flags | O_CLOEXEC, mode));
}

int cc__os_file_temp(const char *directory) {
    const struct os_simulated *s = cc__os_simulation_of_files();
    if (unlikely(s != NULL)) return s->file_temp(directory);
    char name[4096];
    int fd = cc__os_file_open(directory, O_TMPFILE | O_RDWR, 0600);
    if (fd != -EOPNOTSUPP && fd != -EISDIR && fd != -ENOENT && fd != -EINVAL) return fd;
    if (snprintf(name, sizeof name, "%s/.ccc-XXXXXX", directory) >= (int)sizeof name) return -ENAMETOOLONG;
    fd = CALL(mkostemp(name, O_CLOEXEC));
    if (fd >= 0) (void)cc__os_path_unlink(name, false);
    return fd;
}

/* ---- descriptors ---- */

int cc__os_file_sync(int fd, bool data_only) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->file_sync(fd);
    return CALL(data_only ? fdatasync(fd) : fsync(fd));
}

int cc__os_file_truncate(int fd, off_t size) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->file_truncate(fd, size);
    struct quiet quiet;
    quiet_begin(&quiet, true);
    int rc = CALL(ftruncate(fd, size));
    quiet_end(&quiet, rc == -EFBIG);
    return rc;
}

int cc__os_file_fstat(int fd, struct stat *status) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->file_fstat(fd, status);
    return CALL(fstat(fd, status));
}

int cc__os_file_lock(int fd, enum os_file_lock kind) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->file_lock(fd, kind);
    static const short types[] = {[OS_UNLOCK] = F_UNLCK, [OS_SHARED] = F_RDLCK, [OS_EXCLUSIVE] = F_WRLCK};
    struct flock lock = {.l_type = types[kind], .l_whence = SEEK_SET};
    int rc = CALL(fcntl(fd, F_OFD_SETLK, &lock));
    return rc == -EACCES ? -EAGAIN : rc;
}

/* ---- names ---- */

int cc__os_path_stat_cached(const char *path, bool follow, struct stat *status) {
    const struct os_simulated *s = cc__os_simulation_of_files();
    if (unlikely(s != NULL)) return s->path_stat(path, status);
    int fd = open_known(path, O_PATH | (follow ? 0 : O_NOFOLLOW));
    if (fd < 0) return fd;
    int rc = CALL(fstat(fd, status));
    close_quietly(fd);
    return rc;
}

int cc__os_path_stat(const char *path, bool follow, struct stat *status) {
    const struct os_simulated *s = cc__os_simulation_of_files();
    if (unlikely(s != NULL)) return s->path_stat(path, status);
    return CALL(fstatat(AT_FDCWD, path, status, follow ? 0 : AT_SYMLINK_NOFOLLOW));
}

int cc__os_path_rename(const char *from, const char *to) {
    const struct os_simulated *s = cc__os_simulation_of_files();
    if (unlikely(s != NULL)) return s->path_rename(from, to);
    return CALL(rename(from, to));
}

int cc__os_path_unlink(const char *path, bool directory) {
    const struct os_simulated *s = cc__os_simulation_of_files();
    if (unlikely(s != NULL)) return s->path_unlink(path, directory);
    return CALL(unlinkat(AT_FDCWD, path, directory ? AT_REMOVEDIR : 0));
}

int cc__os_path_mkdir(const char *path, mode_t mode) {
    const struct os_simulated *s = cc__os_simulation_of_files();
    if (unlikely(s != NULL)) return s->path_mkdir(path, mode);
    return CALL(mkdir(path, mode));
}

/* ---- directories ---- */

ssize_t cc__os_dir_read(int fd, void *buffer, size_t size) {
    const struct os_simulated *s = cc__os_simulation_of(fd);
    if (unlikely(s != NULL)) return s->dir_read(fd, buffer, size);
    return CALL(syscall(SYS_getdents64, fd, buffer, size));
}

size_t cc__os_dir_entry(const char *buffer, size_t at, struct os_dir_entry *entry) {
    /* The system's format: d_ino, d_off (64 bits each), d_reclen (16), d_type (8), d_name. */
    enum { LENGTH = 16, TYPE = 18, NAME = 19 };
    unsigned short length;
    memcpy(&entry->inode, buffer + at, sizeof entry->inode);
    memcpy(&length, buffer + at + LENGTH, sizeof length);
    entry->type = (unsigned char)buffer[at + TYPE];
    entry->name = buffer + at + NAME;
    return at + length;
}

/* ---- watching ---- */

int cc__os_watch_open(void) {
    if (unlikely(cc__os_simulation_of_files() != NULL)) return -ENOTSUP;
    return CALL(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

int cc__os_watch_add(int fd, const char *path, uint32_t events) {
    return CALL(inotify_add_watch(fd, path, events));
}

int cc__os_watch_remove(int fd, int id) {
    return CALL(inotify_rm_watch(fd, id));
}
