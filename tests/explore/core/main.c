/* main.c - the command line, loading, crashes, replay. README.md has the options. */
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
    report_command(stderr);
    _exit(3);
}

/* ---- replay ---- */

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
    search_prepare(s);
    settings.strategy = BY_REPLAY;
    bool ok = search_run_once();
    printf("%s - %s, %s memory, replayed\n", ok ? "ok" : "not ok", s->name, mode_names[settings.mode]);
    if (!ok) printf("  %s\n", failure);
    report_lines();
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
    else if (option(arg, "symmetric", &v))
        settings.symmetric = true;
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

/* Not by exit: the library's exit handlers would find an unfinished run. */
static int leave(int status) {
    (void)fflush(stdout);
    _exit(status);
}

int main(int argc, char **argv) {
    static char beside[4096];
    enum { NAMES_MAX = 1024 };
    static const char *names[NAMES_MAX];
    int count = 0;
    fix_addresses(argv);
    program = argv[0];
    settings = (struct settings){.mode = MODE_WEAK, .preemptions = 2, .stale = 1, .depth = 3, .races = true};
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' && count < NAMES_MAX)
            names[count++] = argv[i];
        else if (!parse(argv[i])) {
            fprintf(
                stderr,
                "usage: explore [--list] [--all | NAME...] [--dfs[=preemptions]] [--random=runs] [--pct=runs]\n"
                "               [--sc | --tso | --weak] [--symmetric] [--stale=n] [--depth=n] [--seed=n] [--max=runs]\n"
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
        if (want.replay != NULL) return leave(replay_one(s));
        ok &= search_scenario(s);
    }
    for (size_t i = 0; want.all && i < offer.count; i++) ok &= search_scenario(offer.scenarios[i]);
    printf("# %llu runs in %.1f s\n", (unsigned long long)total_runs, seconds() - start);
    return leave(ok ? 0 : 1);
}
