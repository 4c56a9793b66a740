/* file.c - files: what the library's calls cost beside the system's, for cached data; reads that miss the
 * page cache, with one reader and with 32; and syncs, with one writer and with sixteen: file [DIRECTORY].
 *
 * Each row: nanoseconds of the plain call on an OS thread, of the library's call in a fiber, and their ratio; the best
 * of several rounds, which take turns. Plain readers and writers are as many threads. Of what waits for the disk the
 * CPU time of an operation stands beside the wall time: the disk decides about the latter.
 */
#include <ccc/ccc.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK = 4096,
    BLOCKS = 256,
    OPERATIONS = 20000,
    ROUNDS = 15,
    SYNCS = 320,
    WRITERS = 16,
    COLD_BLOCKS = 16384, /* of the file that is read cold: 64 MiB */
    COLD_READS = 4096,
    COLD_READERS = 32,
    DISK_ROUNDS = 5,
};

static int fd;
static char path[4096];
static char block[BLOCK];

static void must(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "file: %s failed\n", what);
    exit(1);
}

/* ---- one operation, both ways ---- */

static int64_t place(int i) {
    return (int64_t)(i % BLOCKS) * BLOCK;
}

static void plain_read(int i) {
    must(pread(fd, block, BLOCK, place(i)) == BLOCK, "pread");
}
static void our_read(int i) {
    size_t n;
    must(cc_file_read(fd, block, BLOCK, place(i), &n) == 0 && n == BLOCK, "cc_file_read");
}
static void plain_write(int i) {
    must(pwrite(fd, block, BLOCK, place(i)) == BLOCK, "pwrite");
}
static void our_write(int i) {
    must(cc_file_write(fd, block, BLOCK, place(i), NULL) == 0, "cc_file_write");
}
static void plain_open(int i) {
    (void)i;
    int other = open(path, O_RDONLY | O_CLOEXEC);
    must(other >= 0 && close(other) == 0, "open");
}
static void our_open(int i) {
    (void)i;
    int other;
    must(cc_file_open(&other, path, O_RDONLY, 0) == 0 && cc_fd_close(other) == 0, "cc_file_open");
}
static void plain_stat(int i) {
    (void)i;
    struct stat status;
    must(stat(path, &status) == 0, "stat");
}
static void our_stat(int i) {
    (void)i;
    struct stat status;
    must(cc_path_stat(path, &status) == 0, "cc_path_stat");
}
static void *give_back(void *arg) {
    return arg;
}
static void plain_call(int i) {
    (void)i;
    must(give_back(block) == block, "a call");
}
static void our_call(int i) {
    (void)i;
    must(cc_blocking(give_back, block, NULL) == 0, "cc_blocking");
}

struct row {
    const char *name;
    void (*plain)(int), (*ours)(int);
    int operations;
};

static double time_of(void (*operation)(int), int count) {
    uint64_t start = cc_now_ns();
    for (int i = 0; i < count; i++) operation(i);
    return (double)(cc_now_ns() - start) / count;
}

static void *time_in_fiber(void *arg) {
    const struct row *row = arg;
    static double took;
    took = time_of(row->ours, row->operations);
    return &took;
}

static void measure(const struct row *row) {
    double plain = 1e18, ours = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        void *took;
        double once = time_of(row->plain, row->operations);
        must(cc_run(time_in_fiber, (void *)(uintptr_t)row, &took) == 0, "cc_run");
        if (once < plain) plain = once;
        if (*(double *)took < ours) ours = *(double *)took;
    }
    printf("%-12s plain_ns=%-8.0f ccc_ns=%-8.0f ratio=%.2f\n", row->name, plain, ours, ours / plain);
}

/* ---- what waits for the disk ---- */

struct cost {
    double wall, cpu; /* nanoseconds of one operation */
};

static double cpu_ns(void) {
    struct rusage used;
    must(getrusage(RUSAGE_SELF, &used) == 0, "getrusage");
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
}

/* One of several readers or writers: operations first, first + step, ... below count. */
struct share {
    int first, step, count;
};

/* A permutation of the blocks, so that no read hits what another one has brought in. */
static int64_t cold_place(int i) {
    return (int64_t)((unsigned)i * 7919u % COLD_BLOCKS) * BLOCK;
}

