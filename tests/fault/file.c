/* file.c - files and blocking calls while the system fails: every call of os/linux/file.c, interrupted, and with its
 * errors; no thread for the pool; and every call of os/linux/uring.c. */
#include "fail.h"
#include "harness.h"

#include "../unit/tempdir.h"

#include <ccc/ccc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* The calls of one kind fail `times` times. */
enum kind {
    NONE,
    READ_CACHED,
    WRITE_CACHED,
    READ,
    WRITE,
    OPEN,
    SYNC,
    TRUNCATE,
    STAT,
    RENAME,
    UNLINK,
    MKDIR,
    WATCH,
    ADD
};

static struct {
    _Atomic int kind, error, times, failed;
    _Atomic int off; /* a kind that is not supported */
} next;

static void arm(enum kind kind, int error, int times) {
    atomic_store(&next.error, error);
    atomic_store(&next.times, times);
    atomic_store(&next.failed, 0);
    atomic_store(&next.kind, kind);
}

static int disarm(void) {
    atomic_store(&next.kind, NONE);
    return atomic_load(&next.failed);
}

static bool fails(enum kind kind) {
    if ((int)kind == atomic_load(&next.off)) {
        cc__errno_set(EOPNOTSUPP);
        return true;
    }
    if (atomic_load(&next.kind) != (int)kind || atomic_fetch_sub(&next.times, 1) <= 0) return false;
    atomic_fetch_add(&next.failed, 1);
    cc__errno_set(atomic_load(&next.error));
    return true;
}

#define WRAP(type, name, kind, parameters, arguments)      \
    type __real_##name parameters;                         \
    type __wrap_##name parameters;                         \
    type __wrap_##name parameters {                        \
        return fails(kind) ? -1 : __real_##name arguments; \
    }
/* A byte that is not in the page cache; -1: none. */
static _Atomic off_t missing = -1;
ssize_t __real_preadv2(int fd, const struct iovec *p, int n, off_t o, int f);
ssize_t __wrap_preadv2(int fd, const struct iovec *p, int n, off_t o, int f);
ssize_t __wrap_preadv2(int fd, const struct iovec *p, int n, off_t o, int f) {
    bool absent = atomic_load(&missing) == o;
    if (absent) cc__errno_set(EAGAIN);
    return absent || fails(READ_CACHED) ? -1 : __real_preadv2(fd, p, n, o, f);
}
WRAP(ssize_t, preadv, READ, (int fd, const struct iovec *p, int n, off_t o), (fd, p, n, o))
WRAP(ssize_t, pwritev, WRITE, (int fd, const struct iovec *p, int n, off_t o), (fd, p, n, o))
WRAP(int, fsync, SYNC, (int fd), (fd))
WRAP(int, fdatasync, SYNC, (int fd), (fd))
WRAP(int, ftruncate, TRUNCATE, (int fd, off_t size), (fd, size))
WRAP(int, fstatat, STAT, (int fd, const char *path, struct stat *s, int f), (fd, path, s, f))
WRAP(int, rename, RENAME, (const char *from, const char *to), (from, to))
WRAP(int, unlinkat, UNLINK, (int fd, const char *path, int flags), (fd, path, flags))
WRAP(int, mkdir, MKDIR, (const char *path, mode_t mode), (path, mode))
WRAP(int, inotify_init1, WATCH, (int flags), (flags))
WRAP(int, inotify_add_watch, ADD, (int fd, const char *path, uint32_t mask), (fd, path, mask))

int __real_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    return fails(OPEN) ? -1 : __real_openat(at, path, flags, mode);
}

static int fd; /* of a file with some bytes */

