/* file.c - files: bytes, names, directories, replacement, locks, watching. */
#include "harness.h"

#include "../capture.h"
#include "../tempdir.h"

#include <ccc/ccc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The same by a fiber and by an OS thread. */
static void both(CCTaskFn fn) {
    enter_tempdir();
    fn(NULL);
    leave_tempdir();
    enter_tempdir();
    CHECK_EQ(cc_run(fn, NULL, NULL), 0);
    leave_tempdir();
}

static int make(const char *path, const char *text) {
    int fd;
    CHECK_EQ(cc_file_open(&fd, path, O_RDWR | O_CREAT | O_TRUNC, 0644), 0);
    CHECK_EQ(cc_file_write(fd, text, strlen(text), 0, NULL), 0);
    return fd;
}

static void expect(int fd, const char *text) {
    char got[100];
    size_t n;
    CHECK_EQ(cc_file_read(fd, got, sizeof got, 0, &n), 0);
    CHECK_EQ(n, strlen(text));
    CHECK(memcmp(got, text, n) == 0);
}

static void expect_at(const char *path, const char *text) {
    int fd;
    CHECK_EQ(cc_file_open(&fd, path, O_RDONLY, 0), 0);
    expect(fd, text);
    CHECK_EQ(cc_fd_close(fd), 0);
}

/* ---- bytes ---- */

static void *bytes(void *arg) {
    char got[16];
    size_t n = 99;
    int fd = make("bytes", "hello, world");
    expect(fd, "hello, world");
    CHECK_EQ(cc_file_read(fd, got, 5, 7, &n), 0);
    CHECK(n == 5 && memcmp(got, "world", 5) == 0);
    CHECK_EQ(cc_file_read(fd, got, 5, 12, &n), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_file_read(fd, NULL, 0, 0, &n), 0);
    CHECK_EQ(cc_file_write(fd, "W", 1, 7, &n), 0);
    CHECK_EQ(n, 1);
    CHECK_EQ(cc_file_read(fd, got, 5, CC_FILE_POSITION, &n), 0);
    CHECK(n == 5 && memcmp(got, "hello", 5) == 0);
    CHECK_EQ(cc_file_write(fd, "...", 3, CC_FILE_POSITION, NULL), 0);
    CHECK_EQ(cc_file_read(fd, got, 16, CC_FILE_POSITION, &n), 0);
    CHECK(n == 4 && memcmp(got, "orld", 4) == 0);
    expect(fd, "hello...orld");
    CHECK_EQ(cc_file_truncate(fd, 3), 0);
    CHECK_EQ(cc_file_sync(fd), 0);
    CHECK_EQ(cc_file_datasync(fd), 0);
    expect(fd, "hel");
    struct stat status;
    CHECK_EQ(cc_file_stat(fd, &status), 0);
    CHECK_EQ(status.st_size, 3);
    CHECK_EQ(cc_fd_close(fd), 0);
    CHECK_EQ(cc_file_open(&fd, "bytes", O_WRONLY | O_APPEND, 0), 0);
    CHECK_EQ(cc_file_write(fd, "p", 1, CC_FILE_POSITION, NULL), 0);
    CHECK_EQ(cc_file_read(fd, got, 1, 0, &n), EBADF);
    CHECK_EQ(cc_fd_close(fd), 0);
    expect_at("bytes", "help");
    return arg;
}

TEST_WORKERS(reads_and_writes_at_offsets) {
    both(bytes);
}

static void *vectors(void *arg) {
    enum { PARTS = 50 };
    static char from[PARTS][1000], to[PARTS][1000];
    struct iovec out[PARTS + 1], in[PARTS + 1];
    for (int i = 0; i < PARTS; i++) {
        memset(from[i], 'a' + i % 26, sizeof from[i]);
        memset(to[i], 0, sizeof to[i]);
        out[i] = (struct iovec){from[i], (size_t)(i * 20)};
        in[i] = (struct iovec){to[i], (size_t)(i * 20)};
    }
    out[PARTS] = in[PARTS] = (struct iovec){NULL, 0};
    int fd = make("vectors", "");
    size_t n, size = PARTS * (PARTS - 1) / 2 * 20;
    CHECK_EQ(cc_file_writev(fd, out, PARTS + 1, 3, &n), 0);
    CHECK_EQ(n, size);
    CHECK_EQ(cc_file_readv(fd, in, PARTS + 1, 3, &n), 0);
    CHECK_EQ(n, size);
    for (int i = 0; i < PARTS; i++) CHECK(memcmp(from[i], to[i], out[i].iov_len) == 0);
    CHECK_EQ(cc_file_readv(fd, in, PARTS, (int64_t)size, &n), 0); /* the end comes first */
    CHECK_EQ(n, 3);
    CHECK_EQ(cc_file_readv(fd, in, 0, 0, &n), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    return arg;
}

TEST(vectors_of_bytes) {
    both(vectors);
}

static void *cold(void *arg) {
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE), *got = malloc(SIZE);
    size_t n;
    int fd = make("cold", "");
    for (int i = 0; i < SIZE; i++) text[i] = (char)(i * 7 + i / 4096);
    CHECK_EQ(cc_file_write(fd, text, SIZE, 0, NULL), 0);
    CHECK_EQ(cc_file_sync(fd), 0);
    for (int round = 0; round < 5; round++) {
        CHECK_EQ(posix_fadvise(fd, 0, round % 2 == 0 ? 0 : SIZE / 2, POSIX_FADV_DONTNEED), 0); /* whole, or a half */
        memset(got, 0, SIZE);
        int rc = cc_file_read_try(fd, got, SIZE, 0, &n);
        CHECK(rc == 0 || (rc == EAGAIN && n == 0));
        CHECK(memcmp(text, got, n) == 0);
        CHECK_EQ(cc_file_read(fd, got, SIZE, 0, &n), 0);
        CHECK_EQ(n, SIZE);
        CHECK(memcmp(text, got, SIZE) == 0);
    }
    /* The first half is in the cache: a read continues in the middle of a part. */
    CHECK_EQ(posix_fadvise(fd, SIZE / 2, 0, POSIX_FADV_DONTNEED), 0);
    memset(got, 0, SIZE);
    struct iovec parts[3] = {{got, SIZE / 3}, {got + SIZE / 3, SIZE / 3}, {got + SIZE / 3 * 2, SIZE - SIZE / 3 * 2}};
    CHECK_EQ(cc_file_readv(fd, parts, 3, 0, &n), 0);
    CHECK_EQ(n, SIZE);
    CHECK(memcmp(text, got, SIZE) == 0);
    free(text);
    free(got);
    CHECK_EQ(cc_fd_close(fd), 0);
    return arg;
}

