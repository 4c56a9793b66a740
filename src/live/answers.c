/* answers.c - the JSON responses of the live page. The keys are in docs/man/cc_view.3.
 *
 * LIVE-5  No state is kept between requests, and every response is bounded: in groups, fibers, scopes and channels;
 *         omitted ones are counted.
 */
#include "base/mem.h"
#include "chan/chan.h"
#include "inspect/threads.h"
#include "inspect/waits.h"
#include "live/live.h"
#include "os/clock.h"
#include "os/safe_copy.h"
#include "sched/idle.h"
#include "sched/inject.h"
#include "sched/island.h"

#include <ccc/cc_diag.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GROUPS_BYTES = 56 * 1024, /* of a response, after which groups are omitted */
    GROUP_FRAMES = 8,
    FIBERS_MAX = 100,
    SCOPES_MAX = 256,
    THREADS_MAX = 32,
    EDGES_MAX = 20,
    NAMED_MAX = 16,
};
#define STUCK_NS UINT64_C(1000000000) /* in one turn or one wait: reported as a problem */

/* ---- pieces ---- */

static void text(struct out *out, const char *key, const char *value) {
    cc__out(out, ",\"%s\":", key);
    cc__out_quoted(out, value);
}

static void number(struct out *out, const char *key, uint64_t value) {
    cc__out(out, ",\"%s\":%llu", key, (unsigned long long)value);
}

static void boolean(struct out *out, const char *key, bool value) {
    cc__out(out, ",\"%s\":%s", key, value ? "true" : "false");
}

static void place(struct out *out, const char *key, const void *address) {
    char words[400] = "";
    if (address != NULL) cc__symbol_text(address, words, sizeof words);
    text(out, key, words);
}

static void id(struct out *out, const char *key, struct fiber *f) {
    cc__out(out, ",\"%s\":\"%u.%u\"", key, cc__view_slot(f), cc__get(&f->generation) & 0x7fffffffu);
}

static void frames(struct out *out, const struct view *v, unsigned max) {
    cc__out(out, ",\"frames\":[");
    for (unsigned i = 0; i < v->frames && i < max; i++) {
        char words[400];
        cc__symbol_text(v->frame[i], words, sizeof words);
        cc__out(out, i > 0 ? "," : "");
        cc__out_quoted(out, words);
    }
    cc__out(out, "]");
    number(out, "guessed", v->doubt.guessed);
    if (v->frames > max) number(out, "frames_left_out", v->frames - max);
}

/* What it waits for, how long, and the holder if known. */
static void wait_of(struct out *out, struct wait_what what, uint64_t from, uint64_t to, uint64_t now) {
    char words[DESCRIBE_MAX];
    enum holder kind;
    cc__describe_wait(what, words, sizeof words);
    text(out, "reason", cc__park_name(what.reason));
    text(out, "waits", words);
    number(out, "ns_min", to < now ? now - to : 0);
    number(out, "ns_max", from != 0 && from < now ? now - from : to < now ? now - to : 0);
    struct fiber *holder = cc__wait_holder(what, &kind);
    if (cc__park_object(what.reason) == OBJECT_TASK) holder = (struct fiber *)(uintptr_t)what.object;
    if (holder != NULL) id(out, "for_fiber", holder);
}

/* A fiber in a list. */
static void member(struct out *out, const struct view *v, uint64_t now) {
    cc__out(out, "{\"id\":\"%u.%u\"", v->slot, v->generation);
    text(out, "name", v->name);
    cc__out(out, ",\"worker\":%d", v->worker);
    if (v->state == FIBER_PARKED && !v->moves && !v->timed) wait_of(out, cc__view_what(v), v->from, v->to, now);
    cc__out(out, "}");
}

static void member_at(struct out *out, struct fiber *f, uint64_t now) {
    struct view v;
    if (cc__view_take(cc__view_slot(f), false, &v))
        member(out, &v, now);
    else
        cc__out(out, "{\"id\":\"\",\"name\":\"a fiber that has ended\",\"worker\":-1}");
}

