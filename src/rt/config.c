/* config.c - the configuration. The only file that reads the environment. */
#include "rt/config.h"

#include "base/fatal.h"
#include "base/san.h"
#include "diag/diag.h"
#include "lock/lobby.h"
#include "os/cpus.h"
#include "sim/sim.h"
#include "trace/timing.h"
#include "trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CC_FIBER_WORKERS
#define CC_FIBER_WORKERS 0 /* usable CPUs */
#endif
#ifndef CC_FIBER_STACK_SIZE
#define CC_FIBER_STACK_SIZE ((size_t)256 * 1024)
#endif
#ifndef CC_FIBER_QUEUE_INITIAL
#define CC_FIBER_QUEUE_INITIAL 4096
#endif

enum { STALL_MS = 5000 };

#define QUEUE_SLOTS_MAX ((size_t)1 << 24)

_Static_assert(CC_FIBER_WORKERS <= CC_WORKERS_MAX, "CC_FIBER_WORKERS is above CC_WORKERS_MAX");
_Static_assert(CC_FIBER_STACK_SIZE >= 16 * 1024 && CC_FIBER_STACK_SIZE <= 1024 * 1024 * 1024,
               "CC_FIBER_STACK_SIZE is out of range");
_Static_assert(CC_FIBER_QUEUE_INITIAL >= 2 && (CC_FIBER_QUEUE_INITIAL & (CC_FIBER_QUEUE_INITIAL - 1)) == 0,
               "CC_FIBER_QUEUE_INITIAL is not a power of two");

/* A whole number, with an optional K or M (units == true). False: it is none. */
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

/* The variable's number; 0: not set, or bad and named. */
static unsigned long long number(const char *name, bool units, unsigned long long min, unsigned long long max) {
    const char *text = getenv(name);
    if (text == NULL || text[0] == '\0') return 0;
    unsigned long long value;
    if (parse(text, units, &value) && value >= min && value <= max) return value;
    cc__warn("ignoring %s=%.64s: it must be a whole number from %llu to %llu", name, text, min, max);
    return 0;
}

static bool flag_said(const char *name, bool say) {
    const char *text = getenv(name);
    if (text == NULL || text[0] == '\0' || strcmp(text, "0") == 0) return false;
    if (strcmp(text, "1") == 0) return true;
    if (say) cc__warn("ignoring %s=%.64s: it must be 0 or 1", name, text);
    return false;
}

/* A flag that is on unless it says 0. */
static bool flag_on(const char *name, bool say) {
    const char *text = getenv(name);
    if (text == NULL || text[0] == '\0' || strcmp(text, "1") == 0) return true;
    if (strcmp(text, "0") == 0) return false;
    if (say) cc__warn("ignoring %s=%.64s: it must be 0 or 1", name, text);
    return true;
}

static bool flag(const char *name) {
    return flag_said(name, true);
}

enum { DEADLOCK_STATUS = 124 };

static unsigned deadlock_status(bool say) {
    const char *text = getenv("CC_DEADLOCK_STATUS");
    unsigned long long value;
    if (text == NULL || text[0] == '\0') return DEADLOCK_STATUS;
    if (parse(text, false, &value) && value >= 1 && value <= 255) return (unsigned)value;
    if (say) cc__warn("ignoring CC_DEADLOCK_STATUS=%.64s: it must be a whole number from 1 to 255", text);
    return DEADLOCK_STATUS;
}

