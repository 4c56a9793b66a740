/* dump.c - the dump as text. */
#include "diag/dump.h"

#include "base/mem.h"
#include "blocking/blocking.h"
#include "inspect/waits.h"
#include "os/clock.h"
#include "os/safe_copy.h"
#include "sched/inject.h"
#include "sched/island.h"
#include "trace/trace.h"

#include <string.h>

/* ---- frames ---- */

void cc__dump_frames(struct out *out, const struct view *v, const char *indent) {
    for (unsigned i = 0; i < v->frames; i++) {
        char text[400];
        cc__symbol_text(v->frame[i], text, sizeof text);
        cc__out(out, "%s#%u %s%s\n", indent, i, v->doubt.guessed >> i & 1 ? "? " : "", text);
    }
    if (v->doubt.cut) cc__out(out, "%s? no unwind information leads further up\n", indent);
}

void cc__dump_missing(struct out *out) {
    const char *missing = cc__inspect_missing();
    if (missing != NULL) cc__out(out, "ccc: %s\n", missing);
}

/* ---- workers ---- */

/* The fiber that contains the link; NULL: it is a list head, or an object that a fiber waits for. */
static struct fiber *fiber_at(struct link *link) {
    struct fiber *f = link != NULL ? cc__fiber_of(link) : NULL;
    uint32_t slot;
    return f != NULL && cc__safe_copy(&slot, &f->slot, sizeof slot) && cc__pool_at(slot) == f ? f : NULL;
}

/* An inbox may be emptied during the walk, and its fibers be in other lists by then: the walk continues only while the
 * link leads to a record, and for at most `max` fibers. */
void cc__dump_inboxes(struct out *out, unsigned max) {
    char who[96];
    for_all_workers(i, w) {
        struct fiber *f = cc__get_acquire(&w->remote.inbox); /* pairs with cc__inbox_push */
        cc__out(out, "inbox of worker %u: %u fibers%s\n", i, cc__get(&w->remote.inbox_len),
                f != NULL ? ", newest first:" : "");
        for (unsigned shown = 0; f != NULL && shown < max; shown++) {
            uint64_t word = cc__get(&f->word);
            cc__describe_record(f, who, sizeof who);
            cc__out(out, "  %s: %s%s\n", who, cc__state_name(cc__word_state(word)),
                    word & WORD_FRESH ? ", has not run yet" : "");
            f = fiber_at(cc__get(&f->link.next));
        }
    }
}

CC_NOINLINE CC_NO_TSAN bool cc__dump_is_asleep(struct worker *w) {
    return *(volatile bool *)&w->remote.asleep;
}

void cc__dump_workers(struct out *out) {
    for_all_workers(i, w) {
        struct fiber *current = cc__get(&w->core.current);
        unsigned timers = cc__timer_count(w);
        unsigned long long turns = cc__get(&w->core.turns);
        char who[128] = "looks for work";
        if (current != NULL) {
            char name[96];
            cc__describe_record(current, name, sizeof name);
            snprintf(who, sizeof who, "runs %s", name);
        } else if (cc__dump_is_asleep(w)) {
            snprintf(who, sizeof who, "sleeps");
        }
        if (cc__worker_is_island(w)) {
            if (!cc__worker_open(w)) continue;
            if (current == NULL) snprintf(who, sizeof who, "has nothing to run");
            cc__out(out, "island '%s' (worker %u, thread %d) %s; ", cc__island_name(w).text, i, cc__get(&w->remote.tid),
                    who);
        } else if (!cc__worker_open(w)) {
            cc__out(out, "worker %u has no thread now; ", i);
        } else {
            cc__out(out, "worker %u (thread %d) %s; ", i, cc__get(&w->remote.tid), who);
        }
        cc__out(out, "%u in its queue, %u in its inbox, %u timer%s, %llu turn%s\n", cc__get(&w->runq.count),
                cc__get(&w->remote.inbox_len), timers, cc__out_s(timers), turns, cc__out_s(turns));
    }
    cc__out(out, "global queue: %llu\n", (unsigned long long)cc__inject_len());
    if (cc__trace_on(TRACE_INBOX_DUMP)) cc__dump_inboxes(out, DUMP_INBOX_SHOWN);
}

/* ---- unreachable fibers ---- */

