/* simulated.h - the simulated operating system: replaces system calls in a simulation (sim/).
 *
 * Simulated descriptors have the numbers from OS_SIMULATED on. Calls on a descriptor compare its number with that
 * constant, and calls that create one or name a file check one pointer: that is the only cost when nothing is
 * simulated. Results are those of the functions with the same names in os/descriptor.h, os/socket.h, os/poller.h and
 * os/file.h.
 */
#ifndef CC_OS_SIMULATED_H
#define CC_OS_SIMULATED_H

#include "base/attr.h"
#include "os/file.h"
#include "os/poller.h"
#include "os/socket.h"

/* Above the system's numbers: by default a process has at most 2^20 descriptors. */
enum { OS_SIMULATED = 1 << 23 };

struct os_simulated {
    /* descriptors */
    int (*close)(int fd);
    int (*valid)(int fd);
    bool (*is_socket)(int fd);
    void (*describe)(int fd, bool out, char *text, size_t size);
    ssize_t (*readv)(int fd, const struct iovec *parts, int n);
    ssize_t (*writev)(int fd, const struct iovec *parts, int n);
    ssize_t (*recvmsg)(int fd, struct msghdr *message, int flags);
    ssize_t (*sendmsg)(int fd, const struct msghdr *message, int flags);
    int (*accept)(int fd, struct sockaddr *address, socklen_t *length);
    int (*connect)(int fd, const struct sockaddr *address, socklen_t length);
    int (*connected)(int fd);

    /* sockets */
    int (*socket)(int family, int type);
    int (*pair)(int fds[2], bool is_pipe);
    int (*spare_fd)(void);
    int (*bind)(int fd, const struct sockaddr *address, socklen_t length);
    int (*listen)(int fd, unsigned backlog);
    int (*name)(int fd, bool peer, struct sockaddr *address, socklen_t *length);
    int (*shutdown)(int fd, bool read, bool write);
    int (*set)(int fd, enum os_socket_option option, unsigned value);
    ssize_t (*peek)(int fd);
    int (*credentials)(int fd, int64_t *pid, uint32_t *uid, uint32_t *gid);
    ssize_t (*send_many)(int fd, struct mmsghdr *list, unsigned count);
    ssize_t (*receive_many)(int fd, struct mmsghdr *list, unsigned count);

    /* poller; sides 0: every edge */
    int (*watch)(int fd, uint64_t data, unsigned sides);
    int (*watch_again)(int fd, uint64_t data);
    void (*unwatch)(int fd);
    unsigned (*wait)(struct poller_event *events);
    int (*look)(int fd, unsigned sides);
    short (*poll)(int fd, short events); /* the result of an entry of poll(2) */
    /* When the next event happens by itself; UINT64_MAX: never. */
    uint64_t (*next_due)(void);

    /* files of the caller's host */
    bool (*has_files)(void);
    ssize_t (*file_read)(int fd, const struct iovec *parts, int n, off_t offset);
    ssize_t (*file_write)(int fd, const struct iovec *parts, int n, off_t offset);
    int (*file_open)(const char *path, int flags, mode_t mode);
    int (*file_temp)(const char *directory);
    int (*file_sync)(int fd);
    int (*file_truncate)(int fd, off_t size);
    int (*file_fstat)(int fd, struct stat *status);
    int (*file_lock)(int fd, enum os_file_lock kind);
    int (*path_stat)(const char *path, struct stat *status);
    int (*path_rename)(const char *from, const char *to);
    int (*path_unlink)(const char *path, bool directory);
    int (*path_mkdir)(const char *path, mode_t mode);
    ssize_t (*dir_read)(int fd, void *buffer, size_t size);
};

/* NULL: nothing is simulated. It changes only before the runtime starts and after it has ended. */
const struct os_simulated *cc__os_simulation(void);
void cc__os_simulate(const struct os_simulated *simulation);

/* For a descriptor; NULL: it is one of the system's. */
CC_INLINE const struct os_simulated *cc__os_simulation_of(int fd) {
    return likely(fd < OS_SIMULATED) ? NULL : cc__os_simulation();
}

/* NULL: the caller's files are the system's. */
CC_INLINE const struct os_simulated *cc__os_simulation_of_files(void) {
    const struct os_simulated *s = cc__os_simulation();
    return likely(s == NULL) || !s->has_files() ? NULL : s;
}

#endif