TEST(what_is_not_cached_is_read) {
    both(cold);
}

static uint64_t calls_of_pool(void) {
    CCStats stats;
    uint64_t calls = 0;
    CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
    for (unsigned i = 0; i < CC_STATS_REASONS; i++) {
        const char *reason = cc_stats_reason(i);
        if (reason != NULL && strcmp(reason, "call") == 0) calls += stats.parks_by[i];
    }
    return calls;
}

/* Sends the file in order and compares what arrives. */
static void send_all(int to, int from, int fd, const char *text, size_t size, bool position) {
    static char got[1 << 20];
    int64_t offset = 0;
    size_t n, m;
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    for (size_t sent = 0; sent < size; sent += n) {
        CHECK_EQ(cc_fd_sendfile(to, fd, position ? NULL : &offset, size - sent, &n), 0);
        CHECK(n > 0 && n <= sizeof got);
        for (size_t taken = 0; taken < n; taken += m) CHECK_EQ(cc_fd_read(from, got + taken, n - taken, &m), 0);
        CHECK(memcmp(text + sent, got, n) == 0);
        CHECK_EQ(position ? lseek(fd, 0, SEEK_CUR) : offset, (int64_t)(sent + n));
    }
    CHECK_EQ(cc_fd_sendfile(to, fd, position ? NULL : &offset, 1, &n), 0);
    CHECK_EQ(n, 0);
}

static bool is_cached(int fd) {
    unsigned char cached;
    void *map = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    CHECK_EQ(mincore(map, 1, &cached), 0);
    CHECK_EQ(munmap(map, 1), 0);
    return cached & 1;
}

/* A worker does not wait for the disk: what is not cached is read on the pool (FILE-5). The disk may answer during the
 * check of what is cached, but not every time. */
static void *sends(void *arg) {
    enum { SIZE = 3 << 20, ROUNDS = 50 };
    char *text = malloc(SIZE);
    int pair[2], fd = make("sends", "");
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_EQ(cc_fd_adopt(pair[0]) + cc_fd_adopt(pair[1]), 0);
    for (int i = 0; i < SIZE; i++) text[i] = (char)(i * 7 + i / 4096);
    CHECK_EQ(cc_file_write(fd, text, SIZE, 0, NULL), 0);
    CHECK_EQ(cc_file_sync(fd), 0);
    int cold = 0;
    bool by_pool = false;
    for (int round = 0; round < 2 || (cold > 0 && !by_pool && round < ROUNDS); round++) {
        CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        cold += !is_cached(fd);
        uint64_t before = calls_of_pool();
        send_all(pair[0], pair[1], fd, text, SIZE, round % 2 == 0);
        by_pool = by_pool || calls_of_pool() > before;
        send_all(pair[0], pair[1], fd, text, SIZE, round % 2 == 0);
    }
    CHECK(cold == 0 || by_pool);
    if (cold == 0) printf("# not checked: no page left the page cache\n");
    CHECK_EQ(cc_fd_close(fd) + cc_fd_close(pair[0]) + cc_fd_close(pair[1]), 0);
    free(text);
    return arg;
}

TEST_WORKERS(sends_what_is_not_cached) {
    enter_tempdir();
    CHECK_EQ(cc_run(sends, NULL, NULL), 0);
    leave_tempdir();
}

/* ---- what always waits for the disk ---- */

enum { PAGE = 4096, PAGES = 3 };

/* If it can be opened with O_DIRECT. */
static int make_direct(const char *path, int flags) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
    if (fd < 0 && errno == EINVAL) SKIP("the file system has no O_DIRECT");
    CHECK(fd >= 0);
    return fd;
}