/* Never inlined: the stale words of its frame are then below the frame of the next search, which skips them. */
static CC_NOINLINE void print_unreachable(struct out *out, const struct unreachable *found) {
    unsigned n = found->count, shown = 0;
    if (n == 0) return;
    cc__out(
        out,
        "%u fiber%s can never continue: nothing that can run refers to what %s for (all memory was scanned); only a "
        "cancellation can end %s:\n",
        n, cc__out_s(n), n == 1 ? "it waits" : "they wait", n == 1 ? "the wait" : "these waits");
    for (unsigned i = 0; i < n && i < found->max; i++) {
        struct view v;
        char who[96], wait[DESCRIBE_MAX];
        if (!cc__view_take(found->slot[i], true, &v)) continue;
        cc__view_trim(&v);
        cc__describe_fiber(&v, who, sizeof who);
        cc__describe_wait(cc__view_what(&v), wait, sizeof wait);
        cc__out(out, "  %s waits %s\n", who, wait);
        cc__dump_frames(out, &v, "      ");
        shown++;
    }
    if (n > shown) cc__out(out, "  and %u more\n", n - shown);
}

void cc__dump_unreachable(struct out *out, bool patient) {
    uint32_t slots[UNREACHABLE_NAMED];
    struct unreachable found = {.max = UNREACHABLE_NAMED, .slot = slots};
    const char *why = cc__unreachable_find(&found, patient);
    if (why != NULL) cc__out(out, "fibers that can never continue were not searched for: %s\n", why);
    print_unreachable(out, &found);
}

/* ---- nurseries ---- */

void cc__dump_nurseries(struct out *out) {
    enum { SHOWN = 64 };
    struct scope_seen *seen = cc__mem_alloc(SHOWN * sizeof *seen);
    if (seen == NULL) return;
    unsigned n = cc__scopes_list(seen, SHOWN);
    uint64_t now = cc__clock_now();
    if (n > 0) cc__out(out, "nurseries and scopes:\n");
    for (unsigned i = 0; i < n && i < SHOWN; i++) {
        const struct scope_seen *s = &seen[i];
        cc__out(out, "  %*s%s%s%s%s (%p): %u child%s, %u fiber%s in it%s", (int)(2 * s->depth), "",
                s->nursery ? "nursery" : "scope", cc__quoted(s->name), (const void *)s->at, s->children,
                s->children == 1 ? "" : "ren", s->members, cc__out_s(s->members), s->cancelled ? ", cancelled" : "");
        if (s->deadline != UINT64_MAX && s->deadline > now)
            cc__out(out, ", deadline in %.3g s", (double)(s->deadline - now) * 1e-9);
        else if (s->deadline != UINT64_MAX)
            cc__out(out, ", deadline passed %.3g s ago", (double)(now - s->deadline) * 1e-9);
        cc__out(out, "\n");
    }
    if (n > SHOWN) cc__out(out, "  and %u more\n", n - SHOWN);
    explicit_bzero(seen, SHOWN * sizeof *seen); /* some are on stacks: see cc__dump_unreachable */
    cc__mem_free(seen);
}

/* ---- fibers ---- */

static void print_site(struct out *out, const struct view *v, bool differ) {
    char text[400];
    if (v->site != NULL) {
        cc__symbol_text(v->site, text, sizeof text);
        cc__out(out, "    started by %s%s\n", text, differ ? ", and others" : "");
    }
    if (v->frames == 0 && v->fn != NULL) {
        cc__symbol_text((const char *)(uintptr_t)v->fn + 1, text, sizeof text);
        cc__out(out, "    its function is %s\n", text);
    }
}

