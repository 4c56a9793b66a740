/* cc-trace.c - reads a trace that libccc has recorded (cc_record.h, CC_RECORD=file) and shows where the time was spent,
 * as text or as a picture. */
#include "trace.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what happened ---- */

enum state { UNBORN, READY, RUNNING, WAITING, ENDED, STATES };

struct fiber {
    enum state state;
    uint64_t since, thread;
    uint64_t sum[STATES];
    uint64_t longest_ready;
    uint64_t created, ended; /* 0: not in this trace */
    uint64_t function;       /* a stack */
    uint64_t label;          /* a string, 0: none: of one that was started before the trace */
    uint64_t reason, stack;  /* of the wait */
    uint64_t turns;
    size_t kind; /* in kinds */
};

/* Fibers of one function. */
struct kind {
    char name[160];
    uint64_t count, turns, sum[STATES], longest_ready, longest_run;
};

/* Waits for one reason in one place. */
struct wait {
    uint64_t kind, reason, stack;
    uint64_t count, sum, longest;
};

/* A piece of a timeline. */
struct slice {
    uint64_t from, to, fiber, thread; /* RUNNING: thread */
    enum state state;
    uint64_t reason;
};

static LIST(struct fiber) fibers;
static LIST(struct kind) kinds;
static LIST(struct wait) waits;
static LIST(struct slice) slices;
static uint64_t begin, end, wakes, spawns, notes;

static struct fiber *fiber(uint64_t id) {
    if (id == 0 || id >= numbers_max) die("a fiber's number is damaged");
    while (fibers.count <= id) (void)ADD(fibers);
    return &fibers.at[id];
}

static size_t kind_of(struct fiber *f) {
    char name[160];
    if (place(f->function, name, sizeof name)[0] == '\0') {
        snprintf(name, sizeof name, "%s", f->label != 0 ? string(f->label) : "(started before the trace)");
        char *own = strstr(name, " '"); /* its own name, after its function */
        if (own != NULL && own != name) *own = '\0';
    }
    for (size_t i = 0; i < kinds.count; i++)
        if (strcmp(kinds.at[i].name, name) == 0) return i;
    struct kind *k = ADD(kinds);
    memcpy(k->name, name, sizeof name);
    return kinds.count - 1;
}

static void add_wait(struct fiber *f, uint64_t ns) {
    size_t i = 0;
    while (i < waits.count &&
           (waits.at[i].kind != f->kind || waits.at[i].reason != f->reason || waits.at[i].stack != f->stack))
        i++;
    if (i == waits.count) *ADD(waits) = (struct wait){.kind = f->kind, .reason = f->reason, .stack = f->stack};
    waits.at[i].count++;
    waits.at[i].sum += ns;
    if (ns > waits.at[i].longest) waits.at[i].longest = ns;
}

static void change(uint64_t id, uint64_t now, enum state state) {
    struct fiber *f = fiber(id);
    uint64_t ns = now - f->since;
    if (f->state != UNBORN && f->state != ENDED) {
        struct kind *k = &kinds.at[f->kind];
        f->sum[f->state] += ns;
        k->sum[f->state] += ns;
        if (f->state == READY && ns > f->longest_ready) f->longest_ready = ns;
        if (f->state == READY && ns > k->longest_ready) k->longest_ready = ns;
        if (f->state == RUNNING && ns > k->longest_run) k->longest_run = ns;
        if (f->state == WAITING) add_wait(f, ns);
        *ADD(slices) = (struct slice){f->since, now, id, f->thread, f->state, f->state == WAITING ? f->reason : 0};
    }
    f = fiber(id);
    f->state = state;
    f->since = now;
}

static void introduce(uint64_t id, uint64_t function) {
    struct fiber *f = fiber(id);
    f->function = function;
    f->kind = kind_of(f);
    kinds.at[f->kind].count++;
}

