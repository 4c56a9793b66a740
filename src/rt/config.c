/* config.c - reads the configuration. The only file that reads the environment. */
#include "rt/config.h"

#include "base/fatal.h"
#include "base/san.h"
#include "blocking/blocking.h"
#include "diag/diag.h"
#include "io/uring.h"
#include "lock/parking_lot.h"
#include "os/cpus.h"
#include "os/thread.h"
#include "panic/panic.h"
#include "sched/policy.h"
#include "sched/sysmon.h"
#include "sched/watch.h"
#include "signal/signal.h"
#include "sim/sim.h"
#include "trace/timing.h"
#include "trace/trace.h"

#include <ccc/cc_blocking.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CC_FIBER_WORKERS
#define CC_FIBER_WORKERS 0 /* usable CPUs */
#endif
#ifndef CC_FIBER_STACK_SIZE
#define CC_FIBER_STACK_SIZE ((size_t)256 * 1024)
#endif
#ifndef CC_FIBER_QUEUE_INITIAL
#define CC_FIBER_QUEUE_INITIAL 4096
#endif

enum { STALL_MS = 5000, BLOCKING_MAX = 64, BLOCKING_IDLE_MS = 10000, DEADLOCK_STATUS = 124 };

#define QUEUE_SLOTS_MAX ((size_t)1 << 24)

_Static_assert(CC_FIBER_WORKERS <= CC_WORKERS_MAX, "CC_FIBER_WORKERS is above CC_WORKERS_MAX");
_Static_assert(CC_FIBER_STACK_SIZE >= 16 * 1024 && CC_FIBER_STACK_SIZE <= 1024 * 1024 * 1024,
               "CC_FIBER_STACK_SIZE is out of range");
_Static_assert(CC_FIBER_QUEUE_INITIAL >= 2 && (CC_FIBER_QUEUE_INITIAL & (CC_FIBER_QUEUE_INITIAL - 1)) == 0,
               "CC_FIBER_QUEUE_INITIAL is not a power of two");

/* ---- environment variables ---- */

/* VARIABLE(id, older, meaning, categories): CC_id; an older name, used where CC_id is not set, or NULL; its meaning;
 * the bits of cc__trace that CC_id=1 sets, or 0. docs/man/ccc.7 describes the same variables
 * (tools/check-settings.sh). */
