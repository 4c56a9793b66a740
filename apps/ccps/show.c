/* show.c - prints workers, scopes, fibers and threads as the library's own dump does (src/diag/dump.c). */
#include "show.h"

#include "base/attr.h"
#include "describe.h"
#include "modules.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 8, SCOPES_MAX = 4096, DEPTH_MAX = 64, BLOCKED_SHOWN = 256 };

static const char *plural(uint64_t n) {
    return n == 1 ? "" : "s";
}

/* ---- frames ---- */

/* Drops what is the library's own at both ends: of a fiber that waits, what its call does inside; of all, what every
 * stack begins with. */
static void trim(struct fiber_seen *f) {
    unsigned first = 0, end;
    if (f->state != IS_RUNNING)
        while (first < f->frames && modules_owner((uintptr_t)f->frame[first]) == OWNER_LIBRARY) first++;
    if (first == f->frames) first = 0; /* nothing would be left */
    for (end = first; end < f->frames && modules_owner((uintptr_t)f->frame[end]) != OWNER_SCHEDULER;) end++;
    if (end < f->frames) f->doubt.cut = false; /* nothing that is shown is missing */
    f->doubt.guessed >>= first;
    f->frames = end - first;
    if (f->frames > 0) memmove(f->frame, f->frame + first, f->frames * sizeof f->frame[0]);
}

static void print_frames(const struct fiber_seen *f, const char *indent) {
    for (unsigned i = 0; i < f->frames; i++) {
        char text[400];
        modules_name((uintptr_t)f->frame[i], text, sizeof text);
        printf("%s#%u %s%s\n", indent, i, f->doubt.guessed >> i & 1 ? "? " : "", text);
    }
    if (f->frames > 0 && f->doubt.cut) printf("%s? no unwind information leads further up\n", indent);
}

/* ---- workers ---- */

static void put_workers(FILE *out) {
    for_workers(i) {
        struct worker_seen w = runtime_worker(i);
        char tenant[256] = "", island[NAME_MAX_SEEN];
        runtime_island((int)i, island);
        if (island[0] != '\0' && !w.open) continue;
        if (w.current != 0) describe_record(w.current, tenant, sizeof tenant);
        if (island[0] != '\0')
            fprintf(out, "island '%s' (worker %u, thread %d)", island, i, w.tid);
        else
            fprintf(out, "worker %u (thread %d)", i, w.tid);
        fprintf(out, " %s%s; %u in its queue, %u in its inbox, %u timer%s, %lu turn%s\n",
                w.current != 0 ? "runs "
                : island[0]    ? "has nothing to run"
                : w.asleep     ? "sleeps"
                               : "looks for work",
                tenant, w.queued, w.inbox, w.timers, plural(w.timers), (unsigned long)w.turns, plural(w.turns));
    }
    fprintf(out, "global queue: %lu\n", (unsigned long)runtime_global_queue());
}

/* ---- one fiber, or several that stand in the same place ---- */

static void put_into_words(struct fiber_seen *f, uint64_t now) {
    char who[256], wait[DESCRIBED_MAX] = "", since[80] = "";
    const char *how = f->moves                                 ? "moves while it is looked at"
                      : f->state == IS_RUNNABLE && !f->started ? "has not run yet"
                      : f->state == IS_RUNNABLE                ? "is ready to run"
                      : f->state == IS_RUNNING                 ? "runs"
                      : is_timed(f)                            ? "starts at a later time"
                                                               : "waits";
    describe_fiber(f, who, sizeof who);
    if (f->state == IS_PARKED && !f->moves && !is_timed(f)) {
        describe_wait(f->reason, f->object, wait, sizeof wait);
        describe_since(f->from, f->to, now, since, sizeof since);
    } else if (f->state == IS_RUNNING && f->worker >= 0) {
        snprintf(wait, sizeof wait, "on worker %d", f->worker);
    }
    if (asprintf(&f->line, "%s %s%s%s%s%s", who, how, wait[0] ? " " : "", wait, since[0] ? ", " : "", since) < 0)
        fail("out of memory");
}

