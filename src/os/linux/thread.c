/* thread.c - OS threads. */
#include "os/thread.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/fatal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Threads that a bound thread starts do not inherit its binding. */
static _Thread_local struct {
    bool bound;
    cpu_set_t before;
} cpus __attribute__((tls_model("initial-exec")));

static int start(pthread_t *thread, void *(*fn)(void *), void *arg) {
    if (!cpus.bound) return pthread_create(thread, NULL, fn, arg);
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0) return rc;
    rc = pthread_attr_setaffinity_np(&attr, sizeof cpus.before, &cpus.before);
    if (rc == 0) rc = pthread_create(thread, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    return rc;
}

int cc__thread_start(pthread_t *thread, void *(*fn)(void *), void *arg) {
    return start(thread, fn, arg);
}

static int start_with_mask(const sigset_t *mask, pthread_t *thread, void *(*fn)(void *), void *arg) {
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, mask, &before);
    int rc = start(thread, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int cc__thread_start_deaf(pthread_t *thread, void *(*fn)(void *), void *arg) {
    sigset_t all;
    sigfillset(&all);
    return start_with_mask(&all, thread, fn, arg);
}

int cc__thread_start_quiet(pthread_t *thread, void *(*fn)(void *), void *arg) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t mask;
    sigfillset(&mask);
    for (size_t i = 0; i < array_len(faults); i++) sigdelset(&mask, faults[i]);
    return start_with_mask(&mask, thread, fn, arg);
}

static sigset_t kept;

void cc__thread_signals_keep(void) {
    (void)pthread_sigmask(SIG_BLOCK, NULL, &kept);
}

void cc__thread_signals_take(void) {
    (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
}

/* What is registered on a stack (pthread_cleanup_push) would not do: the system finds it by unwinding, which ends where
 * the fiber's stack does. */
static _Thread_local void (*if_ended)(void) __attribute__((tls_model("initial-exec")));
static pthread_key_t at_end;
static bool have_at_end;

static void thread_ends(void *unused) {
    (void)unused;
    if (if_ended != NULL) if_ended();
}

static void create_at_end(void) {
    have_at_end = pthread_key_create(&at_end, thread_ends) == 0;
}

void cc__thread_if_ended(void (*fn)(void)) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if_ended = fn;
    if (fn == NULL) return;
    (void)pthread_once(&once, create_at_end);
    if (have_at_end) (void)pthread_setspecific(at_end, &have_at_end); /* any value but NULL */
}

void cc__thread_join(pthread_t thread) {
    int rc = pthread_join(thread, NULL);
    if (rc != 0) cc__fatal("pthread_join of a worker failed with error %d", rc);
}

bool cc__thread_join_until(pthread_t thread, uint64_t until) {
    struct timespec ts = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &ts) == 0;
}

void cc__thread_name(const char *name) {
    char short_name[16];
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(pthread_self(), short_name);
}