#define VARIABLES                                                                                \
    VARIABLE(WORKERS, NULL, "number of workers", 0)                                              \
    VARIABLE(MIN_WORKERS, NULL, "workers that have a thread from the start", 0)                  \
    VARIABLE(MAX_WORKERS, NULL, "greatest number of workers", 0)                                 \
    VARIABLE(STACK_SIZE, NULL, "bytes of a fiber's stack", 0)                                    \
    VARIABLE(MEMBARRIER, NULL, "0: never calls membarrier", 0)                                   \
    VARIABLE(URING, NULL, "0: files without io_uring", 0)                                        \
    VARIABLE(AFFINITY, NULL, "0: never calls sched_setaffinity", 0)                              \
    VARIABLE(VERBOSE, NULL, "1: one line at the start", 0)                                       \
    VARIABLE(BLOCKING_MAX, NULL, "greatest number of threads of a pool", 0)                      \
    VARIABLE(BLOCKING_IDLE_MS, NULL, "ms after which an idle one ends", 0)                       \
    VARIABLE(TIMER_SLACK_US, NULL, "us by which an idle worker may be late for a timer", 0)      \
    VARIABLE(PANIC_ABORT, NULL, "1: a panic that is not recovered aborts", 0)                    \
    VARIABLE(DEADLOCK_ABORT, NULL, "0: the program continues after a deadlock", 0)               \
    VARIABLE(DEADLOCK_STATUS, NULL, "exit status of a deadlock", 0)                              \
    VARIABLE(STALL_MS, NULL, "ms in one turn that are reported", 0)                              \
    VARIABLE(DEBUG_STALL, NULL, "0: they are not reported", 0)                                   \
    VARIABLE(PREEMPT, NULL, "0: no fiber yields because its turn is long", 0)                    \
    VARIABLE(DUMP_SIGNAL, NULL, "signal that asks for a dump", 0)                                \
    VARIABLE(LEAK_REPORT, NULL, "1: tasks that have not ended are reported at the end", 0)       \
    VARIABLE(SIM_SEED, NULL, "seed of a simulation", 0)                                          \
    VARIABLE(DEBUG_LOCKS, NULL, "1: waits with a pthread mutex held are reported", 0)            \
    VARIABLE(FIBER_STATS, NULL, "1: a table of counters at the end", 0)                          \
    VARIABLE(PRESSURE_STATS_DUMP, "CC_V3_PRESSURE_STATS_DUMP", "1: sysmon's decisions", 0)       \
    VARIABLE(TRACE, NULL, "categories of the trace", 0)                                          \
    VARIABLE(RECORD, NULL, "file that the recorder writes at the end", 0)                        \
    VARIABLE(RECORD_LEVEL, NULL, "turns, times or stacks: what the recorder keeps", 0)           \
    VARIABLE(VIEW, NULL, "1, tcp or tcp:PORT: serves the live page", 0)                          \
    VARIABLE(PARK_DEBUG, NULL, "CC_TRACE=park", TRACE_PARK)                                      \
    VARIABLE(DEBUG_WAKE, NULL, "CC_TRACE=wake", TRACE_WAKE)                                      \
    VARIABLE(DEBUG_JOIN, NULL, "CC_TRACE=join", TRACE_JOIN)                                      \
    VARIABLE(DEBUG_INBOX, NULL, "CC_TRACE=inbox", TRACE_INBOX)                                   \
    VARIABLE(DEBUG_SYSMON, NULL, "CC_TRACE=sysmon", TRACE_SYSMON)                                \
    VARIABLE(CHAN_DEBUG, NULL, "CC_TRACE=chan", TRACE_CHAN)                                      \
    VARIABLE(CHAN_DEBUG_VERBOSE, NULL, "CC_TRACE=chan-verbose", TRACE_CHAN | TRACE_CHAN_VERBOSE) \
    VARIABLE(CHANNEL_TIMING, NULL, "CC_TRACE=timing", TRACE_TIMING)                              \
    VARIABLE(DEBUG_INBOX_DUMP, NULL, "1: dumps show the inboxes", TRACE_INBOX_DUMP)              \
    VARIABLE(SPEC_ASSERT, "CC_V3_SPEC_ASSERT", "1: checks where fibers are", TRACE_SPEC)

#define VARIABLE(id, older, meaning, categories) ENV_##id,
enum variable { VARIABLES };
#undef VARIABLE

#define VARIABLE(id, older, meaning, categories) {"CC_" #id, older, categories},
static const struct {
    const char *name, *older;
    uint32_t categories;
} variables[] = {VARIABLES};
#undef VARIABLE

/* Its value; NULL: not set, or empty, or the program has more rights than its caller (secure_getenv), who could have a
 * recording written over any file. *name: the variable that is set. */
