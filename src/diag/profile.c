/* profile.c - profiles in the format of pprof (profile.proto), in hand-written protobuf.
 *
 * Strings and places have the numbers of record/names.c, which are also those of the profile's tables.
 */
#include "base/error.h"
#include "base/mem.h"
#include "diag/dump.h"
#include "inspect/threads.h"
#include "inspect/waits.h"
#include "os/clock.h"
#include "os/thread.h"
#include "record/record.h"
#include "sched/upcalls.h"

#include <ccc/cc_profile.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the format ---- */

enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
};
enum { TYPE_NAME = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3, LABEL_KEY = 1, LABEL_TEXT = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4, LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

struct profile {
    struct names *names;
    unsigned values; /* of each sample */
    struct vec out, sample, inner, packed;
    struct vec kinds, bytes; /* of struct sample_kind; their samples */
    struct map by_hash;      /* of those: the number of a kind, plus one */
};

/* Samples that are counted: equal ones, but for their values. */
struct sample_kind {
    size_t at, size; /* in `bytes` */
    uint64_t count;
};

static uint32_t string(struct profile *p, const char *text) {
    return cc__names_string(p->names, text);
}

static void put_type(struct profile *p, unsigned field, const char *name, const char *unit) {
    p->inner.count = 0;
    cc__bytes_field(&p->inner, TYPE_NAME, string(p, name));
    cc__bytes_field(&p->inner, TYPE_UNIT, string(p, unit));
    cc__bytes_field_bytes(&p->out, field, p->inner.at, p->inner.count);
}

static void put_numbers(struct profile *p, unsigned field, const uint64_t *numbers, unsigned n) {
    p->packed.count = 0;
    for (unsigned i = 0; i < n; i++) cc__bytes_varint(&p->packed, numbers[i]);
    cc__bytes_field_bytes(&p->sample, field, p->packed.at, p->packed.count);
}

/* A sample: begin, labels; then end_sample or count_sample. */
static void begin_sample(struct profile *p, const uint32_t *places, unsigned n) {
    uint64_t numbers[VIEW_FRAMES];
    p->sample.count = 0;
    for (unsigned i = 0; i < n; i++) numbers[i] = (uint64_t)places[i] + 1;
    put_numbers(p, SAMPLE_LOCATION, numbers, n);
}

static void label(struct profile *p, const char *key, uint32_t text) {
    if (text == 0) return;
    p->packed.count = 0;
    cc__bytes_field(&p->packed, LABEL_KEY, string(p, key));
    cc__bytes_field(&p->packed, LABEL_TEXT, text);
    cc__bytes_field_bytes(&p->sample, SAMPLE_LABEL, p->packed.at, p->packed.count);
}

/* Function and line of a place, as one string. */
static void label_place(struct profile *p, const char *key, uint32_t place) {
    char text[320];
    if (place == NOBODY) return;
    const struct code_place *at = cc__names_place_at(p->names, place);
    if (at->line != 0)
        snprintf(text, sizeof text, "%s (%s:%u)", cc__names_text(p->names, at->function),
                 cc__names_text(p->names, at->file), at->line);
    else
        snprintf(text, sizeof text, "%s", cc__names_text(p->names, at->function));
    label(p, key, string(p, text));
}

static void end_sample(struct profile *p, uint64_t first, uint64_t second) {
    put_numbers(p, SAMPLE_VALUE, (uint64_t[]){first, second}, p->values);
    cc__bytes_field_bytes(&p->out, PROFILE_SAMPLE, p->sample.at, p->sample.count);
}

static bool is_kind(const struct profile *p, const struct sample_kind *k) {
    return k->size == p->sample.count && memcmp((const char *)p->bytes.at + k->at, p->sample.at, k->size) == 0;
}

/* Counts it; put_counted ends it. */
static void count_sample(struct profile *p) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const unsigned char *bytes = p->sample.at;
    for (size_t i = 0; i < p->sample.count; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    for (hash |= 1;; hash += 2) { /* a key of the map is not 0 */
        uint32_t number = cc__map_find(&p->by_hash, hash);
        if (number == 0) break;
        struct sample_kind *k = cc__vec_at(struct sample_kind, &p->kinds, number - 1);
        if (!is_kind(p, k)) continue;
        k->count++;
        return;
    }
    struct sample_kind *k = cc__vec_add(&p->kinds, sizeof *k);
    if (k == NULL) return;
    *k = (struct sample_kind){p->bytes.count, p->sample.count, 1};
    cc__bytes_add(&p->bytes, p->sample.at, p->sample.count);
    if (!cc__map_set(&p->by_hash, hash, (uint32_t)p->kinds.count)) p->kinds.failed = true;
}

static void put_counted(struct profile *p) {
    if (p->kinds.failed || p->bytes.failed) return;
    for (size_t i = 0; i < p->kinds.count; i++) {
        const struct sample_kind *k = cc__vec_at(struct sample_kind, &p->kinds, i);
        p->sample.count = 0;
        cc__bytes_add(&p->sample, (const char *)p->bytes.at + k->at, k->size);
        end_sample(p, k->count, 0);
    }
}

static void put_places(struct profile *p) {
    for (uint32_t i = 0; i < p->names->places.count; i++) {
        struct code_place at = *cc__names_place_at(p->names, i);
        p->inner.count = p->packed.count = 0;
        cc__bytes_field(&p->packed, LINE_FUNCTION, (uint64_t)i + 1);
        cc__bytes_field(&p->packed, LINE_NUMBER, at.line);
        cc__bytes_field(&p->inner, LOCATION_ID, (uint64_t)i + 1);
        cc__bytes_field_bytes(&p->inner, LOCATION_LINE, p->packed.at, p->packed.count);
        cc__bytes_field_bytes(&p->out, PROFILE_LOCATION, p->inner.at, p->inner.count);
        p->inner.count = 0;
        cc__bytes_field(&p->inner, FUNCTION_ID, (uint64_t)i + 1);
        cc__bytes_field(&p->inner, FUNCTION_NAME, at.function);
        cc__bytes_field(&p->inner, FUNCTION_SYSTEM_NAME, at.function);
        cc__bytes_field(&p->inner, FUNCTION_FILE, at.file);
        cc__bytes_field_bytes(&p->out, PROFILE_FUNCTION, p->inner.at, p->inner.count);
    }
}

/* Adds the tables and writes the profile to the descriptor. */
static int finish(struct profile *p, int fd) {
    put_counted(p);
    put_places(p);
    for (uint32_t i = 0; i < p->names->strings.count; i++) {
        const char *text = cc__names_text(p->names, i);
        cc__bytes_field_bytes(&p->out, PROFILE_STRING, text, strlen(text));
    }
    bool failed = p->sample.failed || p->inner.failed || p->packed.failed || p->kinds.failed || p->bytes.failed ||
                  p->names->strings.failed || p->names->places.failed;
    return failed ? ENOMEM : cc__bytes_write(&p->out, fd, 0);
}

static void free_profile(struct profile *p) {
    cc__vec_free(&p->out);
    cc__vec_free(&p->sample);
    cc__vec_free(&p->inner);
    cc__vec_free(&p->packed);
    cc__vec_free(&p->kinds);
    cc__vec_free(&p->bytes);
    cc__map_free(&p->by_hash);
}

/* ---- fibers by their current stacks ---- */

/* A sample of a trimmed view, without its end. */
static void begin_view(struct profile *p, const struct view *v) {
    uint32_t places[VIEW_FRAMES], fn = NOBODY;
    unsigned n = 0;
    struct scope_seen scope;
    for (unsigned i = 0; i < v->frames; i++) {
        uint32_t place = cc__names_place(p->names, v->frame[i]);
        if (place != NOBODY) places[n++] = place;
    }
    if (v->fn != NULL) fn = cc__names_place(p->names, (const char *)(uintptr_t)v->fn + 1);
    if (n == 0 && fn != NOBODY) places[n++] = fn; /* it has not started, or has no known frames */
    begin_sample(p, places, n);
    label_place(p, "function", fn);
    if (v->site != NULL) label_place(p, "started", cc__names_place(p->names, v->site));
    label(p, "name", string(p, v->name));
    if (v->scope != NULL && cc__scope_read(v->scope, &scope)) label(p, "nursery", string(p, scope.name));
    label(p, "reason", string(p, v->state == FIBER_PARKED ? cc__park_name(v->reason) : ""));
}

/* Counts the fiber that has the slot, if there is one. */
static void count_fiber(struct profile *p, uint32_t slot) {
    struct view v;
    if (!cc__view_take(slot, true, &v)) return;
    cc__view_trim(&v);
    begin_view(p, &v);
    count_sample(p);
}

enum { PATIENCE_NS = 2000000000 }; /* another report may be blocked on a pipe that is not read */
enum { AGAIN_NS = 5000000 };       /* a guess; longer than others that wait for the lock sleep */

static bool begin_report(void) {
    return cc__dump_begin_until(cc__clock_real() + PATIENCE_NS);
}

static int count_unreachable_once(struct profile *p, struct unreachable *found) {
    if (!begin_report()) return EBUSY;
    int rc = cc__unreachable_find(found, false) == NULL ? 0 : EBUSY;
    for (unsigned i = 0; rc == 0 && i < found->count; i++) count_fiber(p, found->slot[i]);
    cc__dump_end();
    return rc;
}

/* While the program runs it tries again: without the lock in between, because other reports can be made meanwhile. */
static int count_unreachable(struct profile *p) {
    struct unreachable found = {.max = UNREACHABLE_MAX};
    uint64_t until = cc__clock_real() + PATIENCE_NS;
    int rc = ENOMEM;
    found.slot = cc__mem_alloc(UNREACHABLE_MAX * sizeof *found.slot);
    while (found.slot != NULL && (rc = count_unreachable_once(p, &found)) != 0 && found.again &&
           cc__clock_real() < until)
        cc__thread_nap(AGAIN_NS);
    cc__mem_free(found.slot);
    return rc;
}

static int count_all(struct profile *p) {
    if (!begin_report()) return EBUSY;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) count_fiber(p, slot);
    cc__dump_end();
    return 0;
}

