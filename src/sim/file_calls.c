/* file_calls.c - the calls of os/simulated.h on files: each enters the simulated system, calls the disk, and leaves. */
#include "sim/system.h"

#include <errno.h>

bool cc__sys_has_files(void) {
    cc__lock_take(&cc__sys.lock);
    bool own = cc__sys_placement().host != 0;
    cc__lock_release(&cc__sys.lock);
    return own;
}

static struct sock *enter_file(int fd, int *error) {
    struct sock *s = cc__sys_enter(fd, error);
    if (s == NULL || s->kind == SOCK_FILE) return s;
    cc__sys_leave();
    *error = -EINVAL;
    return NULL;
}

ssize_t cc__sys_file_read(int fd, const struct iovec *parts, int n, off_t offset) {
    int error;
    CC_SYS_LEAVE struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error == -EINVAL ? -ESPIPE : error;
    return cc__disk_read(s, parts, (size_t)n, offset);
}

ssize_t cc__sys_file_write(int fd, const struct iovec *parts, int n, off_t offset) {
    int error;
    CC_SYS_LEAVE struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error == -EINVAL ? -ESPIPE : error;
    return cc__disk_write(s, parts, (size_t)n, offset);
}

int cc__sys_file_open(const char *path, int flags, mode_t mode) {
    CC_SYS_ALONE;
    struct sys_placement at = cc__sys_placement();
    return cc__sys_placement_gone(at) ? -ECANCELED : cc__disk_open(at.host, path, flags, mode);
}

int cc__sys_file_temp(const char *directory) {
    CC_SYS_ALONE;
    struct sys_placement at = cc__sys_placement();
    return cc__sys_placement_gone(at) ? -ECANCELED : cc__disk_temp(at.host, directory);
}

int cc__sys_file_sync(int fd) {
    int error;
    CC_SYS_LEAVE struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error;
    return cc__disk_sync(s);
}

int cc__sys_file_truncate(int fd, off_t size) {
    int error;
    CC_SYS_LEAVE struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error;
    return cc__disk_truncate(s, size);
}

int cc__sys_file_fstat(int fd, struct stat *status) {
    int error;
    CC_SYS_LEAVE struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error;
    return cc__disk_fstat(s, status);
}

int cc__sys_file_lock(int fd, enum os_file_lock kind) {
    int error;
    CC_SYS_LEAVE struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error;
    return cc__disk_lock(s, kind);
}

int cc__sys_path_stat(const char *path, struct stat *status) {
    CC_SYS_ALONE;
    struct sys_placement at = cc__sys_placement();
    return cc__sys_placement_gone(at) ? -ECANCELED : cc__disk_stat(at.host, path, status);
}

int cc__sys_path_rename(const char *from, const char *to) {
    CC_SYS_ALONE;
    struct sys_placement at = cc__sys_placement();
    return cc__sys_placement_gone(at) ? -ECANCELED : cc__disk_rename(at.host, from, to);
}

int cc__sys_path_unlink(const char *path, bool directory) {
    CC_SYS_ALONE;
    struct sys_placement at = cc__sys_placement();
    return cc__sys_placement_gone(at) ? -ECANCELED : cc__disk_unlink(at.host, path, directory);
}

int cc__sys_path_mkdir(const char *path, mode_t mode) {
    CC_SYS_ALONE;
    struct sys_placement at = cc__sys_placement();
    return cc__sys_placement_gone(at) ? -ECANCELED : cc__disk_mkdir(at.host, path, mode);
}

ssize_t cc__sys_dir_read(int fd, void *buffer, size_t size) {
    int error;
    CC_SYS_LEAVE struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error;
    return cc__disk_dir_read(s, buffer, size);
}
