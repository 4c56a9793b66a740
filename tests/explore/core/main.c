/* main.c - the command line, the loop over runs, reports. README.md has the options. */
#include "core.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

struct line lines[LINES];
uint64_t line_count;

static const char *const mode_names[] = {"sc", "tso", "weak"};
static const char *library, *program;
static const struct scenario *scenario;

/* What the command line wants. */
static struct {
    int dfs; /* preemptions; -1: no */
    uint64_t random, pct, max;
    double seconds; /* for each search */
    bool all, list, quiet, show;
    const char *replay;
} want = {.dfs = -1, .max = 1000000, .seconds = 3600};

static double seconds(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- one scenario ---- */

static void set_up(void) {
    if (scenario->workers > 0) offer.start(scenario->workers);
    if (scenario->setup != NULL) scenario->setup();
}

static void prepare(const struct scenario *s) {
    scenario = s;
    exploring = false;
    threads_forget();
    state_forget();
    memory_forget();
    int setter = threads_add(set_up, false);
    if (!threads_run()) {
        fprintf(stderr, "explore: the set-up of %s fails: %s\n", s->name, failure);
        exit(2);
    }
    if (threads[setter].state != THREAD_ENDED) {
        fprintf(stderr, "explore: the set-up of %s does not end\n", s->name);
        exit(2);
    }
    threads[setter].state = THREAD_FREE;
    for (int i = 0; i < EX_THREADS && s->threads[i] != NULL; i++) (void)threads_add(s->threads[i], false);
    no_timer = s->no_timer;
    for (int i = 0; i < THREADS_MAX; i++) {
        memset(&threads[i].ordered, 0, sizeof threads[i].ordered);
        memset(&threads[i].seen, 0, sizeof threads[i].seen);
    }
    state_save();
}

/* True: it went well. */
static bool run_once(void) {
    state_restore();
    memory_begin();
    races_begin();
    steps = 0;
    line_count = 0;
    choice_begin();
    exploring = true;
    bool ok = threads_run();
    exploring = false;
    current = -1;
    if (ok && scenario->check != NULL) {
        threads_forget();
        (void)threads_add(scenario->check, false);
        ok = threads_run();
    }
    return ok;
}

/* ---- reports ---- */

static void print_replay(FILE *to) {
    for (unsigned i = 0; i < deviation_count; i++)
        fprintf(to, "%s%llu%c%d", i > 0 ? "," : "", (unsigned long long)deviations[i].step, deviations[i].kind,
                deviations[i].value);
    if (deviation_count == 0) fprintf(to, "none");
}

static void print_command(FILE *to) {
    fprintf(to, "%s --lib=%s --%s%s %s --replay=", program, library, mode_names[settings.mode],
            settings.races ? "" : " --no-races", scenario->name);
    print_replay(to);
    fprintf(to, "\n");
}

static void print_lines(void) {
    uint64_t from = line_count > LINES ? line_count - LINES : 0;
    printf("   step thread operation\n");
    for (uint64_t i = from; i < line_count; i++) {
        const struct line *l = &lines[i % LINES];
        printf("  %5llu %d%*s %-12s %#llx  %s", (unsigned long long)l->step, l->thread, l->thread * 3, "", l->what,
               (unsigned long long)l->value, l->at);
        if (l->addr != NULL) printf(" (%p)", (const void *)l->addr);
        printf("\n");
    }
}

/* Leaves out what is not needed for a failure. The run that is left is the last one. */
static void shrink(void) {
    settings.strategy = BY_REPLAY;
    replay_count = deviation_count;
    memcpy(replay, deviations, replay_count * sizeof *replay);
    if (run_once()) return; /* does not repeat: the caller says so */
    bool changed = true;
    for (int tries = 0; changed && tries < 8; tries++) {
        changed = false;
        for (unsigned i = replay_count; i-- > 0;) {
            struct deviation left_out = replay[i];
            memmove(&replay[i], &replay[i + 1], (replay_count - i - 1) * sizeof *replay);
            replay_count--;
            if (!run_once()) {
                changed = true;
                continue;
            }
            memmove(&replay[i + 1], &replay[i], (replay_count - i) * sizeof *replay);
            replay[i] = left_out;
            replay_count++;
        }
    }
    (void)run_once();
}

/* Whether it has to fail in this mode. */
static bool expected(void) {
    return scenario->fails != EX_HOLDS && (int)scenario->fails >= (int)EX_FAILS_SC - (int)settings.mode;
}

/* A scenario that is here to be found: the failure must repeat, shrunk. */
static void report_expected(const char *how, uint64_t runs) {
    unsigned choices = deviation_count;
    shrink();
    if (failure[0] == '\0') return;
    printf("  %-26s %-8s %-5s found in run %llu, %u choices shrunk to %u, and repeats\n", scenario->name, how,
           mode_names[settings.mode], (unsigned long long)runs, choices, deviation_count);
}

static void report(const char *how, uint64_t runs) {
    enum strategy strategy = settings.strategy;
    if (expected() && !want.show) {
        report_expected(how, runs);
        return;
    }
    printf("not ok - %s, %s, %s memory, run %llu", scenario->name, how, mode_names[settings.mode],
           (unsigned long long)runs);
    if (strategy == BY_RANDOM || strategy == BY_PCT) printf(", seed %llu", (unsigned long long)settings.seed);
    printf("\n  %s\n", failure);
    if (want.quiet) return;
    unsigned choices = deviation_count;
    fflush(stdout);
    shrink();
    if (failure[0] == '\0') {
        printf("  This run does not repeat.\n");
        return;
    }
    printf("  %u choices, shrunk to %u: %s\n", choices, deviation_count, failure);
    print_lines();
    if (strategy == BY_RANDOM || strategy == BY_PCT)
        printf("  by its seed: %s --lib=%s --%s %s --%s=1 --seed=%llu\n", program, library, mode_names[settings.mode],
               scenario->name, strategy == BY_RANDOM ? "random" : "pct", (unsigned long long)settings.seed);
    printf("  replay: ");
    print_command(stdout);
}

static const void *program_counter(const void *context) {
    const ucontext_t *at = context;
#if defined(__x86_64__)
    return (const void *)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)at->uc_mcontext.pc;
#else
    return (const void *)at->uc_mcontext.__gregs[REG_PC];
#endif
}

