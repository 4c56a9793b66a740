/* cc-sim.c - runs a program again and again, each time simulated with another seed, until it fails.
 *
 * One loop: seeds are started in order, as many at a time as there are jobs; their output is read, and the end of it
 * kept, as much as is shown; runs that take too long are asked for a dump (SIGQUIT) and killed.
 *
 * SEARCH-1  The result does not depend on which run ends first: after a failure no more seeds are started, those below
 *           it are waited for, and the lowest that failed is the result.
 * SEARCH-2  A failure is run once more, to check that it can be replayed. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TAIL = 8192, SHOWN_LINES = 20, JOBS_MAX = 256, ASKED_NS = 2000000000 };

struct job {
    pid_t pid; /* 0: free */
    uint64_t seed, until;
    int fd; /* of its output; -1: at its end */
    bool asked, late;
    size_t length; /* bytes that it has printed; the last of them are in `tail`, a ring */
    char tail[TAIL];
};

struct outcome {
    uint64_t seed; /* 0: none */
    int status;    /* as waitpid gives it */
    bool late;
    size_t length;
    char tail[TAIL + 1];
};

static struct {
    uint64_t first, last, timeout_ns;
    unsigned jobs;
    bool keep_going, quiet;
    char **command;
} options = {.first = 1, .last = 1000, .timeout_ns = UINT64_C(60000000000)};

static struct job jobs[JOBS_MAX];
static struct outcome lowest; /* of those that failed */
static uint64_t next_seed, finished, failed;
static volatile sig_atomic_t interrupted;

static uint64_t now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void kill_above(uint64_t seed) {
    for (unsigned i = 0; i < JOBS_MAX; i++)
        if (jobs[i].pid != 0 && jobs[i].seed > seed) kill(-jobs[i].pid, SIGKILL);
}

static void __attribute__((noreturn, format(printf, 1, 2))) give_up(const char *format, ...) {
    va_list args;
    va_start(args, format);
    kill_above(0);
    fputs("cc-sim: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

/* ---- one run ---- */

/* A program that cannot be started is distinguished from one that fails. It gets its own process group, so that its
 * children are killed with it. */
static pid_t spawn(int output) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t ours;
    pid_t pid = 0;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGQUIT); /* ignored, if a shell has started cc-sim in the background; hurry() needs it */
    int rc = posix_spawn_file_actions_init(&files);
    if (rc == 0) rc = posix_spawnattr_init(&how);
    if (rc == 0) rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0) rc = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    if (rc == 0) rc = posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    if (rc == 0) rc = posix_spawnattr_setsigdefault(&how, &ours);
    if (rc == 0) rc = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    if (rc == 0) rc = posix_spawnp(&pid, options.command[0], &files, &how, options.command, environ);
    if (rc != 0) give_up("cannot run %s: %s", options.command[0], strerror(rc));
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return pid;
}

static void start(struct job *job, uint64_t seed) {
    int ends[2];
    char text[24];
    if (pipe2(ends, O_CLOEXEC) != 0) give_up("no pipe: %s", strerror(errno));
    snprintf(text, sizeof text, "%" PRIu64, seed);
    setenv("CC_SIM_SEED", text, 1);
    job->pid = spawn(ends[1]);
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    job->seed = seed;
    job->until = now() + options.timeout_ns;
    job->fd = ends[0];
    job->asked = job->late = false;
    job->length = 0;
}

static void read_output(struct job *job) {
    char part[TAIL];
    while (job->fd >= 0) {
        ssize_t n = read(job->fd, part, sizeof part);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return; /* nothing at present */
        if (n == 0) {
            close(job->fd);
            job->fd = -1;
            return;
        }
        for (ssize_t i = 0; i < n; i++) job->tail[job->length++ % TAIL] = part[i];
    }
}

/* First it is asked for a dump, then it is killed. */
static void hurry(struct job *job) {
    if (now() < job->until) return;
    job->late = true;
    job->until = now() + ASKED_NS;
    kill(-job->pid, job->asked ? SIGKILL : SIGQUIT);
    job->asked = true;
}

