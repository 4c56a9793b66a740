/* uring.c - io_uring by its system calls.
 *
 * When the disk has completed a read, the kernel copies the bytes and writes the completion on the thread that has
 * submitted it: it interrupts that thread, whether it computes or sleeps. If the thread has ended meanwhile, the
 * request fails: with ECANCELED, or with EFAULT if it had to copy from the page cache. What can only be done by
 * blocking, such as a sync, is done by kernel threads.
 */
#include "os/uring.h"

#include "base/san.h"
#include "os/descriptor.h"
#include "os/linux/call.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IORING_FEAT_NATIVE_WORKERS
#define IORING_FEAT_NATIVE_WORKERS (1U << 9)
#endif

enum { SQ_ENTRIES = 64 }; /* requests are submitted singly; before Linux 5.15 it also limits the kernel threads */

/* Kernel threads for the requests of one thread; the default is four for each CPU. As many as a pool has, for file
 * systems that have to ask another machine. */
enum { THREADS_MAX = 64, REGISTER_THREADS = 19 /* IORING_REGISTER_IOWQ_MAX_WORKERS */ };

/* One mapping for both rings, no completion is dropped, and kernel threads that belong to the process (Linux 5.12). */
#define NEEDED (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_NATIVE_WORKERS)

static void *map(int fd, size_t size, uint64_t what) {
    int saved = cc__errno_get();
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)what);
    cc__errno_set(saved);
    return at != MAP_FAILED ? at : NULL;
}

static _Atomic uint32_t *word(const struct os_uring *u, uint32_t at) {
    return (_Atomic uint32_t *)(void *)((char *)u->rings + at);
}

/* Sets the addresses that the system has returned. */
static void locate(struct os_uring *u, const struct io_uring_params *p) {
    u->sq_head = word(u, p->sq_off.head);
    u->sq_tail = word(u, p->sq_off.tail);
    u->cq_head = word(u, p->cq_off.head);
    u->cq_tail = word(u, p->cq_off.tail);
    u->sq_mask = p->sq_entries - 1;
    u->cq_mask = p->cq_entries - 1;
    u->cqes = (char *)u->rings + p->cq_off.cqes;
    for (uint32_t i = 0; i < p->sq_entries; i++) atomic_store(&word(u, p->sq_off.array)[i], i);
}

/* A failure is ignored. */
static void allow_threads(int fd) {
    uint32_t most[2] = {THREADS_MAX, 0};
    (void)CALL((int)syscall(SYS_io_uring_register, fd, REGISTER_THREADS, most, 2));
}

int cc__os_uring_open(struct os_uring *u, unsigned completions) {
    struct io_uring_params p = {.flags = IORING_SETUP_CQSIZE, .cq_entries = completions};
    if (cc__san_on_valgrind()) return -ENOSYS;
    int fd = CALL((int)syscall(SYS_io_uring_setup, SQ_ENTRIES, &p));
    if (fd < 0) return fd;
    fd = cc__os_above_standard(fd);
    *u = (struct os_uring){.fd = fd};
    size_t sq_size = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    size_t cq_size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    u->rings_size = sq_size > cq_size ? sq_size : cq_size;
    u->sqes_size = p.sq_entries * sizeof(struct io_uring_sqe);
    u->rings = map(fd, u->rings_size, IORING_OFF_SQ_RING);
    u->sqes = map(fd, u->sqes_size, IORING_OFF_SQES);
    if (u->rings == NULL || u->sqes == NULL || (p.features & NEEDED) != NEEDED) {
        cc__os_uring_close(u);
        return (p.features & NEEDED) == NEEDED ? -ENOMEM : -ENOSYS;
    }
    locate(u, &p);
    allow_threads(fd);
    return 0;
}

void cc__os_uring_close(struct os_uring *u) {
    int saved = cc__errno_get();
    if (u->sqes != NULL) munmap(u->sqes, u->sqes_size);
    if (u->rings != NULL) munmap(u->rings, u->rings_size);
    close(u->fd);
    cc__errno_set(saved);
}

static struct io_uring_sqe request(const struct uring_call *call, void *data) {
    struct io_uring_sqe sqe = {.fd = call->fd, .user_data = (uint64_t)(uintptr_t)data};
    if (call->kind != URING_READ) {
        sqe.opcode = IORING_OP_FSYNC;
        sqe.fsync_flags = call->kind == URING_DATASYNC ? IORING_FSYNC_DATASYNC : 0;
        return sqe;
    }
    bool one = call->count == 1;
    sqe.opcode = one ? IORING_OP_READ : IORING_OP_READV;
    sqe.addr = (uint64_t)(uintptr_t)(one ? call->parts[0].iov_base : (const void *)call->parts);
    sqe.len = one ? (uint32_t)call->parts[0].iov_len : (uint32_t)call->count;
    sqe.off = (uint64_t)call->offset;
    return sqe;
}

/* One thread calls it, for different fibers: to the race detector those are threads without any order. */
CC_NO_TSAN int cc__os_uring_submit(struct os_uring *u, const struct uring_call *call, void *data) {
    uint32_t tail = atomic_load(u->sq_tail);
    ((struct io_uring_sqe *)u->sqes)[tail & u->sq_mask] = request(call, data);
    atomic_store(u->sq_tail, tail + 1);
    int n = CALL((int)syscall(SYS_io_uring_enter, u->fd, 1, 0, 0, NULL, 0));
    if (likely(atomic_load(u->sq_head) == tail + 1)) return 0;
    atomic_store(u->sq_tail, tail); /* the kernel reads it in that call only */
    return n < 0 ? n : -EAGAIN;
}

bool cc__os_uring_any(const struct os_uring *u) {
    return atomic_load(u->cq_tail) != atomic_load(u->cq_head);
}

bool cc__os_uring_take(struct os_uring *u, struct uring_done *done) {
    uint32_t head = atomic_load(u->cq_head);
    if (atomic_load(u->cq_tail) == head) return false;
    const struct io_uring_cqe *cqe = &((const struct io_uring_cqe *)u->cqes)[head & u->cq_mask];
    *done = (struct uring_done){(void *)(uintptr_t)cqe->user_data, cqe->res};
    atomic_store(u->cq_head, head + 1);
    return true;
}
