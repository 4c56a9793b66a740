/* metrics.c - the counters for Prometheus: OpenMetrics 1.0 text. */
#include "live/live.h"

#include "base/mem.h"
#include "os/clock.h"
#include "os/thread.h"
#include "sched/inject.h"

#include <ccc/cc_diag.h>
#include <stdlib.h>
#include <string.h>

static void family(struct out *out, const char *name, const char *type, const char *help) {
    cc__out(out, "# TYPE ccc_%s %s\n# HELP ccc_%s %s\n", name, type, name, help);
}

static void counter(struct out *out, const char *name, uint64_t value, const char *help) {
    family(out, name, "counter", help);
    cc__out(out, "ccc_%s_total %llu\n", name, (unsigned long long)value);
}

static void gauge(struct out *out, const char *name, uint64_t value, const char *help) {
    family(out, name, "gauge", help);
    cc__out(out, "ccc_%s %llu\n", name, (unsigned long long)value);
}

/* Replaces characters that are not printable ASCII. */
static void make_plain(char *text) {
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~') *text = '?';
}

/* Escaped as a label's value. */
static void label(struct out *out, const char *text) {
    for (const char *c = text; *c != '\0'; c++) cc__out(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
}

static void put_counters(struct out *out, const CCStats *s) {
    counter(out, "spawned", s->spawned, "Tasks that were started.");
    counter(out, "finished", s->finished, "Tasks that have ended.");
    counter(out, "switches", s->switches, "Turns: a fiber left, or another one was chosen.");
    family(out, "parks", "counter", "Waits that parked their fiber, by what it waited for.");
    for (unsigned i = 1; cc_stats_reason(i) != NULL; i++)
        cc__out(out, "ccc_parks_total{reason=\"%s\"} %llu\n", cc_stats_reason(i), (unsigned long long)s->parks_by[i]);
    counter(out, "wakes_local", s->wakes_local, "Fibers made ready by a fiber of the same worker.");
    counter(out, "wakes_remote", s->wakes_remote, "Fibers made ready by an OS thread.");
    counter(out, "wakes_wasted", s->wakes_wasted, "Wakes of a worker that gained nothing.");
    counter(out, "timers_armed", s->timers_armed, "Timers that were armed.");
    counter(out, "timers_fired", s->timers_fired, "Timers that ended a wait.");
    counter(out, "steals", s->steals, "Fibers taken from other workers.");
    counter(out, "shared", s->shared, "Fibers given away, because others had none.");
    counter(out, "overflows", s->overflows, "Fibers that found the ring of the global queue full.");
    counter(out, "worker_sleeps", s->sleeps, "Times that a worker slept.");
    counter(out, "worker_notifies", s->notifies, "Times that a worker woke another one.");
    counter(out, "polls", s->polls, "Times that a worker looked beyond its own queues.");
}

static void put_fibers(struct out *out) {
    uint64_t runs = 0, ready = 0, waits = 0;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        switch (cc__word_state(cc__get(&cc__pool_at(slot)->word))) {
        case FIBER_IDLE:
        case FIBER_DONE:
            break;
        case FIBER_RUNNABLE:
            ready++;
            break;
        case FIBER_PARKED:
            waits++;
            break;
        default:
            runs++;
        }
    }
    family(out, "fibers", "gauge", "Fibers that have not ended, by state.");
    cc__out(
        out,
        "ccc_fibers{state=\"running\"} %llu\nccc_fibers{state=\"ready\"} %llu\nccc_fibers{state=\"waiting\"} %llu\n",
        (unsigned long long)runs, (unsigned long long)ready, (unsigned long long)waits);
}

static void put_workers(struct out *out) {
    uint64_t now = cc__clock_now();
    family(out, "worker_turns", "counter", "Turns of a worker.");
    for_all_workers(i, w)
        cc__out(out, "ccc_worker_turns_total{worker=\"%u\"} %llu\n", i, (unsigned long long)cc__get(&w->core.turns));
    family(out, "worker_queue_length", "gauge", "Fibers that are ready on a worker: its queue and its inbox.");
    for_all_workers(i, w) cc__out(out, "ccc_worker_queue_length{worker=\"%u\"} %u\n", i,
                                  cc__get(&w->runq.count) + cc__get(&w->remote.inbox_len));
    cc__out(out, "# TYPE ccc_worker_turn_seconds gauge\n# UNIT ccc_worker_turn_seconds seconds\n"
                 "# HELP ccc_worker_turn_seconds How long a worker has been in its turn; 0: in none.\n");
    for_all_workers(i, w)
        cc__out(out, "ccc_worker_turn_seconds{worker=\"%u\"} %.6f\n", i, (double)cc__turn_age(w, now) * 1e-9);
    cc__out(out, "# TYPE ccc_worker_cpu_seconds counter\n# UNIT ccc_worker_cpu_seconds seconds\n"
                 "# HELP ccc_worker_cpu_seconds CPU time of a worker's thread.\n");
    for_all_workers(i, w) {
        char text[80];
        int tid = cc__get(&w->remote.tid);
        if (tid == 0 || !cc__thread_file(tid, "schedstat", text, sizeof text)) continue; /* it has no thread now */
        cc__out(out, "ccc_worker_cpu_seconds_total{worker=\"%u\"} %.9f\n", i, (double)strtoull(text, NULL, 10) * 1e-9);
    }
}

static void put_channels(struct out *out) {
    struct channel_seen *seen = cc__mem_alloc(CHANNELS_MAX * sizeof *seen);
    if (seen == NULL) return;
    unsigned n = cc__channels_list(seen, true), kept = 0;
    for (unsigned i = 0; i < n; i++) { /* labels must be unique: the first channel of a name counts */
        unsigned same = 0;
        make_plain(seen[i].name);
        while (same < kept && strcmp(seen[same].name, seen[i].name) != 0) same++;
        if (same == kept) seen[kept++] = seen[i];
    }
    family(out, "channel_length", "gauge", "Values in a channel that has a name and that somebody waits for.");
    for (unsigned i = 0; i < kept; i++) {
        cc__out(out, "ccc_channel_length{channel=\"");
        label(out, seen[i].name);
        cc__out(out, "\"} %llu\n", (unsigned long long)seen[i].count);
    }
    family(out, "channel_waiting", "gauge", "Who waits there, selects included.");
    for (unsigned i = 0; i < kept; i++) {
        cc__out(out, "ccc_channel_waiting{channel=\"");
        label(out, seen[i].name);
        cc__out(out, "\"} %llu\n", (unsigned long long)(seen[i].senders + seen[i].receivers + seen[i].selects));
    }
    explicit_bzero(seen, CHANNELS_MAX * sizeof *seen);
    cc__mem_free(seen);
}

int cc__answer_metrics(struct out *out, const struct request *request) {
    (void)request;
    CCStats s;
    if (cc_stats(&s, sizeof s) != 0) return 503;
    put_counters(out, &s);
    put_fibers(out);
    gauge(out, "workers", cc__sched_open(), "Workers that there are.");
    gauge(out, "global_queue_length", cc__inject_len(), "Fibers that are ready and belong to no worker.");
    put_workers(out);
    put_channels(out);
    cc__out(out, "# EOF\n");
    return 200;
}