static int write_fibers(int fd, bool leaks) {
    struct names names;
    struct profile p = {.names = &names, .values = 1};
    bool outside = cc__worker() == NULL;
    int rc = outside ? cc__upcall_enter(false) : 0;
    if (rc != 0) return ESRCH;
    rc = cc__names_init(&names) ? 0 : ENOMEM;
    if (rc == 0) {
        put_type(&p, PROFILE_SAMPLE_TYPE, "fibers", "count");
        rc = leaks ? count_unreachable(&p) : count_all(&p);
    }
    if (rc == 0) rc = finish(&p, fd);
    if (outside) cc__upcall_leave();
    cc__names_free(&names);
    free_profile(&p);
    return rc;
}

/* ---- recorded waits ---- */

/* One, or several equal ones. */
struct waited {
    uint32_t stack, fiber_label, reason, scope, site, fn, by; /* by: the function of the waker, or NOBODY */
    uint64_t count, ns;
};

static int compare(const void *a, const void *b) {
    return memcmp(a, b, offsetof(struct waited, by) + sizeof(uint32_t));
}

static bool is_lock(unsigned reason) {
    return reason == PARK_MUTEX || reason == PARK_RWLOCK || reason == PARK_SEM;
}

static void add_wait(struct history *h, struct vec *waits, const struct step *from, uint64_t until, uint32_t by,
                     bool locks) {
    if (locks && !is_lock(from->reason)) return;
    const struct strand *f = cc__strand(h, from->fiber);
    struct waited *w = cc__vec_add(waits, sizeof *w);
    if (w == NULL) return;
    w->stack = locks ? 0 : from->stack;
    w->fiber_label = f->label;
    w->reason = from->reason;
    w->scope = f->scope;
    w->site = f->site;
    w->fn = f->fn;
    w->by = locks && by != NOBODY ? cc__strand(h, by)->fn : NOBODY;
    w->count = 1;
    w->ns = until - from->time;
}