static void *direct(void *arg) {
    int fd = make_direct("direct", O_DIRECT);
    char *text = aligned_alloc(PAGE, PAGE * PAGES), *got = aligned_alloc(PAGE, PAGE * PAGES);
    size_t n;
    for (int i = 0; i < PAGE * PAGES; i++) text[i] = (char)(i * 7 + i / 4096);
    CHECK_EQ(cc_file_write(fd, text, PAGE * PAGES, 0, &n), 0);
    CHECK_EQ(n, PAGE * PAGES);
    CHECK_EQ(cc_file_truncate(fd, PAGE * 2 + 100), 0);
    CHECK_EQ(cc_file_read_try(fd, got, PAGE, 0, &n), EAGAIN);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_file_read_try(fd, got, 0, 0, &n), 0); /* nothing needs no disk */
    CHECK_EQ(cc_file_read(fd, got, PAGE * PAGES, 0, &n), 0);
    CHECK_EQ(n, PAGE * 2 + 100);
    CHECK(memcmp(text, got, n) == 0);
    CHECK_EQ(cc_file_read(fd, got, PAGE, PAGE, &n), 0);
    CHECK(n == PAGE && memcmp(text + PAGE, got, n) == 0);
    CHECK_EQ(cc_file_read(fd, got, PAGE, PAGE * PAGES, &n), 0); /* beyond the end */
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_file_read(fd, got, PAGE, CC_FILE_POSITION, &n), 0);
    CHECK(n == PAGE && memcmp(text, got, n) == 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    free(text);
    free(got);
    return arg;
}

TEST(past_the_page_cache) {
    both(direct);
}

/* The mode belongs to the open file description, not to the number. */
static void *another_mode(void *arg) {
    int plain = make("plain", ""), fd = make_direct("plain", O_DIRECT), number = dup(plain);
    char *got = aligned_alloc(PAGE, PAGE);
    size_t n;
    memset(got, 'x', PAGE);
    CHECK_EQ(cc_file_write(plain, got, PAGE, 0, NULL), 0);
    CHECK_EQ(cc_file_sync(plain), 0); /* or the system would have to write it first, and returns EAGAIN */
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(dup2(plain, number), number);
        CHECK_EQ(cc_file_read(plain, got, PAGE, 0, &n), 0);
        for (int i = 0; i < 10; i++) CHECK_EQ(cc_file_read_try(number, got, PAGE, 0, &n), 0);
        CHECK_EQ(dup2(fd, number), number);
        int tries = 0, rc;
        while ((rc = cc_file_read_try(number, got, PAGE, 0, &n)) == 0 && tries < 1000) tries++;
        CHECK_EQ(rc, EAGAIN);
        CHECK(tries <= 64);
    }
    CHECK(cc_fd_close(number) == 0 && cc_fd_close(plain) == 0 && cc_fd_close(fd) == 0);
    free(got);
    return arg;
}

TEST(a_number_with_another_mode) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0); /* each of them asks for itself */
    both(another_mode);
}

static unsigned count(const char *text, const char *wanted) {
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++) n++;
    return n;
}

static void *write_through(void *flags) {
    enum { WRITES = 20 };
    static struct capture said;
    char *text = aligned_alloc(PAGE, PAGE);
    memset(text, 'x', PAGE);
    int fd = make_direct("through", (int)(intptr_t)flags);
    capture_start(&said);
    CHECK_EQ(cc_trace_start("file"), 0);
    for (int i = 0; i < WRITES; i++) CHECK_EQ(cc_file_write(fd, text, PAGE, PAGE * i, NULL), 0);
    cc_trace_stop();
    CHECK_EQ(count(capture_end(&said), "write goes to the pool"), WRITES);
    CHECK_EQ(cc_fd_close(fd), 0);
    free(text);
    return NULL;
}

TEST(writes_to_the_disk_do_not_block_the_worker) {
    enter_tempdir();
    CHECK_EQ(cc_run(write_through, (void *)(intptr_t)O_DIRECT, NULL), 0);
    CHECK_EQ(cc_run(write_through, (void *)(intptr_t)O_DSYNC, NULL), 0);
    CHECK_EQ(cc_run(write_through, (void *)(intptr_t)O_SYNC, NULL), 0);
    leave_tempdir();
}