static void *plain_cold(void *arg) {
    const struct share *share = arg;
    char bytes[BLOCK];
    for (int i = share->first; i < share->count; i += share->step)
        must(pread(fd, bytes, BLOCK, cold_place(i)) == BLOCK, "pread");
    return NULL;
}
static void *our_cold(void *arg) {
    const struct share *share = arg;
    char bytes[BLOCK];
    size_t n;
    for (int i = share->first; i < share->count; i += share->step)
        must(cc_file_read(fd, bytes, BLOCK, cold_place(i), &n) == 0 && n == BLOCK, "cc_file_read");
    return NULL;
}
static void *plain_sync(void *arg) {
    const struct share *share = arg;
    for (int i = share->first; i < share->count; i += share->step)
        must(pwrite(fd, block, BLOCK, place(share->first)) == BLOCK && fdatasync(fd) == 0, "fdatasync");
    return NULL;
}
static void *our_sync(void *arg) {
    const struct share *share = arg;
    for (int i = share->first; i < share->count; i += share->step)
        must(cc_file_write(fd, block, BLOCK, place(share->first), NULL) == 0 && cc_file_datasync(fd) == 0,
             "cc_file_datasync");
    return NULL;
}

struct disk_row {
    const char *name;
    void *(*plain)(void *), *(*ours)(void *);
    int count, most; /* operations, and by how many at a time */
    bool cold;
};

struct job {
    void *(*run)(void *);
    struct share *shares;
    int members;
};

static void *start_fibers(void *arg) {
    const struct job *job = arg;
    CC_NURSERY(n)
    for (int i = 0; i < job->members; i++) must(cc_nursery_spawn(n, job->run, &job->shares[i]) == 0, "a spawn");
    return NULL;
}

static void start_threads(const struct job *job) {
    pthread_t threads[COLD_READERS];
    for (int i = 0; i < job->members; i++)
        must(pthread_create(&threads[i], NULL, job->run, &job->shares[i]) == 0, "a thread");
    for (int i = 0; i < job->members; i++) pthread_join(threads[i], NULL);
}

static void time_disk(const struct disk_row *row, int members, bool ours, struct cost *least) {
    struct share shares[COLD_READERS];
    for (int i = 0; i < members; i++) shares[i] = (struct share){i, members, row->count};
    if (row->cold) must(fdatasync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "posix_fadvise");
    struct job job = {ours ? row->ours : row->plain, shares, members};
    double cpu = cpu_ns();
    uint64_t start = cc_now_ns();
    if (ours)
        must(cc_run(start_fibers, &job, NULL) == 0, "cc_run");
    else
        start_threads(&job);
    double wall = (double)(cc_now_ns() - start) / row->count;
    cpu = (cpu_ns() - cpu) / row->count;
    if (wall < least->wall) least->wall = wall;
    if (cpu < least->cpu) least->cpu = cpu;
}

static void measure_disk(const struct disk_row *row, int members) {
    struct cost plain = {1e18, 1e18}, ours = plain;
    for (int round = 0; round < DISK_ROUNDS; round++) {
        time_disk(row, members, false, &plain);
        time_disk(row, members, true, &ours);
    }
    char name[32];
    snprintf(name, sizeof name, "%s_%d", row->name, members);
    printf("%-12s plain_ns=%-8.0f ccc_ns=%-8.0f ratio=%.2f plain_cpu_ns=%-8.0f ccc_cpu_ns=%-8.0f\n", name, plain.wall,
           ours.wall, ours.wall / plain.wall, plain.cpu, ours.cpu);
}

int main(int argc, char **argv) {
    static const struct row rows[] = {
        {"read", plain_read, our_read, OPERATIONS},       {"write", plain_write, our_write, OPERATIONS},
        {"open_close", plain_open, our_open, OPERATIONS}, {"stat", plain_stat, our_stat, OPERATIONS},
        {"call", plain_call, our_call, OPERATIONS / 20},
    };
    snprintf(path, sizeof path, "%s/ccc-file-XXXXXX", argc > 1 ? argv[1] : ".");
    fd = mkstemp(path);
    must(fd >= 0, "mkstemp");
    for (int i = 0; i < BLOCKS; i++) plain_write(i);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) measure(&rows[i]);
    static const struct disk_row disk[] = {
        {"cold", plain_cold, our_cold, COLD_READS, COLD_READERS, true},
        {"sync", plain_sync, our_sync, SYNCS, WRITERS, false},
    };
    for (int64_t i = 0; i < COLD_BLOCKS; i++) must(pwrite(fd, block, BLOCK, i * BLOCK) == BLOCK, "pwrite");
    must(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) == 0, "posix_fadvise"); /* no reading ahead */
    for (size_t i = 0; i < sizeof disk / sizeof disk[0]; i++) {
        measure_disk(&disk[i], 1);
        measure_disk(&disk[i], disk[i].most);
    }
    unlink(path);
    return 0;
}