/* All waits of the history; unfinished ones count until its end. */
static bool collect_waits(struct history *h, struct vec *waits, bool locks) {
    size_t *since = cc__mem_alloc(h->strands.count * sizeof *since); /* the step, plus one */
    if (since == NULL) return false;
    for (size_t i = 0; i < h->steps.count; i++) {
        const struct step *s = cc__step(h, i);
        if (s->kind == STEP_BLOCK) since[s->fiber] = i + 1;
        if (s->kind != STEP_UNBLOCK || since[s->fiber] == 0) continue;
        add_wait(h, waits, cc__step(h, since[s->fiber] - 1), s->time, s->by, locks);
        since[s->fiber] = 0;
    }
    for (size_t i = 0; i < h->strands.count; i++)
        if (since[i] != 0) add_wait(h, waits, cc__step(h, since[i] - 1), h->end, NOBODY, locks);
    cc__mem_free(since);
    return !waits->failed;
}

static void put_wait(struct profile *p, struct history *h, const struct waited *w, bool locks) {
    uint32_t places[RECORD_FRAMES];
    unsigned n = locks ? 0 : cc__history_frames(h, &(struct step){.stack = w->stack}, places);
    uint32_t place = locks ? w->by : w->fn;
    if (n == 0 && place != NOBODY) places[n++] = place;
    begin_sample(p, places, n);
    label_place(p, "function", w->fn);
    label_place(p, "started", w->site);
    label(p, "fiber", w->fiber_label);
    if (w->scope != 0) label(p, "nursery", cc__scope_named(h, w->scope)->name);
    label(p, "reason", string(p, cc__park_name(w->reason)));
    end_sample(p, w->count, w->ns);
}

