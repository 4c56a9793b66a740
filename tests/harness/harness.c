/* harness.c - runs each case in a forked child, judges how the child ended, prints TAP.
 *
 * The parent never starts a thread and never calls the library, so every child starts as clean as a new
 * process. Fork without exec also works the same under sanitizers, valgrind and qemu.
 *
 * HARNESS-1  A child leads its own process group, and that group is killed before the child is reaped:
 *            nothing a case started outlives it, and no process id is used after it was freed.
 * HARNESS-2  SIGCHLD stays blocked in the parent, so an exit between the check and the wait is still pending.
 * HARNESS-3  Output goes to a file in memory, not a pipe: no reader is needed, and no writer can block.
 */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif

#define EXIT_SKIPPED 77
#define WORKERS_NONE 0  /* the case takes whatever CC_WORKERS says */
#define COUNTS_MAX 8    /* things that one case can count */
#define SHOWN_MAX 65536 /* bytes of a failed case's output that are shown: half its start, half its end */

/* What a child reports to the parent besides its exit status, in shared memory. */
struct verdict {
    int finished;     /* the body returned, or DONE was called */
    int failed_check; /* so that a failed CHECK is no successful TEST_DIES */
    char skip_reason[256];
    struct {
        char what[48];
        uint64_t n;
    } counts[COUNTS_MAX];
};

/* How a child ended. */
struct ending {
    int status; /* as waitpid gives it */
    bool timed_out;
    double seconds;
};

static struct test_case *cases;
static struct verdict *verdict;
static const char *current_name; /* in a child: its case, for the seed */
static uint64_t base_seed;
static sigset_t original_mask;
static sigset_t awaited; /* blocked in the parent, taken only by sigtimedwait */

/* ---- in any process ---- */

static double env_number(const char *name, double fallback) {
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') {
        return fallback;
    }
    char *end;
    double value = strtod(text, &end);
    if (*end != '\0' || !(value > 0)) {
        fprintf(stderr, "%s is '%s'; it has to be a number above 0.\n", name, text);
        exit(2);
    }
    return value;
}

static double now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void test_add(struct test_case *record) {
    struct test_case **place = &cases;
    while (*place != NULL && (*place)->line <= record->line) {
        place = &(*place)->next;
    }
    record->next = *place;
    *place = record;
}

/* ---- in a child ---- */

/* Uses no stdio and little stack: it may run on a small fiber, beside threads that hold stdio's locks. */
void test_fail(const char *file, int line, const char *format, ...) {
    __atomic_store_n(&verdict->failed_check, 1, __ATOMIC_RELAXED);
    char text[1024];
    snprintf(text, sizeof text / 2, "%s:%d: check failed: ", file, line);
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, sizeof text - length, format, args);
    va_end(args);
    length = strlen(text);
    text[length++] = '\n'; /* in the place of the NUL */
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written;
    _exit(1);
}

void test_skip(const char *reason) {
    snprintf(verdict->skip_reason, sizeof verdict->skip_reason, "%s", reason);
    _exit(EXIT_SKIPPED);
}

void test_done(void) {
    __atomic_store_n(&verdict->finished, 1, __ATOMIC_RELAXED);
}

#ifdef UNDER_ASAN
static bool thread_sleeps(const char *tid) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return true; /* it has ended */
    const char *text = fgets(line, sizeof line, file);
    fclose(file);
    const char *name_end = text == NULL ? NULL : strrchr(text, ')');
    return name_end == NULL || name_end[2] == 'S';
}

static bool other_threads_sleep(void) {
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) return true;
    bool all = true;
    for (const struct dirent *entry; all && (entry = readdir(tasks)) != NULL;)
        all = entry->d_name[0] == '.' || atoi(entry->d_name) == gettid() || thread_sleeps(entry->d_name);
    closedir(tasks);
    return all;
}
#endif

pid_t test_fork(void) {
#ifdef UNDER_ASAN
    for (double until = now() + 5; !other_threads_sleep() && now() < until;) usleep(200);
#endif
    return fork();
}