static void *bad_input(void *arg) {
    char c = 0;
    size_t n = 7;
    struct stat status;
    int fd = make("bad", "x"), other;
    CHECK_EQ(cc_file_open(NULL, "bad", 0, 0), EINVAL);
    CHECK_EQ(cc_file_open(&other, NULL, 0, 0), EINVAL);
    CHECK_EQ(other, -1);
    CHECK_EQ(cc_file_temp(NULL, "."), EINVAL);
    CHECK_EQ(cc_file_temp(&other, NULL), EINVAL);
    CHECK_EQ(cc_file_read(fd, &c, 1, 0, NULL), EINVAL);
    CHECK_EQ(cc_file_read(fd, NULL, 1, 0, &n), EINVAL);
    CHECK_EQ(cc_file_read(fd, &c, 1, -2, &n), EINVAL);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_file_read(fd, &c, SIZE_MAX, 0, &n), EINVAL);
    CHECK_EQ(cc_file_read(fd, &c, 1, INT64_MAX, &n), EOVERFLOW);
    CHECK_EQ(cc_file_read(-1, &c, 1, 0, &n), EBADF);
    CHECK_EQ(cc_file_read(-1, &c, 1, CC_FILE_POSITION, &n), EBADF);
    CHECK_EQ(cc_file_read_try(100000, &c, 1, 0, &n), EBADF);
    CHECK_EQ(cc_file_readv(fd, NULL, 1, 0, &n), EINVAL);
    CHECK_EQ(cc_file_readv(fd, NULL, -1, 0, &n), EINVAL);
    CHECK_EQ(cc_file_readv(fd, &(struct iovec){&c, 1}, 5000, 0, &n), EINVAL);
    CHECK_EQ(cc_file_write(fd, NULL, 1, 0, NULL), EINVAL);
    CHECK_EQ(cc_file_write(-1, &c, 1, 0, &n), EBADF);
    CHECK_EQ(cc_file_truncate(fd, -1), EINVAL);
    CHECK_EQ(cc_file_truncate(-1, 0), EBADF);
    CHECK_EQ(cc_file_sync(-1), EBADF);
    CHECK_EQ(cc_file_stat(fd, NULL), EINVAL);
    CHECK_EQ(cc_file_stat(-1, &status), EBADF);
    CHECK_EQ(cc_path_stat(NULL, &status), EINVAL);
    CHECK_EQ(cc_path_stat("bad", NULL), EINVAL);
    CHECK_EQ(cc_path_rename(NULL, "a"), EINVAL);
    CHECK_EQ(cc_path_rename("a", NULL), EINVAL);
    CHECK_EQ(cc_path_unlink(NULL), EINVAL);
    CHECK_EQ(cc_path_mkdir(NULL, 0), EINVAL);
    CHECK_EQ(cc_path_rmdir(NULL), EINVAL);
    CHECK_EQ(cc_dir_open(NULL, "."), EINVAL);
    CHECK_EQ(cc_dir_next(NULL, NULL), EINVAL);
    cc_dir_close(NULL);
    CHECK_EQ(cc_replace_begin(NULL, "a", 0), EINVAL);
    CHECK_EQ(cc_replace_commit(NULL), EINVAL);
    CHECK_EQ(cc_replace_fd(NULL), -1);
    cc_replace_abort(NULL);
    CHECK_EQ(cc_file_lock(fd, (CCFileLock)0), EINVAL);
    CHECK_EQ(cc_file_lock(fd, (CCFileLock)3), EINVAL);
    CHECK_EQ(cc_file_lock(-1, CC_FILE_SHARED), EBADF);
    CHECK_EQ(cc_file_unlock(-1), EBADF);
    CHECK_EQ(cc_watch_open(NULL), EINVAL);
    CHECK_EQ(cc_watch_add(NULL, ".", IN_MODIFY, NULL), EINVAL);
    CHECK_EQ(cc_watch_next(NULL, NULL), EINVAL);
    CHECK_EQ(cc_watch_remove(NULL, 1), EINVAL);
    cc_watch_close(NULL);
    CHECK_EQ(cc_fd_close(fd), 0);
    return arg;
}

TEST(bad_input_is_refused) {
    both(bad_input);
}

