/* cctop.c - rates of a process's fibers, and which wait longest, updated in a terminal. */
#include "base/attr.h"
#include "describe.h"
#include "modules.h"
#include "runtime.h"
#include "target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const char usage[] = "usage: cctop [-b] [-d SECONDS] [-n COUNT] PID\n"
                            "  how many switches, spawns, wakes, steals and waits a second, and the longest waits\n"
                            "  -b  batch: one look below the other, without control characters\n"
                            "  -d  seconds between two looks; 1 if it is not given\n"
                            "  -n  so many looks; without it, until the process ends\n"
                            "  -h  shows this\n";

enum { BATCH_ROWS = 40, ROWS_MAX = 1000, WORKERS_SHOWN = 16, REASONS_SHOWN = 6 };

struct sample {
    uint64_t when;
    struct counts total, worker[WORKERS_SEEN];
};

static uint64_t clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void take_sample(struct sample *s) {
    memset(&s->total, 0, sizeof s->total);
    s->when = clock_now();
    s->total.spawned = runtime_foreign_spawned();
    for_workers(i) {
        s->worker[i] = runtime_counts(i);
        const uint64_t *from = (const uint64_t *)(const void *)&s->worker[i];
        uint64_t *to = (uint64_t *)(void *)&s->total;
        for (size_t j = 0; j < sizeof s->total / sizeof *to; j++) to[j] += from[j];
    }
}

/* ---- rates ---- */

static double seconds;

/* A restarted runtime counts from 0. */
static double rate(uint64_t before, uint64_t now) {
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

/* "1234", "56.7k", "8.9M": at most six characters. */
static const char *number(double n) {
    static char text[8][16];
    static unsigned next;
    char *to = text[next++ % array_len(text)];
    if (n < 10)
        snprintf(to, sizeof text[0], "%.3g", n);
    else if (n < 10000)
        snprintf(to, sizeof text[0], "%.0f", n);
    else
        snprintf(to, sizeof text[0], n < 1e7 ? "%.1fk" : "%.1fM", n < 1e7 ? n / 1e3 : n / 1e6);
    return to;
}

static unsigned print_rates(const struct counts *a, const struct counts *b) {
    printf("a second: %s switches, %s spawned, %s ended, %s wakes by fibers, %s by others\n",
           number(rate(a->switches, b->switches)), number(rate(a->spawned, b->spawned)),
           number(rate(a->ended, b->ended)), number(rate(a->wakes_local, b->wakes_local)),
           number(rate(a->wakes_remote, b->wakes_remote)));
    printf("          %s steals, %s fibers shared, %s timers, %s times a worker slept\n",
           number(rate(a->steals, b->steals)), number(rate(a->shared, b->shared)),
           number(rate(a->timers_fired, b->timers_fired)), number(rate(a->sleeps, b->sleeps)));
    printf("   waits:");
    unsigned shown = 0;
    bool done[REASONS_SEEN] = {false};
    for (; shown < REASONS_SHOWN; shown++) { /* the most frequent first */
        unsigned best = REASONS_SEEN;
        for (unsigned i = 1; i < REASONS_SEEN; i++)
            if (!done[i] && b->parks[i] > a->parks[i] &&
                (best == REASONS_SEEN || b->parks[i] - a->parks[i] > b->parks[best] - a->parks[best]))
                best = i;
        if (best == REASONS_SEEN) break;
        done[best] = true;
        printf("%s %s %s", shown > 0 ? "," : "", number(rate(a->parks[best], b->parks[best])), describe_reason(best));
    }
    printf("%s\n", shown == 0 ? " none" : "");
    return 3;
}

static unsigned print_workers(const struct sample *a, const struct sample *b) {
    unsigned shown = 0, more = 0;
    printf("WORKER  SWITCHES/S  QUEUE  INBOX  TIMERS\n");
    for_workers(i) {
        struct worker_seen w = runtime_worker(i);
        char who[256] = "";
        if (!w.open) continue;
        if (shown == WORKERS_SHOWN) {
            more++;
            continue;
        }
        shown++;
        if (w.current != 0) describe_record(w.current, who, sizeof who);
        printf("%6u  %10s  %5u  %5u  %6u  %s%s\n", i, number(rate(a->worker[i].switches, b->worker[i].switches)),
               w.queued, w.inbox, w.timers,
               w.current != 0 ? "runs "
               : w.asleep     ? "sleeps"
                              : "looks for work",
               who);
    }
    if (more > 0) printf("   and %u more\n", more);
    return shown + 1 + (more > 0);
}

/* ---- the longest waits ---- */

static bool waits(const struct fiber_seen *f) {
    return f->state == IS_PARKED && !f->moves && !is_timed(f);
}

static bool waits_longer(const struct fiber_seen *x, const struct fiber_seen *y) {
    return x->from != y->from ? x->from < y->from : x->slot < y->slot;
}

/* The longest waits, in order: at most `max`; returns how many. */
static size_t find_longest(struct fiber_seen *fibers, size_t count, struct fiber_seen **longest, size_t max) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        struct fiber_seen *f = &fibers[i];
        if (!waits(f) || (n == max && !waits_longer(f, longest[n - 1]))) continue;
        size_t at = n < max ? n++ : max - 1;
        for (; at > 0 && waits_longer(f, longest[at - 1]); at--) longest[at] = longest[at - 1];
        longest[at] = f;
    }
    return n;
}