static void put_waits(struct profile *p, struct history *h, struct vec *waits, bool locks) {
    if (waits->count == 0) return;
    qsort(waits->at, waits->count, sizeof(struct waited), compare);
    struct waited sum = *cc__vec_at(struct waited, waits, 0);
    for (size_t i = 1; i < waits->count; i++) {
        const struct waited *w = cc__vec_at(struct waited, waits, i);
        if (compare(&sum, w) == 0) {
            sum.count++;
            sum.ns += w->ns;
        } else {
            put_wait(p, h, &sum, locks);
            sum = *w;
        }
    }
    put_wait(p, h, &sum, locks);
}

static int write_waits(int fd, bool locks) {
    struct history h;
    struct vec waits = {0};
    int rc = cc__history_take(&h, false);
    if (rc != 0) return rc;
    struct profile p = {.names = &h.names, .values = 2};
    put_type(&p, PROFILE_SAMPLE_TYPE, locks ? "contentions" : "waits", "count");
    put_type(&p, PROFILE_SAMPLE_TYPE, "delay", "nanoseconds");
    if (collect_waits(&h, &waits, locks))
        put_waits(&p, &h, &waits, locks);
    else
        rc = ENOMEM;
    cc__bytes_field(&p.out, PROFILE_DURATION, h.end - h.begin);
    if (rc == 0) rc = finish(&p, fd);
    cc__vec_free(&waits);
    free_profile(&p);
    cc__history_free(&h);
    return rc;
}

int cc_profile_write(int fd, CCProfile kind) {
    CC_KEEP_ERRNO;
    switch (kind) {
    case CC_PROFILE_FIBERS:
    case CC_PROFILE_LEAKS:
        return write_fibers(fd, kind == CC_PROFILE_LEAKS);
    case CC_PROFILE_BLOCK:
    case CC_PROFILE_CONTENTION:
        return write_waits(fd, kind == CC_PROFILE_CONTENTION);
    default:
        return EINVAL;
    }
}

/* ---- CPU samples ---- */

enum { PERIOD_NS = 10000000, BACKLOG_NS = 3 * PERIOD_NS };

/* How much CPU time of a worker's thread has been counted. */
struct counted {
    int tid;
    uint64_t until;
};

/* The weight of a sample: the time since the last round, but no more than the CPU time that the thread has used. To
 * the kernel a thread that is runnable but has no CPU also runs. CPU time that no sample has counted is kept for a few
 * rounds, because a fiber that runs half of the time may be sampled twice in a row. */
static uint64_t weight(struct counted *c, int tid, uint64_t ns) {
    uint64_t cpu = cc__thread_cpu_of(tid);
    if (cpu == UINT64_MAX) return ns;
    if (c->tid != tid) *c = (struct counted){tid, cpu > PERIOD_NS ? cpu - PERIOD_NS : 0};
    uint64_t kept = ns + BACKLOG_NS, used = cpu - c->until;
    if (used > kept) c->until = cpu - kept;
    if (used > ns) used = ns;
    c->until += used;
    return used;
}

