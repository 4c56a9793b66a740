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
enum { SCOPES_SHOWN = 40, MEMBERS_SHOWN = 40 }; /* of many: a screen */

static bool in_groups(enum show how) {
    return how == SHOW_GROUPS || how == SHOW_MANY;
}

static const char *plural(uint64_t n) {
    return n == 1 ? "" : "s";
}

/* ---- frames ---- */

static const struct stack_seen nowhere;

static const struct stack_seen *stack_of(const struct fiber_seen *f) {
    return f->stack != NULL ? f->stack : &nowhere;
}

/* Without what is the library's own at both ends: of a fiber that waits, what its call does inside; of all, what every
 * stack begins with. */
static const struct stack_seen *without_own(const struct stack_seen *p, bool runs) {
    unsigned first = 0, end;
    struct doubt doubt = p->doubt;
    if (!runs)
        while (first < p->frames && modules_owner((uintptr_t)p->frame[first]) == OWNER_LIBRARY) first++;
    if (first == p->frames) first = 0; /* nothing would be left */
    for (end = first; end < p->frames && modules_owner((uintptr_t)p->frame[end]) != OWNER_SCHEDULER;) end++;
    if (end < p->frames) doubt.cut = false; /* nothing that is shown is missing */
    doubt.guessed >>= first;
    return stack_with(p->frame + first, end - first, doubt);
}

static void trim(struct fiber_seen *f) {
    struct stack_seen *p = (struct stack_seen *)(uintptr_t)f->stack;
    bool runs = f->state == IS_RUNNING;
    if (p == NULL) return;
    if (p->trimmed[runs] == NULL) p->trimmed[runs] = without_own(p, runs);
    f->stack = p->trimmed[runs];
}

static void print_frames(const struct fiber_seen *f, const char *indent) {
    const struct stack_seen *p = stack_of(f);
    for (unsigned i = 0; i < p->frames; i++) {
        char text[400];
        modules_name((uintptr_t)p->frame[i], text, sizeof text);
        printf("%s#%u %s%s\n", indent, i, p->doubt.guessed >> i & 1 ? "? " : "", text);
    }
    if (p->frames > 0 && p->doubt.cut) printf("%s? no unwind information leads further up\n", indent);
}

/* ---- workers ---- */

static void put_workers(FILE *out) {
    for_workers(i) {
        struct worker_seen w = runtime_worker(i);
        char name[256] = "", island[NAME_MAX_SEEN];
        runtime_island((int)i, island);
        if (island[0] != '\0' && !w.open) continue;
        if (w.current != 0) describe_record(w.current, name, sizeof name);
        if (island[0] != '\0')
            fprintf(out, "island '%s' (worker %u, thread %d)", island, i, w.tid);
        else if (w.open)
            fprintf(out, "worker %u (thread %d)", i, w.tid);
        else
            fprintf(out, "worker %u", i);
        fprintf(out, " %s%s; %u in its queue, %u in its inbox, %u timer%s, %lu turn%s\n",
                w.current != 0 ? "runs "
                : island[0]    ? "has nothing to run"
                : !w.open      ? "has no thread now"
                : w.asleep     ? "sleeps"
                               : "looks for work",
                name, w.queued, w.inbox, w.timers, plural(w.timers), (unsigned long)w.turns, plural(w.turns));
    }
    fprintf(out, "global queue: %lu\n", (unsigned long)runtime_global_queue());
}

/* ---- one fiber, or several that stand in the same place ---- */

static void put_into_words(struct fiber_seen *f, uint64_t now) {
    char who[256], wait[DESCRIBED_MAX] = "", since[80] = "";
    const char *how = f->moves                                 ? "keeps changing state (no consistent snapshot)"
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
    if (stack_of(f)->frames == 0 && f->fn != 0) {
        modules_name(f->fn + 1, text, sizeof text);
        printf("%sits function is %s\n", indent, text);
    }
    print_frames(f, indent);
}