static const char *value_of(enum variable v, const char **name) {
    const char *text = secure_getenv(*name = variables[v].name);
    if ((text == NULL || text[0] == '\0') && variables[v].older != NULL)
        text = secure_getenv(*name = variables[v].older);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* A non-negative integer, with an optional K or M if `units`. False: it is not one. */
static bool parse(const char *text, bool units, unsigned long long *value) {
    if (*text < '0' || *text > '9') return false;
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (errno != 0) return false;
    unsigned long long unit = 1;
    if (units && (*end == 'K' || *end == 'k'))
        unit = 1024, end++;
    else if (units && (*end == 'M' || *end == 'm'))
        unit = 1024 * 1024, end++;
    if (*end != '\0' || *value > UINT64_MAX / unit) return false;
    *value *= unit;
    return true;
}

/* The variable's number; 0: not set, or invalid, which is reported if `say`. */
static unsigned long long number(enum variable v, bool units, unsigned long long min, unsigned long long max,
                                 bool say) {
    const char *name, *text = value_of(v, &name);
    unsigned long long value;
    if (text == NULL) return 0;
    if (parse(text, units, &value) && value >= min && value <= max) return value;
    if (say) cc__warn("ignoring %s=%.64s: it must be a whole number from %llu to %llu", name, text, min, max);
    return 0;
}

/* Whether it is 1; `otherwise`: not set, or invalid, which is reported if `say`. */
static bool flag(enum variable v, bool otherwise, bool say) {
    const char *name, *text = value_of(v, &name);
    if (text == NULL) return otherwise;
    if (strcmp(text, "0") == 0 || strcmp(text, "1") == 0) return text[0] == '1';
    if (say) cc__warn("ignoring %s=%.64s: it must be 0 or 1", name, text);
    return otherwise;
}

static unsigned deadlock_status(unsigned callers, bool say) {
    unsigned status = (unsigned)number(ENV_DEADLOCK_STATUS, false, 1, 255, say);
    return callers != 0 ? callers : status != 0 ? status : DEADLOCK_STATUS;
}

/* CC_TRACE, and the variables that each enable one category. */
static uint32_t trace(bool say) {
    uint32_t on = 0;
    for (size_t i = 0; i < array_len(variables); i++)
        if (variables[i].categories != 0 && flag((enum variable)i, false, say)) on |= variables[i].categories;
    const char *name, *list = value_of(ENV_TRACE, &name), *unknown = NULL;
    int length = 0;
    if (list != NULL) on |= cc__trace_parse(list, &unknown, &length);
    if (unknown != NULL && say)
        cc__warn("ignoring '%.*s' in CC_TRACE: the categories are %s", length, unknown, cc__trace_known);
    return on;
}

/* ---- the recorder ---- */

/* Copied: the program may change its environment. */
static const char *record_file(void) {
    static char copy[512];
    const char *name, *text = value_of(ENV_RECORD, &name);
    if (text == NULL) return NULL;
    if (strlen(text) >= sizeof copy) {
        cc__warn("ignoring CC_RECORD: its value is too long");
        return NULL;
    }
    return strcpy(copy, text);
}

static int record_level(void) {
    static const char *const names[] = {"turns", "times", "stacks"};
    const char *name, *text = value_of(ENV_RECORD_LEVEL, &name);
    for (int i = 0; text != NULL && i < (int)array_len(names); i++)
        if (strcmp(text, names[i]) == 0) return i;
    if (text != NULL) cc__warn("ignoring %s=%.64s: it must be turns, times or stacks", name, text);
    return -1;
}

/* ---- the live page ---- */

/* The user's runtime directory, or a directory in /tmp. */
static const char *view_folder(void) {
    static char folder[80];
    const char *base = secure_getenv("XDG_RUNTIME_DIR");
    int n = base != NULL && base[0] == '/' ? snprintf(folder, sizeof folder, "%s/ccc", base)
                                           : snprintf(folder, sizeof folder, "/tmp/ccc-%u", (unsigned)geteuid());
    return n < (int)sizeof folder ? folder : NULL;
}

static bool view(struct config *config) {
    const char *name, *text = value_of(ENV_VIEW, &name);
    unsigned long long port = 0;
    config->view_config = (CCViewConfig){0};
    if (text == NULL || strcmp(text, "0") == 0) return false;
    bool tcp = strncmp(text, "tcp", 3) == 0;
    if (tcp ? text[3] != '\0' && (text[3] != ':' || !parse(text + 4, false, &port) || port > 65535)
            : strcmp(text, "1") != 0) {
        cc__warn("ignoring %s=%.64s: it must be 0, 1, tcp or tcp:PORT", name, text);
        return false;
    }
    config->view_config.tcp = tcp;
    config->view_config.port = (uint16_t)port;
    if (config->sim_seed != 0) cc__warn("a simulation has no live page: %s does not count", name);
    return config->sim_seed == 0;
}

/* ---- simulation ---- */

static uint64_t sim_seed(bool say) {
    const char *name;
    uint64_t seed = number(ENV_SIM_SEED, false, 1, UINT64_MAX, say);
    if (seed == 0 && say && value_of(ENV_SIM_SEED, &name) != NULL) cc__warn("nothing is simulated");
    return seed;
}

/* Appends a word, quoted for a shell. False: it does not fit. */
static bool append_word(char **at, const char *end, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    bool quoted = word[0] == '\0' || word[strspn(word, plain)] != '\0';
    size_t left = (size_t)(end - *at), used = 0;
    if (left < 4 * strlen(word) + 4) return false;
    if (quoted) (*at)[used++] = '\'';
    for (; *word != '\0'; word++) {
        if (*word == '\'') used += (size_t)sprintf(*at + used, "'\\'");
        (*at)[used++] = *word;
    }
    if (quoted) (*at)[used++] = '\'';
    *at += used;
    **at = '\0';
    return true;
}

/* The program and its arguments; "..." if they are unknown or do not fit. */
static void command_line(char *text, size_t size) {
    char words[512] = "", *at = text;
    const char *end = text + size - sizeof " ...";
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, words, sizeof words - 1) : 0;
    if (fd >= 0) close(fd);
    bool all = n > 0 && n < (ssize_t)sizeof words - 1;
    *at = '\0';
    for (const char *word = words; all && word < words + n; word += strlen(word) + 1) {
        if (at != text) *at++ = ' ';
        all = append_word(&at, end, word);
    }
    if (!all) strcpy(at, at == text ? "..." : " ...");
}