static int reads(void) {
    char text[4];
    size_t n;
    int rc = cc_file_read(fd, text, sizeof text, 0, &n);
    CHECK(rc != 0 || (n == 4 && memcmp(text, "text", 4) == 0));
    return rc;
}
static int writes(void) {
    size_t n;
    int rc = cc_file_write(fd, "text", 4, 0, &n);
    CHECK_EQ(n, rc == 0 ? 4 : 0);
    return rc;
}
/* The page cache cannot be asked. */
static int reads_waiting(void) {
    atomic_store(&next.off, READ_CACHED);
    int rc = reads();
    atomic_store(&next.off, NONE);
    return rc;
}
/* Not at once. */
static int writes_waiting(void) {
    struct rlimit before, limit;
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 1 << 30; /* a limit: SIGXFSZ could come, which a thread of the pool knows how to handle */
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int rc = writes();
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    return rc;
}
static int stats_waiting(void) {
    struct stat status;
    fail_arm(1, FAIL_CALL, true); /* no openat2 */
    int rc = cc_path_lstat(".", &status);
    CHECK(fail_disarm() >= 1 || cc__san_on_valgrind()); /* which is not asked there */
    return rc;
}
static int opens(void) {
    int other;
    int rc = cc_file_open(&other, "created", O_RDWR | O_CREAT, 0600);
    CHECK((rc == 0) == (other >= 0));
    if (rc == 0) CHECK_EQ(cc_fd_close(other), 0);
    return rc;
}
static int temps(void) {
    int other;
    int rc = cc_file_temp(&other, ".");
    if (rc == 0) CHECK_EQ(cc_fd_close(other), 0);
    return rc;
}
static int syncs(void) {
    int rc = cc_file_sync(fd), again = cc_file_datasync(fd);
    return rc != 0 ? rc : again;
}
static int truncates(void) {
    return cc_file_truncate(fd, 4);
}
static int renames(void) {
    CHECK_EQ(mknod("from", S_IFREG | 0600, 0), 0);
    int rc = cc_path_rename("from", "to");
    CHECK_EQ(unlink(rc == 0 ? "to" : "from"), 0);
    return rc;
}
static int unlinks(void) {
    CHECK_EQ(mknod("gone", S_IFREG | 0600, 0), 0);
    int rc = cc_path_unlink("gone");
    if (rc != 0) CHECK_EQ(unlink("gone"), 0);
    return rc;
}
static int mkdirs(void) {
    int rc = cc_path_mkdir("directory", 0700);
    if (rc == 0) CHECK_EQ(cc_path_rmdir("directory"), 0);
    return rc;
}
static int watches(void) {
    CCWatch *watch;
    int rc = cc_watch_open(&watch);
    if (rc != 0) return rc;
    rc = cc_watch_add(watch, ".", IN_CREATE, NULL);
    cc_watch_close(watch);
    return rc;
}
static bool is_empty_but_for_file(void) {
    CCDir *dir;
    CCDirEntry entry;
    bool other = false;
    CHECK_EQ(cc_dir_open(&dir, "."), 0);
    do {
        CHECK_EQ(cc_dir_next(dir, &entry), 0);
        other |= entry.name != NULL && strcmp(entry.name, "file") != 0;
    } while (entry.name != NULL);
    cc_dir_close(dir);
    return !other;
}
static int replaces(void) {
    CCReplace *replace;
    int rc = cc_replace_begin(&replace, "replaced", 0600);
    if (rc == 0) rc = cc_replace_commit(replace);
    if (rc == 0) CHECK_EQ(unlink("replaced"), 0);
    return rc;
}

static const struct row {
    enum kind kind;
    int (*call)(void);
    int errors[4];
    bool falls_back; /* to a call that works */
} rows[] = {
    {READ_CACHED, reads, {EIO, EISDIR}, false},
    {READ_CACHED, reads, {EAGAIN, EOPNOTSUPP, ENOSYS}, true},
    {WRITE, writes, {ENOSPC, EIO, EDQUOT, EFBIG}, false},
    {READ, reads_waiting, {EIO, EINVAL}, false},
    {WRITE, writes_waiting, {ENOSPC, EIO, EDQUOT, EFBIG}, false},
    {STAT, stats_waiting, {EIO, ENOENT, ENOMEM}, false},
    {OPEN, opens, {EMFILE, ENFILE, ENOMEM, EACCES}, false},
    {OPEN, temps, {EMFILE, ENFILE, ENOSPC, EROFS}, false},
    {OPEN, temps, {EOPNOTSUPP}, true},
    {SYNC, syncs, {EIO, ENOSPC, EDQUOT}, false},
    {TRUNCATE, truncates, {EIO, EFBIG, EPERM}, false},
    {RENAME, renames, {ENOSPC, EIO, EXDEV, EROFS}, false},
    {UNLINK, unlinks, {EIO, EBUSY, EROFS}, false},
    {MKDIR, mkdirs, {ENOSPC, EMLINK, EROFS}, false},
    {WATCH, watches, {EMFILE, ENFILE, ENOMEM}, false},
    {ADD, watches, {ENOSPC, ENOMEM, EACCES}, false},
    {OPEN, replaces, {ENOSPC, EMFILE}, false},
    {SYNC, replaces, {EIO, ENOSPC}, false},
    {RENAME, replaces, {EIO, ENOSPC}, false},
};

