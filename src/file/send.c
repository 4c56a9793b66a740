/* send.c - from a file to a descriptor: cc_fd_sendfile.
 *
 * FILE-5  sendfile(2) waits for data that is not in the page cache, and nothing tells it not to. So a fiber sends at
 *         most SEND_MAX bytes at a time. It first checks whether their first and last page are cached, and has a pool
 *         thread read all of them if one is not. If the file ends before, its last page is checked instead. The worker
 *         still waits if only pages between the two are missing, if pages are evicted before they are sent, or on a
 *         file system without RWF_NOWAIT: elastic workers bound that.
 */
#include "file/file.h"
#include "io/call.h"
#include "os/file.h"
#include "sim/sim.h"

#include <ccc/cc_fd.h>
#include <errno.h>
#include <sys/stat.h>

enum {
    SEND_MAX = 1024 * 1024, /* about what a socket's buffer accepts at once */
    PAGE = 4096,            /* the least that there is */
};

struct range {
    int fd;
    int64_t offset;
    size_t size;
};

/* 1: the byte is cached; 0: the file ends before; -EAGAIN: it is not cached; or another error. */
static ssize_t look(int fd, int64_t offset) {
    char byte;
    struct iovec one = {&byte, 1};
    return cc__os_file_read_cached(fd, &one, 1, offset);
}

static bool is_missing(int fd, int64_t from, size_t size) {
    struct stat status;
    ssize_t first = look(fd, from);
    if (first != 1) return first == -EAGAIN;
    ssize_t last = look(fd, from + (int64_t)size - 1);
    if (last == 0 && cc__os_file_fstat(fd, &status) == 0 && status.st_size > from) last = look(fd, status.st_size - 1);
    return last == -EAGAIN;
}

/* Reads a byte of each page of the range, and so the range into the page cache. The send reports errors. A byte at a
 * time, because it runs on the caller's stack if no thread can be created. */
static long read_range(void *arg) {
    struct range *r = arg;
    int64_t end = r->offset + (int64_t)r->size;
    char byte;
    struct iovec one = {&byte, 1};
    for (int64_t at = r->offset; at < end; at = (at / PAGE + 1) * PAGE)
        if (cc__os_file_read(r->fd, &one, 1, at) <= 0) break;
    return 0;
}

/* FILE-5. Reduces *count. 0 or ECANCELED. */
static int prepare(int file, const int64_t *offset, size_t *count) {
    if (cc__sched_current(cc__worker()) == NULL || cc__sim_on() || *count == 0) return 0;
    int64_t at = offset != NULL ? *offset : cc__os_file_position(file);
    size_t size = *count < SEND_MAX ? *count : SEND_MAX;
    if (at < 0 || at > INT64_MAX - SEND_MAX) return 0; /* the send fails */
    *count = size;
    if (!is_missing(file, at, size)) return 0;
    return cc__file_call("sendfile", read_range, &(struct range){file, at, size}) == -ECANCELED ? ECANCELED : 0;
}

int cc_fd_sendfile_until(int to, int file, int64_t *offset, size_t count, size_t *n, CCDeadline deadline) {
    if (n == NULL) return EINVAL;
    *n = 0;
    int error = prepare(file, offset, &count);
    return error != 0 ? error : cc__call_sendfile(to, file, offset, count, n, HOW_WAIT, deadline);
}

int cc_fd_sendfile(int to, int file, int64_t *offset, size_t count, size_t *n) {
    return cc_fd_sendfile_until(to, file, offset, count, n, CC_FOREVER);
}

int cc_fd_sendfile_try(int to, int file, int64_t *offset, size_t count, size_t *n) {
    return cc__call_sendfile(to, file, offset, count, n, HOW_TRY, CC_FOREVER);
}
