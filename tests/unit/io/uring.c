/* uring.c - rings: the same results as by the pool, refusals, and calls in flight during cancellation, fork, shutdown
 * and restart. */
#include "forbid.h"
#include "pair.h"

#include "io/uring.h"

#include "../capture.h"
#include "../tempdir.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void needs_rings(void) {
    struct os_uring u;
    if (cc__os_uring_open(&u, 64) != 0) SKIP("io_uring is not available");
    cc__os_uring_close(&u);
}

/* How many of the process's descriptors are rings. */
static int rings_open(void) {
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[300], what[100];
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, what, sizeof what - 1);
        if (length < 0) continue;
        what[length] = '\0';
        n += strcmp(what, "anon_inode:[io_uring]") == 0;
    }
    closedir(dir);
    return n;
}

static int make_file(const char *path, size_t size) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_TRUNC, 0600);
    char *text = malloc(size + 1);
    CHECK(fd >= 0 && text != NULL);
    for (size_t i = 0; i < size; i++) text[i] = (char)(i * 31 + i / 4096);
    CHECK_EQ(pwrite(fd, text, size, 0), (ssize_t)size);
    CHECK_EQ(fsync(fd), 0);
    free(text);
    return fd;
}

static void forget_pages(int fd) {
    CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

/* ---- the same answers ---- */

enum { SIZE = 300 * 1000, ANSWERS = 128, PARTS = 700 };

struct answers {
    struct {
        const char *what;
        int rc;
        size_t n;
        uint64_t sum;
    } row[ANSWERS];
    int count;
};

static uint64_t sum_of(const char *bytes, size_t n) {
    uint64_t sum = n;
    for (size_t i = 0; i < n; i++) sum = sum * 31 + (unsigned char)bytes[i];
    return sum;
}

static void note(struct answers *a, const char *what, int rc, size_t n, const char *bytes) {
    CHECK(a->count < ANSWERS);
    a->row[a->count].what = what;
    a->row[a->count].rc = rc;
    a->row[a->count].n = n;
    a->row[a->count++].sum = sum_of(bytes, n);
}

static void ask_read(struct answers *a, const char *what, int fd, size_t size, int64_t offset) {
    static char bytes[SIZE + 100];
    size_t n = 7;
    memset(bytes, 'x', sizeof bytes);
    int rc = cc_file_read(fd, bytes, size, offset, &n);
    CHECK(rc != 0 || size == sizeof bytes || bytes[size] == 'x');
    note(a, what, rc, n, bytes);
}

static void ask_parts(struct answers *a, int fd, int64_t offset, bool empty_ones) {
    static char bytes[PARTS * 100];
    struct iovec parts[PARTS];
    size_t n = 7, at = 0;
    for (int i = 0; i < PARTS; i++) {
        size_t size = empty_ones && i % 3 == 0 ? 0 : (size_t)(i % 100);
        parts[i] = (struct iovec){bytes + at, size};
        at += size;
    }
    int rc = cc_file_readv(fd, parts, PARTS, offset, &n);
    note(a, "parts", rc, n, bytes);
}

static void ask_direct(struct answers *a) {
    int fd = open("file", O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0) return; /* not on this file system */
    char *block = aligned_alloc(4096, 8192);
    size_t n = 7;
    CHECK(block != NULL);
    int rc = cc_file_read(fd, block, 8192, 4096, &n);
    note(a, "direct", rc, n, block);
    rc = cc_file_read(fd, block, 4096, 4096 * 73, &n); /* the last one */
    note(a, "direct, the end", rc, n, block);
    rc = cc_file_read(fd, block + 1, 511, 1, &n);
    note(a, "direct, not aligned", rc, n, block + 1);
    free(block);
    close(fd);
}

static void ask_sync(struct answers *a, const char *what, int fd) {
    note(a, what, cc_file_sync(fd), 0, NULL);
    note(a, what, cc_file_datasync(fd), 0, NULL);
}

static void *ask_all(void *arg) {
    struct answers *a = arg;
    int fd = open("file", O_RDWR | O_CLOEXEC), directory = open(".", O_RDONLY | O_CLOEXEC), ends[2];
    int unreadable = open("file", O_WRONLY | O_CLOEXEC), proc = open("/proc/self/limits", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK(fd >= 0 && directory >= 0 && unreadable >= 0 && proc >= 0);
    static const int64_t offsets[] = {0, 1, 4095, 4096, 100 * 1000, SIZE - 4096, SIZE - 1, SIZE, SIZE + 4096};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        forget_pages(fd);
        ask_read(a, "a block", fd, 4096, offsets[i]);
        ask_read(a, "it is there", fd, 4096, offsets[i]);
        ask_read(a, "much", fd, 70 * 1000, offsets[i]);
        forget_pages(fd);
        ask_parts(a, fd, offsets[i], i % 2 == 0);
    }
    forget_pages(fd);
    ask_read(a, "all", fd, SIZE + 100, 0);
    forget_pages(fd);
    ask_read(a, "at the position", fd, 5000, CC_FILE_POSITION);
    ask_read(a, "at the next position", fd, 5000, CC_FILE_POSITION);
    ask_read(a, "nothing", fd, 0, 0);
    ask_read(a, "too far", fd, 1, INT64_MAX);
    ask_read(a, "a directory", directory, 100, 0);
    ask_read(a, "no descriptor", 999, 100, 0);
    ask_read(a, "not for reading", unreadable, 100, 0);
    ask_read(a, "a pipe", ends[0], 100, 0);
    ask_read(a, "a file of the system's", proc, 1000, 0);
    ask_direct(a);
    ask_sync(a, "sync", fd);
    ask_sync(a, "sync of a directory", directory);
    ask_sync(a, "sync of a pipe", ends[0]);
    ask_sync(a, "sync of no descriptor", 999);
    close(fd);
    close(directory);
    close(unreadable);
    close(proc);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}

static void run_with(const char *setting, CCTaskFn fn, void *arg) {
    CHECK_EQ(setenv("CC_URING", setting, 1), 0);
    CHECK_EQ(cc_run(fn, arg, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(rings_open(), 0);
}

TEST_WORKERS(the_same_answers) {
    static struct answers pool, ring;
    enter_tempdir();
    close(make_file("file", SIZE));
    run_with("0", ask_all, &pool);
    run_with("1", ask_all, &ring);
    CHECK_EQ(pool.count, ring.count);
    for (int i = 0; i < pool.count; i++)
        if (pool.row[i].rc != ring.row[i].rc || pool.row[i].n != ring.row[i].n || pool.row[i].sum != ring.row[i].sum)
            test_fail(__FILE__, __LINE__, "%s (%d): %d and %zu bytes, not %d and %zu", pool.row[i].what, i,
                      ring.row[i].rc, ring.row[i].n, pool.row[i].rc, pool.row[i].n);
    leave_tempdir();
}

/* ---- ring or pool ---- */

static void *syncs(void *arg) {
    int fd = make_file("synced", 4096);
    CHECK_EQ(cc_file_sync(fd), 0);
    CHECK_EQ(cc_file_datasync(fd), 0);
    close(fd);
    return arg;
}

static const char *traced(struct capture *said, const char *setting) {
    CHECK_EQ(setenv("CC_TRACE", "file", 1), 0);
    capture_start(said);
    run_with(setting, syncs, NULL);
    return capture_end(said);
}

TEST(the_trace_shows_it) {
    static struct capture said;
    needs_rings();
    enter_tempdir();
    CHECK(contains(traced(&said, "1"), "goes to io_uring"));
    CHECK(!contains(said.text, "goes to the pool"));
    CHECK(!contains(said.text, "io_uring is not used"));
    CHECK(!contains(traced(&said, "0"), "io_uring"));
    CHECK(contains(said.text, "goes to the pool"));
    leave_tempdir();
}

/* No file call has been made. */
static void *give_back(void *arg) {
    CHECK_EQ(rings_open(), 0);
    return arg;
}

TEST(none_is_opened_before_it_is_needed) {
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void *syncs_open(void *fd) {
    CHECK_EQ(cc_file_sync(*(int *)fd), 0);
    return NULL;
}

static void refuse(int call, int error, bool opens_one) {
    static struct capture said;
    enter_tempdir();
    if (opens_one) {
        needs_rings();
        CHECK_EQ(cc_run(syncs, NULL, NULL), 0);
        CHECK(rings_open() > 0);
    }
    CHECK_EQ(cc_trace_start("file"), 0);
    forbid(&call, 1, error);
    capture_start(&said);
    CHECK_EQ(setenv("CC_TRACE", "file", 1), 0);
    for (int life = 0; life < 3; life++) {
        for (int i = 0; i < 5; i++) CHECK_EQ(cc_run(syncs, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    const char *text = capture_end(&said), *sentence = strstr(text, "io_uring is not used");
    CHECK(sentence != NULL);
    CHECK(strstr(sentence + 10, "is not used") == NULL); /* once */
    CHECK(contains(text, "goes to the pool"));
    leave_tempdir();
}

TEST(the_system_refuses_with_eperm) {
    refuse(SYS_io_uring_setup, EPERM, false);
}

TEST(the_system_refuses_with_enosys) {
    refuse(SYS_io_uring_setup, ENOSYS, false);
}

TEST(the_system_refuses_with_enomem) {
    refuse(SYS_io_uring_setup, ENOMEM, false);
}

/* There are descriptors again later. */
TEST(no_descriptor_for_a_ring) {
    needs_rings();
    enter_tempdir();
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    struct rlimit before, few;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int spare = 0; spare < 3; spare++) { /* of those that the poller needs, too */
        few = before;
        int fd = make_file("file", 10);
        few.rlim_cur = (rlim_t)fd + 1 + (rlim_t)spare;
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        CHECK_EQ(cc_run(syncs_open, &fd, NULL), 0);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        CHECK_EQ(rings_open(), 0);
        close(fd);
    }
    CHECK_EQ(cc_run(syncs, NULL, NULL), 0);
    CHECK_EQ(rings_open(), 1);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    leave_tempdir();
}

TEST(the_system_refuses_later) {
    refuse(SYS_io_uring_enter, EPERM, true);
}

/* An error that the disk has reported for a write is returned to one sync only: a call that a ring has answered is not
 * repeated. Here: that there is nothing to sync. */
static void *sync_of_a_pipe(void *arg) {
    struct pair p = make_pipe(false);
    CHECK_EQ(cc__uring_call(&(struct uring_call){.kind = URING_SYNC, .fd = p.in}), -EINVAL);
    CHECK_EQ(cc__uring_call(&(struct uring_call){.kind = URING_DATASYNC, .fd = p.in}), -EINVAL);
    CHECK_EQ(cc_file_sync(p.in), EINVAL);
    close_pair(p);
    return arg;
}

TEST(an_error_of_a_sync_is_the_answer) {
    CHECK(!cc__uring_is_refusal(URING_SYNC, -EIO) && !cc__uring_is_refusal(URING_DATASYNC, -EOPNOTSUPP));
    CHECK(!cc__uring_is_refusal(URING_SYNC, 0) && cc__uring_is_refusal(URING_SYNC, -ECANCELED));
    CHECK(cc__uring_is_refusal(URING_SYNC, -512)); /* ERESTARTSYS */
    needs_rings();
    CHECK_EQ(cc_run(sync_of_a_pipe, NULL, NULL), 0);
}

/* ---- calls in flight: reads of pipes, which a test can end ---- */

CC_TASK(reads_pipe, { int fd; }) {
    char byte = 0;
    struct iovec part = {&byte, 1};
    long got = cc__uring_call(&(struct uring_call){URING_READ, self->fd, &part, 1, 0});
    CHECK_EQ(got, 1);
    CHECK_EQ(byte, 'x');
    byte = 'y';
    cc_yield();
    CHECK_EQ(byte, 'y'); /* nobody writes to it afterwards */
    return self;
}

static void await_parks(unsigned n) {
    while (cc__get(&cc__uring_waiting) != n) sched_yield();
}

TEST_WORKERS(a_cancellation_waits_for_it) {
    needs_rings();
    struct pair p = make_pipe(false);
    CCTask task = CC_GO(reads_pipe, .fd = p.in);
    await_parks(1);
    CHECK_EQ(cc_task_cancel(&task), 0);
    CHECK_EQ(cc__get(&cc__uring_waiting), 1);
    CHECK_EQ(write(p.out, "x", 1), 1);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc__get(&cc__uring_waiting), 0);
    close_pair(p);
}

TEST_WORKERS(a_shutdown_waits_for_it) {
    needs_rings();
    for (int life = 0; life < 3; life++) {
        struct pair p = make_pipe(false);
        CCTask task = CC_GO(reads_pipe, .fd = p.in);
        await_parks(1);
        CHECK_EQ(cc_task_detach(&task), 0);
        CHECK_EQ(cc_runtime_shutdown(1), ETIMEDOUT);
        CHECK_EQ(cc__get(&cc__uring_waiting), 1);
        CHECK_EQ(write(p.out, "x", 1), 1);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        CHECK_EQ(rings_open(), 0);
        close_pair(p);
    }
}

TEST_WORKERS(a_forked_child_has_no_ring) {
    needs_rings();
    struct pair p = make_pipe(false);
    CCTask task = CC_GO(reads_pipe, .fd = p.in);
    await_parks(1);
    fflush(stdout);
    enter_tempdir();
    int fd = make_file("file", 10000);
    forget_pages(fd);
    pid_t child = test_fork();
    CHECK(child >= 0);
    if (child == 0) {
        char bytes[100];
        size_t n;
        bool right = rings_open() == 0 && cc__get(&cc__uring_waiting) == 0 && cc_file_sync(fd) == 0 &&
                     cc_file_read(fd, bytes, 100, 5000, &n) == 0 && n == 100;
        _exit(right ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(write(p.out, "x", 1), 1);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    close_pair(p);
    close(fd);
    leave_tempdir();
}

TEST(a_dump_says_what_it_waits_for) {
    needs_rings();
    struct pair p = make_pipe(false);
    char *text = NULL, expected[100];
    size_t size;
    CCTask task = CC_GO(reads_pipe, .fd = p.in);
    await_parks(1);
    snprintf(expected, sizeof expected, "for io_uring to read descriptor %d", p.in);
    do {
        free(text);
        FILE *file = open_memstream(&text, &size);
        CHECK(file != NULL);
        CHECK_EQ(cc_dump(file), 0);
        fclose(file);
    } while (strstr(text, "waits for") == NULL);
    if (strstr(text, expected) == NULL) test_fail(__FILE__, __LINE__, "'%s' is not in: %s", expected, text);
    free(text);
    CHECK_EQ(write(p.out, "x", 1), 1);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    close_pair(p);
}

/* The worker that has submitted it computes when it comes, and another one sleeps or computes, too. */
CC_TASK(computes, { _Atomic bool *until; }) {
    while (!cc__get(self->until)) cc_yield();
    return self;
}

TEST_WORKERS(it_comes_while_workers_compute) {
    needs_rings();
    enum { COMPUTING = 4, ROUNDS = 50 };
    _Atomic bool over = false;
    CCTask others[COMPUTING];
    for (int i = 0; i < COMPUTING; i++) others[i] = CC_GO(computes, .until = &over);
    for (int round = 0; round < test_scale(ROUNDS); round++) {
        struct pair p = make_pipe(false);
        CCTask reader = CC_GO(reads_pipe, .fd = p.in);
        await_parks(1);
        CHECK_EQ(write(p.out, "x", 1), 1);
        CHECK_EQ(cc_task_join(&reader, NULL), 0);
        close_pair(p);
    }
    cc__set(&over, true);
    for (int i = 0; i < COMPUTING; i++) CHECK_EQ(cc_task_join(&others[i], NULL), 0);
}

/* ---- workers that come and go ---- */

static _Atomic bool blocked;

CC_TASK(block_worker, { int fd; }) {
    char byte;
    cc__set(&blocked, true);
    CHECK_EQ(read(self->fd, &byte, 1), 1);
    return self;
}

CC_TASK(reads_by_ring, {
    int fd;
    long *got;
}) {
    char byte = 0;
    struct iovec part = {&byte, 1};
    *self->got = cc__uring_call(&(struct uring_call){URING_READ, self->fd, &part, 1, 0});
    return self;
}

/* The system completes a call on the thread that has submitted it, or says that this one is gone. */
TEST(the_worker_retires_with_a_call_in_flight) {
    needs_rings();
    CCRuntimeConfig config = {.workers = 1, .max_workers = 2};
    struct pair p = make_pipe(false), block = make_pipe(false);
    long got = 0;
    CHECK_EQ(cc_runtime_init(&config), 0);
    CCTask blocker = CC_GO(block_worker, .fd = block.in);
    while (!cc__get(&blocked)) usleep(1000);
    CCTask reader = CC_GO(reads_by_ring, .fd = p.in, .got = &got); /* by a worker that is added for it */
    await_parks(1);
    CHECK_EQ(write(block.out, "x", 1), 1);
    CHECK_EQ(cc_task_join(&blocker, NULL), 0);
    while (cc_worker_count() != 1) usleep(1000);
    CHECK_EQ(cc__get(&cc__uring_waiting), 1);
    CHECK_EQ(write(p.out, "x", 1), 1);
    CHECK_EQ(cc_task_join(&reader, NULL), 0);
    CHECK(got == 1 || got == -EAGAIN);
    CHECK_EQ(cc__get(&cc__uring_waiting), 0);
    close_pair(p);
    close_pair(block);
}

/* Calls that complete on submission: the fiber has no reason to wait, but yields (CALL-2). */
CC_TASK(counts, {
    _Atomic unsigned *turns;
    _Atomic bool *until;
}) {
    while (!cc__get(self->until)) {
        cc__add(self->turns, 1);
        cc_yield();
    }
    return self;
}

CC_TASK(reads_at_once, {
    int fd, times;
    _Atomic unsigned *turns;
}) {
    unsigned before = cc__get(self->turns);
    for (int i = 0; i < self->times; i++) {
        char byte;
        struct iovec part = {&byte, 1};
        CHECK_EQ(cc__uring_call(&(struct uring_call){URING_READ, self->fd, &part, 1, 0}), 1);
    }
    CHECK(cc__get(self->turns) - before >= (unsigned)self->times / 64 - 1);
    return self;
}

TEST(calls_that_are_done_at_once) {
    needs_rings();
    enum { TIMES = 2000 };
    static char bytes[TIMES];
    _Atomic unsigned turns = 0;
    _Atomic bool over = false;
    struct pair p = make_pipe(false);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    CHECK_EQ(write(p.out, bytes, TIMES), TIMES);
    CCTask counter = CC_GO(counts, .turns = &turns, .until = &over);
    while (cc__get(&turns) == 0) sched_yield();
    CCTask reader = CC_GO(reads_at_once, .fd = p.in, .times = TIMES, .turns = &turns);
    CHECK_EQ(cc_task_join(&reader, NULL), 0);
    cc__set(&over, true);
    CHECK_EQ(cc_task_join(&counter, NULL), 0);
    close_pair(p);
}

/* Reads that wait for a page of the page cache when their thread ends. */
enum { ORPHANS = 64, ORPHAN_SIZE = 4096 };

struct orphans {
    struct os_uring u;
    int fd;
    char *bytes;
    struct iovec parts[ORPHANS];
};

static void *submit_and_end(void *arg) {
    struct orphans *o = arg;
    for (int i = 0; i < ORPHANS; i++) {
        struct uring_call call = {URING_READ, o->fd, &o->parts[i], 1, (off_t)i * 8 * ORPHAN_SIZE};
        CHECK_EQ(cc__os_uring_submit(&o->u, &call, &o->parts[i]), 0);
    }
    return NULL;
}

TEST(threads_that_end_with_reads_in_flight) {
    needs_rings();
    enter_tempdir();
    struct orphans o = {.fd = make_file("file", ORPHANS * 8 * ORPHAN_SIZE), .bytes = malloc(ORPHANS * ORPHAN_SIZE)};
    CHECK(o.bytes != NULL);
    CHECK_EQ(posix_fadvise(o.fd, 0, 0, POSIX_FADV_RANDOM), 0); /* each read has its own page */
    for (int i = 0; i < ORPHANS; i++) o.parts[i] = (struct iovec){o.bytes + i * ORPHAN_SIZE, ORPHAN_SIZE};
    CHECK_EQ(cc__os_uring_open(&o.u, ORPHANS), 0);
    for (int round = 0; round < 10; round++) {
        pthread_t thread;
        struct uring_done done;
        forget_pages(o.fd);
        CHECK_EQ(pthread_create(&thread, NULL, submit_and_end, &o), 0);
        for (int i = 0; i < ORPHANS; i++) {
            while (!cc__os_uring_take(&o.u, &done)) sched_yield();
            if (done.result != ORPHAN_SIZE && !cc__uring_is_refusal(URING_READ, done.result))
                test_fail(__FILE__, __LINE__, "a read was answered with %d", done.result);
        }
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    cc__os_uring_close(&o.u);
    close(o.fd);
    free(o.bytes);
    leave_tempdir();
}

TEST_WORKERS(on_an_island) {
    needs_rings();
    CCIsland *island;
    struct pair p = make_pipe(false);
    CHECK_EQ(cc_island_create(&island, NULL), 0);
    for (int round = 0; round < test_scale(20); round++) {
        CCTask task = CC_GO_ON(island, reads_pipe, .fd = p.in);
        await_parks(1);
        CHECK_EQ(write(p.out, "x", 1), 1);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
    CHECK_EQ(cc_island_free(island), 0);
    close_pair(p);
}

/* More than a ring takes: the pool executes the others. */
CC_TASK(syncs_once, { int fd; }) {
    CHECK_EQ(cc_file_datasync(self->fd), 0);
    return self;
}

static void *many_sync(void *arg) {
    int fd = make_file("file", 1);
    CC_NURSERY(n)
    for (int i = 0; i < test_scale(2000); i++) CHECK_EQ(CC_GO_IN(n, syncs_once, .fd = fd), 0);
    close(fd);
    return arg;
}

static void *many_wait(void *arg) {
    enum { MANY = 200 };
    struct pair p = make_pipe(false);
    CC_NURSERY(n) {
        for (int i = 0; i < MANY; i++) CHECK_EQ(CC_GO_IN(n, reads_pipe, .fd = p.in), 0);
        while (cc__get(&cc__uring_waiting) != MANY) CHECK_EQ(cc_sleep_ms(1), 0);
        many_sync(NULL);
        for (int i = 0; i < MANY; i++) CHECK_EQ(write(p.out, "x", 1), 1);
    }
    close_pair(p);
    return arg;
}

TEST_WORKERS(more_than_a_ring_takes) {
    needs_rings();
    enter_tempdir();
    CHECK_EQ(cc_run(many_wait, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    leave_tempdir();
}

/* ---- cancellations at any time ---- */

CC_TASK(reads_until_cancelled, {
    int fd, seed;
    _Atomic unsigned *calls;
}) {
    enum { MOST = 20000 };
    char *bytes = malloc(MOST);
    CHECK(bytes != NULL);
    unsigned at = (unsigned)self->seed * 7919u;
    int rc = 0;
    while (rc == 0) {
        size_t n, size = at % MOST, offset = at * 4099u % SIZE, expected = SIZE - offset < size ? SIZE - offset : size;
        rc = cc_file_read(self->fd, bytes, size, (int64_t)offset, &n);
        CHECK(rc == 0 || rc == ECANCELED);
        if (rc == 0) CHECK_EQ(n, expected);
        for (size_t i = 0; i < n; i++)
            if (bytes[i] != (char)((offset + i) * 31 + (offset + i) / 4096))
                test_fail(__FILE__, __LINE__, "byte %zu", i);
        memset(bytes, 'z', MOST);
        cc_yield();
        for (size_t i = 0; i < MOST; i++) CHECK(bytes[i] == 'z'); /* nobody writes to it after the call */
        at = at * 1103515245u + 12345u;
        cc__add(self->calls, 1);
        if (at % 8 == 0) forget_pages(self->fd);
    }
    free(bytes);
    return self;
}

static void *cancels(void *arg) {
    enum { READERS = 8 };
    _Atomic unsigned calls = 0;
    int fd = make_file("file", SIZE);
    for (int round = 0; round < test_scale(40); round++) {
        CC_NURSERY(n) {
            for (int i = 0; i < READERS; i++)
                CHECK_EQ(CC_GO_IN(n, reads_until_cancelled, .fd = fd, .seed = round * READERS + i, .calls = &calls), 0);
            unsigned until = cc__get(&calls) + 20;
            while ((int)(cc__get(&calls) - until) < 0) CHECK_EQ(cc_sleep_until(cc_after_ns(100 * 1000)), 0);
            CHECK_EQ(cc_nursery_cancel(n), 0);
        }
    }
    close(fd);
    return arg;
}

TEST_WORKERS(cancelled_at_any_time, .timeout = 180) {
    enter_tempdir();
    CHECK_EQ(cc_run(cancels, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    leave_tempdir();
}