void cc__config_simulate(uint64_t seed, bool once) {
    static char line[512];
    char program[400];
    command_line(program, sizeof program);
    if (seed == 0) {
        cc__sim_set(0, NULL);
        return;
    }
    if (once)
        snprintf(line, sizeof line, "ccc: this was a simulation with seed %llu: cc_sim_run with that seed replays it\n",
                 (unsigned long long)seed);
    else
        snprintf(line, sizeof line, "ccc: this was a simulation: CC_SIM_SEED=%llu %s replays it\n",
                 (unsigned long long)seed, program);
    cc__sim_set(seed, line);
    cc__parking_lot_disable_fast_unlock();
}

/* Deadlines and channels can be created before the runtime starts: so the clock and the trace categories are set at
 * load time. Invalid values are reported when it starts. */
CC_AT_LOAD(from_the_beginning) {
    uint64_t seed = sim_seed(false);
    if (seed != 0) cc__config_simulate(seed, false);
    cc__diag_deadlock_ends(flag(ENV_DEADLOCK_ABORT, true, false), deadlock_status(0, false));
    uint32_t on = trace(false);
    if (on == 0) return;
    cc__trace_set(on);
    if ((on & TRACE_TIMING) == 0) return;
    atexit(cc__diag_timing);
    pthread_atfork(NULL, NULL, cc__timing_forget);
}