/* The innermost frame of the program's own code. */
static void print_place(const struct fiber_seen *f) {
    char text[400];
    for (unsigned i = 0; f->stack != NULL && i < f->stack->frames; i++) {
        if (modules_owner((uintptr_t)f->stack->frame[i]) != OWNER_USER) continue;
        modules_name((uintptr_t)f->stack->frame[i], text, sizeof text);
        printf(", in %s", text);
        return;
    }
}

static void print_waits(struct fiber_seen *fibers, size_t count, unsigned rows) {
    uint64_t now = runtime_now();
    struct fiber_seen *longest[ROWS_MAX];
    size_t n = find_longest(fibers, count, longest, rows < ROWS_MAX ? rows : ROWS_MAX);
    printf("longest waits:\n");
    for (size_t i = 0; i < n; i++) {
        struct fiber_seen *f = longest[i];
        char who[256], wait[DESCRIBED_MAX], since[80];
        if (!runtime_look(f, true) || !waits(f)) continue;
        describe_fiber(f, who, sizeof who);
        describe_wait(f->reason, f->object, wait, sizeof wait);
        describe_since(f->from, f->to, now, since, sizeof since);
        printf("  %s, %s waits %s", since, who, wait);
        print_place(f);
        printf("\n");
    }
}

static unsigned print_head(const struct fiber_seen *fibers, size_t count) {
    size_t by[IS_DONE + 1] = {0};
    for (size_t i = 0; i < count; i++) by[fibers[i].state <= IS_DONE ? fibers[i].state : IS_IDLE]++;
    printf("%s: %u workers, %zu fibers: %zu run, %zu ready, %zu wait; global queue %lu\n", target_name(),
           runtime_open(), count, by[IS_RUNNING], by[IS_RUNNABLE], by[IS_PARKED] + by[IS_PARKING],
           (unsigned long)runtime_global_queue());
    return 1;
}

/* ---- */

static unsigned rows_of_terminal(bool batch) {
    struct winsize size;
    if (batch || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 10) return BATCH_ROWS;
    return size.ws_row;
}

static void show(const struct sample *before, const struct sample *now, bool batch) {
    size_t count;
    unsigned rows = rows_of_terminal(batch), used;
    struct fiber_seen *fibers = runtime_fibers(&count, false);
    describe_among(fibers, count);
    if (!batch) printf("\033[H\033[J");
    used = print_head(fibers, count) + print_rates(&before->total, &now->total) + print_workers(before, now);
    if (rows > used + 2) print_waits(fibers, count, rows - used - 2);
    if (batch) printf("\n");
    runtime_free(fibers, count);
    if (fflush(stdout) != 0 || ferror(stdout)) fail("standard output: %s", strerror(errno));
}

/* False: the process has ended meanwhile. */
static bool pause_for(double s) {
    char byte;
    struct timespec time = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
    while (nanosleep(&time, &time) != 0 && errno == EINTR) continue;
    return target_read(&byte, layout.sched, sizeof byte);
}

static double positive(const char *text, double max) {
    char *end;
    double value = strtod(text, &end);
    return *end == '\0' && end != text && value > 0 && value <= max ? value : 0;
}

int main(int argc, char **argv) {
    static struct sample samples[2];
    double interval = 1, looks = 0;
    bool batch = false, wrong = false;
    for (int option; (option = getopt(argc, argv, "bd:n:h")) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return 0;
        }
        if (option == 'b') batch = true;
        if (option == 'd') wrong |= (interval = positive(optarg, 86400)) == 0;
        if (option == 'n') wrong |= (looks = positive(optarg, INT_MAX)) < 1;
        wrong |= option == '?';
    }
    double pid = optind + 1 == argc ? positive(argv[optind], INT_MAX) : 0;
    if (wrong || optind + 1 != argc) {
        fputs(usage, stderr);
        return 2;
    }
    if (pid < 1) fail("process %s: there is no such process", argv[optind]);
    target_open_process((int)pid);
    runtime_find();
    take_sample(&samples[0]);
    for (int i = 1;; i++) {
        const struct sample *before = &samples[(i - 1) % 2];
        struct sample *now = &samples[i % 2];
        if (!pause_for(interval)) break;
        take_sample(now);
        seconds = (double)(now->when - before->when) * 1e-9;
        show(before, now, batch);
        if (looks > 0 && i >= (int)looks) return 0;
    }
    printf("%s has ended\n", target_name());
    return 0;
}
