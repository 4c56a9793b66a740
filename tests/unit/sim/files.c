/* files.c - the files of simulated hosts: like real files, and what a crash leaves of them. */
#include "sim_net.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { SEEDS = 40 };

static atomic_uint ended;

/* Runs fn on a new host, and waits until it has ended. The host stays up. */
static CCSimHost run_on(const char *name, CCTaskFn fn, void *arg) {
    CCSimHost host;
    CHECK_EQ(cc_sim_host(&host, name), 0);
    CHECK_EQ(cc_sim_start(host, fn, arg), 0);
    while (cc_sim_fibers(host) > 0) CHECK_EQ(cc_sleep_ms(1), 0);
    return host;
}

static int try_open(const char *path, int flags, int *fd) {
    int error;
    do error = cc_file_open(fd, path, flags, 0644);
    while (error == EMFILE);
    return error;
}

static int open_error(const char *path, int flags) {
    int fd;
    return try_open(path, flags, &fd);
}

static int open_file(const char *path, int flags) {
    int fd;
    CHECK_EQ(try_open(path, flags, &fd), 0);
    return fd;
}

static void write_file(const char *path, const char *text, bool sync) {
    int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    CHECK_EQ(cc_file_write(fd, text, strlen(text), 0, NULL), 0);
    if (sync) CHECK_EQ(cc_file_sync(fd), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
}

/* ENOENT or 0 and the content. */
static int read_file(const char *path, char *text, size_t size) {
    int fd, error;
    size_t n;
    do error = cc_file_open(&fd, path, O_RDONLY, 0);
    while (error == EMFILE);
    if (error != 0) return error;
    CHECK_EQ(cc_file_read(fd, text, size - 1, 0, &n), 0);
    text[n] = 0;
    CHECK_EQ(cc_fd_close(fd), 0);
    return 0;
}

static void sync_root(void) {
    int fd = open_file("/", O_RDONLY | O_DIRECTORY);
    CHECK_EQ(cc_file_sync(fd), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
}

/* ---- as files are ---- */

static void *ordinary(void *arg) {
    char text[64];
    struct stat status;
    int fd, other;
    size_t n;
    CCDir *dir;
    CCDirEntry entry;
    CHECK_EQ(cc_file_open(&fd, "/none", O_RDONLY, 0), ENOENT);
    CHECK_EQ(cc_file_open(&fd, "/none/x", O_RDONLY | O_CREAT, 0), ENOENT);
    CHECK_EQ(cc_path_mkdir("d", 0755), 0);
    CHECK_EQ(cc_path_mkdir("/d/", 0755), EEXIST);
    write_file("d/../d/./a", "hello", false);
    CHECK_EQ(read_file("/d/a", text, sizeof text), 0);
    CHECK(strcmp(text, "hello") == 0);
    CHECK_EQ(cc_path_stat("/d/a", &status), 0);
    CHECK(status.st_size == 5 && S_ISREG(status.st_mode));
    CHECK_EQ(cc_path_stat("/d", &status), 0);
    CHECK(S_ISDIR(status.st_mode));
    CHECK_EQ(cc_file_open(&fd, "/d", O_RDWR, 0), EISDIR);
    CHECK_EQ(cc_file_open(&fd, "/d/a", O_RDONLY | O_DIRECTORY, 0), ENOTDIR);
    CHECK_EQ(cc_file_open(&fd, "/d/a", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    /* positions, appending, holes, truncation */
    fd = open_file("/d/b", O_RDWR | O_CREAT | O_APPEND);
    CHECK_EQ(cc_file_write(fd, "one", 3, CC_FILE_POSITION, NULL), 0);
    CHECK_EQ(cc_file_write(fd, "two", 3, 0, NULL), 0); /* at the end */
    CHECK_EQ(cc_file_stat(fd, &status), 0);
    CHECK_EQ(status.st_size, 6);
    CHECK_EQ(cc_file_truncate(fd, 4), 0);
    CHECK_EQ(cc_file_read(fd, text, sizeof text, 0, &n), 0);
    CHECK(n == 4 && memcmp(text, "onet", 4) == 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    fd = open_file("/d/c", O_RDWR | O_CREAT);
    CHECK_EQ(cc_file_write(fd, "x", 1, 9, NULL), 0);
    CHECK_EQ(cc_file_read(fd, text, sizeof text, 0, &n), 0);
    CHECK(n == 10 && text[0] == 0 && text[9] == 'x');
    CHECK_EQ(cc_file_write(open_file("/d/c", O_RDONLY), "x", 1, 0, NULL), EBADF);
    /* locks are of an opening */
    other = open_file("/d/c", O_RDWR);
    CHECK_EQ(cc_file_lock(fd, CC_FILE_EXCLUSIVE), 0);
    CHECK_EQ(cc_file_lock_try(other, CC_FILE_SHARED), EAGAIN);
    CHECK_EQ(cc_file_lock_until(other, CC_FILE_SHARED, cc_after_ms(100)), ETIMEDOUT);
    CHECK_EQ(cc_file_unlock(fd), 0);
    CHECK_EQ(cc_file_lock(other, CC_FILE_SHARED), 0);
    CHECK_EQ(cc_file_lock(fd, CC_FILE_SHARED), 0);
    CHECK_EQ(cc_file_lock_try(fd, CC_FILE_EXCLUSIVE), EAGAIN);
    CHECK_EQ(cc_fd_close(other), 0);
    CHECK_EQ(cc_file_lock_try(fd, CC_FILE_EXCLUSIVE), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    /* names */
    CHECK_EQ(cc_path_rename("/d/a", "/d/z"), 0);
    CHECK_EQ(cc_path_rename("/d/a", "/d/z"), ENOENT);
    CHECK_EQ(cc_path_rename("/d/b", "/d/z"), 0);
    CHECK_EQ(cc_path_rename("/d", "/e"), EOPNOTSUPP); /* not simulated */
    CHECK_EQ(cc_path_rmdir("/d"), ENOTEMPTY);
    CHECK_EQ(cc_path_unlink("/d"), EISDIR);
    CHECK_EQ(cc_dir_open(&dir, "/d"), 0);
    unsigned count = 0;
    for (;;) {
        CHECK_EQ(cc_dir_next(dir, &entry), 0);
        if (entry.name == NULL) break;
        CHECK(strcmp(entry.name, "c") == 0 || strcmp(entry.name, "z") == 0);
        CHECK_EQ(entry.type, DT_REG);
        count++;
    }
    cc_dir_close(dir);
    CHECK_EQ(count, 2);
    CHECK_EQ(cc_path_unlink("/d/c/"), ENOTDIR); /* what ends so is a directory, or is not there */
    CHECK_EQ(cc_path_unlink("/d/c/."), ENOTDIR);
    CHECK_EQ(cc_path_unlink("/d/none/"), ENOENT);
    CHECK_EQ(cc_path_unlink("/d/"), EISDIR);
    CHECK_EQ(cc_path_rename("/d/c/", "/d/e"), ENOTDIR);
    CHECK_EQ(cc_path_rename("/d/c", "/d/e/"), ENOTDIR);
    CHECK_EQ(cc_path_stat("/d/c/", &status), ENOTDIR);
    CHECK_EQ(cc_path_stat("/d/", &status), 0);
    CHECK_EQ(open_error("/d/c/", O_RDONLY), ENOTDIR);
    CHECK_EQ(open_error("/d/new/", O_WRONLY | O_CREAT), EISDIR);
    CHECK_EQ(cc_path_unlink("/d/c"), 0);
    CHECK_EQ(cc_path_unlink("/d/z"), 0);
    CHECK_EQ(cc_path_rmdir("/d"), 0);
    CHECK_EQ(cc_file_temp(&fd, "/"), 0);
    CHECK_EQ(cc_file_write(fd, "t", 1, 0, NULL), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    CCWatch *watch;
    CHECK_EQ(cc_watch_open(&watch), ENOTSUP);
    CHECK_EQ(cc_fd_read(open_file("/f", O_RDWR | O_CREAT), text, 1, &n), 0);
    CHECK_EQ(n, 0);
    atomic_fetch_add(&ended, 1);
    return arg;
}

static void *ordinary_run(void *arg) {
    unsigned before = atomic_load(&ended);
    use_net(calm_net());
    (void)run_on("disk", ordinary, NULL);
    CHECK_EQ(atomic_load(&ended), before + 1);
    return arg;
}

TEST(files_of_a_host) {
    CHECK_EQ(cc_sim_run(3, ordinary_run, NULL, NULL), 0);
}

/* ---- what is synced stays ---- */

static void *write_synced(void *arg) {
    write_file("/kept", "first", true);
    sync_root();
    write_file("/unsynced", "gone or not", false);
    int fd = open_file("/kept", O_WRONLY | O_APPEND);
    CHECK_EQ(cc_file_write(fd, "SECOND", 6, 0, NULL), 0);
    return arg;
}

static void *look_after(void *arg) {
    char text[64];
    CHECK_EQ(read_file("/kept", text, sizeof text), 0);
    CHECK(strncmp(text, "first", 5) == 0);
    CHECK(strncmp("firstSECOND", text, strlen(text)) == 0); /* nothing, all, or a part */
    note("kept: %s\n", text);
    if (read_file("/unsynced", text, sizeof text) == 0) note("unsynced: %s\n", text);
    return arg;
}

static void *crash_and_look(void *arg) {
    use_net(calm_net());
    CCSimHost host = run_on("disk", write_synced, NULL);
    CHECK_EQ(cc_sim_crash(host), 0);
    (void)run_on("disk", look_after, NULL);
    return arg;
}

TEST(synced_writes_survive_others_may_not) {
    unsigned all = 0, nothing = 0, torn = 0, named = 0, empty = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        clear_trace();
        CHECK_EQ(cc_sim_run(seed, crash_and_look, NULL, NULL), 0);
        all += strstr(trace.text, "firstSECOND\n") != NULL;
        nothing += strstr(trace.text, "first\n") != NULL;
        torn += strstr(trace.text, "firstS") != NULL && strstr(trace.text, "SECOND") == NULL;
        named += strstr(trace.text, "unsynced:") != NULL;
        empty += strstr(trace.text, "unsynced: \n") != NULL; /* a name without the bytes */
    }
    CHECK(all > 0 && nothing > 0 && torn > 0);
    CHECK(named > 0 && named < SEEDS && empty > 0);
    same_twice(crash_and_look, 5);
}

/* ---- renames ---- */

static void sync_directory(const char *path) {
    int fd = open_file(path, O_RDONLY | O_DIRECTORY);
    CHECK_EQ(cc_file_sync(fd), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
}

/* Through three directories, which are synced in this order or the other. */
static void *rename_across(void *order) {
    CHECK(cc_path_mkdir("/a", 0755) == 0 && cc_path_mkdir("/b", 0755) == 0 && cc_path_mkdir("/c", 0755) == 0);
    sync_directory("/");
    write_file("/a/x", "content", true);
    CHECK_EQ(cc_path_rename("/a/x", "/b/x"), 0);
    CHECK_EQ(cc_path_rename("/b/x", "/c/x"), 0);
    for (const char *at = order; *at != 0; at++) sync_directory((char[]){'/', *at, 0});
    return NULL;
}

static void *look_across(void *arg) {
    char text[64];
    CHECK_EQ(read_file("/a/x", text, sizeof text), ENOENT); /* all is synced: it does not come back */
    CHECK_EQ(read_file("/b/x", text, sizeof text), ENOENT);
    CHECK_EQ(read_file("/c/x", text, sizeof text), 0);
    CHECK(strcmp(text, "content") == 0);
    return arg;
}

static void *crash_across(void *order) {
    use_net(calm_net());
    CCSimHost host = run_on("disk", rename_across, order);
    CHECK_EQ(cc_sim_crash(host), 0);
    (void)run_on("disk", look_across, NULL);
    return NULL;
}

TEST(renames_across_directories) {
    static char *const orders[] = {"abc", "cba", "bca", "cab"};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, crash_across, orders[seed % 4], NULL), 0);
}

static void *rename_unsynced(void *arg) {
    write_file("/old", "content", true);
    write_file("/target", "before", true);
    sync_root();
    CHECK_EQ(cc_path_rename("/old", "/target"), 0);
    return arg;
}

static void *look_at_rename(void *arg) {
    char text[64];
    bool old = read_file("/old", text, sizeof text) == 0;
    if (old) CHECK(strcmp(text, "content") == 0);
    CHECK_EQ(read_file("/target", text, sizeof text), 0); /* one or the other */
    note("%d %s\n", old, text);
    CHECK(strcmp(text, "content") == 0 || (old && strcmp(text, "before") == 0));
    return arg;
}

static void *crash_rename(void *arg) {
    use_net(calm_net());
    CCSimHost host = run_on("disk", rename_unsynced, NULL);
    CHECK_EQ(cc_sim_crash(host), 0);
    (void)run_on("disk", look_at_rename, NULL);
    return arg;
}

TEST(renames_without_a_directory_sync) {
    unsigned before = 0, after = 0, both = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        clear_trace();
        CHECK_EQ(cc_sim_run(seed, crash_rename, NULL, NULL), 0);
        before += strcmp(trace.text, "1 before\n") == 0;
        after += strcmp(trace.text, "0 content\n") == 0;
        both += strcmp(trace.text, "1 content\n") == 0;
    }
    CHECK(before > 0 && after > 0 && both > 0);
    CHECK_EQ(before + after + both, SEEDS);
}

/* ---- a replacement is whole ---- */

static void replace(const char *text) {
    CCReplace *r;
    int error;
    do error = cc_replace_begin(&r, "/settings", 0644);
    while (error == EMFILE);
    CHECK_EQ(error, 0);
    CHECK_EQ(cc_file_write(cc_replace_fd(r), text, strlen(text), 0, NULL), 0);
    CHECK_EQ(cc_replace_commit(r), 0);
}

static void *replace_twice(void *arg) {
    replace("one");
    replace("two");
    return arg;
}

static void *look_at_settings(void *arg) {
    char text[64];
    CHECK_EQ(read_file("/settings", text, sizeof text), 0);
    CHECK(strcmp(text, "two") == 0);
    return arg;
}

static void *crash_replace(void *arg) {
    use_net(calm_net());
    CCSimHost host = run_on("disk", replace_twice, NULL);
    CHECK_EQ(cc_sim_crash(host), 0);
    (void)run_on("disk", look_at_settings, NULL);
    return arg;
}

TEST(a_replacement_survives) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, crash_replace, NULL, NULL), 0);
}

/* ---- lengths that overflow ---- */

/* The sum of the lengths is 1. */
static void *write_too_much(void *arg) {
    char bytes[2] = {'a', 'b'};
    struct iovec parts[] = {{bytes, SIZE_MAX}, {bytes, 2}};
    size_t n;
    int fd = open_file("/log", O_RDWR | O_CREAT);
    CHECK_EQ(cc_fd_writev(fd, parts, 2, &n), EINVAL);
    CHECK_EQ(cc_file_writev(fd, parts, 2, 0, &n), EINVAL);
    CHECK_EQ(cc_file_write(fd, "entry", 5, 0, NULL), 0);
    CHECK_EQ(cc_fd_readv(fd, parts, 2, &n), EINVAL);
    CHECK_EQ(cc_fd_close(fd), 0);
    atomic_fetch_add(&ended, 1);
    return arg;
}

static void *write_on_disk(void *arg) {
    use_net(calm_net());
    (void)run_on("disk", write_too_much, NULL);
    return arg;
}

TEST(lengths_that_overflow) {
    CHECK_EQ(cc_sim_run(1, write_on_disk, NULL, NULL), 0);
    CHECK_EQ(ended, 1);
}

/* ---- a crash while a sync is under way ---- */

static void *sync_slowly(void *arg) {
    int fd = open_file("/log", O_WRONLY | O_CREAT);
    CHECK_EQ(cc_file_write(fd, "entry", 5, 0, NULL), 0);
    int error = cc_file_sync(fd);
    CHECK(error == 0 || error == ECANCELED);
    CHECK(error == 0 || cc_file_write(fd, "later", 5, 5, NULL) == ECANCELED);
    CHECK_EQ(cc_fd_close(fd), 0);
    atomic_store((atomic_int *)arg, error == 0 ? 1 : 2);
    return NULL;
}

static void *crash_meanwhile(void *arg) {
    CCSimHost host;
    atomic_int outcome = 0;
    use_net(calm_net());
    CHECK_EQ(cc_sim_host(&host, "disk"), 0);
    CHECK_EQ(cc_sim_start(host, sync_slowly, &outcome), 0);
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(cc_sim_crash(host), 0);
    while (cc_sim_fibers(host) > 0) CHECK_EQ(cc_sleep_ms(1), 0);
    atomic_fetch_add((atomic_uint *)arg + atomic_load(&outcome), 1);
    return NULL;
}

TEST(a_crash_during_a_sync) {
    atomic_uint outcomes[3] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK_EQ(cc_sim_run(seed, crash_meanwhile, outcomes, NULL), 0);
    CHECK(outcomes[1] > 0 && outcomes[2] > 0);
}