static const char *state_of(const struct view *v) {
    return v->moves                                    ? "moves"
           : v->state == FIBER_RUNNABLE && !v->started ? "has not run yet"
           : v->state == FIBER_RUNNABLE                ? "is ready"
           : v->state == FIBER_RUNNING                 ? "runs"
           : v->state == FIBER_PARKED && v->timed      ? "starts later"
           : v->state == FIBER_PARKED                  ? "waits"
                                                       : "parks";
}

/* Parses "12.3" and finds the fiber; false: it does not exist any more. */
static bool find_fiber(const struct request *request, const char *key, bool with_frames, struct view *v) {
    char words[32], *end;
    if (!cc__request_value(request, key, words, sizeof words)) return false;
    unsigned long slot = strtoul(words, &end, 10);
    if (*end != '.' || slot >= cc__pool_size()) return false;
    unsigned long generation = strtoul(end + 1, &end, 10);
    return *end == '\0' && cc__view_take((uint32_t)slot, with_frames, v) && v->generation == generation;
}

/* ---- counters and workers ---- */

uint64_t cc__turn_age(struct worker *w, uint64_t now) {
    uint64_t turns = cc__get(&w->core.turns), from, to;
    if (cc__get(&w->core.current) == NULL) return 0;
    cc__turn_log_find(&w->turn_log, turns, &from, &to);
    return from != 0 && from < now && cc__get(&w->core.turns) == turns ? now - from : 0;
}

static void worker(struct out *out, unsigned i, struct worker *w, uint64_t now) {
    struct fiber *current = cc__get(&w->core.current);
    cc__out(out, "{\"index\":%u", i);
    text(out, "island", cc__worker_is_island(w) ? cc__island_name(w).text : "");
    number(out, "thread", (uint64_t)cc__get(&w->remote.tid));
    text(out, "state",
         current != NULL         ? "runs"
         : !cc__worker_open(w)   ? "has no thread"
         : cc__dump_is_asleep(w) ? "sleeps"
                                 : "looks for work");
    number(out, "queue", cc__get(&w->runq.count));
    number(out, "inbox", cc__get(&w->remote.inbox_len));
    number(out, "timers", cc__timer_count(w));
    number(out, "turns", cc__get(&w->core.turns));
    if (current != NULL) {
        char name[CC_FIBER_NAME_MAX];
        cc__view_name(current, name);
        id(out, "runs", current);
        text(out, "name", name);
        number(out, "turn_ns", cc__turn_age(w, now));
    }
    cc__out(out, "}");
}

int cc__answer_stats(struct out *out, const struct request *request) {
    (void)request;
    CCStats s;
    uint64_t now = cc__clock_now(), begin = cc__get(&cc__sched.workers[0].turn_log.begin);
    if (cc_stats(&s, sizeof s) != 0) return 503;
    cc__out(out, "{\"version\":1,\"pid\":%d", (int)getpid());
    text(out, "library", cc_version());
    number(out, "uptime_ns", begin != 0 && begin < now ? now - begin : 0);
    boolean(out, "inspect", cc__inspect_missing() == NULL);
    boolean(out, "shutting_down", cc__live_is_ending());
    number(out, "spawned", s.spawned);
    number(out, "finished", s.finished);
    number(out, "switches", s.switches);
    number(out, "parks", s.parks);
    number(out, "steals", s.steals);
    number(out, "sleeps", s.sleeps);
    number(out, "timers_fired", s.timers_fired);
    number(out, "global_queue", cc__inject_len());
    cc__out(out, ",\"parks_by\":{");
    for (unsigned i = 1, n = 0; cc_stats_reason(i) != NULL; i++) {
        if (s.parks_by[i] == 0) continue;
        cc__out(out, "%s\"%s\":%llu", n++ > 0 ? "," : "", cc_stats_reason(i), (unsigned long long)s.parks_by[i]);
    }
    cc__out(out, "},\"workers\":[");
    unsigned n = 0;
    for_all_workers(i, w) {
        if (cc__worker_is_island(w) && !cc__worker_open(w)) continue;
        cc__out(out, n++ > 0 ? ",\n" : "\n");
        worker(out, i, w, now);
    }
    cc__out(out, "]}\n");
    return 200;
}

