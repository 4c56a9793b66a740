/* cc_file.h - files: calls that do not block the worker.
 *
 * A file is an ordinary descriptor: calls of cc_fd.h and of the system also work with it, and cc_fd_close closes it.
 * Operations that the page cache or the dentry cache can satisfy are done at once, and so are small writes. Operations
 * that have to wait for a disk go through io_uring or run on a thread of the pool for files (cc_blocking.h), and the
 * fiber parks. Reads and writes with O_DIRECT, and writes with O_SYNC or O_DSYNC, always do.
 *
 * A call that has started always runs to completion: no buffer is read or written after its call has returned. A
 * cancelled caller gets ECANCELED only from a call that has not started to wait: then nothing was done beyond what *n
 * counts, which the caches supplied. A loop of calls that the caches satisfy gets it too, after 64 calls (cc_fd.h). So
 * deadlines (CC_WITH_DEADLINE) bound the wait for a thread, not the disk. Only cc_file_lock and cc_watch_next, which
 * wait for others, have _until forms.
 *
 * All return 0 or an errno value, and do not modify errno; errors of the system are passed on: ENOENT, EACCES, ENOSPC,
 * EIO, EMFILE and so on. EINTR is never returned, and EFBIG takes the place of SIGXFSZ. Paths are relative to the
 * working directory. EINVAL: a NULL that is not allowed.
 *
 * Any context; a fiber may switch, an OS thread blocks. If no thread can be created, the worker makes the call itself.
 * In a simulation all calls complete at once; hosts other than the first have their own files (cc_sim.h).
 */
#ifndef CCC_CC_FILE_H
#define CCC_CC_FILE_H

#include <ccc/cc_base.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

struct iovec; /* <sys/uio.h> */
struct stat;  /* <sys/stat.h> */

/* ---- open ---- */

/* As open(2), with O_CLOEXEC: flags O_RDONLY and so on; mode for a file that is created. *fd is -1 on error. */
CC_API CC_MUST_CHECK int cc_file_open(int *fd, const char *path, int flags, unsigned mode);

/* Creates an unnamed file for reading and writing in that directory; it is deleted when it is closed. */
CC_API CC_MUST_CHECK int cc_file_temp(int *fd, const char *directory);

/* ---- bytes ---- */

/* In place of an offset: the descriptor's file position, which is advanced. */
#define CC_FILE_POSITION INT64_C(-1)

/* Reads until `size` bytes or the end of the file: *n says how many, also after an error. ESPIPE: not a file, but a
 * pipe, a socket or a terminal. EINVAL: a negative offset; EOVERFLOW: offset + size is beyond INT64_MAX. */
CC_API CC_MUST_CHECK int cc_file_read(int fd, void *buffer, size_t size, int64_t offset, size_t *n);
CC_API CC_MUST_CHECK int cc_file_readv(int fd, const struct iovec *parts, int count, int64_t offset, size_t *n);

/* The same without waiting for a disk. EAGAIN: it would have to wait, and nothing was read. If something was read, it
 * returns 0 and *n says how much. With O_DIRECT: always EAGAIN. */
CC_API CC_MUST_CHECK int cc_file_read_try(int fd, void *buffer, size_t size, int64_t offset, size_t *n);

/* Writes all `size` bytes. n (may be NULL): how many were written, also after an error. With O_APPEND every offset is
 * the end of the file. */
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
    const char *name; /* valid until the next call with that CCDir; NULL: no more entries */
    uint64_t inode;
    unsigned type; /* DT_REG, DT_DIR and so on of <dirent.h>; DT_UNKNOWN: the file system does not tell */
    uint64_t reserved[2];
} CCDirEntry;

/* Reads a directory, without "." and "..". One caller at a time. cc_dir_close(NULL) does nothing. */
CC_API CC_MUST_CHECK int cc_dir_open(CCDir **dir, const char *path);
CC_API CC_MUST_CHECK int cc_dir_next(CCDir *dir, CCDirEntry *entry);
CC_API void cc_dir_close(CCDir *dir);