/* CPU time is counted from here. */
static void begin_count(struct counted *counted) {
    for_all_workers(i, w) {
        int tid = cc__get(&w->remote.tid);
        uint64_t cpu = tid != 0 ? cc__thread_cpu_of(tid) : UINT64_MAX;
        if (cpu != UINT64_MAX) counted[i] = (struct counted){tid, cpu};
    }
}

/* Samples each worker that is running or runnable; ns: since the last round. */
static void look(struct profile *p, struct counted *counted, uint64_t ns) {
    struct fiber *self = cc__sched_current(cc__worker());
    for_all_workers(i, w) {
        struct fiber *f = cc__get(&w->core.current);
        struct thread_call call;
        struct view v;
        int tid = cc__get(&w->remote.tid);
        if (f == NULL || f == self || !cc__threads_call(tid, &call) || !call.running) continue;
        if (!cc__view_take(cc__view_slot(f), true, &v) || v.state != FIBER_RUNNING) continue;
        cc__view_trim(&v);
        begin_view(p, &v);
        end_sample(p, 1, weight(&counted[i], tid, ns));
    }
}

/* Inside the runtime. */
static int sample_until(struct profile *p, struct counted *counted, CCDeadline until, const _Atomic uint32_t *over) {
    uint64_t last = cc__clock_now();
    begin_count(counted);
    while (cc__clock_now() < until.ns && (over == NULL || cc__get(over) == 0)) {
        CCDeadline next = {last + PERIOD_NS};
        int rc = cc_sleep_until(next.ns < until.ns ? next : until);
        if (rc != 0) return rc;
        uint64_t now = cc__clock_now();
        if (!begin_report()) return EBUSY;
        look(p, counted, now - last);
        cc__dump_end();
        last = now;
    }
    return 0;
}

struct aside {
    struct profile *profile;
    struct counted *counted;
    CCDeadline until;
    _Atomic uint32_t over;
    int result;
};

static void *sample_aside(void *arg) {
    struct aside *a = arg;
    cc__thread_name("ccc/profile");
    a->result = sample_until(a->profile, a->counted, a->until, &a->over);
    return NULL;
}

/* A fiber would not see the others of its worker, none of which runs while it does: so a thread samples. */
static int sample_for_fiber(struct profile *p, struct counted *counted, CCDeadline until) {
    struct aside a = {.profile = p, .counted = counted, .until = until};
    pthread_t thread;
    int error = cc__thread_start_quiet(&thread, sample_aside, &a);
    if (error != 0) return error;
    int rc = cc_sleep_until(until);
    cc__set(&a.over, 1);
    cc__thread_join(thread);
    return rc != 0 ? rc : a.result;
}

int cc__profile_cpu(int fd, CCDeadline until, const _Atomic uint32_t *over) {
    CC_KEEP_ERRNO;
    struct names names;
    struct profile p = {.names = &names, .values = 2};
    if (cc_deadline_is_never(until)) return EINVAL;
    bool outside = cc__worker() == NULL;
    if (outside && cc__upcall_enter(false) != 0) return ESRCH;
    uint64_t begin = cc__clock_now();
    struct counted *counted = cc__mem_alloc((CC_WORKERS_MAX + CC_ISLANDS_MAX) * sizeof *counted);
    int rc = cc__sched.simulated ? ENOTSUP : counted != NULL && cc__names_init(&names) ? 0 : ENOMEM;
    if (rc == 0) {
        put_type(&p, PROFILE_SAMPLE_TYPE, "samples", "count");
        put_type(&p, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
        put_type(&p, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
        cc__bytes_field(&p.out, PROFILE_PERIOD, PERIOD_NS);
        rc = outside ? sample_until(&p, counted, until, over) : sample_for_fiber(&p, counted, until);
        cc__bytes_field(&p.out, PROFILE_DURATION, cc__clock_now() - begin);
        if (rc == 0) rc = finish(&p, fd);
        cc__names_free(&names);
    }
    if (outside) cc__upcall_leave();
    cc__mem_free(counted);
    free_profile(&p);
    return rc;
}

int cc_profile_cpu(int fd, CCDeadline until) {
    return cc__profile_cpu(fd, until, NULL);
}