static void print_line(struct fiber_seen *f, uint64_t now, const char *indent) {
    if (f->line == NULL) put_into_words(f, now);
    printf("%s%s\n", indent, f->line);
}

static void print_place(const struct fiber_seen *f, bool sites_differ, const char *indent) {
    char text[400];
    if (f->site != 0) {
        modules_name(f->site, text, sizeof text);
        printf("%sstarted by %s%s\n", indent, text, sites_differ ? ", and others" : "");
    }
    if (f->frames == 0 && f->fn != 0) {
        modules_name(f->fn + 1, text, sizeof text);
        printf("%sits function is %s\n", indent, text);
    }
    print_frames(f, indent);
}

static bool alike(const struct fiber_seen *a, const struct fiber_seen *b) {
    return a->state == b->state && a->reason == b->reason && a->moves == b->moves && a->fn == b->fn &&
           a->frames == b->frames && a->doubt.guessed == b->doubt.guessed &&
           (a->frames == 0 || memcmp(a->frame, b->frame, a->frames * sizeof a->frame[0]) == 0);
}

/* Fibers that are alike become neighbours. */
static int by_place(const void *a, const void *b) {
    const struct fiber_seen *x = a, *y = b;
    if ((x->state == IS_RUNNING) != (y->state == IS_RUNNING)) return x->state == IS_RUNNING ? -1 : 1;
    if (x->state != y->state) return x->state < y->state ? -1 : 1;
    if (x->reason != y->reason) return x->reason < y->reason ? -1 : 1;
    if (x->moves != y->moves) return x->moves < y->moves ? -1 : 1;
    if (x->fn != y->fn) return x->fn < y->fn ? -1 : 1;
    if (x->frames != y->frames) return x->frames < y->frames ? -1 : 1;
    int order = x->frames == 0 ? 0 : memcmp(x->frame, y->frame, x->frames * sizeof x->frame[0]);
    if (order != 0) return order;
    if (x->doubt.guessed != y->doubt.guessed) return x->doubt.guessed < y->doubt.guessed ? -1 : 1;
    return x->slot < y->slot ? -1 : 1;
}

/* Those in the same scope become neighbours; in none: first. */
static int by_scope(const void *a, const void *b) {
    const struct fiber_seen *x = a, *y = b;
    if (x->scope != y->scope) return x->scope < y->scope ? -1 : 1;
    if ((x->state == IS_RUNNING) != (y->state == IS_RUNNING)) return x->state == IS_RUNNING ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static int by_slot(const void *a, const void *b) {
    const struct fiber_seen *x = a, *y = b;
    if ((x->state == IS_RUNNING) != (y->state == IS_RUNNING)) return x->state == IS_RUNNING ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

struct group {
    struct fiber_seen *first;
    size_t count;
};

/* Those that run, then the largest. */
static int by_size(const void *a, const void *b) {
    const struct group *x = a, *y = b;
    bool x_runs = x->first->state == IS_RUNNING, y_runs = y->first->state == IS_RUNNING;
    if (x_runs != y_runs) return x_runs ? -1 : 1;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->first->slot < y->first->slot ? -1 : 1;
}

static void print_group(const struct group *g, uint64_t now) {
    struct fiber_seen *f = g->first;
    bool differ = false;
    if (g->count > 1)
        printf("%zu fibers, %s%s%s:\n", g->count, describe_state(f->state), f->state == IS_PARKED ? ", " : "",
               f->state == IS_PARKED ? describe_reason(f->reason) : "");
    for (size_t i = 0; i < g->count && i < NAMED; i++) print_line(&f[i], now, g->count > 1 ? "  " : "");
    if (g->count > NAMED) printf("  and %zu more like them\n", g->count - NAMED);
    for (size_t i = 1; i < g->count; i++) differ = differ || f[i].site != f->site;
    print_place(f, differ, "    ");
}

static void print_groups(struct fiber_seen *fibers, size_t count, uint64_t now) {
    struct group *groups = grow(NULL, count + 1, sizeof *groups);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (n == 0 || !alike(groups[n - 1].first, &fibers[i])) groups[n++] = (struct group){&fibers[i], 0};
        groups[n - 1].count++;
    }
    qsort(groups, n, sizeof *groups, by_size);
    for (size_t i = 0; i < n; i++) print_group(&groups[i], now);
    free(groups);
}

/* ---- scopes: found through the fibers that are in them or wait for them ---- */

static struct scope_seen *scopes;
static size_t scope_count;
static uint16_t scope_table[4 * SCOPES_MAX]; /* by address: the number of a scope + 1, or 0 */

_Static_assert(SCOPES_MAX < UINT16_MAX, "numbers fit");

/* Its place in the table, or the free one where it belongs. */
static uint16_t *scope_place(uint64_t at) {
    size_t i = (size_t)((at >> 4) * 0x9e3779b97f4a7c15u >> 40) % array_len(scope_table);
    while (scope_table[i] != 0 && scopes[scope_table[i] - 1].at != at) i = (i + 1) % array_len(scope_table);
    return &scope_table[i];
}

static struct scope_seen *find_scope(uint64_t at) {
    uint16_t number = *scope_place(at);
    return number != 0 ? &scopes[number - 1] : NULL;
}

/* The scope, and all above it. */
static void know_scope(uint64_t at) {
    while (at != 0 && scope_count < SCOPES_MAX && find_scope(at) == NULL) {
        bool found;
        struct scope_seen s = runtime_scope(at, &found);
        if (!found) return;
        if (scopes == NULL) scopes = grow(NULL, SCOPES_MAX, sizeof *scopes);
        scopes[scope_count] = s;
        *scope_place(at) = (uint16_t)++scope_count;
        at = s.parent;
    }
}

static void find_scopes(const struct fiber_seen *fibers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (waits_for_nursery(&fibers[i])) know_scope(fibers[i].object);
        if (fibers[i].scope == 0) continue;
        know_scope(fibers[i].scope);
        struct scope_seen *s = find_scope(fibers[i].scope);
        if (s != NULL) s->members++;
    }
}