/* CC_TRACE, and the variables that each switch one category on. */
static uint32_t trace(bool say) {
    static const struct {
        const char *name;
        uint32_t categories;
    } variables[] = {
        {"CC_PARK_DEBUG", TRACE_PARK},
        {"CC_DEBUG_WAKE", TRACE_WAKE},
        {"CC_DEBUG_JOIN", TRACE_JOIN},
        {"CC_DEBUG_INBOX", TRACE_INBOX},
        {"CC_DEBUG_INBOX_DUMP", TRACE_INBOX_DUMP},
        {"CC_DEBUG_SYSMON", TRACE_SYSMON},
        {"CC_V3_SPEC_ASSERT", TRACE_SPEC},
        {"CC_CHAN_DEBUG", TRACE_CHAN},
        {"CC_CHAN_DEBUG_VERBOSE", TRACE_CHAN | TRACE_CHAN_VERBOSE},
        {"CC_CHANNEL_TIMING", TRACE_TIMING},
    };
    uint32_t on = 0;
    for (size_t i = 0; i < array_len(variables); i++)
        if (flag_said(variables[i].name, say)) on |= variables[i].categories;
    const char *list = getenv("CC_TRACE"), *unknown = NULL;
    int length = 0;
    if (list != NULL) on |= cc__trace_parse(list, &unknown, &length);
    if (unknown != NULL && say)
        cc__warn("ignoring '%.*s' in CC_TRACE: the categories are %s", length, unknown, cc__trace_known);
    return on;
}

/* ---- simulation ---- */

static uint64_t sim_seed(bool say) {
    const char *text = getenv("CC_SIM_SEED");
    unsigned long long seed;
    if (text == NULL || text[0] == '\0') return 0;
    if (parse(text, false, &seed) && seed != 0) return seed;
    if (say)
        cc__warn("ignoring CC_SIM_SEED=%.64s: it must be a whole number from 1 to %llu; nothing is simulated", text,
                 (unsigned long long)UINT64_MAX);
    return 0;
}

void cc__config_simulate(uint64_t seed, bool once) {
    static char line[512];
#ifdef __GLIBC__
    const char *program = program_invocation_name;
#else
    const char *program = "the same program";
#endif
    if (seed == 0) {
        cc__sim_set(0, NULL);
        return;
    }
    if (once)
        snprintf(line, sizeof line, "ccc: this was a simulation with seed %llu: cc_sim_run with that seed replays it\n",
                 (unsigned long long)seed);
    else
        snprintf(line, sizeof line, "ccc: this was a simulation: CC_SIM_SEED=%llu %.400s replays it\n",
                 (unsigned long long)seed, program);
    cc__sim_set(seed, line);
    cc__lobby_heat_all();
}

/* Deadlines and channels are made without the runtime: the clock, and what is traced, are known before it starts. Bad
 * values are named when it does. */
CC_AT_LOAD(from_the_beginning) {
    uint64_t seed = sim_seed(false);
    if (seed != 0) cc__config_simulate(seed, false);
    cc__diag_deadlock_aborts(flag_on("CC_DEADLOCK_ABORT", false));
    cc__diag_deadlock_status(deadlock_status(false));
    uint32_t on = trace(false);
    if (on == 0) return;
    cc__trace_set(on);
    if ((on & TRACE_TIMING) == 0) return;
    atexit(cc__diag_timing);
    pthread_atfork(NULL, NULL, cc__timing_forget);
}