static void *not_files(void *arg) {
    char c = 'x';
    size_t n;
    int pipes[2], sockets[2], fd;
    CHECK_EQ(pipe2(pipes, O_CLOEXEC), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    CHECK_EQ(cc_file_read(pipes[0], &c, 1, CC_FILE_POSITION, &n), ESPIPE); /* and does not wait for ever */
    CHECK_EQ(cc_file_read(pipes[0], &c, 1, 0, &n), ESPIPE);
    CHECK_EQ(cc_file_write(pipes[1], &c, 1, CC_FILE_POSITION, &n), ESPIPE);
    CHECK_EQ(cc_file_write(pipes[1], &c, 1, 0, &n), ESPIPE);
    CHECK_EQ(cc_file_read(sockets[0], &c, 1, CC_FILE_POSITION, &n), ESPIPE);
    CHECK_EQ(cc_file_read(sockets[0], &c, 1, 0, &n), ESPIPE);
    for (int i = 0; i < 2; i++) close(pipes[i]), close(sockets[i]);
    CHECK_EQ(cc_file_open(&fd, ".", O_RDONLY, 0), 0);
    CHECK_EQ(cc_file_read(fd, &c, 1, 0, &n), EISDIR);
    CHECK_EQ(cc_file_read(fd, &c, 1, CC_FILE_POSITION, &n), EISDIR);
    CHECK_EQ(cc_file_write(fd, &c, 1, 0, &n), EBADF);
    CHECK_EQ(cc_fd_close(fd), 0);
    CHECK_EQ(cc_file_open(&fd, ".", O_RDWR, 0), EISDIR);
    CHECK_EQ(cc_file_open(&fd, "/dev/full", O_RDWR, 0), 0);
    CHECK_EQ(cc_file_write(fd, &c, 1, CC_FILE_POSITION, &n), ENOSPC);
    CHECK_EQ(cc_file_write(fd, &c, 1, 0, NULL), ENOSPC);
    CHECK_EQ(cc_file_read(fd, &c, 1, 0, &n), 0);
    CHECK(n == 1 && c == 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    CHECK_EQ(cc_file_open(&fd, "/proc/self/status", O_RDONLY, 0), 0); /* no page cache */
    char text[64];
    CHECK_EQ(cc_file_read(fd, text, sizeof text, 0, &n), 0);
    CHECK(n == sizeof text && memcmp(text, "Name:", 5) == 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    return arg;
}

TEST(what_is_not_a_file) {
    both(not_files);
}

static void *limited(void *arg) {
    static char text[8192];
    struct rlimit before, limit;
    size_t n = 0;
    int fd = make("limited", "");
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 5000;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_EQ(cc_file_write(fd, text, sizeof text, 0, &n), EFBIG); /* and not SIGXFSZ */
    CHECK_EQ(n, 5000);
    CHECK_EQ(cc_file_write(fd, text, 1, 5000, &n), EFBIG);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_file_truncate(fd, 5001), EFBIG);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_EQ(cc_file_write(fd, text, sizeof text, 0, &n), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    sigset_t pending;
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGXFSZ));
    return arg;
}

TEST(a_limit_is_an_error_and_no_signal) {
    both(limited);
}

/* ---- open, names ---- */

static void *opens(void *arg) {
    int fd;
    CHECK_EQ(cc_file_open(&fd, "none", O_RDONLY, 0), ENOENT);
    CHECK_EQ(cc_file_open(&fd, "none", O_RDONLY, 0), ENOENT); /* from the cache of names */
    CHECK_EQ(cc_file_open(&fd, "none/none", O_RDONLY, 0), ENOENT);
    CHECK_EQ(cc_fd_close(make("a", "text")), 0);
    CHECK_EQ(cc_file_open(&fd, "a/b", O_RDONLY, 0), ENOTDIR);
    CHECK_EQ(cc_file_open(&fd, "a", O_RDONLY | O_DIRECTORY, 0), ENOTDIR);
    CHECK_EQ(cc_file_open(&fd, "a", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    CHECK_EQ(cc_file_open(&fd, "a", O_RDONLY, 0), 0);
    CHECK_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    CHECK_EQ(cc_file_open(&fd, "a", O_RDWR | O_APPEND | O_NONBLOCK, 0), 0);
    CHECK_EQ(fcntl(fd, F_GETFL) & (O_NONBLOCK | O_APPEND), O_NONBLOCK | O_APPEND);
    CHECK_EQ(cc_fd_close(fd), 0);
    char longer[5000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CHECK_EQ(cc_file_open(&fd, longer, O_RDONLY, 0), ENAMETOOLONG);
    CHECK_EQ(cc_file_open(&fd, "", O_RDONLY, 0), ENOENT);
    CHECK_EQ(cc_file_temp(&fd, "."), 0);
    CHECK_EQ(cc_file_write(fd, "temporary", 9, 0, NULL), 0);
    expect(fd, "temporary");
    CHECK_EQ(cc_fd_close(fd), 0);
    CHECK_EQ(cc_file_temp(&fd, "none"), ENOENT);
    CHECK_EQ(cc_file_temp(&fd, ""), ENOENT); /* not the root directory */
    CHECK_EQ(fd, -1);
    return arg;
}

TEST(opens_files) {
    both(opens);
}

static void *names(void *arg) {
    struct stat status;
    CHECK_EQ(cc_path_mkdir("d", 0755), 0);
    CHECK_EQ(cc_path_mkdir("d", 0755), EEXIST);
    CHECK_EQ(cc_fd_close(make("d/a", "text")), 0);
    CHECK_EQ(symlink("a", "d/link"), 0);
    CHECK_EQ(cc_path_stat("d/link", &status), 0);
    CHECK(S_ISREG(status.st_mode) && status.st_size == 4);
    CHECK_EQ(cc_path_lstat("d/link", &status), 0);
    CHECK(S_ISLNK(status.st_mode));
    CHECK_EQ(cc_path_stat("d", &status), 0);
    CHECK(S_ISDIR(status.st_mode));
    CHECK_EQ(cc_path_stat("none", &status), ENOENT);
    CHECK_EQ(cc_path_rename("d/a", "d/b"), 0);
    CHECK_EQ(cc_path_rename("d/a", "d/b"), ENOENT);
    CHECK_EQ(cc_path_stat("d/link", &status), ENOENT);
    CHECK_EQ(cc_path_rmdir("d"), ENOTEMPTY);
    CHECK_EQ(cc_path_unlink("d"), EISDIR);
    CHECK_EQ(cc_path_unlink("d/b"), 0);
    CHECK_EQ(cc_path_unlink("d/b"), ENOENT);
    CHECK_EQ(cc_path_unlink("d/link"), 0);
    CHECK_EQ(cc_path_rmdir("d"), 0);
    return arg;
}

TEST_WORKERS(names_of_files) {
    both(names);
}

CC_TASK(open_fifo, {
    int flags;
    int *fd;
}) {
    CHECK_EQ(cc_file_open(self->fd, "fifo", self->flags, 0), 0);
    return NULL;
}

static void *fifo(void *arg) {
    int in = -1, out = -1;
    char c;
    size_t n;
    CHECK_EQ(mkfifo("fifo", 0600), 0);
    for (int first = 0; first < 2; first++) { /* the reader, or the writer */
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, open_fifo, .flags = first ? O_WRONLY : O_RDONLY, .fd = first ? &out : &in), 0);
            cc_sleep_ms(2);
            CHECK_EQ(CC_GO_IN(nursery, open_fifo, .flags = first ? O_RDONLY : O_WRONLY, .fd = first ? &in : &out), 0);
        }
        CHECK_EQ(cc_fd_write(out, "x", 1, &n), 0);
        CHECK_EQ(cc_fd_read(in, &c, 1, &n), 0);
        CHECK_EQ(fcntl(in, F_GETFL) & O_NONBLOCK, 0);
        CHECK_EQ(cc_fd_close(in), 0);
        CHECK_EQ(cc_fd_close(out), 0);
    }
    return arg;
}

TEST_WORKERS(a_fifo_waits_for_its_other_end) {
    enter_tempdir();
    CHECK_EQ(cc_run(fifo, NULL, NULL), 0);
    leave_tempdir();
}

/* ---- directories ---- */

static void *directories(void *arg) {
    enum { MANY = 700 };
    static bool seen[MANY];
    char name[100];
    CCDir *dir;
    CCDirEntry entry;
    memset(seen, 0, sizeof seen);
    CHECK_EQ(mkdir("many", 0755), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many/%d-a-name-that-is-somewhat-longer-than-others-so-that-it-takes-two-reads", i);
        int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        CHECK(fd >= 0);
        close(fd);
    }
    CHECK_EQ(cc_dir_open(&dir, "many"), 0);
    int found = 0;
    for (;; found++) {
        CHECK_EQ(cc_dir_next(dir, &entry), 0);
        if (entry.name == NULL) break;
        int i = atoi(entry.name);
        CHECK(i >= 0 && i < MANY && !seen[i]);
        CHECK(entry.type == DT_REG || entry.type == DT_UNKNOWN);
        CHECK(entry.inode != 0);
        seen[i] = true;
    }
    CHECK_EQ(found, MANY);
    CHECK_EQ(cc_dir_next(dir, &entry), 0);
    CHECK(entry.name == NULL);
    cc_dir_close(dir);
    CHECK_EQ(mkdir("empty", 0755), 0);
    CHECK_EQ(cc_dir_open(&dir, "empty"), 0);
    CHECK_EQ(cc_dir_next(dir, &entry), 0);
    CHECK(entry.name == NULL);
    cc_dir_close(dir);
    CHECK_EQ(cc_dir_open(&dir, "empty"), 0);
    CHECK_EQ(cc_path_rmdir("empty"), 0);
    CHECK_EQ(cc_dir_next(dir, &entry), 0); /* it was removed meanwhile */
    CHECK(entry.name == NULL);
    cc_dir_close(dir);
    CHECK_EQ(cc_dir_open(&dir, "none"), ENOENT);
    CHECK(dir == NULL);
    CHECK_EQ(cc_dir_open(&dir, "/dev/null"), ENOTDIR);
    return arg;
}

TEST(directories_are_read) {
    both(directories);
}

static int count_files(void) {
    CCDir *dir;
    CCDirEntry entry;
    int count = 0;
    CHECK_EQ(cc_dir_open(&dir, "."), 0);
    for (;; count++) {
        CHECK_EQ(cc_dir_next(dir, &entry), 0);
        if (entry.name == NULL) break;
    }
    cc_dir_close(dir);
    return count;
}

/* ---- replacement ---- */

static void *replaces(void *arg) {
    CCReplace *replace;
    struct stat status;
    CHECK_EQ(cc_fd_close(make("settings", "old")), 0);
    CHECK_EQ(cc_replace_begin(&replace, "settings", 0640), 0);
    CHECK_EQ(cc_file_write(cc_replace_fd(replace), "new", 3, 0, NULL), 0);
    expect_at("settings", "old");
    CHECK_EQ(count_files(), 2);
    CHECK_EQ(cc_replace_commit(replace), 0);
    expect_at("settings", "new");
    CHECK_EQ(count_files(), 1);
    CHECK_EQ(cc_path_stat("settings", &status), 0);
    CHECK_EQ(status.st_mode & 0200, 0200);
    CHECK_EQ(cc_replace_begin(&replace, "./settings", 0600), 0);
    CHECK_EQ(cc_file_write(cc_replace_fd(replace), "newer", 5, 0, NULL), 0);
    cc_replace_abort(replace);
    expect_at("settings", "new");
    CHECK_EQ(count_files(), 1);
    char path[100];
    snprintf(path, sizeof path, "%s/another", tempdir); /* that does not exist */
    CHECK_EQ(cc_replace_begin(&replace, path, 0600), 0);
    CHECK_EQ(cc_replace_commit(replace), 0);
    expect_at("another", "");
    CHECK_EQ(cc_replace_begin(&replace, "none/x", 0600), ENOENT);
    CHECK(replace == NULL);
    CHECK_EQ(cc_replace_begin(&replace, "none/", 0600), EISDIR);
    CHECK_EQ(cc_replace_begin(&replace, "", 0600), EISDIR);
    CHECK_EQ(mkdir("directory", 0755), 0);
    CHECK_EQ(cc_replace_begin(&replace, "directory", 0600), 0);
    CHECK_EQ(cc_replace_commit(replace), EISDIR);
    CHECK_EQ(count_files(), 3);
    return arg;
}

TEST(a_file_is_replaced_at_once) {
    both(replaces);
}

CC_TASK(replace_cancelled, { atomic_int *state; }) {
    CCReplace *replace[2];
    size_t n;
    char c;
    int fd = make("cancelled", "x"), other;
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_replace_begin(&replace[i], "settings", 0600), 0);
    atomic_store(self->state, 1);
    while (!cc_cancelled()) cc_yield();
    CHECK_EQ(cc_file_sync(fd), ECANCELED);
    CHECK_EQ(cc_file_open(&other, "x", O_CREAT | O_RDWR, 0600), ECANCELED);
    CHECK_EQ(cc_replace_commit(replace[0]), ECANCELED);
    cc_replace_abort(replace[1]);
    int rc = cc_file_read(fd, &c, 1, 0, &n); /* needs no thread, if the cache can be queried */
    CHECK((rc == 0 && n == 1) || rc == ECANCELED);
    CC_SHIELD CHECK_EQ(cc_file_sync(fd), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    return NULL;
}

static void *cancels(void *arg) {
    atomic_int state = 0;
    CHECK_EQ(cc_fd_close(make("settings", "old")), 0);
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, replace_cancelled, .state = &state), 0);
        while (atomic_load(&state) == 0) cc_yield();
        cc_nursery_cancel(n);
    }
    expect_at("settings", "old");
    CHECK_EQ(count_files(), 2); /* nothing is left behind */
    return arg;
}