static int by_time(const void *a, const void *b) {
    const struct event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The running fiber of each thread. */
static LIST(uint64_t) running;

static uint64_t *running_on(uint64_t thread) {
    if (thread >= 4096) die("a thread's number is damaged");
    while (running.count <= thread) (void)ADD(running);
    return &running.at[thread];
}

static void leave(const struct event *e, enum state state) {
    uint64_t *here = running_on(e->thread);
    if (*here == 0) return;
    struct fiber *f = fiber(*here);
    if (state == WAITING) {
        change(*here, e->time, state);
        f = fiber(*here);
        f->reason = e->arg[0];
        f->stack = e->arg[1];
    } else {
        change(*here, e->time, state);
        if (state == ENDED) fiber(*here)->ended = e->time;
    }
    *here = 0;
}

static void follow(const struct event *e) {
    switch (e->type) {
    case EV_GO_CREATE:
        introduce(e->arg[0], e->arg[1]);
        fiber(e->arg[0])->created = e->time;
        change(e->arg[0], e->time, READY);
        spawns++;
        break;
    case EV_GO_STATUS:
        introduce(e->arg[0], 0);
        change(e->arg[0], e->time, e->arg[2] == 4 ? WAITING : e->arg[2] == 2 ? RUNNING : READY);
        break;
    case EV_GO_START:
        if (fiber(e->arg[0])->state != READY) die("fiber %" PRIu64 " starts, and is not ready", e->arg[0]);
        change(e->arg[0], e->time, RUNNING);
        fiber(e->arg[0])->thread = e->thread;
        fiber(e->arg[0])->turns++;
        kinds.at[fiber(e->arg[0])->kind].turns++;
        *running_on(e->thread) = e->arg[0];
        break;
    case EV_GO_BLOCK:
        leave(e, WAITING);
        break;
    case EV_GO_STOP:
        leave(e, READY);
        break;
    case EV_GO_DESTROY:
        leave(e, ENDED);
        break;
    case EV_GO_UNBLOCK:
        if (fiber(e->arg[0])->state == WAITING) change(e->arg[0], e->time, READY);
        wakes++;
        break;
    case EV_USER_LOG:
        notes++;
        break;
    default:
        break;
    }
}

/* A label follows upon the first start of its fiber, on the same thread. */
static void find_labels(void) {
    for (size_t i = 0; i < events.count; i++) {
        const struct event *e = &events.at[i];
        if (e->type == EV_GO_START)
            *running_on(e->thread) = e->arg[0];
        else if (e->type == EV_GO_LABEL && *running_on(e->thread) != 0)
            fiber(*running_on(e->thread))->label = e->arg[0];
    }
    for (size_t i = 0; i < running.count; i++) running.at[i] = 0;
}

static void follow_all(void) {
    qsort(events.at, events.count, sizeof events.at[0], by_time);
    find_labels();
    begin = events.count > 0 ? events.at[0].time : 0;
    end = events.count > 0 ? events.at[events.count - 1].time : 0;
    for (size_t i = 0; i < events.count; i++) follow(&events.at[i]);
    for (size_t id = 2; id < fibers.count; id++)
        if (fibers.at[id].state != UNBORN && fibers.at[id].state != ENDED) change(id, end, fibers.at[id].state);
}

/* ---- the summary ---- */

static const char *duration(uint64_t ns, char text[24]) {
    double t = (double)ns;
    if (ns < 1000)
        snprintf(text, 24, "%" PRIu64 " ns", ns);
    else if (ns < 1000000)
        snprintf(text, 24, "%.3g us", t / 1e3);
    else if (ns < 1000000000)
        snprintf(text, 24, "%.3g ms", t / 1e6);
    else
        snprintf(text, 24, "%.3g s", t / 1e9);
    return text;
}
#define DURATION(ns) duration((ns), (char[24]){0})

static int kind_order(const void *a, const void *b) {
    const struct kind *x = &kinds.at[*(const size_t *)a], *y = &kinds.at[*(const size_t *)b];
    if (x->sum[RUNNING] != y->sum[RUNNING]) return x->sum[RUNNING] < y->sum[RUNNING] ? 1 : -1;
    return strcmp(x->name, y->name);
}

static int wait_order(const void *a, const void *b) {
    const struct wait *x = a, *y = b;
    return x->sum < y->sum ? 1 : x->sum > y->sum ? -1 : 0;
}

static void print_kinds(size_t top) {
    size_t *order = calloc(kinds.count + 1, sizeof *order), n = 0;
    if (order == NULL) die("there is no memory");
    for (size_t i = 0; i < kinds.count; i++)
        if (kinds.at[i].turns > 0 || kinds.at[i].sum[WAITING] > 0) order[n++] = i;
    qsort(order, n, sizeof *order, kind_order);
    printf("\nfibers by function: how often they ran, and how long they ran, were ready and waited, added up\n");
    printf("%8s %9s %10s %10s %10s %12s %12s  %s\n", "fibers", "turns", "ran", "ready", "waited", "longest turn",
           "longest ready", "function");
    for (size_t i = 0; i < n && i < top; i++) {
        const struct kind *k = &kinds.at[order[i]];
        printf("%8" PRIu64 " %9" PRIu64 " %10s %10s %10s %12s %12s   %s\n", k->count, k->turns,
               DURATION(k->sum[RUNNING]), DURATION(k->sum[READY]), DURATION(k->sum[WAITING]), DURATION(k->longest_run),
               DURATION(k->longest_ready), k->name);
    }
    free(order);
}

static void print_waits(size_t top) {
    qsort(waits.at, waits.count, sizeof waits.at[0], wait_order);
    printf("\nwaits by function, reason and place\n%10s %9s %10s  %s\n", "waited", "times", "longest", "what");
    for (size_t i = 0; i < waits.count && i < top; i++) {
        char where[200];
        const struct wait *w = &waits.at[i];
        const char *reason = string(w->reason);
        place(w->stack, where, sizeof where);
        printf("%10s %9" PRIu64 " %10s  %s: %s%s%s\n", DURATION(w->sum), w->count, DURATION(w->longest),
               kinds.at[w->kind].name, reason[0] != '\0' ? reason : "not known", where[0] != '\0' ? ", in " : "",
               where);
    }
}

static void print_threads(void) {
    uint64_t *sum = calloc(running.count + 1, sizeof *sum), span = end > begin ? end - begin : 1;
    if (sum == NULL) die("there is no memory");
    for (size_t i = 0; i < slices.count; i++)
        if (slices.at[i].state == RUNNING && slices.at[i].thread < running.count)
            sum[slices.at[i].thread] += slices.at[i].to - slices.at[i].from;
    printf("\nworkers\n");
    for (size_t i = 1; i < running.count; i++)
        if (sum[i] > 0)
            printf("%8zu  ran fibers for %s, %.0f %%\n", i - 1, DURATION(sum[i]),
                   100.0 * (double)sum[i] / (double)span);
    free(sum);
}

/* The recorder notes what its rings have overwritten. */
static void print_lost(void) {
    static const char last[] = " are lost";
    for (size_t i = 0; i < events.count; i++) {
        const struct event *e = &events.at[i];
        if (e->type != EV_USER_LOG || strcmp(string(e->arg[1]), "ccc") != 0) continue;
        const char *text = string(e->arg[2]);
        size_t n = strlen(text);
        if (n > sizeof last && strcmp(text + n - (sizeof last - 1), last) == 0) printf("  %s\n", text);
    }
}

static void print_summary(const char *path, size_t top) {
    uint64_t count = 0, turns = 0;
    for (size_t i = 0; i < kinds.count; i++) count += kinds.at[i].count, turns += kinds.at[i].turns;
    if (fibers.count > 1 && fibers.at[1].state != UNBORN) count--; /* the threads that are not workers */
    printf("%s: %s, %zu events: %" PRIu64 " fibers, %" PRIu64 " spawned, %" PRIu64 " turns, %" PRIu64 " wakes, %" PRIu64
           " notes\n",
           path, DURATION(end - begin), events.count, count, spawns, turns, wakes, notes);
    print_lost();
    print_threads();
    print_kinds(top);
    print_waits(top);
}

/* ---- the picture ---- */

enum { WIDTH = 1200, LEFT = 190, ROW = 22, ROWS_MAX = 60 };

static void escape(const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '<')
            fputs("&lt;", stdout);
        else if (*text == '&')
            fputs("&amp;", stdout);
        else if (*text == '"')
            fputs("&quot;", stdout);
        else
            putchar(*text);
    }
}

