/* file.h - system calls on files: their results, or -errno. Never -EINTR.
 *
 * Those with `cached` do only what needs no disk, else -EAGAIN.
 */
#ifndef CC_OS_FILE_H
#define CC_OS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Instead of an offset: the descriptor's position. */
#define OS_POSITION (-1)

/* -EOPNOTSUPP, -ENOSYS: this file, or this system, does not support it. */
ssize_t cc__os_file_read_cached(int fd, const struct iovec *parts, int n, off_t offset);
/* A plain write; -EAGAIN if it could raise SIGXFSZ. */
ssize_t cc__os_file_write_here(int fd, const struct iovec *parts, int n, off_t offset);
ssize_t cc__os_file_read(int fd, const struct iovec *parts, int n, off_t offset);
/* Raises no signal. */
ssize_t cc__os_file_write(int fd, const struct iovec *parts, int n, off_t offset);
/* The position (of a simulated file 0); -ESPIPE: it has none. */
off_t cc__os_file_position(int fd);
/* Which calls on it wait for the disk even if the caches have the data: OS_READS_WAIT, OS_WRITES_WAIT. */
enum { OS_READS_WAIT = 1, OS_WRITES_WAIT = 2 };
unsigned cc__os_file_waits(int fd);

/* *waits: it is a FIFO without a writer yet, opened for reading; opening it again waits for a writer. */
int cc__os_file_open_cached(const char *path, int flags, bool *waits);
int cc__os_file_open(const char *path, int flags, mode_t mode);
/* Without a name. */
int cc__os_file_temp(const char *directory);
int cc__os_file_sync(int fd, bool data_only);
int cc__os_file_truncate(int fd, off_t size);
int cc__os_file_fstat(int fd, struct stat *status);

int cc__os_path_stat_cached(const char *path, bool follow, struct stat *status);
int cc__os_path_stat(const char *path, bool follow, struct stat *status);
int cc__os_path_rename(const char *from, const char *to);
int cc__os_path_unlink(const char *path, bool directory);
int cc__os_path_mkdir(const char *path, mode_t mode);

/* Entries in the system's format, for cc__os_dir_entry; 0: no more. */
ssize_t cc__os_dir_read(int fd, void *buffer, size_t size);
struct os_dir_entry {
    const char *name;
    uint64_t inode;
    unsigned type;
};
/* Reads the entry at `at`; returns the position of the next. */
size_t cc__os_dir_entry(const char *buffer, size_t at, struct os_dir_entry *entry);

enum os_file_lock { OS_UNLOCK, OS_SHARED, OS_EXCLUSIVE };
/* Locks the open file description, without waiting: -EAGAIN. */
int cc__os_file_lock(int fd, enum os_file_lock kind);

/* A descriptor for events, non-blocking. */
int cc__os_watch_open(void);
int cc__os_watch_add(int fd, const char *path, uint32_t events);
int cc__os_watch_remove(int fd, int id);

#endif
