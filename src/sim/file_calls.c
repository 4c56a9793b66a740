/* file_calls.c - the calls of os/simulated.h on files: each enters the simulated system, calls the disk, and leaves. */
#include "sim/system.h"

#include <errno.h>

bool cc__sys_has_files(void) {
    cc__lock_take(&cc__sys.lock);
    bool own = cc__sys_placement().host != 0;
    cc__lock_release(&cc__sys.lock);
    return own;
}

/* For the files of the caller's host, by name: 0 or -ECANCELED. */
static int enter_files(uint32_t *host) {
    cc__sys_enter_alone();
    struct sys_placement placement = cc__sys_placement();
    *host = placement.host;
    if (!cc__sys_placement_gone(placement)) return 0;
    cc__sys_leave();
    return -ECANCELED;
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
    struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error == -EINVAL ? -ESPIPE : error;
    ssize_t rc = cc__disk_read(s, parts, (size_t)n, offset);
    cc__sys_leave();
    return rc;
}

ssize_t cc__sys_file_write(int fd, const struct iovec *parts, int n, off_t offset) {
    int error;
    struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error == -EINVAL ? -ESPIPE : error;
    ssize_t rc = cc__disk_write(s, parts, (size_t)n, offset);
    cc__sys_leave();
    return rc;
}

int cc__sys_file_open(const char *path, int flags, mode_t mode) {
    uint32_t host;
    int rc = enter_files(&host);
    if (rc != 0) return rc;
    rc = cc__disk_open(host, path, flags, mode);
    cc__sys_leave();
    return rc;
}

int cc__sys_file_temp(const char *directory) {
    uint32_t host;
    int rc = enter_files(&host);
    if (rc != 0) return rc;
    rc = cc__disk_temp(host, directory);
    cc__sys_leave();
    return rc;
}

int cc__sys_file_sync(int fd) {
    int error;
    struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error;
    int rc = cc__disk_sync(s);
    cc__sys_leave();
    return rc;
}

int cc__sys_file_truncate(int fd, off_t size) {
    int error;
    struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error;
    int rc = cc__disk_truncate(s, size);
    cc__sys_leave();
    return rc;
}

int cc__sys_file_fstat(int fd, struct stat *status) {
    int error;
    struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error;
    int rc = cc__disk_fstat(s, status);
    cc__sys_leave();
    return rc;
}

int cc__sys_file_lock(int fd, enum os_file_lock kind) {
    int error;
    struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error;
    int rc = cc__disk_lock(s, kind);
    cc__sys_leave();
    return rc;
}

int cc__sys_path_stat(const char *path, struct stat *status) {
    uint32_t host;
    int rc = enter_files(&host);
    if (rc != 0) return rc;
    rc = cc__disk_stat(host, path, status);
    cc__sys_leave();
    return rc;
}

int cc__sys_path_rename(const char *from, const char *to) {
    uint32_t host;
    int rc = enter_files(&host);
    if (rc != 0) return rc;
    rc = cc__disk_rename(host, from, to);
    cc__sys_leave();
    return rc;
}

int cc__sys_path_unlink(const char *path, bool directory) {
    uint32_t host;
    int rc = enter_files(&host);
    if (rc != 0) return rc;
    rc = cc__disk_unlink(host, path, directory);
    cc__sys_leave();
    return rc;
}

int cc__sys_path_mkdir(const char *path, mode_t mode) {
    uint32_t host;
    int rc = enter_files(&host);
    if (rc != 0) return rc;
    rc = cc__disk_mkdir(host, path, mode);
    cc__sys_leave();
    return rc;
}

ssize_t cc__sys_dir_read(int fd, void *buffer, size_t size) {
    int error;
    struct sock *s = enter_file(fd, &error);
    if (s == NULL) return error;
    ssize_t rc = cc__disk_dir_read(s, buffer, size);
    cc__sys_leave();
    return rc;
}