/* ---- replacing a file ---- */

/* Replaces a file atomically: a reader finds either the old or the new content, complete, also after a crash.
 *
 *   CCReplace *new_content;
 *   int rc = cc_replace_begin(&new_content, "settings", 0644);
 *   if (rc == 0) rc = cc_file_write(cc_replace_fd(new_content), text, size, 0, NULL);
 *   if (rc == 0) rc = cc_replace_commit(new_content); else cc_replace_abort(new_content);
 */
typedef struct CCReplace CCReplace;

/* Creates a temporary file in the same directory. path need not exist. A symbolic link is replaced, not followed. A
 * relative path counts from the working directory of the process: it must not be changed until the commit or abort. */
CC_API CC_MUST_CHECK int cc_replace_begin(CCReplace **replace, const char *path, unsigned mode);
/* The temporary file's descriptor, for reading and writing; the library closes it. -1 for NULL. Does not switch. */
CC_API int cc_replace_fd(const CCReplace *replace);
/* Syncs the new file, renames it to path, and syncs the directory. Frees `replace` in any case. After an error the old
 * file is still in place, except after an error of the last step: then the new file is in place, but a crash may bring
 * back the old one. */
CC_API CC_MUST_CHECK int cc_replace_commit(CCReplace *replace);
/* Removes the temporary file, also if the caller is cancelled. NULL is allowed. */
CC_API void cc_replace_abort(CCReplace *replace);

/* ---- locks ---- */

typedef enum CCFileLock { CC_FILE_SHARED = 1, CC_FILE_EXCLUSIVE } CCFileLock;

/* An advisory lock on the whole file, owned by the open file description (F_OFD_SETLK): it excludes other processes and
 * other open file descriptions of this one, and is released with the last descriptor of its description. Locking again
 * converts the lock to the other kind. EBADF: a shared lock needs a descriptor open for reading, an exclusive one for
 * writing. A wait polls, first after 1 ms, later every 32 ms, because the system does not signal when a lock becomes
 * free. Waiters are served in no particular order. */
CC_API CC_MUST_CHECK int cc_file_lock(int fd, CCFileLock kind);
CC_API CC_MUST_CHECK int cc_file_lock_try(int fd, CCFileLock kind);
CC_API CC_MUST_CHECK int cc_file_lock_until(int fd, CCFileLock kind, CCDeadline deadline);
CC_API int cc_file_unlock(int fd);

/* ---- watching ---- */

/* Watches files and directories: inotify(7). */
typedef struct CCWatch CCWatch;

typedef struct CCWatchEvent {
    int id;           /* of cc_watch_add; -1: events were lost (IN_Q_OVERFLOW) */
    unsigned events;  /* IN_MODIFY and so on of <sys/inotify.h> */
    unsigned cookie;  /* connects the two events of a rename */
    const char *name; /* in a watched directory; "" for a watched file; until the next call with that CCWatch */
    uint64_t reserved[2];
} CCWatchEvent;

CC_API CC_MUST_CHECK int cc_watch_open(CCWatch **watch);
/* events: IN_MODIFY, IN_CREATE and so on; *id (may be NULL) identifies its events. */
CC_API CC_MUST_CHECK int cc_watch_add(CCWatch *watch, const char *path, unsigned events, int *id);
/* EINVAL: no such id. An event IN_IGNORED follows. */
CC_API int cc_watch_remove(CCWatch *watch, int id);
/* The next event. One caller at a time. Errors of waiting as in cc_fd.h. */
CC_API CC_MUST_CHECK int cc_watch_next(CCWatch *watch, CCWatchEvent *event);
CC_API CC_MUST_CHECK int cc_watch_next_try(CCWatch *watch, CCWatchEvent *event);
CC_API CC_MUST_CHECK int cc_watch_next_until(CCWatch *watch, CCWatchEvent *event, CCDeadline deadline);
/* No other call may be in progress. NULL is allowed. */
CC_API void cc_watch_close(CCWatch *watch);

CC_END_DECLS

#endif