void test_count(const char *what, uint64_t n) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < COUNTS_MAX && verdict->counts[i].what[0] != '\0' && strcmp(verdict->counts[i].what, what) != 0) i++;
    if (i < COUNTS_MAX) {
        snprintf(verdict->counts[i].what, sizeof verdict->counts[i].what, "%s", what);
        verdict->counts[i].n += n;
    }
    pthread_mutex_unlock(&lock);
}

bool test_long(void) {
    const char *text = getenv("TEST_LONG");
    return text != NULL && strcmp(text, "1") == 0;
}

__attribute__((noinline)) void test_touch_stack(void) {
    volatile char room[128 * 1024];
    for (size_t i = 0; i < sizeof room; i += 1024) room[i] = 0;
}

long test_scale(long n) {
    long scaled = (long)((double)n / env_number("TEST_SLOWDOWN", 1));
    return scaled < 1 ? 1 : scaled;
}

long test_rounds(long normal, long in_long_profile) {
    return test_scale(test_long() ? in_long_profile : normal);
}

/* splitmix64: every state is good, also 0. */
uint64_t test_random(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Mixing the name in gives each case its own sequence, whichever other cases run. */
uint64_t test_seed(void) {
    uint64_t state = base_seed;
    for (const char *c = current_name; *c != '\0'; c++) {
        state = test_random(&state) ^ (unsigned char)*c;
    }
    return test_random(&state);
}

static void move_fd(int from, int to) {
    if (dup2(from, to) < 0) {
        _exit(1);
    }
}

/* out and err may be the same file: they then share its offset, and the lines keep their order. */
__attribute__((noreturn)) static void be_child(const struct test_case *c, int workers, pid_t parent, int out, int err) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* for a parent that is itself killed and can clean up nothing */
    if (getppid() != parent) {
        _exit(1);
    }
    int nothing = open("/dev/null", O_RDONLY);
    move_fd(nothing, STDIN_FILENO);
    move_fd(out, STDOUT_FILENO);
    move_fd(err, STDERR_FILENO);
    close(nothing); /* the captures close themselves on exec, but a case may count its descriptors */
    close(out);
    if (err != out) {
        close(err);
    }
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* many cases crash on purpose */
    if (workers != WORKERS_NONE) {
        char text[16];
        snprintf(text, sizeof text, "%d", workers);
        setenv("CC_WORKERS", text, 1);
    }
    setenv("CC_MAX_WORKERS", "1", 0); /* a fixed pool, unless a case or the caller sets another size */
    current_name = c->name;
    sigprocmask(SIG_SETMASK, &original_mask, NULL);
    c->run();
    test_done();
    exit(0); /* not _exit: leak reports and the library's own teardown belong to the test */
}

/* ---- in the parent ---- */

__attribute__((noreturn)) static void give_up(const char *what) {
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(2);
}

static int new_capture(const char *name) { /* HARNESS-3 */
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND) != 0) { /* or the writes of two threads may overlap */
        give_up("memfd_create");
    }
    return fd;
}

