/* bytes.c - reads and writes: from the page cache at once, the rest by a ring or on a pool thread.
 *
 * FILE-2  Few file systems can tell that a write would block (ext4 cannot). So small writes are made at once: nearly
 *         all of them only copy to the page cache, in 1 or 2 us, while the pool takes 8 to 50. One that takes longer
 *         than the copy can explain, because the disk cannot keep up, sends all others to the pool for 100 ms: a worker
 *         waits for a disk at most once in that time.
 * FILE-3  A ring copies the data of a read on the thread of the worker that has submitted it, and delays its fibers: so
 *         only small reads use it. Reads at the descriptor's position do not: two of them could read the same bytes.
 * FILE-4  Reads that bypass the page cache (O_DIRECT), and writes that have to be on the disk when they return
 *         (O_DSYNC), always wait for it, and the kernel does not report that in advance: they are not tried at once. A
 *         worker queries a descriptor's mode once for many calls, because that costs a third of a read. If the number
 *         is reused for such a file, it blocks in some calls, until it queries again.
 */
#include "file/file.h"
#include "io/call.h"
#include "io/uring.h"
#include "os/clock.h"
#include "os/file.h"
#include "sim/sim.h"
#include "sync/atomic.h"

#include <ccc/cc_nursery.h>
#include <errno.h>
#include <limits.h>

_Static_assert(sizeof(off_t) == sizeof(int64_t) && CC_FILE_POSITION == OS_POSITION, "as cc_file.h has them");

typedef ssize_t (*transfer_fn)(int fd, const struct iovec *parts, int n, off_t offset);

/* The rest of a transfer. The caller's vector is not changed. */
struct transfer {
    int fd;
    bool writes;
    const struct iovec *parts;
    int count;
    size_t skipped; /* bytes of parts[0] that are done */
    size_t left, done;
    int64_t offset;
};

static void advance(struct transfer *t, size_t n) {
    t->done += n;
    t->left -= n;
    if (t->offset != CC_FILE_POSITION) t->offset += (int64_t)n;
    for (t->skipped += n; t->count > 0 && t->skipped >= t->parts[0].iov_len && t->left > 0; t->parts++, t->count--)
        t->skipped -= t->parts[0].iov_len;
}

/* One system call. */
static ssize_t step(struct transfer *t, transfer_fn fn) {
    if (t->skipped == 0) return fn(t->fd, t->parts, t->count, t->offset);
    struct iovec rest = {(char *)t->parts[0].iov_base + t->skipped, t->parts[0].iov_len - t->skipped};
    return fn(t->fd, &rest, 1, t->offset);
}

/* Until all is transferred, the file ends, or a call fails: 0 or -errno. */
static long run(struct transfer *t, transfer_fn fn) {
    do {
        ssize_t n = step(t, fn);
        if (n < 0) return n;
        if (n == 0) return t->writes && t->left > 0 ? -EIO : 0;
        advance(t, (size_t)n);
    } while (t->left > 0);
    return 0;
}

static long run_waiting(void *arg) {
    struct transfer *t = arg;
    return run(t, t->writes ? cc__os_file_write : cc__os_file_read);
}

/* FILE-2. Guesses: far above the time of a copy, and a small part of the 100 ms. */
enum { AT_ONCE_MAX = 256 * 1024, SLOW_NS = 500 * 1000, SLOW_FOR_NS = 100 * 1000 * 1000 };

static long write_at_once(struct transfer *t) {
    static _Atomic uint64_t slow_until;
    if (cc__sim_on()) return run(t, cc__os_file_write_here); /* independent of how long it takes */
    uint64_t start = cc__clock_real();
    size_t size = t->left;
    if (size > AT_ONCE_MAX || start < cc__get(&slow_until)) return -EAGAIN;
    long rc = run(t, cc__os_file_write_here);
    uint64_t end = cc__clock_real();
    if (end - start > SLOW_NS + size) cc__set(&slow_until, end + SLOW_FOR_NS); /* 1 ns per byte */
    return rc;
}

/* FILE-3. A guess: some 100 us for finding pages and copying. */
enum { RING_MAX = 256 * 1024 };

static ssize_t read_by_ring(int fd, const struct iovec *parts, int n, off_t offset) {
    return cc__uring_call(&(struct uring_call){URING_READ, fd, parts, n, offset});
}

/* FILE-3 */
static bool may_ring(const struct transfer *t) {
    return !t->writes && t->left <= RING_MAX && t->offset != CC_FILE_POSITION && !cc_cancelled();
}

/* FILE-4. Per worker: descriptors whose mode does not make calls wait, and for how many calls this is assumed. */
enum { MODES = 64, BELIEVED = 63 };
static _Atomic uint64_t modes[CC_WORKERS_MAX + ISLANDS_MAX][MODES];

