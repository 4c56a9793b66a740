/* job.c - reads the input, and reopens pipes in non-blocking mode. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int job_pipe(int fd) {
    static int own[2] = {-1, -1};
    struct stat info;
    char path[32];
    if (fd > STDOUT_FILENO) return fd;
    if (own[fd] >= 0) return own[fd];
    own[fd] = fd;
    if (fstat(fd, &info) != 0 || !S_ISFIFO(info.st_mode)) return fd;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int opened = open(path, (fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (opened >= 0 && cc_fd_adopt(opened) == 0)
        own[fd] = opened;
    else if (opened >= 0)
        close(opened);
    return own[fd];
}

size_t job_read_some(struct job *job, void *to, size_t n, int *error) {
    size_t some = 0;
    if (cc_in_fiber()) {
        *error = cc_fd_read(job_pipe(job->in), to, n, &some);
        return some;
    }
    for (*error = 0;;) {
        struct pollfd wait = {.fd = job->in, .events = POLLIN};
        if (job->in_may_block) (void)poll(&wait, 1, -1);
        ssize_t got = read(job->in, to, n);
        if (got >= 0) return (size_t)got;
        if (errno != EINTR && errno != EAGAIN) {
            *error = errno;
            return 0;
        }
    }
}

size_t job_read(struct job *job, void *to, size_t n, int *error) {
    size_t got = 0, some;
    *error = 0;
    while (got < n && (some = job_read_some(job, (char *)to + got, n - got, error)) > 0) got += some;
    return got;
}
