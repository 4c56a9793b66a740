/* trace.c - which categories are on, and their names. */
#include "trace/trace.h"

#include "os/clock.h"
#include "sync/lock.h"

#include <string.h>

struct trace cc__trace;

static struct {
    struct lock lock;
    uint32_t environment, program, simulation, recorder;
} wanted;

/* seq_cst: a thread that changes the categories then checks whether the runtime runs, and a start does the reverse
 * (sched/trace_route.c). */
static void apply_locked(void) {
    if (cc__get(&cc__trace.since) == 0) cc__set(&cc__trace.since, cc__clock_now());
    cc__set_seq(&cc__trace.on, wanted.environment | wanted.program | wanted.simulation | wanted.recorder);
}

static void change(uint32_t *which, uint32_t keep, uint32_t add) {
    cc__lock_take(&wanted.lock);
    *which = (*which & keep) | add;
    apply_locked();
    cc__lock_release(&wanted.lock);
}

void cc__trace_set(uint32_t categories) {
    change(&wanted.environment, 0, categories);
}

void cc__trace_add(uint32_t categories) {
    change(&wanted.program, UINT32_MAX, categories);
}

void cc__trace_simulated(bool on) {
    change(&wanted.simulation, 0, on ? TRACE_SIM : 0);
}

void cc__trace_recording(bool on) {
    change(&wanted.recorder, 0, on ? TRACE_RECORD : 0);
}

void cc__trace_clear(void) {
    change(&wanted.environment, ~(uint32_t)TRACE_ALL, 0);
    change(&wanted.program, 0, 0);
}

void cc__trace_forget(void) {
    wanted.lock = (struct lock){0};
}

/* ---- names ---- */

const char cc__trace_known[] =
#define CATEGORY(id, name, meaning) name ", "
#include "trace/events.def"
    "all";

uint32_t cc__trace_parse(const char *list, const char **unknown, int *length) {
    static const struct {
        const char *name;
        uint32_t categories;
    } names[] = {
#define CATEGORY(id, name, meaning) {name, TRACE_##id},
#include "trace/events.def"
        {"all", TRACE_ALL},
    };
    uint32_t categories = 0;
    *unknown = NULL;
    for (const char *at = list; *at != '\0'; at += *at == ',') {
        size_t n = strcspn(at, ","), i = 0;
        while (i < array_len(names) && (strlen(names[i].name) != n || memcmp(names[i].name, at, n) != 0)) i++;
        if (i < array_len(names)) {
            categories |= names[i].categories;
        } else if (n > 0 && *unknown == NULL) {
            *unknown = at;
            *length = n < 64 ? (int)n : 64;
        }
        at += n;
    }
    if (categories & TRACE_CHAN_VERBOSE) categories |= TRACE_CHAN;
    return categories;
}
