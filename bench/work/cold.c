/* cold.c - a process starts, runs one task, ends. One operation: a process. */
#include "work.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void *one(void *arg) {
    return arg;
}

static int child(const char *workers) {
    CCRuntimeConfig config = {.workers = (unsigned)atoi(workers)};
    void *result = NULL;
    bench_check(cc_runtime_init(&config), "cc_runtime_init");
    bench_check(cc_run(one, &config, &result), "cc_run");
    return result == &config ? cc_runtime_shutdown(10000) : 1;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "child") == 0) return child(argv[2]);
    struct work w = work_begin(argc, argv, "cold");
    uint64_t n = bench_scaled(&w.bench, 200);
    char workers[16];
    snprintf(workers, sizeof workers, "%u", w.bench.workers);
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    work_start(&w);
    for (uint64_t i = 0; i < n; i++) {
        pid_t pid;
        int status;
        char *args[] = {argv[0], (char[]){"child"}, workers, NULL};
        bench_check(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ), "posix_spawn");
        if (waitpid(pid, &status, 0) != pid || status != 0) bench_fail("a process failed");
    }
    work_stop(&w);
    getrusage(RUSAGE_CHILDREN, &after);
    w.cpu =
        (uint64_t)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) *
            1000000000 +
        (uint64_t)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
                   before.ru_stime.tv_usec) *
            1000;
    return work_end(&w, n);
}
