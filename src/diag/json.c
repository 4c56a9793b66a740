/* json.c - the dump for programs. The schema is in docs/man/cc_diag.3.
 *
 * Fibers are not grouped. Equal stacks are written once, after the fibers, which refer to them by number.
 */
#include "diag/dump.h"

#include "base/mem.h"
#include "inspect/symbol.h"
#include "os/clock.h"
#include "sched/inject.h"

#include <errno.h>
#include <string.h>

enum {
    FIBERS_MAX = 100000, /* bounds, like those of the text: some 30 MB at most */
    STACKS_MAX = 1024,
    SCOPES_MAX = 512,
    BLOCKED_MAX = 256,
};

struct stack_seen {
    unsigned frames;
    uint64_t guessed;
    const void *frame[VIEW_FRAMES];
};

struct seen {
    unsigned count;
    struct stack_seen stack[STACKS_MAX];
};

/* The stack's number; -1: the fiber has none, or the table is full. */
static int number_of(struct seen *seen, const struct view *v) {
    if (v->frames == 0) return -1;
    for (unsigned i = 0; i < seen->count; i++)
        if (seen->stack[i].frames == v->frames && seen->stack[i].guessed == v->doubt.guessed &&
            memcmp(seen->stack[i].frame, v->frame, v->frames * sizeof v->frame[0]) == 0)
            return (int)i;
    if (seen->count == STACKS_MAX) return -1;
    struct stack_seen *s = &seen->stack[seen->count];
    s->frames = v->frames;
    s->guessed = v->doubt.guessed;
    memcpy(s->frame, v->frame, v->frames * sizeof v->frame[0]);
    return (int)seen->count++;
}

static void print_pointer(struct out *out, const void *address) {
    if (address != NULL)
        cc__out(out, "\"%p\"", address);
    else
        cc__out(out, "null");
}

static void print_text(struct out *out, const char *key, const char *text) {
    cc__out(out, ",\"%s\":", key);
    cc__out_quoted(out, text);
}

/* In the form of the fibers' own ids. */
static void print_id(struct out *out, const char *key, struct fiber *f) {
    cc__out(out, ",\"%s\":\"%u.%u\"", key, cc__view_slot(f), cc__get(&f->generation) & 0x7fffffffu);
}

static void print_address(struct out *out, const char *key, const void *address) {
    struct symbol symbol;
    cc__symbol_find(address, &symbol);
    cc__out(out, "\"%s\":{\"address\":", key);
    print_pointer(out, address);
    print_text(out, "function", symbol.function);
    print_text(out, "file", symbol.file);
    cc__out(out, ",\"line\":%u", symbol.line);
    print_text(out, "module", symbol.module);
    cc__out(out, ",\"offset\":%zu}", symbol.offset);
}

static void print_wait(struct out *out, struct wait_what what, uint64_t from, uint64_t to, uint64_t now) {
    char text[DESCRIBE_MAX];
    enum holder kind;
    cc__describe_wait(what, text, sizeof text);
    print_text(out, "reason", cc__park_name(what.reason));
    cc__out(out, ",\"object\":");
    print_pointer(out, cc__park_object(what.reason) == OBJECT_TIME ? NULL : what.object); /* may be a mark */
    print_text(out, "waits", text);
    cc__out(out, ",\"ns_min\":%llu,\"ns_max\":%llu", (unsigned long long)(to < now ? now - to : 0),
            (unsigned long long)(from < now ? now - from : 0));
    struct fiber *holder = cc__wait_holder(what, &kind);
    if (cc__park_object(what.reason) == OBJECT_TASK) holder = (struct fiber *)(uintptr_t)what.object;
    if (holder != NULL) print_id(out, "for_fiber", holder);
}

static void print_fiber(struct out *out, struct seen *seen, const struct view *v, uint64_t now) {
    cc__out(out, "{\"id\":\"%u.%u\"", v->slot, v->generation);
    print_text(out, "name", v->name);
    cc__out(out, ",\"state\":\"%s\",\"worker\":%d,\"started\":%s,\"moving\":%s,\"scope\":", cc__state_name(v->state),
            v->worker, v->started ? "true" : "false", v->moves ? "true" : "false");
    print_pointer(out, v->scope);
    if (v->state == FIBER_PARKED && !v->moves) print_wait(out, cc__view_what(v), v->from, v->to, now);
    cc__out(out, ",");
    print_address(out, "site", v->site);
    cc__out(out, ",");
    print_address(out, "entry", (const char *)(uintptr_t)v->fn + 1);
    cc__out(out, ",\"stack\":%d}", number_of(seen, v));
}