static void print_scope(const struct scope_seen *s, uint64_t now, unsigned depth) {
    printf("  %*s%s%s%s%s (%#lx): %u child%s, %u fiber%s in it%s", (int)(2 * depth), "",
           s->nursery ? "nursery" : "scope", cc__quoted(s->name), (unsigned long)s->at, s->children,
           s->children == 1 ? "" : "ren", s->members, plural(s->members), s->cancelled ? ", cancelled" : "");
    if (s->deadline != UINT64_MAX && s->deadline > now)
        printf(", deadline in %.3g s", (double)(s->deadline - now) * 1e-9);
    else if (s->deadline != UINT64_MAX)
        printf(", deadline passed %.3g s ago", (double)(now - s->deadline) * 1e-9);
    printf("\n");
}

/* Where the fibers of a scope begin, among those that are sorted by scope. */
static size_t first_in(uint64_t scope, const struct fiber_seen *fibers, size_t count) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fibers[middle].scope < scope)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Those right below `parent`, each with what is below it; with its fibers, if these are given. A damaged tree may be a
 * circle: `left` bounds the walk. */
static void print_scopes(uint64_t parent, unsigned depth, struct fiber_seen *fibers, size_t count, uint64_t now,
                         size_t *left) {
    for (size_t i = 0; i < scope_count && depth<DEPTH_MAX && * left> 0; i++) {
        if (scopes[i].parent != parent) continue;
        char indent[2 * DEPTH_MAX + 8];
        --*left;
        print_scope(&scopes[i], now, depth);
        snprintf(indent, sizeof indent, "%*s", (int)(2 * depth + 4), "");
        for (size_t j = first_in(scopes[i].at, fibers, count); j < count && fibers[j].scope == scopes[i].at; j++)
            print_line(&fibers[j], now, indent);
        print_scopes(scopes[i].at, depth + 1, fibers, count, now, left);
    }
}