static bool has_ended(pid_t pid) {
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Ctrl-C does not reach the children's groups by itself. */
__attribute__((noreturn)) static void pass_on(int signal, pid_t pid) {
    kill(-pid, SIGKILL);
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(signal, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    raise(signal);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    _exit(1);
}

static void examine_hang(pid_t pid) {
    const char *command = getenv("TEST_ON_TIMEOUT");
    if (command == NULL || *command == '\0') {
        return;
    }
    char line[1024];
    snprintf(line, sizeof line, "%s %d 2>&1 | sed 's/^/# /'", command, (int)pid);
    fflush(stdout);
    if (system(line) != 0) {
        printf("# TEST_ON_TIMEOUT failed\n");
    }
}

static struct ending await(pid_t pid, double timeout) {
    double start = now();
    struct ending end = {.timed_out = false};
    while (!has_ended(pid)) {
        double left = start + timeout - now();
        if (left <= 0) {
            end.timed_out = true;
            examine_hang(pid);
            break;
        }
        struct timespec ts = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        int signal = sigtimedwait(&awaited, NULL, &ts);
        if (signal > 0 && signal != SIGCHLD) {
            pass_on(signal, pid);
        }
    }
    kill(-pid, SIGKILL); /* HARNESS-1 */
    while (waitpid(pid, &end.status, 0) < 0 && errno == EINTR) {
    }
    end.seconds = now() - start;
    return end;
}

/* The file's whole content with a NUL behind it; the caller frees it. */
static char *content(int fd, size_t *length) {
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    if (text == NULL) {
        give_up("malloc");
    }
    size_t used = 0;
    while (used < (size_t)size) {
        ssize_t n = pread(fd, text + used, (size_t)size - used, (off_t)used);
        if (n <= 0) {
            break;
        }
        used += (size_t)n;
    }
    text[used] = '\0';
    *length = used;
    return text;
}

static void show_lines(const char *text, size_t length) {
    const char *end = text + length;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline != NULL ? newline : end;
        printf("# %.*s\n", (int)(stop - text), text);
        text = stop + 1;
    }
}

static void show_capture(int fd) {
    size_t length;
    char *text = content(fd, &length);
    if (length <= SHOWN_MAX) {
        show_lines(text, length);
    } else {
        show_lines(text, SHOWN_MAX / 2);
        printf("# ... %zu bytes are left out here ...\n", length - SHOWN_MAX);
        show_lines(text + length - SHOWN_MAX / 2, SHOWN_MAX / 2);
    }
    free(text);
}

static bool capture_contains(int fd, const char *wanted) {
    size_t length;
    char *text = content(fd, &length);
    bool found = memmem(text, length, wanted, strlen(wanted)) != NULL;
    free(text);
    return found;
}

/* Writes to `why` what is wrong with the ending, or nothing when the case passed. */
static void judge(const struct test_case *c, const struct ending *end, int err, char *why, size_t size) {
    int status = end->status;
    bool died = WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
    *why = '\0';
    if (end->timed_out) {
        snprintf(why, size, "timed out after %.1f s; its process group was killed", end->seconds);
    } else if (verdict->failed_check) {
        snprintf(why, size, "a check failed");
    } else if (c->dies != NULL && !died) {
        snprintf(why, size, "lived; it should have died saying '%s'", c->dies);
    } else if (c->dies != NULL && c->signal != 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == c->signal)) {
        snprintf(why, size, "should have died by signal %d, but ended with %s %d", c->signal,
                 WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    } else if (c->dies != NULL) {
        if (!capture_contains(err, c->dies)) {
            snprintf(why, size, "died, but its stderr does not say '%s'", c->dies);
        }
    } else if (WIFSIGNALED(status)) {
        snprintf(why, size, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (died) {
        snprintf(why, size, "exited with status %d", WEXITSTATUS(status));
    } else if (!verdict->finished) {
        snprintf(why, size, "exited with status 0 before the end of its body");
    }
}

enum result { PASSED, FAILED, SKIPPED };

static enum result run_case(const struct test_case *c, int workers, int number) {
    char title[256];
    if (workers == WORKERS_NONE) {
        snprintf(title, sizeof title, "%d - %s", number, c->name);
    } else {
        snprintf(title, sizeof title, "%d - %s [workers=%d]", number, c->name, workers);
    }
    double timeout = (c->timeout > 0 ? c->timeout : TEST_TIMEOUT_DEFAULT) * env_number("TEST_TIMEOUT", 1);
    int out = new_capture("stdout");
    int err = c->dies != NULL ? new_capture("stderr") : out; /* TEST_DIES looks at stderr alone */
    memset(verdict, 0, sizeof *verdict);
    fflush(NULL); /* or the child would print the parent's buffers again */

    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        give_up("fork");
    }
    if (pid == 0) {
        be_child(c, workers, parent, out, err);
    }
    setpgid(pid, pid); /* both sides do it, whichever is first */
    struct ending end = await(pid, timeout);

    enum result result = PASSED;
    char why[512];
    if (!end.timed_out && WIFEXITED(end.status) && WEXITSTATUS(end.status) == EXIT_SKIPPED) {
        result = SKIPPED;
        printf("ok %s # SKIP %s\n", title, verdict->skip_reason);
    } else if (judge(c, &end, err, why, sizeof why), *why != '\0') {
        result = FAILED;
        printf("not ok %s\n# %s\n", title, why);
        show_capture(out);
        if (err != out) {
            show_capture(err);
        }
    } else {
        printf("ok %s\n", title);
    }
    for (int i = 0; i < COUNTS_MAX && verdict->counts[i].what[0] != '\0'; i++) {
        printf("# counted %llu %s\n", (unsigned long long)verdict->counts[i].n, verdict->counts[i].what);
    }
    if (end.seconds > 5) {
        printf("# case %d took %.1f s\n", number, end.seconds);
    }
    close(out);
    if (err != out) {
        close(err);
    }
    return result;
}

#define WORKER_LIST_MAX 32

static int read_worker_list(int list[WORKER_LIST_MAX]) {
    const char *text = getenv("TEST_WORKER_LIST");
    if (text == NULL || *text == '\0') {
        text = "1,2,4,8,16";
    }
    int count = 0;
    for (;;) {
        char *end;
        long n = strtol(text, &end, 10);
        if (n < 1 || n > 4096 || (*end != ',' && *end != '\0') || count == WORKER_LIST_MAX) {
            fprintf(stderr, "TEST_WORKER_LIST has to be a short list of numbers such as 1,2,4.\n");
            exit(2);
        }
        list[count++] = (int)n;
        if (*end == '\0') {
            return count;
        }
        text = end + 1;
    }
}

static void choose_seed(void) {
    const char *text = getenv("TEST_SEED");
    if (text != NULL && *text != '\0') {
        base_seed = strtoull(text, NULL, 0);
    } else {
        struct timespec ts;
        clock_gettime(CLOCK_REALTIME, &ts);
        base_seed = ((uint64_t)ts.tv_sec << 30 ^ (uint64_t)ts.tv_nsec) + ((uint64_t)getpid() << 44);
    }
    printf("# TEST_SEED=%llu\n", (unsigned long long)base_seed);
}

static void prepare_signals(void) {
    struct sigaction action = {.sa_handler = SIG_DFL}; /* an inherited SIG_IGN would reap the children unseen */
    sigaction(SIGCHLD, &action, NULL);
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGINT);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, SIGHUP);
    sigprocmask(SIG_BLOCK, &awaited, &original_mask); /* HARNESS-2 */
}