/* In a run a crash is a failure like any other. */
static void on_crash(int signal, siginfo_t *info, void *context) {
    if (exploring && current >= 0 && signal != SIGABRT)
        ex_fail("signal %d, address %p, at %s", signal, info->si_addr, races_where(program_counter(context)));
    fprintf(stderr, "explore: signal %d in %s, %s memory, thread %d, step %llu\n  replay: ", signal,
            scenario != NULL ? scenario->name : "?", mode_names[settings.mode], current, (unsigned long long)steps);
    print_command(stderr);
    _exit(3);
}

/* ---- searches ---- */

struct result {
    uint64_t runs;
    bool failed, complete;
    double took;
};

/* Which locations are shared is learned before anything else, and always the same way. */
static bool learn(struct result *r) {
    enum { ENOUGH = 200, MOST = 2000, FEW = 20 };
    uint64_t length = 0, quiet = 0, n = 0;
    uint64_t seed = settings.seed;
    enum strategy strategy = settings.strategy;
    settings.strategy = BY_LEARNING;
    for (; n < (expected() ? FEW : MOST) && quiet < ENOUGH; n++, quiet++) {
        settings.seed = n;
        memory_learning = false;
        if (!run_once() && !expected()) {
            r->runs = n + 1;
            r->failed = true;
            report("random (first looks)", n + 1);
            break;
        }
        if (memory_learning) quiet = 0;
        length += steps;
    }
    choice_set_length(n > 0 ? length / n : 1);
    settings.strategy = strategy;
    settings.seed = seed;
    return !r->failed;
}

static struct result search(const char *how, uint64_t runs) {
    struct result r = {0};
    double start = seconds();
    uint64_t seed = settings.seed;
    choice_restart();
    for (;;) {
        memory_learning = false;
        if (settings.strategy != BY_DFS) settings.seed = seed + r.runs;
        r.runs++;
        if (!run_once()) {
            r.failed = true;
            report(how, r.runs);
            break;
        }
        if (settings.strategy == BY_DFS) {
            if (memory_learning)
                choice_restart(); /* more is shared than was known */
            else if (!choice_next()) {
                r.complete = true;
                break;
            }
        }
        if (r.runs >= runs || (r.runs % 256 == 0 && seconds() - start > want.seconds)) break;
    }
    settings.seed = seed;
    r.took = seconds() - start;
    return r;
}

