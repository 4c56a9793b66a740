/* bench.h - what the measurements share: arguments, the clock, the one line of output.
 *
 *   NAME [WORKERS] [SCALE] [PARAMETER]
 *
 * Workers: 0 or nothing leaves the number to the library. Scale: a factor on n, 1 unless given. Parameter: the size
 * that is varied, in programs that measure how a cost grows.
 *
 * A program measures one region, once, and prints one line:
 *
 *   ccc NAME WORKERS N NS_PER_OP [KEY=VALUE ...]
 *
 * A result that is wrong is worth no figure: then the program says so on stderr and exits with 1. */
#ifndef CCC_BENCH_BENCH_H
#define CCC_BENCH_BENCH_H

#include <ccc/ccc.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bench {
    const char *name;
    unsigned workers;
    double scale;
    const char *parameter; /* NULL when it was not given */
};

__attribute__((noreturn, format(printf, 1, 2))) static inline void bench_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

/* A call of the library that must succeed. */
static inline void bench_check(int error, const char *what) {
    if (error != 0) bench_fail("%s failed: %s", what, strerror(error));
}

static inline double bench_number(const char *text, const char *what) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0)) bench_fail("'%s' is not %s", text, what);
    return value;
}

/* Reads the arguments and starts the runtime. */
static inline struct bench bench_begin(int argc, char **argv, const char *name) {
    struct bench b = {.name = name, .scale = 1};
    if (argc > 4) bench_fail("usage: %s [WORKERS] [SCALE] [PARAMETER]", argv[0]);
    CCRuntimeConfig config = {0};
    setenv("CC_MAX_WORKERS", "1", 1); /* as many workers as were asked for, throughout */
    if (argc > 1) config.workers = (unsigned)bench_number(argv[1], "a number of workers");
    if (argc > 2) b.scale = bench_number(argv[2], "a scale");
    if (argc > 3) b.parameter = argv[3];
    bench_check(cc_runtime_init(&config), "cc_runtime_init");
    b.workers = cc_worker_count();
    if (config.workers != 0 && b.workers != config.workers)
        bench_fail("%u workers were asked for, and there are %u", config.workers, b.workers);
    return b;
}

/* n times the scale, at least 1. */
static inline uint64_t bench_scaled(const struct bench *b, uint64_t n) {
    double scaled = (double)n * b->scale;
    return scaled < 1 ? 1 : (uint64_t)scaled;
}

static inline uint64_t bench_parameter(const struct bench *b, uint64_t fallback) {
    return b->parameter == NULL ? fallback : (uint64_t)bench_number(b->parameter, "a parameter");
}

/* Runs body as the first fiber and waits for its end. */
static inline void bench_run(CCTaskFn body, void *arg) {
    bench_check(cc_run(body, arg, NULL), "cc_run");
}

/* Prints the line and ends the runtime: `extras` may be "". */
static inline int bench_end(const struct bench *b, uint64_t n, double ns, const char *extras) {
    printf("ccc %s %u %llu %.1f%s%s\n", b->name, b->workers, (unsigned long long)n, ns / (double)n, *extras ? " " : "",
           extras);
    bench_check(cc_runtime_shutdown(10000), "cc_runtime_shutdown");
    return 0;
}

/* Zeroed and touched, so that the measured region does not pay for the pages. */
static inline void *bench_alloc(size_t count, size_t size) {
    void *p = malloc(count * size);
    if (p == NULL) bench_fail("no memory for %zu elements of %zu bytes", count, size);
    memset(p, 0xff, count * size);
    memset(p, 0, count * size);
    return p;
}

/* A value in kB from /proc/self/status, in bytes; 0 when it is not there. */
static inline uint64_t bench_status(const char *key) {
    FILE *f = fopen("/proc/self/status", "re");
    if (f == NULL) return 0;
    char line[256];
    unsigned long long kb = 0;
    size_t length = strlen(key);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ':') kb = strtoull(line + length + 1, NULL, 10);
    fclose(f);
    return kb * 1024;
}

#endif