/* By number or by name; 0 switches it off. */
static int dump_signal(void) {
    static const struct {
        const char *name;
        int number;
    } names[] = {{"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"WINCH", SIGWINCH}};
    const char *text = getenv("CC_DUMP_SIGNAL");
    unsigned long long value;
    if (text == NULL || text[0] == '\0') return SIGQUIT;
    if (parse(text, false, &value) && value < 65 && value != SIGKILL && value != SIGSTOP) return (int)value;
    const char *bare = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(bare, names[i].name) == 0) return names[i].number;
    cc__warn("ignoring CC_DUMP_SIGNAL=%.64s: it must be QUIT, USR1, USR2, HUP, WINCH, a signal's number, or 0 for none",
             text);
    return SIGQUIT;
}

static bool in_range(const CCRuntimeConfig *c) {
    if (c->workers > CC_WORKERS_MAX || c->max_workers > CC_WORKERS_MAX) return false;
    if (c->max_workers != 0 && c->max_workers < c->workers) return false;
    if (c->deadlock_status > 255 || cc__reserved_used(c)) return false;
    if (c->stack_size != 0 && (c->stack_size < CC_STACK_SIZE_MIN || c->stack_size > CC_STACK_SIZE_MAX)) return false;
    size_t slots = c->queue_slots;
    return slots == 0 || (slots >= 2 && slots <= QUEUE_SLOTS_MAX && (slots & (slots - 1)) == 0);
}

static unsigned default_workers(void) {
    unsigned n = CC_FIBER_WORKERS != 0 ? CC_FIBER_WORKERS : cc__cpus_usable();
    return n < CC_WORKERS_MAX ? n : CC_WORKERS_MAX;
}

/* The caller's limit bounds what the environment and the machine say; the environment's gives way to what the caller
 * says. A number in the environment is a fixed one, unless a limit is given, too. */
static void read_workers(const CCRuntimeConfig *c, struct config *config) {
    unsigned workers = (unsigned)number("CC_WORKERS", false, 1, CC_WORKERS_MAX);
    unsigned max = (unsigned)number("CC_MAX_WORKERS", false, 1, CC_WORKERS_MAX);
    bool set = workers > 1 || max > 1, fixed = workers != 0 && c->workers == 0;
    workers = c->workers != 0 ? c->workers : workers != 0 ? workers : default_workers();
    if (c->max_workers != 0 && workers > c->max_workers) workers = c->max_workers;
    max = c->max_workers != 0 ? c->max_workers : max != 0 ? max : fixed ? workers : 2 * workers;
    if (max < workers) max = workers;
    config->workers = workers;
    config->max_workers = max < CC_WORKERS_MAX ? max : CC_WORKERS_MAX;
    if (config->sim_seed == 0) return;
    if (set) cc__warn("a simulation has one worker: CC_WORKERS and CC_MAX_WORKERS do not count");
    config->workers = config->max_workers = 1;
}

int cc__config_read(const CCRuntimeConfig *from, struct config *config) {
    int saved = errno;
    CCRuntimeConfig c = from != NULL ? *from : (CCRuntimeConfig){0};
    if (!in_range(&c)) return EINVAL;
    size_t stack_size = (size_t)number("CC_STACK_SIZE", true, CC_STACK_SIZE_MIN, CC_STACK_SIZE_MAX);
    config->sim_seed = cc__sim_seed() != 0 ? cc__sim_seed() : sim_seed(true);
    read_workers(&c, config);
    config->stack_size = c.stack_size != 0 ? c.stack_size : stack_size != 0 ? stack_size : CC_FIBER_STACK_SIZE;
    config->queue_slots = c.queue_slots != 0 ? c.queue_slots : CC_FIBER_QUEUE_INITIAL;
    bool membarrier = flag_on("CC_MEMBARRIER", true);
    config->membarrier = membarrier && !c.no_membarrier;
    config->verbose = flag("CC_VERBOSE");
    config->stats = flag("CC_FIBER_STATS");
    config->trace = trace(true);
    config->panic_abort = flag("CC_PANIC_ABORT");
    config->pressure_stats = flag("CC_V3_PRESSURE_STATS_DUMP");
    config->deadlock_abort = flag_on("CC_DEADLOCK_ABORT", true);
    config->deadlock_status = deadlock_status(true);
    if (c.deadlock_status != 0) config->deadlock_status = c.deadlock_status;
    uint64_t stall_ms = number("CC_STALL_MS", false, 1, 24 * 3600 * 1000);
    config->stall_ns = flag_on("CC_DEBUG_STALL", true) ? (stall_ms != 0 ? stall_ms : STALL_MS) * 1000000 : 0;
    config->dump_signal = dump_signal();
    config->leak_report = flag("CC_LEAK_REPORT");
    config->debug_locks = flag("CC_DEBUG_LOCKS");
    errno = saved;
    return 0;
}