static uint64_t total_runs;

static bool one_search(enum strategy strategy, uint64_t runs) {
    char how[40];
    settings.strategy = strategy;
    if (strategy == BY_DFS)
        snprintf(how, sizeof how, "dfs %d/%d", settings.preemptions, settings.mode == MODE_SC ? 0 : settings.stale);
    else
        snprintf(how, sizeof how, strategy == BY_PCT ? "pct %d" : "random", settings.depth);
    struct result r = search(how, runs);
    total_runs += r.runs;
    if (expected()) {
        if (!r.failed || failure[0] == '\0')
            printf("not ok - %s, %s, %s memory: %s\n", scenario->name, how, mode_names[settings.mode],
                   r.failed ? "what was found does not repeat" : "what is wrong with it was not found");
        return r.failed && failure[0] != '\0';
    }
    if (!r.failed)
        printf("  %-26s %-8s %-5s %9llu runs %7.0f k/s  %s\n", scenario->name, how, mode_names[settings.mode],
               (unsigned long long)r.runs, (double)r.runs / r.took / 1000,
               r.complete           ? "complete"
               : strategy == BY_DFS ? "cut short"
                                    : "");
    fflush(stdout);
    return !r.failed;
}

static bool explore(const struct scenario *s) {
    struct result r = {0};
    prepare(s);
    if (!learn(&r)) return false;
    bool ok = true;
    if (want.dfs >= 0) ok = one_search(BY_DFS, want.max);
    if (ok && want.random > 0) ok = one_search(BY_RANDOM, want.random);
    if (ok && want.pct > 0) ok = one_search(BY_PCT, want.pct);
    return ok;
}

static int replay_one(const struct scenario *s) {
    const char *text = want.replay;
    while (*text != '\0' && *text != 'n' && replay_count < DEVIATIONS_MAX) {
        struct deviation *d = &replay[replay_count++];
        int used = 0;
        unsigned long long step;
        if (sscanf(text, "%llu%c%d%n", &step, &d->kind, &d->value, &used) != 3) {
            fprintf(stderr, "explore: '%s' is no list of choices\n", text);
            return 2;
        }
        d->step = step;
        text += used;
        if (*text == ',') text++;
    }
    prepare(s);
    settings.strategy = BY_REPLAY;
    bool ok = run_once();
    printf("%s - %s, %s memory, replayed\n", ok ? "ok" : "not ok", s->name, mode_names[settings.mode]);
    if (!ok) printf("  %s\n", failure);
    print_lines();
    return ok ? 0 : 1;
}

/* ---- loading ---- */

static int find_segment(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    if (info->dlpi_addr != *(ElfW(Addr) *)data) return 0;
    uintptr_t from = 0, to = 0, relro = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + p->p_vaddr, end = begin + p->p_memsz;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_W)) from = begin, to = end;
        if (p->p_type == PT_GNU_RELRO) relro = (end + 4095) & ~(uintptr_t)4095;
    }
    if (relro > from) from = relro;
    if (to > from) state_open((void *)from, to - from);
    return 1;
}

static void load(void) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "explore: %s\n", dlerror());
        exit(2);
    }
    struct link_map *map;
    struct ex_offer (*get)(void);
    *(void **)&get = dlsym(handle, "ex_offer");
    if (get == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) exit(2);
    offer = get();
    if (offer.tls_size > TLS_MAX) {
        fprintf(stderr, "explore: %zu thread-local bytes are too many\n", offer.tls_size);
        exit(2);
    }
    dl_iterate_phdr(find_segment, &map->l_addr);
}

static bool option(const char *arg, const char *name, const char **value) {
    size_t n = strlen(name);
    *value = NULL;
    if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, name, n) != 0) return false;
    if (arg[2 + n] == '=') *value = arg + 3 + n;
    return arg[2 + n] == '\0' || arg[2 + n] == '=';
}