/* ---- groups of fibers ---- */

static void group(struct out *out, const struct shape *s, uint64_t now) {
    const struct view *v = &s->like;
    cc__out(out, "{\"like\":\"%u.%u\"", v->slot, v->generation);
    number(out, "count", s->count);
    text(out, "state", state_of(v));
    text(out, "reason", v->state == FIBER_PARKED ? cc__park_name(v->reason) : "");
    place(out, "site", v->site);
    boolean(out, "sites_differ", s->sites_differ);
    place(out, "function", v->fn != NULL ? (const char *)(uintptr_t)v->fn + 1 : NULL);
    frames(out, v, GROUP_FRAMES);
    number(out, "oldest_ns", s->oldest != 0 && s->oldest < now ? now - s->oldest : 0);
    cc__out(out, ",\"fibers\":[");
    for (uint64_t i = 0; i < s->count && i < SURVEY_NAMED; i++) {
        struct view one = {.state = v->state,
                           .moves = v->moves,
                           .timed = v->timed,
                           .slot = s->named[i].slot,
                           .generation = s->named[i].generation,
                           .worker = s->named[i].worker,
                           .reason = s->named[i].what.reason,
                           .object = (uintptr_t)s->named[i].what.object,
                           .from = s->named[i].from,
                           .to = s->named[i].to};
        memcpy(one.name, s->named[i].name, sizeof one.name);
        cc__out(out, i > 0 ? "," : "");
        member(out, &one, now);
    }
    cc__out(out, "]}");
}

static void threads(struct out *out, uint64_t now) {
    struct blocked_seen seen[THREADS_MAX];
    unsigned n = cc__blocked_list(seen, THREADS_MAX);
    cc__out(out, ",\n\"threads\":[");
    for (unsigned i = 0; i < n && i < THREADS_MAX; i++) {
        cc__out(out, "%s{\"thread\":%d", i > 0 ? "," : "", seen[i].tid);
        wait_of(out, seen[i].what, seen[i].since, seen[i].since, now);
        cc__out(out, "}");
    }
    cc__out(out, "]");
    number(out, "threads_left_out", n > THREADS_MAX ? n - THREADS_MAX : 0);
}

static size_t written(const struct out *out) {
    long at = ftell(out->file);
    return (at > 0 ? (size_t)at : 0) + out->len;
}

int cc__answer_groups(struct out *out, const struct request *request) {
    (void)request;
    struct survey survey;
    if (cc__survey_take(&survey) != 0) return 503;
    uint64_t left_out = survey.left_out, groups_left_out = 0;
    cc__out(out, "{\"fibers_total\":%llu,\"groups\":[", (unsigned long long)survey.fibers);
    for (unsigned i = 0; i < survey.count; i++) {
        if (written(out) > GROUPS_BYTES) {
            left_out += survey.shapes[i].count;
            groups_left_out++;
            continue;
        }
        cc__out(out, i > 0 ? ",\n" : "\n");
        group(out, &survey.shapes[i], survey.now);
    }
    cc__out(out, "]");
    number(out, "fibers_left_out", left_out);
    number(out, "groups_left_out", groups_left_out);
    threads(out, survey.now);
    cc__out(out, "}\n");
    cc__survey_free(&survey);
    return 200;
}

int cc__answer_fibers(struct out *out, const struct request *request) {
    struct view like, v;
    uint64_t now = cc__clock_now(), n = 0;
    if (!find_fiber(request, "like", true, &like)) return 404;
    cc__view_trim(&like);
    cc__out(out, "{\"fibers\":[");
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        if (!cc__view_take(slot, true, &v)) continue;
        cc__view_trim(&v);
        if (!cc__survey_alike(&like, &v) || n++ >= FIBERS_MAX) continue;
        cc__out(out, n > 1 ? ",\n" : "\n");
        member(out, &v, now);
    }
    cc__out(out, "]");
    number(out, "count", n);
    cc__out(out, "}\n");
    return 200;
}

