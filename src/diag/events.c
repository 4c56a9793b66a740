/* events.c - the last events that the recorder has, in the reports of the runtime. */
#include "diag/dump.h"
#include "record/record.h"
#include "sched/upcalls.h"

enum { SHOWN = 24 };

struct into {
    struct out *out;
    const char *indent;
};

static void print_line(void *arg, const char *line) {
    struct into *into = arg;
    cc__out(into->out, "%s%s\n", into->indent, line);
}

void cc__dump_events(struct out *out, unsigned worker, const char *indent) {
    char inner[16];
    struct into into = {out, inner};
    if (!cc__recorder_on() || worker >= RECORDER_OTHERS) return;
    (void)snprintf(inner, sizeof inner, "%.8s  ", indent);
    cc__out(out, "%sthe last events of worker %u, the newest last:\n", indent, worker);
    if (!cc__record_last(worker, SHOWN, print_line, &into)) cc__out(out, "%snone\n", inner);
}

void cc__dump_events_all(struct out *out) {
    for_all_workers(i, w) cc__dump_events(out, i, "");
}

static void print_last(void) {
    struct worker *w = cc__worker();
    struct out out = {0};
    if (w == NULL || !cc__recorder_on()) return;
    cc__dump_events(&out, w->core.owner - 1, "  ");
    cc__out_flush(&out);
}

void cc__upcall_panicked(void) {
    print_last();
    cc__record_ask(false);
}

static _Atomic bool dying; /* cc__upcall_dies has asked for the file */

void cc__upcall_dies(void) {
    print_last();
    cc__record_ask(true);
    cc__set(&dying, true);
}

void cc__upcall_aborts(void) {
    if (!cc__get(&dying)) cc__record_ask(true);
}