static bool parse(const char *arg) {
    const char *v;
    if (option(arg, "dfs", &v))
        want.dfs = v != NULL ? atoi(v) : 2;
    else if (option(arg, "random", &v) && v != NULL)
        want.random = strtoull(v, NULL, 10);
    else if (option(arg, "pct", &v) && v != NULL)
        want.pct = strtoull(v, NULL, 10);
    else if (option(arg, "max", &v) && v != NULL)
        want.max = strtoull(v, NULL, 10);
    else if (option(arg, "depth", &v) && v != NULL)
        settings.depth = atoi(v);
    else if (option(arg, "stale", &v) && v != NULL)
        settings.stale = atoi(v);
    else if (option(arg, "seed", &v) && v != NULL)
        settings.seed = strtoull(v, NULL, 10);
    else if (option(arg, "budget", &v) && v != NULL)
        want.seconds = atof(v);
    else if (option(arg, "replay", &v) && v != NULL)
        want.replay = v;
    else if (option(arg, "lib", &v) && v != NULL)
        library = v;
    else if (option(arg, "sc", &v))
        settings.mode = MODE_SC;
    else if (option(arg, "tso", &v))
        settings.mode = MODE_TSO;
    else if (option(arg, "weak", &v))
        settings.mode = MODE_WEAK;
    else if (option(arg, "no-races", &v))
        settings.races = false;
    else if (option(arg, "quiet", &v))
        want.quiet = true;
    else if (option(arg, "show", &v))
        want.show = true;
    else if (option(arg, "all", &v))
        want.all = true;
    else if (option(arg, "list", &v))
        want.list = true;
    else
        return false;
    return true;
}

/* Addresses decide things too, the order of locks for one: they must be the same each time. */
static void fix_addresses(char **argv) {
    int now = personality(0xffffffff);
    if (now == -1 || (now & ADDR_NO_RANDOMIZE) != 0) return;
    if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) == -1 || getenv("EXPLORE_ADDRESSES") != NULL) return;
    (void)setenv("EXPLORE_ADDRESSES", "fixed", 1); /* once, whatever the system makes of it */
    (void)execv("/proc/self/exe", argv);
}

static void watch_crashes(void) {
    static char stack[64 * 1024];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_ONSTACK | SA_SIGINFO | SA_NODEFER};
    int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
}

static const struct scenario *find(const char *name) {
    for (size_t i = 0; i < offer.count; i++)
        if (strcmp(offer.scenarios[i]->name, name) == 0) return offer.scenarios[i];
    return NULL;
}

int main(int argc, char **argv) {
    static char beside[4096];
    const char *names[64];
    int count = 0;
    fix_addresses(argv);
    program = argv[0];
    settings = (struct settings){.mode = MODE_WEAK, .preemptions = 2, .stale = 1, .depth = 3, .races = true};
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' && count < 64)
            names[count++] = argv[i];
        else if (!parse(argv[i])) {
            fprintf(
                stderr,
                "usage: explore [--list] [--all | NAME...] [--dfs[=preemptions]] [--random=runs] [--pct=runs]\n"
                "               [--sc | --tso | --weak] [--stale=n] [--depth=n] [--seed=n] [--max=runs]\n"
                "               [--budget=seconds] [--replay=choices] [--no-races] [--quiet] [--show] [--lib=file]\n");
            return 2;
        }
    }
    if (library == NULL) {
        snprintf(beside, sizeof beside, "%s", argv[0]);
        char *slash = strrchr(beside, '/');
        snprintf(slash != NULL ? slash + 1 : beside, 64, "libexplored.so");
        library = beside;
    }
    watch_crashes();
    load();
    if (want.list) {
        for (size_t i = 0; i < offer.count; i++)
            printf("%-26s %s\n", offer.scenarios[i]->name, offer.scenarios[i]->about);
        return 0;
    }
    if (want.dfs < 0 && want.random == 0 && want.pct == 0) want.dfs = 2, want.random = want.pct = 20000;
    if (want.dfs >= 0) settings.preemptions = want.dfs;
    bool ok = true;
    double start = seconds();
    for (int i = 0; i < count; i++) {
        const struct scenario *s = find(names[i]);
        if (s == NULL) {
            fprintf(stderr, "explore: there is no scenario '%s'; --list names them\n", names[i]);
            return 2;
        }
        if (want.replay != NULL) return replay_one(s);
        ok &= explore(s);
    }
    for (size_t i = 0; want.all && i < offer.count; i++) ok &= explore(offer.scenarios[i]);
    printf("# %llu runs in %.1f s\n", (unsigned long long)total_runs, seconds() - start);
    return ok ? 0 : 1;
}