TEST_WORKERS(a_cancelled_caller_does_nothing) {
    enter_tempdir();
    CHECK_EQ(cc_run(cancels, NULL, NULL), 0);
    leave_tempdir();
}

/* Calls that the caches satisfy never wait, and notice a cancellation nevertheless. */
static void *reads_until_cancelled(void *arg) {
    int fd = make("cached", "x"), rc = 0;
    struct stat status;
    char c;
    size_t n;
    CC_WITH_DEADLINE(cc_after_ms(5), NULL) {
        while ((rc = cc_file_read(fd, &c, 1, 0, &n)) == 0) continue;
    }
    CHECK_EQ(rc, ECANCELED);
    CC_WITH_DEADLINE(cc_after_ms(5), NULL) {
        while ((rc = cc_path_stat("cached", &status)) == 0) continue;
    }
    CHECK_EQ(rc, ECANCELED);
    CC_WITH_DEADLINE(cc_after_ms(5), NULL) {
        for (int other; (rc = cc_file_open(&other, "cached", O_RDONLY, 0)) == 0;) CHECK_EQ(cc_fd_close(other), 0);
    }
    CHECK_EQ(rc, ECANCELED);
    CHECK_EQ(cc_fd_close(fd), 0);
    return arg;
}

TEST_WORKERS(cached_calls_end_when_cancelled) {
    enter_tempdir();
    CHECK_EQ(cc_run(reads_until_cancelled, NULL, NULL), 0);
    (void)reads_until_cancelled(NULL); /* on an OS thread */
    leave_tempdir();
}