/* ---- one fiber ---- */

static void scopes_of(struct out *out, const struct view *v) {
    const struct scope *at = v->scope;
    cc__out(out, ",\"scopes\":[");
    for (unsigned i = 0; at != NULL && i < NAMED_MAX; i++) {
        struct scope_seen s;
        if (!cc__scope_read(at, &s)) break;
        cc__out(out, "%s{\"at\":\"%p\"", i > 0 ? "," : "", (const void *)at);
        text(out, "name", s.name);
        boolean(out, "nursery", s.nursery);
        boolean(out, "cancelled", s.cancelled);
        cc__out(out, "}");
        at = s.parent;
    }
    cc__out(out, "]");
}

/* The fibers that could end its wait. */
static void servers_of(struct out *out, const struct view *v, uint64_t now) {
    struct fiber *servers[EDGES_MAX];
    unsigned n =
        v->state == FIBER_PARKED && !v->moves ? cc__graph_servers(cc__view_what(v), v->fiber, servers, EDGES_MAX) : 0;
    cc__out(out, ",\"could_wake\":[");
    for (unsigned i = 0; i < n && i < EDGES_MAX; i++) {
        cc__out(out, i > 0 ? "," : "");
        member_at(out, servers[i], now);
    }
    cc__out(out, "],\"could_wake_total\":%u", n);
}

/* The fibers that wait for it: to join it, or for a lock that it holds. */
static void waiters_of(struct out *out, const struct view *v, uint64_t now) {
    unsigned n = 0;
    cc__out(out, ",\"waited_for_by\":[");
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct view other;
        enum holder kind;
        if (!cc__view_take(slot, false, &other) || other.state != FIBER_PARKED || other.moves) continue;
        struct wait_what what = cc__view_what(&other);
        const struct fiber *whom =
            cc__park_object(what.reason) == OBJECT_TASK ? what.object : cc__wait_holder(what, &kind);
        if (whom != v->fiber || n++ >= EDGES_MAX) continue;
        cc__out(out, n > 1 ? "," : "");
        member(out, &other, now);
    }
    cc__out(out, "],\"waited_for_by_total\":%u", n);
}

static const char *what_thread_does(const struct view *v) {
    struct thread_call call;
    if (v->state != FIBER_RUNNING || v->worker < 0 ||
        !cc__threads_call(cc__get(&cc__sched.workers[v->worker].remote.tid), &call))
        return "";
    return call.running ? "computes" : "is blocked in a system call";
}

int cc__answer_fiber(struct out *out, const struct request *request) {
    struct view v;
    uint64_t now = cc__clock_now();
    if (!find_fiber(request, "id", true, &v)) return 404;
    cc__view_trim(&v);
    cc__out(out, "{\"fiber\":");
    member(out, &v, now);
    text(out, "state", state_of(&v));
    text(out, "thread_does", what_thread_does(&v));
    if (v.state == FIBER_RUNNING && v.worker >= 0)
        number(out, "turn_ns", cc__turn_age(&cc__sched.workers[v.worker], now));
    place(out, "site", v.site);
    place(out, "function", v.fn != NULL ? (const char *)(uintptr_t)v.fn + 1 : NULL);
    frames(out, &v, VIEW_FRAMES);
    scopes_of(out, &v);
    servers_of(out, &v, now);
    waiters_of(out, &v, now);
    cc__out(out, "}\n");
    return 200;
}

/* ---- nurseries, channels ---- */