void cc__thread_punctual(void) {
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

int cc__thread_id(void) {
    return (int)syscall(SYS_gettid);
}

void cc__thread_yield(void) {
    sched_yield();
}

static uint64_t read_cpu(clockid_t clock) {
    struct timespec ts;
    if (clock_gettime(clock, &ts) != 0) return UINT64_MAX;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t cc__thread_cpu(pthread_t thread) {
    clockid_t clock;
    return pthread_getcpuclockid(thread, &clock) == 0 ? read_cpu(clock) : UINT64_MAX;
}

/* The clock of pthread_getcpuclockid, which must not be called for a thread that was joined. */
uint64_t cc__thread_cpu_of(int id) {
    return read_cpu((clockid_t)(~(unsigned)id << 3 | 6)); /* 4: per thread; 2: CPU time */
}

static _Atomic bool hidden;

void cc__thread_state_hide(bool on) {
    hidden = on;
}

/* By syscall(), as in safe_copy.c: no cancellation points, and not intercepted by sanitizers. */
bool cc__thread_file(int id, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", id, name);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return false;
    long n = syscall(SYS_read, fd, text, size - 1);
    int error = n == 0 ? EIO : cc__errno_get();
    (void)syscall(SYS_close, fd);
    cc__errno_set(error);
    if (n > 0) text[n] = '\0';
    return n > 0;
}

char cc__thread_state(int id) {
    char text[128];
    if (hidden || !cc__thread_file(id, "stat", text, sizeof text)) return 0;
    const char *end = strrchr(text, ')'); /* the name, in parentheses, may contain anything, but is short */
    return end != NULL && end[1] == ' ' ? end[2] : 0;
}

static _Thread_local _Atomic uint32_t *naps_of_this; /* NULL: nobody counts them */

void cc__thread_count_naps(_Atomic uint32_t *naps) {
    naps_of_this = naps;
}

/* Hidden from the race detector: on a worker's stack frames of different fibers' ends share addresses. It intercepts
 * nanosleep, but not this call. */
CC_NOINLINE CC_NO_TSAN void cc__thread_nap(long ns) {
    struct timespec nap = {.tv_nsec = ns};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL); /* a signal may end it early */
}

CC_NOINLINE CC_NO_TSAN void cc__thread_nap_for_lock(long ns) {
    _Atomic uint32_t *naps = naps_of_this;
    if (naps != NULL) ++*naps;
    cc__thread_nap(ns);
    if (naps != NULL) ++*naps;
}

size_t cc__thread_stack_size(void) {
    pthread_attr_t attr;
    size_t size = 0;
    if (pthread_attr_init(&attr) != 0) return 0;
    (void)pthread_attr_getstacksize(&attr, &size);
    pthread_attr_destroy(&attr);
    return size;
}

void cc__thread_stack(const void **bottom, const void **top) {
    static _Thread_local const char *low __attribute__((tls_model("initial-exec")));
    static _Thread_local size_t size __attribute__((tls_model("initial-exec")));
    if (low == NULL) { /* read once: for the main thread it means reading /proc/self/maps */
        pthread_attr_t attr;
        void *at = NULL;
        if (pthread_getattr_np(pthread_self(), &attr) == 0) {
            (void)pthread_attr_getstack(&attr, &at, &size);
            pthread_attr_destroy(&attr);
        }
        low = at;
    }
    *bottom = low;
    *top = low != NULL ? low + size : NULL;
}

bool cc__affinity_single(void) {
    CC_KEEP_ERRNO;
    cpu_set_t set;
    /* A machine with more CPUs than fit into the mask fails here, and has more than one. */
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
}

int cc__thread_on_cpu(void) {
    return sched_getcpu();
}

/* A mask of all CPUs is like none: it extends to CPUs that are added to the system or to the cpuset. A smaller one may
 * be the program's or the cpuset's, and is left alone. So is one that changes meanwhile. */
static _Atomic bool off; /* turned off, or refused by the system */

void cc__thread_keep_off_configure(bool on) {
    off = !on;
}

/* How many CPUs the system has, as in "0-3,6"; -1: unknown; 0: there is no descriptor at present. Not by sysconf: if it
 * cannot read this file, it counts the calling thread's mask instead. */
static int count_cpus(void) {
    char text[256], *at = text;
    int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC), count = 0;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd < 0 && (cc__errno_get() == EMFILE || cc__errno_get() == ENFILE)) return 0;
    if (fd >= 0) (void)close(fd);
    if (n <= 0) return -1;
    text[n] = '\0';
    do {
        long first = strtol(at, &at, 10), last = *at == '-' ? strtol(at + 1, &at, 10) : first;
        count += (int)(last - first) + 1;
    } while (*at++ == ',');
    return count;
}

/* The mask of a thread, if `less` of the system's CPUs are missing in it. They are counted once: if some are added or
 * removed later, no mask is changed any more. */
static bool get_mask(int id, cpu_set_t *set, int less) {
    static _Atomic int known; /* 0: not counted yet */
    if (known == 0) known = count_cpus();
    return sched_getaffinity(id, sizeof *set, set) == 0 && CPU_COUNT(set) + less == known;
}

bool cc__thread_keep_off(int id, int cpu) {
#ifdef CC_TSAN /* which takes what these calls write to a stack for a race with its next user */
    off = true;
#endif
    CC_KEEP_ERRNO;
    cpu_set_t set;
    if (off || cpu < 0 || cpu >= CPU_SETSIZE || !get_mask(id, &set, 0) || CPU_COUNT(&set) < 2) return false;
    CPU_CLR((size_t)cpu, &set);
    bool ok = sched_setaffinity(id, sizeof set, &set) == 0;
    if (!ok) off = true; /* for the next ones; who was kept off before this lifts it, if it may */
    return ok;
}

void cc__thread_any_cpu(int cpu) {
    CC_KEEP_ERRNO;
    cpu_set_t set;
    if (!get_mask(0, &set, 1) || CPU_ISSET((size_t)cpu, &set)) return;
    memset(&set, 0xff, sizeof set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

int cc__thread_may_pin(int cpu) {
    CC_KEEP_ERRNO;
    cpu_set_t set = cpus.before;
    if (cpu >= CPU_SETSIZE || (!cpus.bound && sched_getaffinity(0, sizeof set, &set) != 0)) return EINVAL;
    return CPU_ISSET((size_t)cpu, &set) ? 0 : EINVAL;
}

int cc__thread_pin(int cpu) {
    cpu_set_t set;
    cpus.bound = sched_getaffinity(0, sizeof cpus.before, &cpus.before) == 0;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}