static double x_of(uint64_t time) {
    return LEFT + (double)(time - begin) * (WIDTH - LEFT - 10) / (double)(end > begin ? end - begin : 1);
}

static const char *const colours[] = {"#4878a8", "#c0703c", "#5a9a5a", "#a8566e",
                                      "#7a68a6", "#8a7348", "#4a9aa0", "#8c8c3c"};

static void bar(const struct slice *s, unsigned row, const char *class, const char *colour, const char *what) {
    double x = x_of(s->from), width = x_of(s->to) - x;
    printf("<rect class=\"%s\" x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\"", class, x, row * ROW + 4,
           width < 0.4 ? 0.4 : width, ROW - 6);
    if (colour != NULL) printf(" fill=\"%s\"", colour);
    printf("><title>");
    escape(what);
    printf(", %s</title></rect>\n", DURATION(s->to - s->from));
}

static void label(unsigned row, const char *text) {
    printf("<text x=\"6\" y=\"%u\">", row * ROW + 17);
    escape(text);
    printf("</text>\n");
}

/* A row for each fiber, as far as they fit; then one for each worker that ran some of them. */
static void print_picture(void) {
    unsigned rows = 0, hidden = 0, *row_of = calloc(fibers.count + 1, sizeof *row_of);
    unsigned workers = 0, *worker_row = calloc(running.count + 1, sizeof *worker_row);
    char text[200];
    if (row_of == NULL || worker_row == NULL) die("there is no memory");
    for (size_t id = 2; id < fibers.count; id++) {
        if (fibers.at[id].state == UNBORN || (fibers.at[id].turns == 0 && fibers.at[id].sum[WAITING] == 0)) continue;
        if (rows == ROWS_MAX)
            hidden++;
        else
            row_of[id] = ++rows;
    }
    for (size_t i = 0; i < slices.count; i++) {
        const struct slice *s = &slices.at[i];
        if (s->fiber >= 2 && s->state == RUNNING && s->thread >= 1 && s->thread < running.count)
            worker_row[s->thread] = 1;
    }
    for (size_t i = 1; i < running.count; i++)
        if (worker_row[i] != 0) worker_row[i] = rows + ++workers;
    unsigned height = (rows + workers + 3) * ROW;
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\">\n", WIDTH,
           height, WIDTH, height);
    printf("<style>text{font:12px sans-serif;fill:#333}.ready{fill:#e8c95c}.wait{fill:#d8d8d8}.back{fill:#fff}"
           "@media(prefers-color-scheme:dark){text{fill:#ccc}.wait{fill:#484848}.back{fill:#1c1c1c}}</style>\n");
    printf("<rect class=\"back\" width=\"%d\" height=\"%u\"/>\n", WIDTH, height);
    snprintf(text, sizeof text, "%s, from left to right. Colour: runs; yellow: ready; grey: waits.",
             DURATION(end - begin));
    label(0, text);
    for (size_t id = 2; id < fibers.count; id++) {
        if (row_of[id] == 0) continue;
        snprintf(text, sizeof text, "%.28s", kinds.at[fibers.at[id].kind].name);
        label(row_of[id], text);
    }
    for (size_t i = 1; i < running.count; i++) {
        snprintf(text, sizeof text, "worker %zu", i - 1);
        if (worker_row[i] != 0) label(worker_row[i], text);
    }
    for (size_t i = 0; i < slices.count; i++) {
        const struct slice *s = &slices.at[i];
        const char *name = kinds.at[fibers.at[s->fiber].kind].name;
        const char *colour = colours[fibers.at[s->fiber].kind % (sizeof colours / sizeof colours[0])];
        if (s->fiber < 2) continue;
        if (row_of[s->fiber] != 0 && s->state == WAITING)
            bar(s, row_of[s->fiber], "wait", NULL, string(s->reason));
        else if (row_of[s->fiber] != 0)
            bar(s, row_of[s->fiber], s->state == READY ? "ready" : "run", s->state == READY ? NULL : colour,
                s->state == READY ? "ready" : name);
        if (s->state == RUNNING && s->thread < running.count && worker_row[s->thread] != 0)
            bar(s, worker_row[s->thread], "run", colour, name);
    }
    if (hidden > 0) {
        snprintf(text, sizeof text, "and %u more fibers", hidden);
        label(rows + workers + 1, text);
    }
    printf("</svg>\n");
    free(row_of);
    free(worker_row);
}

/* ---- the program ---- */

static void usage(FILE *to) {
    fputs("cc-trace [-n COUNT] [-s] FILE\n"
          "  says where the time went in a trace that libccc has recorded: CC_RECORD=FILE ./program\n"
          "  -n COUNT  so many rows of each table (20)\n"
          "  -s        draws it instead: SVG, on standard output\n",
          to);
}

int main(int argc, char **argv) {
    bool picture = false;
    size_t top = 20;
    for (int option; (option = getopt(argc, argv, "n:sh")) != -1;) {
        char *rest;
        switch (option) {
        case 'n':
            top = strtoull(optarg, &rest, 10);
            if (*rest != '\0' || top == 0) {
                usage(stderr);
                return 2;
            }
            break;
        case 's':
            picture = true;
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }
    if (optind + 1 != argc) {
        usage(stderr);
        return 2;
    }
    read_trace(argv[optind]);
    follow_all();
    if (picture)
        print_picture();
    else
        print_summary(argv[optind], top);
    if (fflush(stdout) != 0 || ferror(stdout)) die("standard output: %s", strerror(errno));
    return 0;
}