static void print_tree(struct fiber_seen *fibers, size_t count, uint64_t now) {
    size_t left = scope_count, elsewhere = 0;
    if (scope_count > 0) printf("nurseries and scopes:\n");
    print_scopes(0, 0, fibers, count, now, &left);
    if (count > 0 && fibers[0].scope == 0) printf("in none:\n");
    for (size_t i = 0; i < count && fibers[i].scope == 0; i++) print_line(&fibers[i], now, "  ");
    for (size_t i = 0; i < count; i++) elsewhere += fibers[i].scope != 0 && find_scope(fibers[i].scope) == NULL;
    if (elsewhere > 0) printf("%zu fiber%s in scopes that are left out\n", elsewhere, plural(elsewhere));
}

/* ---- all ---- */

static void put_blocked(FILE *out, uint64_t now) {
    struct blocked_seen seen[BLOCKED_SHOWN];
    unsigned n = runtime_blocked(seen, BLOCKED_SHOWN);
    for (unsigned i = 0; i < n; i++) {
        char wait[DESCRIBED_MAX], since[80];
        describe_wait(seen[i].reason, seen[i].object, wait, sizeof wait);
        describe_since(seen[i].since, seen[i].since, now, since, sizeof since);
        fprintf(out, "OS thread %d waits %s, %s\n", seen[i].tid, wait, since);
    }
}

/* All that was read of the target, but for the fibers. */
static struct {
    char *head, *workers, *blocked;
    uint64_t now;
} collected;

static FILE *open_text(char **text) {
    static size_t size;
    FILE *file = open_memstream(text, &size);
    if (file == NULL) fail("out of memory");
    return file;
}

static void close_text(FILE *file) {
    if (fclose(file) != 0) fail("out of memory");
}

static void put_head(FILE *out, size_t count) {
    static const char left_out[] = ": the core file does not have them (gcore leaves them out; the system's own core "
                                   "files have them, and those of the command \"cc gcore\" in gdb)";
    unsigned workers = runtime_open();
    fprintf(out, "%s: %u worker%s, %zu fiber%s\n", target_name(), workers, plural(workers), count, plural(count));
    if (!runtime_now_is_exact()) fprintf(out, "times are up to the moment when a worker last looked at the clock\n");
    if (runtime_unread() > 0)
        fprintf(out, "%lu records of fibers cannot be read%s\n", (unsigned long)runtime_unread(),
                target_pid() == 0 ? left_out : "");
    else if (target_pid() == 0 && runtime_active() > count) /* where there were records are zeros */
        fprintf(out, "%lu fibers are missing%s\n", (unsigned long)(runtime_active() - count), left_out);
}

static void collect(struct fiber_seen *fibers, size_t count, bool lines) {
    FILE *out;
    uint64_t now = collected.now = runtime_now();
    describe_among(fibers, count);
    for (size_t i = 0; lines && i < count; i++) put_into_words(&fibers[i], now);
    find_scopes(fibers, count);
    put_head(out = open_text(&collected.head), count);
    close_text(out);
    put_workers(out = open_text(&collected.workers));
    close_text(out);
    put_blocked(out = open_text(&collected.blocked), now);
    close_text(out);
}

void show_collect(struct fiber_seen *fibers, size_t count) {
    collect(fibers, count, true);
}

void show_all(struct fiber_seen *fibers, size_t count, enum show how) {
    if (collected.head == NULL) collect(fibers, count, false);
    uint64_t now = collected.now;
    size_t left = scope_count;
    fputs(collected.head, stdout);
    if (target_went_on()) printf("it was let go on before all of it was read: what follows is not of one moment\n");
    fputs(collected.workers, stdout);
    for (size_t i = 0; i < count; i++) trim(&fibers[i]);
    if (count > 0)
        qsort(fibers, count, sizeof *fibers, how == SHOW_GROUPS ? by_place : how == SHOW_TREE ? by_scope : by_slot);
    describe_among(fibers, count); /* they are in other places now */
    if (how == SHOW_TREE) {
        print_tree(fibers, count, now);
    } else {
        if (scope_count > 0) printf("nurseries and scopes:\n");
        print_scopes(0, 0, NULL, 0, now, &left);
    }
    if (how == SHOW_GROUPS) print_groups(fibers, count, now);
    for (size_t i = 0; how == SHOW_EACH && i < count; i++) print_group(&(struct group){&fibers[i], 1}, now);
    fputs(collected.blocked, stdout);
}
