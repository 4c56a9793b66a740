/* cc_file.h - files: calls that do not block the worker.
 *
 * A file is a descriptor of the system: calls of cc_fd.h and of the system can be used with it, too, and cc_fd_close
 * closes it. What the page cache and the cache of names can answer is done at once, and so are small writes. What has
 * to wait for a disk is done by io_uring or by a thread of the pool for files (cc_blocking.h), and the fiber parks.
 * That is always so with O_DIRECT, and for writes with O_SYNC or O_DSYNC.
 *
 * A call that has begun is waited for: no buffer is read or written after its call has returned. A cancelled caller
 * gets ECANCELED only from a call that has not begun to wait: then nothing was done but what *n counts, which the
 * caches had. So deadlines (CC_WITH_DEADLINE) bound the wait for a thread, not the disk. There are no _until forms but
 * of cc_file_lock and cc_watch_next, which wait for others.
 *
 * All return 0 or an errno value, and leave errno as it is; those of the system are passed on: ENOENT, EACCES, ENOSPC,
 * EIO, EMFILE and so on. EINTR is never returned, nor SIGXFSZ raised: EFBIG. Paths are relative to the working
 * directory. EINVAL: a NULL that is not allowed.
 *
 * Any context; a fiber may switch, an OS thread blocks. Where the system gives no thread, the worker makes the call
 * itself. In a simulation all is done at once; hosts other than the first have files of their own
 * (cc_sim.h).
 */
#ifndef CCC_CC_FILE_H
#define CCC_CC_FILE_H

#include <ccc/cc_base.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

struct iovec; /* <sys/uio.h> */
struct stat;  /* <sys/stat.h> */

/* ---- open ---- */

/* As open(2), close-on-exec: flags O_RDONLY and so on, mode of a file that is created. *fd is -1 when it fails. */
CC_API CC_MUST_CHECK int cc_file_open(int *fd, const char *path, int flags, unsigned mode);

/* A file without a name, for reading and writing, in that directory; it is gone when it is closed. */
CC_API CC_MUST_CHECK int cc_file_temp(int *fd, const char *directory);

/* ---- bytes ---- */

/* In place of an offset: where the descriptor is, which moves on. */
#define CC_FILE_POSITION INT64_C(-1)

/* Reads until there are `size` bytes or the file ends: *n says how many. *n is right also when it ends with an
 * error. ESPIPE: not a file, but a pipe, a socket or a terminal. EINVAL: a negative offset; EOVERFLOW: offset + size is
 * beyond INT64_MAX. */
CC_API CC_MUST_CHECK int cc_file_read(int fd, void *buffer, size_t size, int64_t offset, size_t *n);
CC_API CC_MUST_CHECK int cc_file_readv(int fd, const struct iovec *parts, int count, int64_t offset, size_t *n);

/* The same without waiting for a disk. EAGAIN: it would have to, and nothing was read; if something was, *n says how
 * much, and it returns 0. With O_DIRECT: always EAGAIN. */
CC_API CC_MUST_CHECK int cc_file_read_try(int fd, void *buffer, size_t size, int64_t offset, size_t *n);

/* Writes all of it. n (may be NULL): how much was written, also when it ends with an error. With O_APPEND every offset
 * is the end of the file. */
CC_API CC_MUST_CHECK int cc_file_write(int fd, const void *bytes, size_t size, int64_t offset, size_t *n);
CC_API CC_MUST_CHECK int cc_file_writev(int fd, const struct iovec *parts, int count, int64_t offset, size_t *n);

/* As fsync(2), fdatasync(2), ftruncate(2), fstat(2). */
CC_API CC_MUST_CHECK int cc_file_sync(int fd);
CC_API CC_MUST_CHECK int cc_file_datasync(int fd);
CC_API CC_MUST_CHECK int cc_file_truncate(int fd, int64_t size);
CC_API CC_MUST_CHECK int cc_file_stat(int fd, struct stat *status);

/* ---- names ---- */

/* As stat(2), lstat(2), rename(2), unlink(2), mkdir(2), rmdir(2). */
CC_API CC_MUST_CHECK int cc_path_stat(const char *path, struct stat *status);
CC_API CC_MUST_CHECK int cc_path_lstat(const char *path, struct stat *status);
CC_API CC_MUST_CHECK int cc_path_rename(const char *from, const char *to);
CC_API CC_MUST_CHECK int cc_path_unlink(const char *path);
CC_API CC_MUST_CHECK int cc_path_mkdir(const char *path, unsigned mode);
CC_API CC_MUST_CHECK int cc_path_rmdir(const char *path);

/* ---- directories ---- */