static void keep(struct outcome *outcome, const struct job *job, int status) {
    outcome->seed = job->seed;
    outcome->status = status;
    outcome->late = job->late;
    outcome->length = job->length < TAIL ? job->length : TAIL;
    for (size_t i = 0; i < outcome->length; i++) {
        char c = job->tail[(job->length - outcome->length + i) % TAIL];
        outcome->tail[i] = c != '\0' ? c : '?';
    }
    outcome->tail[outcome->length] = '\0';
}

/* ---- saying so ---- */

static void describe(const struct outcome *outcome) {
    if (outcome->late)
        printf("seed %" PRIu64 " takes longer than %g s", outcome->seed, (double)options.timeout_ns / 1e9);
    else if (WIFSIGNALED(outcome->status))
        printf("seed %" PRIu64 " ends by signal %d, %s", outcome->seed, WTERMSIG(outcome->status),
               strsignal(WTERMSIG(outcome->status)));
    else
        printf("seed %" PRIu64 " ends with status %d", outcome->seed, WEXITSTATUS(outcome->status));
    fputs(outcome->length > 0 ? ", and says:\n" : ", and says nothing\n", stdout);
    const char *from = outcome->tail + outcome->length;
    for (int lines = 0; from > outcome->tail; from--)
        if (from[-1] == '\n' && lines++ == SHOWN_LINES) break;
    while (*from != '\0') {
        size_t n = strcspn(from, "\n");
        printf("    %.*s\n", (int)n, from);
        from += n + (from[n] == '\n');
    }
}

/* As a shell reads it. */
static void print_word(const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
    if (*word != '\0' && word[strspn(word, plain)] == '\0') {
        printf(" %s", word);
        return;
    }
    fputs(" '", stdout);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*word);
    putchar('\'');
}

static void print_command(uint64_t seed) {
    printf("CC_SIM_SEED=%" PRIu64, seed);
    for (char **word = options.command; *word != NULL; word++) print_word(*word);
}

static void show_progress(bool last) {
    static uint64_t shown_at;
    if (options.quiet || !isatty(STDERR_FILENO) || (!last && now() - shown_at < 100000000)) return;
    shown_at = now();
    if (last)
        fputs("\r\033[K", stderr);
    else
        fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " failed", finished,
                options.last - options.first + 1, failed);
}

/* ---- many ---- */

static void finish(struct job *job, int status) {
    read_output(job);
    if (job->fd >= 0) close(job->fd); /* a process that it has left behind holds it, too */
    finished++;
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !job->late;
    if (!good) {
        failed++;
        if (lowest.seed == 0 || job->seed < lowest.seed) keep(&lowest, job, status);
        if (options.keep_going) {
            struct outcome outcome;
            keep(&outcome, job, status);
            show_progress(true);
            describe(&outcome);
        }
    }
    job->pid = 0;
}

/* Waits for an event, for a tenth of a second at most. */
static void wait_a_little(void) {
    struct pollfd fds[JOBS_MAX];
    nfds_t n = 0;
    for (unsigned i = 0; i < options.jobs; i++)
        if (jobs[i].pid != 0 && jobs[i].fd >= 0) fds[n++] = (struct pollfd){.fd = jobs[i].fd, .events = POLLIN};
    (void)poll(fds, n, n > 0 ? 100 : 1);
    for (unsigned i = 0; i < options.jobs; i++) {
        if (jobs[i].pid == 0) continue;
        read_output(&jobs[i]);
        hurry(&jobs[i]);
    }
}

/* How many have ended. One by one: cc-sim may have inherited other children. */
static unsigned reap(void) {
    unsigned ended = 0;
    int status;
    for (unsigned i = 0; i < options.jobs; i++) {
        if (jobs[i].pid == 0 || waitpid(jobs[i].pid, &status, WNOHANG) <= 0) continue;
        finish(&jobs[i], status);
        ended++;
    }
    return ended;
}