/* By number or by name; 0 disables it. */
static int dump_signal(void) {
    static const struct {
        const char *name;
        int number;
    } names[] = {{"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"WINCH", SIGWINCH}};
    const char *name, *text = value_of(ENV_DUMP_SIGNAL, &name);
    unsigned long long value;
    if (text == NULL) return SIGQUIT;
    if (parse(text, false, &value) && value < 65 && (value == 0 || !cc__signal_unusable((int)value))) return (int)value;
    const char *bare = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(bare, names[i].name) == 0) return names[i].number;
    cc__warn("ignoring CC_DUMP_SIGNAL=%.64s: it must be QUIT, USR1, USR2, HUP, WINCH, the number of a signal that "
             "can be handled, or 0 for none",
             text);
    return SIGQUIT;
}

static bool in_range(const CCRuntimeConfig *c) {
    if (c->workers > CC_WORKERS_MAX || c->max_workers > CC_WORKERS_MAX) return false;
    if (c->max_workers != 0 && c->max_workers < c->workers) return false;
    if (c->deadlock_status > 255 || c->blocking_max > CC_POOL_THREADS_MAX || cc__reserved_used(c)) return false;
    if (c->stack_size != 0 && (c->stack_size < CC_STACK_SIZE_MIN || c->stack_size > CC_STACK_SIZE_MAX)) return false;
    size_t slots = c->queue_slots;
    return slots == 0 || (slots >= 2 && slots <= QUEUE_SLOTS_MAX && (slots & (slots - 1)) == 0);
}

static unsigned at_most(unsigned n, unsigned limit) {
    return n < limit ? n : limit;
}

/* The caller's limit also bounds the number of the environment or the machine; the environment's limit yields to the
 * caller's settings. A number in the environment is fixed, unless a limit is given too. */
static void read_workers(const CCRuntimeConfig *c, struct config *config) {
    unsigned workers = (unsigned)number(ENV_WORKERS, false, 1, CC_WORKERS_MAX, true);
    unsigned max = (unsigned)number(ENV_MAX_WORKERS, false, 1, CC_WORKERS_MAX, true);
    unsigned min = (unsigned)number(ENV_MIN_WORKERS, false, 1, CC_WORKERS_MAX, true);
    bool set = workers > 1 || max > 1, fixed = workers != 0 && c->workers == 0;
    if (c->workers != 0) workers = c->workers;
    if (workers == 0) workers = CC_FIBER_WORKERS;
    unsigned cpus = workers == 1 ? 1 : cc__cpus_usable(); /* reads files: a twentieth of a short program's run time */
    if (workers == 0) workers = at_most(cpus, CC_WORKERS_MAX);
    if (c->max_workers != 0 && workers > c->max_workers) workers = c->max_workers;
    max = c->max_workers != 0 ? c->max_workers : max != 0 ? max : fixed ? workers : 2 * workers;
    if (max < workers) max = workers;
    config->workers = workers;
    config->max_workers = at_most(max, CC_WORKERS_MAX);
    config->adapts = min == 0 && workers > 1;
    config->min_workers = at_most(workers, min != 0 ? min : cpus);
    if (config->sim_seed == 0) return;
    static _Atomic uint32_t said; /* a program may run thousands of simulations */
    if (set && !cc__swap(&said, 1)) cc__warn("a simulation has one worker: CC_WORKERS and CC_MAX_WORKERS do not count");
    config->workers = config->min_workers = config->max_workers = 1;
}

/* Settings that each room stores itself. */
static void configure_rooms(const CCRuntimeConfig *c) {
    unsigned max = (unsigned)number(ENV_BLOCKING_MAX, false, 1, CC_POOL_THREADS_MAX, true);
    uint64_t idle_ms = number(ENV_BLOCKING_IDLE_MS, false, 1, 24 * 3600 * 1000, true);
    uint64_t slack_us = number(ENV_TIMER_SLACK_US, false, 1, 1000 * 1000, true);
    uint64_t stall_ms = number(ENV_STALL_MS, false, 1, 24 * 3600 * 1000, true);
    if (stall_ms == 0) stall_ms = STALL_MS;
    cc__watch_set_timer_slack(slack_us != 0 ? slack_us * 1000 : TIMER_SLACK_NS);
    cc__trace_set(trace(true));
    cc__uring_configure(flag(ENV_URING, true, true));
    cc__thread_keep_off_configure(flag(ENV_AFFINITY, true, true));
    cc__panic_aborts(flag(ENV_PANIC_ABORT, false, true));
    cc__diag_deadlock_ends(flag(ENV_DEADLOCK_ABORT, true, true), deadlock_status(c->deadlock_status, true));
    cc__sysmon_set_stall(flag(ENV_DEBUG_STALL, true, true) ? stall_ms * 1000000 : 0);
    cc__sysmon_set_preempt(flag(ENV_PREEMPT, true, true));
    if (c->blocking_max != 0) max = (unsigned)c->blocking_max;
    cc__blocking_configure(max != 0 ? max : BLOCKING_MAX, (idle_ms != 0 ? idle_ms : BLOCKING_IDLE_MS) * 1000000);
}

int cc__config_read(const CCRuntimeConfig *from, struct config *config) {
    int saved = errno;
    CCRuntimeConfig c = from != NULL ? *from : (CCRuntimeConfig){0};
    if (!in_range(&c)) return EINVAL;
    size_t stack_size = (size_t)number(ENV_STACK_SIZE, true, CC_STACK_SIZE_MIN, CC_STACK_SIZE_MAX, true);
    config->sim_seed = cc__sim_seed() != 0 ? cc__sim_seed() : sim_seed(true);
    if (config->sim_seed != 0 && cc__sim_seed() == 0) cc__config_simulate(config->sim_seed, false); /* set after load */
    read_workers(&c, config);
    config->stack_size = c.stack_size != 0 ? c.stack_size : stack_size != 0 ? stack_size : CC_FIBER_STACK_SIZE;
    config->queue_slots = c.queue_slots != 0 ? c.queue_slots : CC_FIBER_QUEUE_INITIAL;
    bool membarrier = flag(ENV_MEMBARRIER, true, true);
    config->membarrier = membarrier && !c.no_membarrier;
    config->verbose = flag(ENV_VERBOSE, false, true);
    config->stats = flag(ENV_FIBER_STATS, false, true);
    config->record_file = record_file();
    config->record_level = record_level();
    config->view = view(config);
    config->view_folder = view_folder();
    config->pressure_stats = flag(ENV_PRESSURE_STATS_DUMP, false, true);
    config->dump_signal = dump_signal();
    config->leak_report = flag(ENV_LEAK_REPORT, false, true);
    config->debug_locks = flag(ENV_DEBUG_LOCKS, false, true);
    configure_rooms(&c);
    errno = saved;
    return 0;
}