static unsigned waits_by_worker(struct worker *w, int fd) {
    _Atomic uint64_t *mode = &modes[w->core.owner - 1][(unsigned)fd % MODES];
    uint64_t known = cc__get(mode), plain = (uint64_t)(unsigned)fd << 32;
    if (likely(known > plain && known <= plain + BELIEVED)) {
        cc__set(mode, known - 1);
        return 0;
    }
    unsigned waits = cc__os_file_waits(fd);
    cc__set(mode, waits == 0 ? plain + BELIEVED : 0);
    return waits;
}

/* FILE-4. An OS thread may block, unless `may` is false. */
static bool always_waits(const struct transfer *t, bool may) {
    struct worker *w = cc__worker();
    if (unlikely(cc__sim_on())) return false;
    unsigned which = t->writes ? OS_WRITES_WAIT : OS_READS_WAIT;
    if (likely(cc__sched_current(w) != NULL)) return (waits_by_worker(w, t->fd) & which) != 0;
    return !may && (cc__os_file_waits(t->fd) & which) != 0;
}

static int begin(struct transfer *t) {
    size_t sum = 0;
    if (t->count < 0 || t->count > IOV_MAX || (t->count > 0 && t->parts == NULL)) return EINVAL;
    if (t->offset < CC_FILE_POSITION) return EINVAL;
    for (int i = 0; i < t->count; i++) {
        if (t->parts[i].iov_len > SSIZE_MAX - sum || (t->parts[i].iov_base == NULL && t->parts[i].iov_len > 0))
            return EINVAL;
        sum += t->parts[i].iov_len;
    }
    t->left = sum;
    if (t->offset == CC_FILE_POSITION) {
        off_t at = cc__os_file_position(t->fd);
        return at < 0 ? (int)-at : 0;
    }
    return t->offset > INT64_MAX - (int64_t)sum ? EOVERFLOW : 0;
}

static int transfer(struct transfer *t, bool waits, size_t *n) {
    const char *what = t->writes ? "write" : "read";
    long rc = waits ? -cc__call_check_cancel() : 0; /* CALL-4 */
    if (rc != 0) {
        *n = 0;
        return (int)-rc;
    }
    rc = -EAGAIN;
    if (t->left == 0 || !always_waits(t, waits)) rc = t->writes ? write_at_once(t) : run(t, cc__os_file_read_cached);
    bool missed = cc__file_missed(what, rc);
    if (missed && waits && may_ring(t)) {
        rc = run(t, read_by_ring);
        missed = rc == -EAGAIN;
    }
    if (missed && waits) rc = cc__file_call(what, run_waiting, t);
    if (missed && !waits) rc = t->done > 0 ? 0 : -EAGAIN;
    *n = t->done;
    return (int)-rc;
}

static int begin_and_transfer(struct transfer *t, bool waits, size_t *n) {
    size_t ignored;
    if (n == NULL) n = &ignored;
    *n = 0;
    int error = begin(t);
    return error == 0 ? transfer(t, waits, n) : error;
}

int cc_file_readv(int fd, const struct iovec *parts, int count, int64_t offset, size_t *n) {
    struct transfer t = {.fd = fd, .parts = parts, .count = count, .offset = offset};
    return n != NULL ? begin_and_transfer(&t, true, n) : EINVAL;
}

static int read_one(int fd, void *buffer, size_t size, int64_t offset, size_t *n, bool waits) {
    struct iovec one = {buffer, size};
    struct transfer t = {.fd = fd, .parts = &one, .count = 1, .left = size, .offset = offset};
    if (n == NULL) return EINVAL;
    bool usual = buffer != NULL && offset >= 0 && size < INT64_MAX / 2 && offset < INT64_MAX / 2;
    return likely(usual) ? transfer(&t, waits, n) : begin_and_transfer(&t, waits, n);
}

int cc_file_read(int fd, void *buffer, size_t size, int64_t offset, size_t *n) {
    return read_one(fd, buffer, size, offset, n, true);
}

int cc_file_read_try(int fd, void *buffer, size_t size, int64_t offset, size_t *n) {
    return read_one(fd, buffer, size, offset, n, false);
}

int cc_file_writev(int fd, const struct iovec *parts, int count, int64_t offset, size_t *n) {
    struct transfer t = {.fd = fd, .writes = true, .parts = parts, .count = count, .offset = offset};
    return begin_and_transfer(&t, true, n);
}

int cc_file_write(int fd, const void *bytes, size_t size, int64_t offset, size_t *n) {
    struct iovec one = {(void *)(uintptr_t)bytes, size};
    return cc_file_writev(fd, &one, 1, offset, n);
}