static void *every_row(void *arg) {
    int rc, failed;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        arm(row->kind, EINTR, 3); /* which is retried */
        rc = row->call();
        failed = disarm();
        CHECK_EQ(rc, 0);
        CHECK_EQ(failed, 3);
        for (int k = 0; k < 4 && row->errors[k] != 0; k++) {
            arm(row->kind, row->errors[k], 1);
            rc = row->call();
            failed = disarm();
            CHECK_EQ(rc, row->falls_back ? 0 : row->errors[k]);
            CHECK_EQ(failed, 1);
            CHECK_EQ(unlink("created") == 0 || errno == ENOENT, 1);
            CHECK(is_empty_but_for_file());
        }
    }
    return arg;
}

static void begin(const char *rings) {
    fail_needs_all();
    CHECK_EQ(setenv("CC_URING", rings, 1), 0);
    enter_tempdir();
    fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) { /* the wrapper creates nothing */
        CHECK_EQ(mknod("file", S_IFREG | 0600, 0), 0);
        fd = open("file", O_RDWR | O_CLOEXEC);
    }
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "text", 4), 4);
}

static void end(void) {
    close(fd);
    leave_tempdir();
}

TEST(every_call_fails_on_an_os_thread) {
    begin("0");
    every_row(NULL);
    end();
}

TEST(every_call_fails_in_a_fiber) {
    begin("0");
    CHECK_EQ(cc_run(every_row, NULL, NULL), 0);
    end();
}

/* ---- no threads ---- */

static void *give_back(void *arg) {
    return arg;
}

static void *without_threads(void *arg) {
    void *result = &result;
    fail_arm(1, FAIL_THREAD, true);
    CHECK_EQ(cc_blocking(give_back, &result, &result), EAGAIN);
    CHECK(result == NULL);
    CHECK_EQ(syncs(), 0); /* the worker does it itself */
    CHECK_EQ(renames(), 0);
    CHECK_EQ(replaces(), 0);
    CHECK(fail_disarm() >= 4);
    CHECK_EQ(cc_blocking(give_back, &fd, &result), 0);
    CHECK(result == &fd);
    fail_arm(1, FAIL_THREAD, true); /* one is there: it makes all calls */
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_blocking(give_back, &fd, &result), 0);
    (void)fail_disarm();
    return arg;
}

static void run_without_rings(void *(*fn)(void *)) {
    begin("0");
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_run(fn, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    end();
}

TEST_WORKERS(no_thread_for_a_call) {
    run_without_rings(without_threads);
}

/* The pages of a file that is sent are read by the caller, who has the smallest stack. */
static void *sends_without_thread(void *arg) {
    int ends[2];
    int64_t offset = 0;
    size_t n = 0;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(cc_file_write(fd, "1234567890", 10, 0, NULL), 0);
    fail_arm(1, FAIL_THREAD, true);
    arm(READ_CACHED, EAGAIN, 1);
    CHECK_EQ(cc_fd_sendfile(ends[1], fd, &offset, 10, &n), 0);
    CHECK_EQ(disarm(), 1);
    CHECK(fail_disarm() >= 1);
    CHECK(n == 10 && offset == 10);
    CHECK_EQ(close(ends[0]) + close(ends[1]), 0);
    return arg;
}

/* FILE-5, if the count goes beyond the end of the file: its last byte is not cached, and so the pool reads the file. */
static void *sends_to_the_end(void *arg) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(cc_file_write(fd, "1234567890", 10, 0, NULL), 0);
    for (int64_t at = 0; at <= 10; at++) {
        int64_t offset = at;
        size_t n = 0;
        atomic_store(&missing, 9);
        arm(READ, EIO, 1); /* the pool's read */
        CHECK_EQ(cc_fd_sendfile(ends[1], fd, &offset, 100000, &n), 0);
        CHECK_EQ(disarm(), at < 10);
        atomic_store(&missing, -1);
        CHECK(n == (size_t)(10 - at) && offset == 10);
    }
    CHECK_EQ(close(ends[0]) + close(ends[1]), 0);
    return arg;
}