/* Sorts by scope; fibers in none come first. */
static int by_scope(const void *a, const void *b) {
    const struct fiber_seen *x = *(struct fiber_seen *const *)a, *y = *(struct fiber_seen *const *)b;
    if (x->scope != y->scope) return x->scope < y->scope ? -1 : 1;
    if ((x->state == IS_RUNNING) != (y->state == IS_RUNNING)) return x->state == IS_RUNNING ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static size_t hash_of(const struct fiber_seen *f) {
    uint64_t hash = ((uintptr_t)f->stack ^ f->fn) * 0x9e3779b97f4a7c15u;
    return (size_t)((hash ^ (uint64_t)f->state << 8 ^ f->reason ^ (uint64_t)f->moves << 16) * 0x9e3779b97f4a7c15u >>
                    20);
}

/* Fibers with the same stack. */
struct group {
    struct fiber_seen *named[NAMED]; /* the first of them */
    size_t count;
    bool sites_differ;
};

static bool alike(const struct fiber_seen *a, const struct fiber_seen *b) {
    return a->state == b->state && a->reason == b->reason && a->moves == b->moves && a->fn == b->fn &&
           a->stack == b->stack;
}

/* Those that run, then the largest. */
static int by_size(const void *a, const void *b) {
    const struct group *x = a, *y = b;
    bool x_runs = x->named[0]->state == IS_RUNNING, y_runs = y->named[0]->state == IS_RUNNING;
    if (x_runs != y_runs) return x_runs ? -1 : 1;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->named[0]->slot < y->named[0]->slot ? -1 : 1;
}

static void join(struct group *g, struct fiber_seen *f) {
    if (g->count < NAMED) g->named[g->count] = f;
    g->count++;
    g->sites_differ = g->sites_differ || f->site != g->named[0]->site;
}

/* All groups, in the order of their first fibers; the caller frees them. */
static struct group *find_groups(struct fiber_seen *fibers, size_t count, size_t *groups) {
    struct group *all = NULL;
    size_t room = 1024, n = 0, *table = NULL; /* by a hash: the number of a group + 1, or 0 */
    for (size_t i = 0; i < count; i++) {
        struct fiber_seen *f = &fibers[i];
        if (table == NULL || 2 * n >= room) {
            table = grow(table, room *= 2, sizeof *table);
            memset(table, 0, room * sizeof *table);
            for (size_t g = 0; g < n; g++) {
                size_t at = hash_of(all[g].named[0]) & (room - 1);
                while (table[at] != 0) at = (at + 1) & (room - 1);
                table[at] = g + 1;
            }
        }
        size_t at = hash_of(f) & (room - 1);
        while (table[at] != 0 && !alike(all[table[at] - 1].named[0], f)) at = (at + 1) & (room - 1);
        if (table[at] == 0) {
            if ((n & (n - 1)) == 0) all = grow(all, n != 0 ? 2 * n : 1, sizeof *all);
            all[n] = (struct group){.count = 0};
            table[at] = ++n;
        }
        join(&all[table[at] - 1], f);
    }
    free(table);
    *groups = n;
    return all;
}

static void print_group(const struct group *g, uint64_t now) {
    struct fiber_seen *f = g->named[0];
    if (g->count > 1)
        printf("%zu fibers, %s%s%s:\n", g->count, describe_state(f->state), f->state == IS_PARKED ? ", " : "",
               f->state == IS_PARKED ? describe_reason(f->reason) : "");
    for (size_t i = 0; i < g->count && i < NAMED; i++) print_line(g->named[i], now, g->count > 1 ? "  " : "");
    if (g->count > NAMED) printf("  and %zu more like them\n", g->count - NAMED);
    print_place(f, g->sites_differ, "    ");
}

static void print_groups(struct fiber_seen *fibers, size_t count, uint64_t now) {
    size_t n;
    struct group *groups = find_groups(fibers, count, &n);
    if (n > 1) qsort(groups, n, sizeof *groups, by_size);
    for (size_t i = 0; i < n; i++) print_group(&groups[i], now);
    free(groups);
}

/* One by one: those that run first, each of the two in the order of their slots. */
static void print_each(struct fiber_seen *fibers, size_t count, uint64_t now) {
    for (int runs = 1; runs >= 0; runs--)
        for (size_t i = 0; i < count; i++)
            if ((fibers[i].state == IS_RUNNING) == runs) print_group(&(struct group){{&fibers[i]}, 1, false}, now);
}

/* ---- scopes: found through the fibers that are in them or wait for them ---- */

static size_t members_shown = SIZE_MAX; /* of one scope */
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
static size_t first_in(uint64_t scope, struct fiber_seen *const *fibers, size_t count) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fibers[middle]->scope < scope)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The fibers of a scope. */
static void print_members(uint64_t scope, struct fiber_seen *const *fibers, size_t count, uint64_t now,
                          const char *indent) {
    size_t first = first_in(scope, fibers, count), end = first;
    for (; end < count && fibers[end]->scope == scope; end++)
        if (end - first < members_shown) print_line(fibers[end], now, indent);
    if (end - first > members_shown) printf("%sand %zu more\n", indent, end - first - members_shown);
}

