/* output.c - files that appear atomically; the rules are in output.h. */
#include "output.h"
#include "job.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void output_stdout(struct output *out) {
    *out = (struct output){.fd = STDOUT_FILENO, .name = "standard output"};
}

const char *output_name(const struct output *out) {
    return out->name;
}

/* The directory that a path lies in; to be freed. */
static char *directory_of(const char *path) {
    char *copy = strdup(path);
    if (copy == NULL) return NULL;
    char *parent = strdup(dirname(copy));
    free(copy);
    return parent;
}

/* A new file beside the target, with a unique name. */
static int create_named(struct output *out, const char *path) {
    char *directory = directory_of(path);
    if (directory == NULL) return ENOMEM;
    int error = 0;
    if (asprintf(&out->temporary, "%s/.ccpigz-XXXXXX", directory) < 0) {
        out->temporary = NULL;
        error = ENOMEM;
    } else {
        signals_hold();
        out->fd = mkostemp(out->temporary, O_CLOEXEC);
        error = out->fd < 0 ? errno : 0;
        if (error == 0) signals_remember(out->temporary);
        signals_release();
    }
    if (error != 0) {
        free(out->temporary);
        out->temporary = NULL;
    }
    free(directory);
    return error;
}

int output_create(struct output *out, const char *path) {
    *out = (struct output){.fd = -1, .is_file = true, .name = path};
    char *directory = directory_of(path);
    if (directory == NULL) return ENOMEM;
    /* The file is named through /proc later; without /proc that is impossible. */
    if (access("/proc/self/fd", X_OK) == 0) out->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    free(directory);
    return out->fd >= 0 ? 0 : create_named(out, path);
}

int output_write(struct output *out, const void *data, size_t size) {
    const char *from = data;
    if (cc_in_fiber()) return cc_fd_write(job_pipe(out->fd), data, size, NULL);
    while (size > 0) {
        ssize_t some = write(out->fd, from, size);
        if (some >= 0) {
            from += some;
            size -= (size_t)some;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* Owner first. No set-id bits: what was compressed may not be what another user unpacks. */
static int make_alike(int fd, const struct stat *like) { /* OUTPUT-2 */
    mode_t mode = like->st_mode & 0777;
    if (fchown(fd, like->st_uid, like->st_gid) != 0) {
        if (fchown(fd, (uid_t)-1, like->st_gid) != 0) mode &= ~(mode_t)070 | ((mode & 07) << 3);
    }
    if (fchmod(fd, mode) != 0) return errno;
    struct timespec times[2] = {like->st_atim, like->st_mtim};
    return futimens(fd, times) == 0 ? 0 : errno;
}

/* Gives a file without a name one: the target's, or, if that exists and is to be replaced, a temporary one. */
static int link_unnamed(struct output *out, bool replace) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", out->fd);
    if (linkat(AT_FDCWD, path, AT_FDCWD, out->name, AT_SYMLINK_FOLLOW) == 0) return 0;
    if (errno != EEXIST || !replace) return errno;
    char *directory = directory_of(out->name);
    int error = directory == NULL ? ENOMEM : EEXIST;
    for (unsigned attempt = 0; error == EEXIST && attempt < 100; attempt++) {
        char *name;
        if (asprintf(&name, "%s/.ccpigz-%ld-%u", directory, (long)getpid(), attempt) < 0) {
            error = ENOMEM;
            break;
        }
        error = linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
        if (error == 0) {
            out->temporary = name;
            signals_remember(name);
        } else {
            free(name);
        }
    }
    free(directory);
    return error;
}

/* Moves the temporary name to the target's. */
static int rename_named(struct output *out, bool replace) {
    if (replace) return rename(out->temporary, out->name) == 0 ? 0 : errno;
    if (link(out->temporary, out->name) == 0) return unlink(out->temporary) == 0 ? 0 : errno;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK) return errno;
    /* No hard links here. Another process may create the target between the check and the rename; there is no better
     * way. */
    if (access(out->name, F_OK) == 0) return EEXIST;
    return rename(out->temporary, out->name) == 0 ? 0 : errno;
}

static int sync_directory(const char *path) {
    char *directory = directory_of(path);
    int fd = directory == NULL ? -1 : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    free(directory);
    return error;
}

static void forget(struct output *out) {
    signals_remember(NULL);
    free(out->temporary);
    out->temporary = NULL;
}

int output_commit(struct output *out, const struct stat *like, bool replace, bool synchronous) { /* OUTPUT-1 */
    int error = make_alike(out->fd, like);
    if (error == 0 && synchronous && fsync(out->fd) != 0) error = errno;
    /* Some file systems report only at a close that the disk is full; this close comes before the file is named. */
    int copy = error == 0 ? dup(out->fd) : -1;
    if (copy >= 0 && close(copy) != 0) error = errno;
    if (error == 0) {
        signals_hold();
        if (out->temporary == NULL) error = link_unnamed(out, replace);
        if (error == 0 && out->temporary != NULL) error = rename_named(out, replace);
        if (error == 0) forget(out);
        signals_release();
    }
    if (error == 0 && synchronous) error = sync_directory(out->name);
    output_discard(out);
    return error;
}

void output_discard(struct output *out) {
    if (!out->is_file || out->fd < 0) return;
    close(out->fd);
    out->fd = -1;
    if (out->temporary == NULL) return;
    signals_hold();
    unlink(out->temporary);
    forget(out);
    signals_release();
}