TEST_WORKERS(the_last_byte_of_a_file_that_is_sent_is_not_cached) {
    run_without_rings(sends_to_the_end);
}

TEST_WORKERS(no_thread_for_a_file_that_is_sent) {
    CCTask task;
    begin("0");
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_spawn(&task, sends_without_thread, NULL, &(CCSpawnOptions){.stack_size = CC_STACK_SIZE_MIN}), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    end();
}

/* Several calls wait for the thread that cannot be started. */
CC_TASK(calls_without_thread, { atomic_int *failed; }) {
    int rc = cc_blocking(give_back, NULL, NULL);
    CHECK(rc == 0 || rc == EAGAIN);
    if (rc != 0) atomic_fetch_add(self->failed, 1);
    return NULL;
}

static void *many_without_threads(void *arg) {
    atomic_int failed = 0;
    for (int round = 0; round < 20; round++) {
        fail_arm(1, FAIL_THREAD, true);
        CC_NURSERY(n) {
            for (int i = 0; i < 8; i++) CHECK_EQ(CC_GO_IN(n, calls_without_thread, .failed = &failed), 0);
        }
        (void)fail_disarm();
    }
    CHECK_EQ(atomic_load(&failed), 160);
    return arg;
}

TEST_WORKERS(many_calls_without_threads) {
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_run(many_without_threads, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* ---- rings ---- */

static struct {
    _Atomic long call;
    _Atomic int error, times, failed;
} ring;

static int fails_at_ring(long number) {
    if (number != atomic_load(&ring.call) || atomic_fetch_sub(&ring.times, 1) <= 0) return 0;
    atomic_fetch_add(&ring.failed, 1);
    return atomic_load(&ring.error);
}

static void *uses_files(void *arg) {
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(syncs(), 0);
        CHECK_EQ(reads_waiting(), 0);
    }
    return arg;
}

/* In a runtime of its own: the first refusal counts for its life. Whatever fails, the files do not. */
static void run_without_ring(long call, int error, int times) {
    atomic_store(&ring.call, call);
    atomic_store(&ring.error, error);
    atomic_store(&ring.times, times);
    atomic_store(&ring.failed, 0);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_run(uses_files, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST_WORKERS(every_ring_fails) {
    static const int setup[] = {ENOSYS, EPERM, EACCES, ENOMEM, EMFILE, ENFILE, EINVAL};
    static const int enter[] = {EAGAIN, EBUSY, ENOMEM, EPERM, ENOSYS, EBADF, EINTR};
    begin("1");
    atomic_store(&fail.at_call, fails_at_ring);
    for (size_t i = 0; i < sizeof setup / sizeof setup[0]; i++) {
        run_without_ring(SYS_io_uring_setup, setup[i], 1000);
        CHECK(atomic_load(&ring.failed) >= 1 || cc__san_on_valgrind());
    }
    run_without_ring(SYS_io_uring_register, EINVAL, 1000);
    for (size_t i = 0; i < sizeof enter / sizeof enter[0]; i++)
        for (int times = 1; times < 20; times *= 4) run_without_ring(SYS_io_uring_enter, enter[i], times);
    atomic_store(&fail.at_call, NULL);
    end();
}

TEST_WORKERS(no_memory_for_a_ring) {
    begin("1");
    for (int n = 1; n <= 4; n++) {
        CHECK_EQ(cc_runtime_init(NULL), 0);
        CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
        fail_arm(n, FAIL_MAP, false);
        CHECK_EQ(cc_run(uses_files, NULL, NULL), 0);
        (void)fail_disarm();
        CHECK_EQ(cc_runtime_shutdown(10000), 0);
    }
    end();
}