int cc__answer_scopes(struct out *out, const struct request *request) {
    (void)request;
    struct scope_seen *seen = cc__mem_alloc(SCOPES_MAX * sizeof *seen);
    if (seen == NULL) return 503;
    unsigned n = cc__scopes_list(seen, SCOPES_MAX);
    uint64_t now = cc__clock_now();
    cc__out(out, "{\"scopes\":[");
    for (unsigned i = 0; i < n && i < SCOPES_MAX; i++) {
        const struct scope_seen *s = &seen[i];
        cc__out(out, "%s{\"at\":\"%p\",\"depth\":%u", i > 0 ? ",\n" : "\n", (const void *)s->at, s->depth);
        text(out, "name", s->name);
        boolean(out, "nursery", s->nursery);
        boolean(out, "cancelled", s->cancelled);
        number(out, "children", s->children);
        number(out, "fibers", s->members);
        if (s->deadline != UINT64_MAX) cc__out(out, ",\"deadline_ns\":%lld", (long long)(s->deadline - now));
        cc__out(out, "}");
    }
    cc__out(out, "]");
    number(out, "scopes_left_out", n > SCOPES_MAX ? n - SCOPES_MAX : 0);
    cc__out(out, "}\n");
    explicit_bzero(seen, SCOPES_MAX * sizeof *seen);
    cc__mem_free(seen);
    return 200;
}

/* The entry of a channel; NULL: it is unreadable, the table is full, or `named` and it has no name. */
static struct channel_seen *know(struct channel_seen *seen, unsigned *n, const void *at, bool named) {
    CCChan ch;
    for (unsigned i = 0; i < *n; i++)
        if (seen[i].at == at) return &seen[i];
    if (*n == CHANNELS_MAX || at == NULL || !cc__safe_copy(&ch, at, sizeof ch) || (named && ch.name[0] == '\0'))
        return NULL;
    struct channel_seen *s = &seen[(*n)++];
    *s = (struct channel_seen){
        .at = at, .capacity = ch.capacity, .count = cc__get(&ch.count), .closed = cc__get(&ch.closed)};
    memcpy(s->name, ch.name, sizeof s->name - 1);
    /* CHAN-1: at most one of the lists is not empty. */
    s->senders = cc__get(&ch.senders.next) != &((const CCChan *)at)->senders; /* counted below */
    return s;
}

static void count_waiter(struct channel_seen *seen, unsigned *n, struct wait_what what, bool named) {
    enum { ARMS = 8 };
    struct arm arms[ARMS];
    if (cc__park_object(what.reason) == OBJECT_CHANNEL) {
        struct channel_seen *s = know(seen, n, what.object, named);
        if (s != NULL) s->receivers++;
    }
    uint32_t count = cc__park_object(what.reason) == OBJECT_ARMS ? cc__wait_arms(what, arms, ARMS) : 0;
    for (uint32_t i = 0; i < count && i < ARMS; i++) {
        if (arms[i].kind != CC_CASE_SEND && arms[i].kind != CC_CASE_RECV) continue;
        struct channel_seen *s = know(seen, n, arms[i].object, named);
        if (s != NULL) s->selects++;
    }
}

unsigned cc__channels_list(struct channel_seen *seen, bool named) {
    struct blocked_seen blocked[THREADS_MAX];
    unsigned n = 0, waiting = cc__blocked_list(blocked, THREADS_MAX);
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct view v;
        if (cc__view_take(slot, false, &v) && v.state == FIBER_PARKED && !v.moves)
            count_waiter(seen, &n, cc__view_what(&v), named);
    }
    for (unsigned i = 0; i < waiting && i < THREADS_MAX; i++) count_waiter(seen, &n, blocked[i].what, named);
    for (unsigned i = 0; i < n; i++) {
        if (seen[i].senders == 0) continue;
        seen[i].senders = seen[i].receivers;
        seen[i].receivers = 0;
    }
    return n;
}