static void print_fibers(struct out *out, struct seen *seen) {
    uint64_t total = 0, now = cc__clock_now();
    cc__out(out, "\"fibers\":[");
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct view v;
        if (!cc__view_take(slot, total < FIBERS_MAX, &v)) continue;
        if (total++ >= FIBERS_MAX) continue;
        cc__view_trim(&v);
        cc__out(out, total > 1 ? ",\n" : "\n");
        print_fiber(out, seen, &v, now);
    }
    cc__out(out, "],\n\"fibers_total\":%llu,\"fibers_left_out\":%llu,\n", (unsigned long long)total,
            (unsigned long long)(total > FIBERS_MAX ? total - FIBERS_MAX : 0));
}

static void print_stacks(struct out *out, const struct seen *seen) {
    cc__out(out, "\"stacks\":[");
    for (unsigned i = 0; i < seen->count; i++) {
        cc__out(out, "%s\n[", i > 0 ? "," : "");
        for (unsigned k = 0; k < seen->stack[i].frames; k++) {
            cc__out(out, "%s{", k > 0 ? ",\n " : "");
            print_address(out, "at", seen->stack[i].frame[k]);
            cc__out(out, seen->stack[i].guessed >> k & 1 ? ",\"guessed\":true}" : "}");
        }
        cc__out(out, "]");
    }
    cc__out(out, "]");
}

static void print_workers(struct out *out) {
    cc__out(out, "\"workers\":[");
    for_all_workers(i, w) {
        struct fiber *current = cc__get(&w->core.current);
        cc__out(out, "%s\n{\"index\":%u,\"thread\":%d,\"queue\":%u,\"inbox\":%u,\"timers\":%u,\"turns\":%llu",
                i > 0 ? "," : "", i, cc__get(&w->remote.tid), cc__get(&w->runq.count), cc__get(&w->remote.inbox_len),
                cc__timer_count(w), (unsigned long long)cc__get(&w->core.turns));
        if (current != NULL) print_id(out, "runs", current);
        cc__out(out, "}");
    }
    cc__out(out, "],\n\"global_queue\":%llu,\n", (unsigned long long)cc__inject_len());
}

static void print_scopes(struct out *out) {
    struct scope_seen *seen = cc__mem_alloc(SCOPES_MAX * sizeof *seen);
    unsigned n = seen != NULL ? cc__scopes_list(seen, SCOPES_MAX) : 0;
    cc__out(out, "\"scopes\":[");
    for (unsigned i = 0; i < n && i < SCOPES_MAX; i++) {
        cc__out(out, "%s\n{\"at\":\"%p\",\"parent\":", i > 0 ? "," : "", (const void *)seen[i].at);
        print_pointer(out, seen[i].parent);
        cc__out(out, ",\"nursery\":%s", seen[i].nursery ? "true" : "false");
        print_text(out, "name", seen[i].name);
        cc__out(out, ",\"children\":%u,\"fibers\":%u,\"cancelled\":%s}", seen[i].children, seen[i].members,
                seen[i].cancelled ? "true" : "false");
    }
    cc__out(out, "],\"scopes_left_out\":%u,\n", n > SCOPES_MAX ? n - SCOPES_MAX : 0);
    if (seen != NULL) explicit_bzero(seen, SCOPES_MAX * sizeof *seen);
    cc__mem_free(seen);
}

static void print_blocked(struct out *out) {
    struct blocked_seen *seen = cc__mem_alloc(BLOCKED_MAX * sizeof *seen);
    unsigned n = seen != NULL ? cc__blocked_list(seen, BLOCKED_MAX) : 0;
    uint64_t now = cc__clock_now();
    cc__out(out, "\"threads\":[");
    for (unsigned i = 0; i < n && i < BLOCKED_MAX; i++) {
        cc__out(out, "%s\n{\"thread\":%d", i > 0 ? "," : "", seen[i].tid);
        print_wait(out, seen[i].what, seen[i].since, seen[i].since, now);
        cc__out(out, "}");
    }
    cc__out(out, "],\n");
    cc__mem_free(seen);
}

int cc__dump_json(struct out *out) {
    struct seen *seen = cc__mem_alloc(sizeof *seen);
    if (seen == NULL) return ENOMEM;
    seen->count = 0;
    cc__out(out, "{\"ccc_dump\":1,\"inspect\":%s,\n", cc__inspect_missing() == NULL ? "true" : "false");
    print_workers(out);
    print_scopes(out);
    print_blocked(out);
    print_fibers(out, seen);
    print_stacks(out, seen);
    cc__out(out, "}\n");
    cc__out_flush(out);
    cc__mem_free(seen);
    return 0;
}