/* Those right below `parent`, each with what is below it; with its fibers, if these are given. A damaged tree may have
 * a cycle: `left` bounds the walk. */
static void print_scopes(uint64_t parent, unsigned depth, struct fiber_seen *const *fibers, size_t count, uint64_t now,
                         size_t *left) {
    for (size_t i = 0; i < scope_count && depth<DEPTH_MAX && * left> 0; i++) {
        if (scopes[i].parent != parent) continue;
        char indent[2 * DEPTH_MAX + 8];
        --*left;
        scopes[i].shown = true;
        print_scope(&scopes[i], now, depth);
        snprintf(indent, sizeof indent, "%*s", (int)(2 * depth + 4), "");
        print_members(scopes[i].at, fibers, count, now, indent);
        print_scopes(scopes[i].at, depth + 1, fibers, count, now, left);
    }
}

static void print_rest(const struct fiber_seen *fibers, size_t count) {
    size_t elsewhere = 0;
    for (size_t i = 0; i < count; i++) {
        const struct scope_seen *s = fibers[i].scope != 0 ? find_scope(fibers[i].scope) : NULL;
        elsewhere += fibers[i].scope != 0 && (s == NULL || !s->shown);
    }
    if (elsewhere > 0) printf("%zu fiber%s in scopes that are left out\n", elsewhere, plural(elsewhere));
}

static void print_tree(struct fiber_seen *fibers, size_t count, uint64_t now) {
    size_t left = scope_count;
    struct fiber_seen **sorted = grow(NULL, count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++) sorted[i] = &fibers[i];
    if (count > 1) qsort(sorted, count, sizeof *sorted, by_scope);
    if (scope_count > 0) printf("nurseries and scopes:\n");
    print_scopes(0, 0, sorted, count, now, &left);
    if (count > 0 && sorted[0]->scope == 0) printf("in none:\n");
    print_members(0, sorted, count, now, "  ");
    print_rest(fibers, count);
    free(sorted);
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

/* Before the target continues: the texts for all fibers that will be shown. The first fibers of a group that is merged
 * when the library's own frames are dropped are among the first ones of the groups that it consists of. */
static void put_all_into_words(struct fiber_seen *fibers, size_t count, enum show how, uint64_t now) {
    if (!in_groups(how)) {
        for (size_t i = 0; i < count; i++) put_into_words(&fibers[i], now);
        return;
    }
    size_t n;
    struct group *groups = find_groups(fibers, count, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < groups[i].count && j < NAMED; j++) put_into_words(groups[i].named[j], now);
    free(groups);
}

static void collect(struct fiber_seen *fibers, size_t count, enum show how, bool lines) {
    FILE *out;
    uint64_t now = collected.now = runtime_now();
    describe_among(fibers, count);
    if (lines) put_all_into_words(fibers, count, how, now);
    find_scopes(fibers, count);
    put_head(out = open_text(&collected.head), count);
    close_text(out);
    put_workers(out = open_text(&collected.workers));
    close_text(out);
    put_blocked(out = open_text(&collected.blocked), now);
    close_text(out);
}

void show_collect(struct fiber_seen *fibers, size_t count, enum show how) {
    collect(fibers, count, how, true);
}

void show_all(struct fiber_seen *fibers, size_t count, enum show how) {
    if (collected.head == NULL) collect(fibers, count, how, false);
    uint64_t now = collected.now;
    size_t left = in_groups(how) ? SCOPES_SHOWN : scope_count;
    fputs(collected.head, stdout);
    if (target_went_on()) printf("it was let go on before all of it was read: what follows is not of one moment\n");
    if (how == SHOW_TREE_OF_MANY) printf("of each scope some are shown; -a shows each\n");
    if (how == SHOW_MANY) printf("those that stand in the same place are shown together; -a shows each\n");
    fputs(collected.workers, stdout);
    for (size_t i = 0; i < count; i++) trim(&fibers[i]);
    if (how == SHOW_TREE_OF_MANY) members_shown = MEMBERS_SHOWN;
    if (how == SHOW_TREE || how == SHOW_TREE_OF_MANY) {
        print_tree(fibers, count, now);
    } else {
        if (scope_count > 0) printf("nurseries and scopes:\n");
        print_scopes(0, 0, NULL, 0, now, &left);
        print_rest(fibers, count);
    }
    if (in_groups(how)) print_groups(fibers, count, now);
    if (how == SHOW_EACH) print_each(fibers, count, now);
    fputs(collected.blocked, stdout);
}