int cc__answer_channels(struct out *out, const struct request *request) {
    (void)request;
    struct channel_seen *seen = cc__mem_alloc(CHANNELS_MAX * sizeof *seen);
    if (seen == NULL) return 503;
    unsigned n = cc__channels_list(seen, false);
    cc__out(out, "{\"channels\":[");
    for (unsigned i = 0; i < n; i++) {
        cc__out(out, "%s{\"at\":\"%p\"", i > 0 ? ",\n" : "\n", seen[i].at);
        text(out, "name", seen[i].name);
        number(out, "capacity", seen[i].capacity);
        number(out, "buffered", seen[i].count);
        boolean(out, "closed", seen[i].closed);
        number(out, "senders", seen[i].senders);
        number(out, "receivers", seen[i].receivers);
        number(out, "selects", seen[i].selects);
        cc__out(out, "}");
    }
    cc__out(out, "]}\n");
    explicit_bzero(seen, CHANNELS_MAX * sizeof *seen);
    cc__mem_free(seen);
    return 200;
}

/* ---- problems ---- */

/* A sentence and the fibers concerned. */
struct finding {
    struct out *out;
    unsigned count, fibers;
};

static void begin(struct finding *f, const char *kind, const char *words) {
    cc__out(f->out, "%s{\"kind\":\"%s\"", f->count++ > 0 ? ",\n" : "\n", kind);
    text(f->out, "text", words);
    cc__out(f->out, ",\"fibers\":[");
    f->fibers = 0;
}

static void about(struct finding *f, struct fiber *fiber, uint64_t now) {
    cc__out(f->out, f->fibers++ > 0 ? "," : "");
    member_at(f->out, fiber, now);
}

static void end(struct finding *f) {
    cc__out(f->out, "]}");
}

static void find_shutdown(struct finding *f) {
    unsigned long long active = cc__sched_active();
    char words[160];
    if (!cc__live_is_ending()) return;
    snprintf(words, sizeof words, "the runtime shuts down, and %llu task%s not ended", active,
             active == 1 ? " has" : "s have");
    begin(f, "shutdown", words);
    uint64_t now = cc__clock_now();
    for (uint32_t slot = 0; slot < cc__pool_size() && f->fibers < NAMED_MAX; slot++) {
        struct view v;
        if (cc__view_take(slot, false, &v) && !v.timed) about(f, v.fiber, now);
    }
    end(f);
}

/* True: there is one. */
static bool find_deadlock(struct finding *f) {
    uint64_t epoch = cc__idle_epoch(), blocked_epoch = cc__blocked_epoch();
    if (!cc__quiet_for_good() || cc__idle_epoch() != epoch || cc__blocked_epoch() != blocked_epoch) return false;
    begin(f, "deadlock",
          "nothing can wake a fiber or a thread: no fiber is ready to run, no timer is armed, and every thread of the "
          "program is waiting");
    end(f);
    return true;
}

/* While other fibers run, only cycles of locks, joins and nurseries count: any fiber may serve a channel or a select.
 */
static void find_cycle(struct finding *f, bool deadlock) {
    struct graph_wait cycle[NAMED_MAX];
    unsigned length = cc__graph_cycle(cycle, NAMED_MAX, deadlock);
    char words[160];
    if (length == 0) return;
    snprintf(words, sizeof words, "a cycle of %u wait%s: each fiber waits for something that the next one could do",
             length, cc__out_s(length));
    begin(f, "cycle", words);
    uint64_t now = cc__clock_now();
    for (unsigned i = 0; i < length && i < NAMED_MAX; i++) about(f, cycle[i].fiber, now);
    end(f);
    explicit_bzero(cycle, sizeof cycle);
}

/* Workers that are stuck in a turn, and the fibers that have to wait for them. */
static void find_stuck(struct finding *f) {
    uint64_t now = cc__clock_now();
    unsigned stuck = 0;
    for_all_workers(i, w) {
        struct fiber *current = cc__get(&w->core.current);
        uint64_t age = cc__turn_age(w, now);
        struct view v;
        char words[160];
        if (current == NULL || age < STUCK_NS || !cc__view_take(cc__view_slot(current), false, &v)) continue;
        const char *does = what_thread_does(&v);
        snprintf(words, sizeof words, "a fiber has kept worker %u for %.1f s without a pause%s%s", i,
                 (double)age * 1e-9, does[0] != '\0' ? ", and " : "", does);
        stuck += !cc__worker_is_island(w);
        begin(f, "stuck", words);
        about(f, current, now);
        end(f);
    }
    if (stuck == 0 || stuck < cc__sched_open()) return;
    bool any = false;
    for (uint32_t slot = 0; slot < cc__pool_size() && (!any || f->fibers < NAMED_MAX); slot++) {
        struct view v;
        if (!cc__view_take(slot, false, &v) || v.moves || v.state != FIBER_RUNNABLE) continue;
        if (!any) begin(f, "starved", "every worker is stuck, and these are ready to run");
        any = true;
        about(f, v.fiber, now);
    }
    if (any) end(f);
}