static void print_shape(struct out *out, const struct shape *s, uint64_t now,
                        void (*more)(struct out *, struct fiber *, struct wait_what)) {
    const struct view *v = &s->like;
    const char *how = v->moves                                    ? "keeps changing state (no consistent snapshot)"
                      : v->state == FIBER_RUNNABLE && !v->started ? "has not run yet"
                      : v->state == FIBER_RUNNABLE                ? "is ready to run"
                      : v->state == FIBER_RUNNING                 ? "runs"
                      : v->state == FIBER_PARKED && v->timed      ? "starts at a later time"
                                                                  : "waits";
    if (s->count > 1)
        cc__out(out, "%llu fibers, %s%s%s:\n", (unsigned long long)s->count, cc__state_name(v->state),
                v->state == FIBER_PARKED ? ", " : "", v->state == FIBER_PARKED ? cc__park_name(v->reason) : "");
    for (uint64_t i = 0; i < s->count && i < SURVEY_NAMED; i++) {
        char who[96], wait[DESCRIBE_MAX] = "", since[64] = "";
        struct view named = {
            .slot = s->named[i].slot, .generation = s->named[i].generation, .worker = s->named[i].worker};
        memcpy(named.name, s->named[i].name, sizeof named.name);
        cc__describe_fiber(&named, who, sizeof who);
        if (v->state == FIBER_PARKED && !v->moves && !v->timed) {
            cc__describe_wait(s->named[i].what, wait, sizeof wait);
            cc__describe_since(s->named[i].from, s->named[i].to, now, since, sizeof since);
        } else if (v->state == FIBER_RUNNING && s->named[i].worker >= 0) {
            snprintf(wait, sizeof wait, "on worker %d", s->named[i].worker);
        }
        cc__out(out, "%s%s %s%s%s%s%s\n", s->count > 1 ? "  " : "", who, how, wait[0] ? " " : "", wait,
                since[0] ? ", " : "", since);
        if (since[0] && more != NULL) more(out, cc__pool_at(s->named[i].slot), s->named[i].what);
    }
    if (s->count > SURVEY_NAMED)
        cc__out(out, "  and %llu more like them\n", (unsigned long long)(s->count - SURVEY_NAMED));
    print_site(out, v, s->sites_differ);
    cc__dump_frames(out, v, "    ");
}

void cc__dump_fibers(struct out *out, const struct survey *survey,
                     void (*more)(struct out *, struct fiber *, struct wait_what)) {
    for (unsigned i = 0; i < survey->count; i++) print_shape(out, &survey->shapes[i], survey->now, more);
    if (survey->left_out > 0)
        cc__out(out, "and %llu more in other places, which are left out\n", (unsigned long long)survey->left_out);
    cc__dump_missing(out);
}

void cc__dump_blocked(struct out *out, uint64_t now) {
    enum { SHOWN = 32 };
    struct blocked_seen seen[SHOWN];
    unsigned n = cc__blocked_list(seen, SHOWN);
    for (unsigned i = 0; i < n && i < SHOWN; i++) {
        char wait[DESCRIBE_MAX], since[64];
        cc__describe_wait(seen[i].what, wait, sizeof wait);
        cc__describe_since(seen[i].since, seen[i].since, now, since, sizeof since);
        cc__out(out, "OS thread %d waits %s, %s\n", seen[i].tid, wait, since);
    }
    if (n > SHOWN) cc__out(out, "and %u more OS thread%s\n", n - SHOWN, cc__out_s(n - SHOWN));
}

void cc__dump_abandoned(struct out *out, uint64_t now) {
    enum { SHOWN = 32 };
    struct blocking_seen seen[SHOWN];
    unsigned n = cc__blocking_list(seen, SHOWN);
    for (unsigned i = 0; i < n && i < SHOWN; i++) {
        char function[400], since[64];
        if (!seen[i].abandoned) continue; /* the fiber or thread that waits for it is listed */
        cc__symbol_text((const char *)(uintptr_t)seen[i].fn + 1, function, sizeof function);
        cc__describe_since(seen[i].since, seen[i].since, now, since, sizeof since);
        cc__out(out, "OS thread %d is in a blocking call that its caller has abandoned, %s: %s\n", seen[i].tid, since,
                function);
    }
    if (n > SHOWN) cc__out(out, "and %u more blocking call%s\n", n - SHOWN, cc__out_s(n - SHOWN));
}

/* ---- the whole dump ---- */

static void print_held(struct out *out, struct fiber *f, struct wait_what what) {
    (void)what;
    cc__pthreads_print(out, f);
}

int cc__dump_text(struct out *out) {
    struct survey survey;
    uint64_t now = cc__clock_now();
    unsigned workers = cc__sched_open();
    unsigned long long fibers = cc__view_count();
    cc__out(out, "ccc: dump: %u worker%s, %llu fiber%s\n", workers, cc__out_s(workers), fibers, cc__out_s(fibers));
    cc__dump_workers(out);
    cc__dump_nurseries(out);
    cc__dump_unreachable(out, false); /* first: the search would find addresses that the other parts store */
    int rc = cc__survey_take(&survey);
    if (rc == 0) {
        cc__dump_fibers(out, &survey, print_held);
        cc__survey_free(&survey);
    } else {
        cc__out(out, "there is no memory to list the fibers\n");
    }
    cc__dump_blocked(out, now);
    cc__dump_abandoned(out, now);
    cc__out(out, "ccc: end of dump\n");
    cc__out_flush(out);
    return rc;
}