typedef struct CCDir CCDir;

typedef struct CCDirEntry {
    const char *name; /* until the next call with that CCDir; NULL: there are no more */
    uint64_t inode;
    unsigned type; /* DT_REG, DT_DIR and so on of <dirent.h>; DT_UNKNOWN: the file system does not tell */
    uint64_t reserved[2];
} CCDirEntry;

/* Reads a directory, without "." and "..". One caller at a time. cc_dir_close(NULL): nothing. */
CC_API CC_MUST_CHECK int cc_dir_open(CCDir **dir, const char *path);
CC_API CC_MUST_CHECK int cc_dir_next(CCDir *dir, CCDirEntry *entry);
CC_API void cc_dir_close(CCDir *dir);

/* ---- replacing a file ---- */

/* A file gets new content at once: whoever opens it finds the old or the new one, whole, also after a crash.
 *
 *   CCReplace *new_content;
 *   int rc = cc_replace_begin(&new_content, "settings", 0644);
 *   if (rc == 0) rc = cc_file_write(cc_replace_fd(new_content), text, size, 0, NULL);
 *   if (rc == 0) rc = cc_replace_commit(new_content); else cc_replace_abort(new_content);
 */
typedef struct CCReplace CCReplace;

/* Creates a file with a name of its own in the same directory. path need not exist. A symbolic link is replaced, not
 * followed. */
CC_API CC_MUST_CHECK int cc_replace_begin(CCReplace **replace, const char *path, unsigned mode);
/* Its descriptor, for reading and writing; the library closes it. -1: NULL. Does not switch. */
CC_API int cc_replace_fd(const CCReplace *replace);
/* Writes it to the disk, gives it the name, and writes the directory to the disk. `replace` is freed in any case. After
 * an error the old file has its name; but if it is one of writing the directory, which has the name is known
 * only after a crash. */
CC_API CC_MUST_CHECK int cc_replace_commit(CCReplace *replace);
/* Removes it. NULL: nothing. Also in a caller that is cancelled. */
CC_API void cc_replace_abort(CCReplace *replace);

/* ---- locks ---- */

typedef enum CCFileLock { CC_FILE_SHARED = 1, CC_FILE_EXCLUSIVE } CCFileLock;

/* An advisory lock on the whole file, of this opening of it (F_OFD_SETLK): it excludes other processes, and other
 * openings in this one, and goes with the last descriptor of the opening. Who has one gets the other kind in its place.
 * EBADF: a shared one needs a descriptor for reading, an exclusive one for writing. A wait asks again and again, at
 * first after 1 ms, later every 32 ms: the system does not tell when a lock becomes free. There is no order among those
 * who wait. */
CC_API CC_MUST_CHECK int cc_file_lock(int fd, CCFileLock kind);
CC_API CC_MUST_CHECK int cc_file_lock_try(int fd, CCFileLock kind);
CC_API CC_MUST_CHECK int cc_file_lock_until(int fd, CCFileLock kind, CCDeadline deadline);
CC_API int cc_file_unlock(int fd);

/* ---- watching ---- */

/* What happens to files and directories: inotify(7). */
typedef struct CCWatch CCWatch;

typedef struct CCWatchEvent {
    int id;           /* of cc_watch_add; -1: events were lost (IN_Q_OVERFLOW) */
    unsigned events;  /* IN_MODIFY and so on of <sys/inotify.h> */
    unsigned cookie;  /* joins the two halves of a rename */
    const char *name; /* in a watched directory; "" for a watched file; until the next call with that CCWatch */
    uint64_t reserved[2];
} CCWatchEvent;

CC_API CC_MUST_CHECK int cc_watch_open(CCWatch **watch);
/* events: IN_MODIFY | IN_CREATE …; *id (may be NULL) is what its events carry. */
CC_API CC_MUST_CHECK int cc_watch_add(CCWatch *watch, const char *path, unsigned events, int *id);
/* EINVAL: no such id. An event IN_IGNORED follows. */
CC_API int cc_watch_remove(CCWatch *watch, int id);
/* The next event. One caller at a time. Errors of waiting as in cc_fd.h. */
CC_API CC_MUST_CHECK int cc_watch_next(CCWatch *watch, CCWatchEvent *event);
CC_API CC_MUST_CHECK int cc_watch_next_try(CCWatch *watch, CCWatchEvent *event);
CC_API CC_MUST_CHECK int cc_watch_next_until(CCWatch *watch, CCWatchEvent *event, CCDeadline deadline);
/* Nobody may be in a call with it. NULL: nothing. */
CC_API void cc_watch_close(CCWatch *watch);

CC_END_DECLS

#endif