/* Whether a select may be ended by something that no stack refers to: a peer, a process that ends, a key; or through an
 * event or a semaphore, which is often static. */
static bool has_outside_arm(struct wait_what what) {
    enum { ARMS = 8 };
    struct arm arms[ARMS];
    uint32_t n = cc__park_object(what.reason) == OBJECT_ARMS ? cc__wait_arms(what, arms, ARMS) : 0;
    for (uint32_t i = 0; i < n && i < ARMS; i++)
        if (cc__arm_is_outside(&arms[i])) return true;
    return n > ARMS; /* the others were not examined */
}

/* Waits on channels that no other fiber's stack refers to. A hint: an OS thread may, or other memory. */
static void find_alone(struct finding *f) {
    enum { LOOKED_AT = 16, AMONG = 512 }; /* all stacks are searched for each of them */
    uint64_t now = cc__clock_now();
    unsigned looked_at = 0;
    bool any = false;
    if (cc__view_count() > AMONG) return;
    for (uint32_t slot = 0; slot < cc__pool_size() && looked_at < LOOKED_AT; slot++) {
        struct view v;
        struct fiber *server;
        if (!cc__view_take(slot, false, &v) || v.state != FIBER_PARKED || v.moves) continue;
        enum wait_object object = cc__park_object(v.reason);
        if ((object != OBJECT_CHANNEL && object != OBJECT_ARMS) || v.to > now || now - v.to < STUCK_NS) continue;
        if (has_outside_arm(cc__view_what(&v))) continue;
        looked_at++;
        if (cc__graph_servers(cc__view_what(&v), v.fiber, &server, 1) != 0) continue;
        if (!any) begin(f, "alone", "no other fiber's stack refers to what these wait for: they may wait for ever");
        any = true;
        if (f->fibers < NAMED_MAX) about(f, v.fiber, now);
    }
    if (any) end(f);
}

int cc__answer_wrong(struct out *out, const struct request *request) {
    (void)request;
    struct finding f = {.out = out};
    cc__out(out, "{\"wrong\":[");
    find_shutdown(&f);
    bool deadlock = find_deadlock(&f);
    if (deadlock) cc__graph_begin();
    find_cycle(&f, deadlock);
    find_stuck(&f);
    find_alone(&f);
    cc__graph_end();
    cc__out(out, "]");
    text(out, "missing", cc__inspect_missing() != NULL ? cc__inspect_missing() : "");
    cc__out(out, "}\n");
    return 200;
}

/* Scans all memory of the process: so the page does not request this periodically. */
int cc__answer_unreachable(struct out *out, const struct request *request) {
    (void)request;
    uint32_t slots[UNREACHABLE_NAMED];
    struct unreachable found = {.max = UNREACHABLE_NAMED, .slot = slots};
    const char *why = cc__unreachable_find(&found, false);
    uint64_t now = cc__clock_now();
    cc__out(out, "{\"count\":%u", why == NULL ? found.count : 0);
    text(out, "why_not", why != NULL ? why : "");
    cc__out(out, ",\"fibers\":[");
    for (unsigned i = 0; why == NULL && i < found.count && i < found.max; i++) {
        cc__out(out, i > 0 ? "," : "");
        member_at(out, cc__pool_at(found.slot[i]), now);
    }
    cc__out(out, "]}\n");
    return 200;
}
