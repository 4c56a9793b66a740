/* uring.h - io_uring for calls on files: a submission queue and a completion queue.
 *
 * All functions return 0 or -errno. Any error means that io_uring is not available here, to this process, or now.
 */
#ifndef CC_OS_URING_H
#define CC_OS_URING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum uring_kind { URING_READ, URING_SYNC, URING_DATASYNC };

/* One request. The vector, like the memory, stays valid until the completion was taken. */
struct uring_call {
    enum uring_kind kind;
    int fd;
    const struct iovec *parts;
    int count;
    off_t offset; /* in the file: the kernel would not guard the descriptor's position */
};

struct uring_done {
    void *data; /* as it was submitted */
    int32_t result;
};

struct os_uring {
    int fd; /* becomes readable with every completion */
    _Atomic uint32_t *sq_head, *sq_tail, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask;
    void *sqes, *cqes; /* entries of the submission queue and of the completion queue */
    void *rings;
    size_t rings_size, sqes_size;
};

/* completions: how many there is room for; a power of two. */
int cc__os_uring_open(struct os_uring *u, unsigned completions);
/* No request is in flight. */
void cc__os_uring_close(struct os_uring *u);

/* One thread at a time. Not 0: the system has not accepted it. */
int cc__os_uring_submit(struct os_uring *u, const struct uring_call *call, void *data);

/* Whether there are completions. Any thread. */
bool cc__os_uring_any(const struct os_uring *u);
/* Takes the next one; false: there is none. One thread at a time. */
bool cc__os_uring_take(struct os_uring *u, struct uring_done *done);

#endif