/* ---- locks ---- */

CC_TASK(takes_lock, {
    int fd;
    atomic_int *taken;
}) {
    CHECK_EQ(cc_file_lock(self->fd, CC_FILE_EXCLUSIVE), 0);
    atomic_store(self->taken, 1);
    return NULL;
}

CC_TASK(waits_for_lock, { int fd; }) {
    CHECK_EQ(cc_file_lock(self->fd, CC_FILE_EXCLUSIVE), ECANCELED);
    return NULL;
}

static void *locks(void *arg) {
    int a = make("lock", ""), b, read_only;
    atomic_int taken = 0;
    CHECK_EQ(cc_file_open(&b, "lock", O_RDWR, 0), 0);
    CHECK_EQ(cc_file_open(&read_only, "lock", O_RDONLY, 0), 0);
    CHECK_EQ(cc_file_lock(a, CC_FILE_SHARED), 0);
    CHECK_EQ(cc_file_lock_try(b, CC_FILE_SHARED), 0);
    CHECK_EQ(cc_file_lock_try(read_only, CC_FILE_SHARED), 0);
    CHECK_EQ(cc_file_lock(read_only, CC_FILE_EXCLUSIVE), EBADF);
    CHECK_EQ(cc_file_unlock(read_only), 0);
    CHECK_EQ(cc_file_lock_try(a, CC_FILE_EXCLUSIVE), EAGAIN);
    CHECK_EQ(cc_file_unlock(b), 0);
    CHECK_EQ(cc_file_unlock(b), 0); /* twice is as once */
    CHECK_EQ(cc_file_lock(a, CC_FILE_EXCLUSIVE), 0);
    CHECK_EQ(cc_file_lock_try(b, CC_FILE_SHARED), EAGAIN);
    CHECK_EQ(cc_file_lock_until(b, CC_FILE_SHARED, cc_after_ms(3)), ETIMEDOUT);
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, waits_for_lock, .fd = b), 0);
        cc_sleep_ms(2);
        cc_nursery_cancel(n);
    }
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, takes_lock, .fd = b, .taken = &taken), 0);
        cc_sleep_ms(5);
        CHECK_EQ(atomic_load(&taken), 0);
        CHECK_EQ(cc_file_unlock(a), 0);
    }
    CHECK_EQ(atomic_load(&taken), 1);
    CHECK_EQ(cc_file_lock_try(a, CC_FILE_SHARED), EAGAIN);
    CHECK_EQ(cc_fd_close(b), 0); /* and its lock goes */
    CHECK_EQ(cc_file_lock_try(a, CC_FILE_SHARED), 0);
    CHECK_EQ(cc_fd_close(a), 0);
    CHECK_EQ(cc_fd_close(read_only), 0);
    return arg;
}