int main(int argc, char **argv) {
    const char *filter = argc > 1 ? argv[1] : "";
    int workers[WORKER_LIST_MAX];
    int worker_count = read_worker_list(workers);
    setvbuf(stdout, NULL, _IOLBF, 0); /* progress is seen, and a crash loses no line */
    verdict = mmap(NULL, sizeof *verdict, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (verdict == MAP_FAILED) {
        give_up("mmap");
    }
    setenv("CC_MIN_WORKERS", "512", 0); /* every worker that a case asks for is a thread, however few CPUs there are */
    setenv("CC_PREEMPT", "0", 0); /* cases know where fibers stop; on a busy machine and under tools any turn is long */
    prepare_signals();

    int planned = 0;
    for (const struct test_case *c = cases; c != NULL; c = c->next) {
        if (strstr(c->name, filter) != NULL) {
            planned += c->workers ? worker_count : 1;
        }
    }
    if (planned == 0) {
        printf("1..0 # SKIP no case has a name with '%s'\n", filter);
        return EXIT_SKIPPED;
    }
    printf("1..%d\n", planned);
    choose_seed();

    int counts[3] = {0};
    int number = 0;
    bool stop = env_number("TEST_STOP", 0) != 0;
    for (const struct test_case *c = cases; c != NULL; c = c->next) {
        if (strstr(c->name, filter) == NULL) {
            continue;
        }
        for (int i = 0; i < (c->workers ? worker_count : 1); i++) {
            counts[run_case(c, c->workers ? workers[i] : WORKERS_NONE, ++number)]++;
            if (counts[FAILED] > 0 && stop) {
                return 1;
            }
        }
    }
    if (counts[FAILED] > 0) {
        return 1;
    }
    return counts[PASSED] == 0 ? EXIT_SKIPPED : 0;
}

/* The sanitizers' options travel with the program, however it is started; each sanitizer calls its own. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void) {
    return "detect_stack_use_after_return=1:strict_string_checks=1";
}

const char *__ubsan_default_options(void) {
    return "print_stacktrace=1";
}

/* By default TSan waits a second at the end of each process that still has threads. */
const char *__tsan_default_options(void) {
    return "atexit_sleep_ms=20:second_deadlock_stack=1";
}
