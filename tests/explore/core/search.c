/* search.c - one scenario: its set-up, one run of it, the searches over its runs, and the report of a failure. */
#include "core.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct line lines[LINES];
uint64_t line_count;
uint64_t total_runs;
struct wishes want = {.dfs = -1, .max = 1000000, .seconds = 3600};
const struct scenario *scenario;
const char *library, *program;
const char *const mode_names[] = {"sc", "tso", "weak"};

double seconds(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- one scenario ---- */

static void set_up(void) {
    if (scenario->workers > 0) offer.start(scenario->workers);
    if (scenario->setup != NULL) scenario->setup();
}

void search_prepare(const struct scenario *s) {
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

/* True: it succeeded. */
bool search_run_once(void) {
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

void report_command(FILE *to) {
    fprintf(to, "%s --lib=%s --%s%s%s %s --replay=", program, library, mode_names[settings.mode],
            settings.symmetric ? " --symmetric" : "", settings.races ? "" : " --no-races", scenario->name);
    print_replay(to);
    fprintf(to, "\n");
}

void report_lines(void) {
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
    if (search_run_once()) return; /* does not repeat: the caller says so */
    bool changed = true;
    for (int tries = 0; changed && tries < 8; tries++) {
        changed = false;
        for (unsigned i = replay_count; i-- > 0;) {
            struct deviation left_out = replay[i];
            memmove(&replay[i], &replay[i + 1], (replay_count - i - 1) * sizeof *replay);
            replay_count--;
            if (!search_run_once()) {
                changed = true;
                continue;
            }
            memmove(&replay[i + 1], &replay[i], (replay_count - i) * sizeof *replay);
            replay[i] = left_out;
            replay_count++;
        }
    }
    (void)search_run_once();
}

/* Whether it has to fail in this mode. */
static bool expected(void) {
    return scenario->fails != EX_HOLDS && (int)scenario->fails >= (int)EX_FAILS_SC - (int)settings.mode;
}

/* A scenario that must fail: the failure must repeat after it was shrunk. */
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
    printf("not ok - %s, %s, %s memory%s, run %llu", scenario->name, how, mode_names[settings.mode],
           settings.symmetric ? ", no membarrier" : "", (unsigned long long)runs);
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
    report_lines();
    if (strategy == BY_RANDOM || strategy == BY_PCT)
        printf("  by its seed: %s --lib=%s --%s%s %s --%s=1 --seed=%llu\n", program, library, mode_names[settings.mode],
               settings.symmetric ? " --symmetric" : "", scenario->name, strategy == BY_RANDOM ? "random" : "pct",
               (unsigned long long)settings.seed);
    printf("  replay: ");
    report_command(stdout);
}

/* ---- searches ---- */

struct result {
    uint64_t runs;
    bool failed, complete;
    double took;
};

/* Which locations are contended is learned before anything else, and always the same way. */
static bool learn(struct result *r) {
    enum { ENOUGH = 200, MOST = 2000, FEW = 20 };
    uint64_t length = 0, quiet = 0, n = 0;
    uint64_t seed = settings.seed;
    enum strategy strategy = settings.strategy;
    settings.strategy = BY_LEARNING;
    for (; n < (expected() ? FEW : MOST) && quiet < ENOUGH; n++, quiet++) {
        settings.seed = n;
        memory_learning = false;
        if (!search_run_once() && !expected()) {
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
        if (!search_run_once()) {
            r.failed = true;
            report(how, r.runs);
            break;
        }
        if (settings.strategy == BY_DFS) {
            if (memory_learning)
                choice_restart(); /* more is contended than was known */
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

static const char *mode_text(void) {
    static char text[32];
    snprintf(text, sizeof text, "%s%s", mode_names[settings.mode], settings.symmetric ? "/symmetric" : "");
    return text;
}

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
        printf("  %-26s %-8s %-5s %9llu runs %7.0f k/s  %s\n", scenario->name, how, mode_text(),
               (unsigned long long)r.runs, (double)r.runs / r.took / 1000,
               r.complete           ? "complete"
               : strategy == BY_DFS ? "cut short"
                                    : "");
    fflush(stdout);
    return !r.failed;
}

bool search_scenario(const struct scenario *s) {
    struct result r = {0};
    if (settings.symmetric && s->membarrier) {
        printf("  %-26s is left out: it is about membarrier\n", s->name);
        return true;
    }
    search_prepare(s);
    if (settings.symmetric && !memory_barrier_asked) {
        printf("  %-26s is left out: nothing in it is different without membarrier\n", s->name);
        return true;
    }
    if (!learn(&r)) return false;
    bool ok = true;
    if (want.dfs >= 0) ok = one_search(BY_DFS, want.max);
    if (ok && want.random > 0) ok = one_search(BY_RANDOM, want.random);
    if (ok && want.pct > 0) ok = one_search(BY_PCT, want.pct);
    return ok;
}