TEST_WORKERS(locks_of_files) {
    enter_tempdir();
    CHECK_EQ(cc_run(locks, NULL, NULL), 0);
    leave_tempdir();
}

/* ---- watching ---- */

CC_TASK(changes_files, { int fd; }) {
    cc_sleep_ms(2);
    CHECK_EQ(cc_fd_close(make("d/created", "")), 0);
    CHECK_EQ(cc_file_write(self->fd, "y", 1, 0, NULL), 0);
    return NULL;
}

static void *watches(void *arg) {
    CCWatch *watch;
    CCWatchEvent event;
    int fd = make("watched", "x"), file, directory;
    CHECK_EQ(cc_path_mkdir("d", 0755), 0);
    CHECK_EQ(cc_watch_open(&watch), 0);
    CHECK_EQ(cc_watch_add(watch, "none", IN_MODIFY, NULL), ENOENT);
    CHECK_EQ(cc_watch_add(watch, "watched", IN_MODIFY, &file), 0);
    CHECK_EQ(cc_watch_add(watch, "d", IN_CREATE, &directory), 0);
    CHECK_EQ(cc_watch_next_try(watch, &event), EAGAIN);
    CHECK_EQ(cc_watch_next_until(watch, &event, cc_after_ms(2)), ETIMEDOUT);
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, changes_files, .fd = fd), 0);
        CHECK_EQ(cc_watch_next(watch, &event), 0);
        CHECK(event.id == directory && event.events == IN_CREATE && strcmp(event.name, "created") == 0);
        CHECK_EQ(cc_watch_next(watch, &event), 0);
        CHECK(event.id == file && event.events == IN_MODIFY && event.name[0] == '\0');
    }
    CHECK_EQ(cc_watch_remove(watch, file), 0);
    CHECK_EQ(cc_watch_remove(watch, file), EINVAL);
    CHECK_EQ(cc_watch_next(watch, &event), 0);
    CHECK(event.id == file && event.events == IN_IGNORED);
    cc_watch_close(watch);
    CHECK_EQ(cc_fd_close(fd), 0);
    return arg;
}

TEST_WORKERS(watches_files) {
    enter_tempdir();
    CHECK_EQ(cc_run(watches, NULL, NULL), 0);
    leave_tempdir();
}

/* ---- many, simulation ---- */

enum { WRITERS = 8, BLOCK = 10000 };

CC_TASK(writes_block, { int fd, number; }) {
    char text[BLOCK], got[BLOCK];
    size_t n;
    for (int round = 0; round < 3; round++) {
        memset(text, 'a' + self->number + round, sizeof text);
        CHECK_EQ(cc_file_write(self->fd, text, sizeof text, (int64_t)self->number * BLOCK, &n), 0);
        CHECK_EQ(cc_file_datasync(self->fd), 0);
        CHECK_EQ(posix_fadvise(self->fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        CHECK_EQ(cc_file_read(self->fd, got, sizeof got, (int64_t)self->number * BLOCK, &n), 0);
        CHECK(n == BLOCK && memcmp(text, got, BLOCK) == 0);
    }
    return NULL;
}

static void *many(void *arg) {
    int fd = make("many", "");
    CC_NURSERY(n) {
        for (int i = 0; i < WRITERS; i++) CHECK_EQ(CC_GO_IN(n, writes_block, .fd = fd, .number = i), 0);
    }
    CHECK_EQ(cc_fd_close(fd), 0);
    return arg;
}

TEST_WORKERS(many_at_one_file) {
    enter_tempdir();
    CHECK_EQ(cc_run(many, NULL, NULL), 0);
    leave_tempdir();
}

TEST(files_in_a_simulation) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
        enter_tempdir();
        CHECK_EQ(cc_sim_run(seed, bytes, NULL, NULL), 0);
        CHECK_EQ(cc_sim_run(seed, many, NULL, NULL), 0);
        leave_tempdir();
    }
}
