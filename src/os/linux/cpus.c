/* cpus.c - usable CPUs: sched_getaffinity, then the CPU quota of every enclosing cgroup (v2 or v1). */
#include "os/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Masks of up to 16,384 CPUs; the kernel refuses a mask that is too small. */
static unsigned from_affinity(void) {
    for (int n = 1024; n <= 16384; n *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        if (set == NULL) return 1;
        size_t size = CPU_ALLOC_SIZE((size_t)n);
        int ok = sched_getaffinity(0, size, set) == 0;
        int count = ok ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (ok) return count > 0 ? (unsigned)count : 1;
    }
    return 1;
}

/* The number of CPUs of a quota, rounded up; 0 if there is no limit. */
static unsigned quota_cpus(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return 0;
    long long cpus = (quota + period - 1) / period;
    return cpus > 0 && cpus < 1000000 ? (unsigned)cpus : 0;
}

static FILE *open_below(const char *mount, const char *dir, const char *file) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s%s/%s", mount, dir, file) >= (int)sizeof path) return NULL;
    return fopen(path, "re");
}

static unsigned quota_v2(const char *mount, const char *dir) {
    FILE *f = open_below(mount, dir, "cpu.max");
    if (f == NULL) return 0;
    long long quota = 0, period = 0;
    int n = fscanf(f, "%lld %lld", &quota, &period); /* "max" leaves n == 0 */
    fclose(f);
    return n == 2 ? quota_cpus(quota, period) : 0;
}

static long long read_number(const char *mount, const char *dir, const char *file) {
    FILE *f = open_below(mount, dir, file);
    if (f == NULL) return 0;
    long long value = 0;
    if (fscanf(f, "%lld", &value) != 1) value = 0;
    fclose(f);
    return value;
}

static unsigned quota_v1(const char *mount, const char *dir) {
    char cpu[4096];
    if (snprintf(cpu, sizeof cpu, "%s/cpu", mount) >= (int)sizeof cpu) return 0;
    return quota_cpus(read_number(cpu, dir, "cpu.cfs_quota_us"), read_number(cpu, dir, "cpu.cfs_period_us"));
}

static unsigned at_most(unsigned limit, unsigned quota) {
    return quota != 0 && quota < limit ? quota : limit;
}

/* A limit on any enclosing group applies too: walk from our own group up to the root. */
static unsigned with_quota(unsigned limit, const char *mount, char *dir,
                           unsigned (*quota)(const char *, const char *)) {
    if (strcmp(dir, "/") == 0) dir++; /* otherwise the root is read twice */
    for (;;) {
        limit = at_most(limit, quota(mount, dir));
        char *slash = strrchr(dir, '/');
        if (slash == NULL) return limit;
        *slash = '\0';
    }
}

unsigned cc__cpus_limit(unsigned limit, const char *proc_file, const char *mount) {
    FILE *f = fopen(proc_file, "re");
    if (f == NULL) return limit;
    char line[4096];
    while (fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *dir = controllers ? strchr(controllers + 1, ':') : NULL;
        if (dir == NULL) continue;
        *dir++ = '\0';
        controllers++;
        if (controllers[0] == '\0')
            limit = with_quota(limit, mount, dir, quota_v2);
        else if (strncmp(controllers, "cpu", 3) == 0 && (controllers[3] == '\0' || controllers[3] == ','))
            limit = with_quota(limit, mount, dir, quota_v1);
    }
    fclose(f);
    return limit;
}

unsigned cc__cpus_usable(void) {
    return cc__cpus_limit(from_affinity(), "/proc/self/cgroup", "/sys/fs/cgroup");
}