/* Runs everything from `first` to `last`; false: interrupted. */
static bool search(uint64_t first, uint64_t last) {
    unsigned running = 0;
    bool more = true;
    next_seed = first;
    while (more || running > 0) {
        for (unsigned i = 0; i < options.jobs && more && (lowest.seed == 0 || options.keep_going); i++) {
            if (jobs[i].pid != 0) continue;
            start(&jobs[i], next_seed);
            running++;
            more = next_seed++ != last;
        }
        if (lowest.seed != 0 && !options.keep_going) {
            more = false;
            kill_above(lowest.seed); /* SEARCH-1 */
        }
        if (interrupted) {
            kill_above(0);
            return false;
        }
        wait_a_little();
        running -= reap();
        show_progress(false);
    }
    return true;
}

/* SEARCH-2. */
static int conclude(void) {
    show_progress(true);
    if (lowest.seed == 0) {
        printf("%" PRIu64 " seeds, and none fails\n", finished);
        return 0;
    }
    struct outcome found = lowest;
    if (!options.keep_going) describe(&found);
    lowest.seed = 0;
    options.keep_going = false;
    if (!search(found.seed, found.seed)) return 128 + interrupted;
    bool again = lowest.seed != 0 && lowest.late == found.late && lowest.status == found.status;
    print_command(found.seed);
    puts(again ? " replays it" : " does not replay it: the program depends on something that is not simulated");
    return 1;
}

/* ---- the command line ---- */

static const char usage[] = "usage: cc-sim [options] PROGRAM [ARGUMENT...]\n"
                            "Runs PROGRAM, which uses libccc, simulated with one seed after another, until it fails.\n"
                            "  -s, --seeds A..B     the seeds to try (1..1000)\n"
                            "  -j, --jobs N         so many at a time (as many as there are CPUs)\n"
                            "  -t, --timeout S      a run that takes more seconds has failed (60)\n"
                            "  -k, --keep-going     try all seeds, and show each that fails\n"
                            "  -q, --quiet          no progress\n"
                            "Exit status: 0, no seed fails; 1, one does; 2, nothing could be tried.\n";

static uint64_t number(const char *text, char **end) {
    if (*text < '0' || *text > '9') give_up("'%s' is not a number", text);
    errno = 0;
    unsigned long long value = strtoull(text, end, 10);
    if (errno != 0) give_up("'%s' is too large", text);
    return value;
}

static void read_seeds(const char *text) {
    char *end;
    options.first = options.last = number(text, &end);
    if (end[0] == '.' && end[1] == '.') options.last = number(end + 2, &end);
    if (*end != '\0' || options.first == 0 || options.last < options.first)
        give_up("'%s' is no range of seeds: they are whole numbers from 1 on, as in 1..10000", text);
}

static void read_options(int argc, char **argv) {
    static const struct option known[] = {
        {"seeds", required_argument, NULL, 's'},
        {"jobs", required_argument, NULL, 'j'},
        {"timeout", required_argument, NULL, 't'},
        {"keep-going", no_argument, NULL, 'k'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    options.jobs = cpus < 1 ? 1 : cpus > JOBS_MAX ? JOBS_MAX : (unsigned)cpus;
    char *end;
    for (int c; (c = getopt_long(argc, argv, "+s:j:t:kqh", known, NULL)) != -1;) {
        switch (c) {
        case 's':
            read_seeds(optarg);
            break;
        case 'j': {
            uint64_t n = number(optarg, &end);
            if (*end != '\0' || n == 0 || n > JOBS_MAX) give_up("--jobs takes a number from 1 to %d", JOBS_MAX);
            options.jobs = (unsigned)n;
            break;
        }
        case 't': {
            double seconds = strtod(optarg, &end);
            if (*end != '\0' || end == optarg || !(seconds > 0 && seconds < 1e9))
                give_up("--timeout takes a number of seconds");
            options.timeout_ns = (uint64_t)(seconds * 1e9);
            break;
        }
        case 'k':
            options.keep_going = true;
            break;
        case 'q':
            options.quiet = true;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    options.command = argv + optind;
    if (options.command[0] == NULL) {
        fputs(usage, stderr);
        exit(2);
    }
}

static void on_interrupt(int signal) {
    interrupted = signal;
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!search(options.first, options.last)) {
        show_progress(true);
        return 128 + interrupted;
    }
    return conclude();
}
