/* graph.c - the wait-for graph: edges and cycles. */
#include "inspect/waits.h"

#include "base/mem.h"
#include "os/safe_copy.h"

#include <string.h>

/* ---- edges ---- */

enum { NEARBY = 32 }; /* words that are searched behind a pointer: the beginning of a struct */

/* Whether the value is among n words or, deep, in memory that one of them points to: a channel is often a member of a
 * struct. */
static bool among(const uintptr_t *words, size_t n, uintptr_t value, bool deep) {
    for (size_t i = 0; i < n; i++)
        if (words[i] == value) return true;
    for (size_t i = 0; deep && i < n; i++) {
        uintptr_t near[NEARBY];
        if (words[i] % sizeof(void *) == 0 && words[i] > 4096 &&
            cc__safe_copy(near, (const void *)words[i], sizeof near) && among(near, NEARBY, value, false))
            return true;
    }
    return false;
}

/* Whether the live part of the fiber's stack holds that value, or its arguments if it has not run; deep: or memory that
 * these point to. */
static bool mentions(const struct view *v, uintptr_t value, bool deep) {
    uintptr_t words[128];
    if (!v->started)
        return v->state == FIBER_RUNNABLE && cc__safe_copy(words, v->fiber->args, FIBER_INLINE_ARGS) &&
               among(words, FIBER_INLINE_ARGS / sizeof words[0], value, deep);
    uintptr_t from = v->sp != 0 ? v->sp : v->low;
    for (uintptr_t at = from & ~(uintptr_t)7; at < v->high;) {
        size_t n = v->high - at < sizeof words ? v->high - at : sizeof words;
        if (!cc__safe_copy(words, (const void *)at, n)) return false;
        if (among(words, n / sizeof words[0], value, deep)) return true;
        at += n;
    }
    return false;
}

struct servers {
    struct fiber **list;
    unsigned count, max;
};

static void add(struct servers *s, struct fiber *f) {
    for (unsigned i = 0; i < s->count && i < s->max; i++)
        if (s->list[i] == f) return;
    if (s->count < s->max) s->list[s->count] = f;
    s->count++;
}

static void add_users(struct servers *s, uintptr_t channel, const struct fiber *self) {
    struct view v;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++)
        if (cc__view_take(slot, false, &v) && v.fiber != self && mentions(&v, channel, true)) add(s, v.fiber);
}

static void add_children(struct servers *s, const struct scope *nursery, const struct fiber *self) {
    struct view v;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        if (!cc__view_take(slot, false, &v) || v.fiber == self) continue;
        struct scope scope;
        const struct scope *at = v.scope;
        for (int up = 0; at != NULL && at != nursery && up < 64; up++)
            at = cc__safe_copy(&scope, at, sizeof scope) ? scope.parent : NULL;
        if (at == nursery) add(s, v.fiber);
    }
}

unsigned cc__graph_servers(struct wait_what what, const struct fiber *self, struct fiber **servers, unsigned max) {
    struct servers s = {servers, 0, max};
    struct fiber *one = NULL;
    struct arm arms[8];
    enum holder kind;
    switch (cc__park_object(what.reason)) {
    case OBJECT_TASK:
        one = (struct fiber *)(uintptr_t)what.object;
        break;
    case OBJECT_MUTEX:
    case OBJECT_RWLOCK:
        one = cc__wait_holder(what, &kind);
        break;
    case OBJECT_NURSERY:
        add_children(&s, what.object, self);
        break;
    case OBJECT_CHANNEL:
        add_users(&s, (uintptr_t)what.object, self);
        break;
    case OBJECT_ARMS: {
        uint32_t count = cc__wait_arms(what, arms, 8);
        for (uint32_t i = 0; i < count && i < 8; i++) {
            if (arms[i].kind == CC_CASE_JOIN)
                add(&s, arms[i].object);
            else if (arms[i].kind == CC_CASE_NURSERY_END)
                add_children(&s, arms[i].object, self);
            else if (!cc__arm_is_fd(&arms[i]))
                add_users(&s, (uintptr_t)arms[i].object, self);
        }
        break;
    }
    default:
        break;
    }
    if (one != NULL) add(&s, one); /* also the fiber itself: that is a cycle of one */
    return s.count;
}

/* ---- cycles ---- */

enum { LOOKED_AT = 512, EDGES = 8 };

struct node {
    struct fiber *fiber;
    struct wait_what what;
    unsigned edges, next;
    struct fiber *edge[EDGES];
    enum { NEW, OPEN, CLOSED } colour;
};

struct graph {
    unsigned count, depth;
    struct node node[LOOKED_AT];
    unsigned path[LOOKED_AT];
};

static struct node *find(struct graph *g, const struct fiber *f) {
    for (unsigned i = 0; i < g->count; i++)
        if (g->node[i].fiber == f) return &g->node[i];
    return NULL;
}

/* Only the fibers that its edges lead to can end such a wait. */
static bool is_certain(struct wait_what what) {
    switch (cc__park_object(what.reason)) {
    case OBJECT_TASK:
    case OBJECT_MUTEX:
    case OBJECT_RWLOCK:
    case OBJECT_NURSERY:
        return true;
    default:
        return false;
    }
}

static bool fill(struct graph *g, bool hints) {
    struct view v;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        if (!cc__view_take(slot, false, &v) || v.state != FIBER_PARKED || v.moves) continue;
        if (!hints && !is_certain(cc__view_what(&v))) continue;
        if (g->count == LOOKED_AT) return false;
        struct node *n = &g->node[g->count++];
        *n = (struct node){.fiber = v.fiber, .what = cc__view_what(&v)};
    }
    return true;
}

static void open_node(struct graph *g, struct node *n) {
    n->colour = OPEN;
    unsigned all = cc__graph_servers(n->what, n->fiber, n->edge, EDGES);
    n->edges = all < EDGES ? all : EDGES;
    g->path[g->depth++] = (unsigned)(n - g->node);
}

/* Depth-first search. Returns the index in the current path where the cycle begins; -1: there is none. */
static int walk(struct graph *g, struct node *start) {
    open_node(g, start);
    while (g->depth > 0) {
        struct node *n = &g->node[g->path[g->depth - 1]];
        if (n->next == n->edges) {
            n->colour = CLOSED;
            g->depth--;
            continue;
        }
        struct node *to = find(g, n->edge[n->next++]);
        if (to == NULL || to->colour == CLOSED) continue;
        if (to->colour == NEW) {
            open_node(g, to);
            continue;
        }
        for (unsigned i = 0; i < g->depth; i++)
            if (&g->node[g->path[i]] == to) return (int)i;
    }
    return -1;
}

unsigned cc__graph_cycle(struct graph_wait *cycle, unsigned max, bool hints) {
    struct graph *g = cc__mem_alloc(sizeof *g);
    if (g == NULL) return 0;
    g->count = g->depth = 0;
    int first = -1;
    if (fill(g, hints))
        for (unsigned i = 0; i < g->count && first < 0; i++)
            if (g->node[i].colour == NEW) first = walk(g, &g->node[i]);
    unsigned length = first >= 0 ? g->depth - (unsigned)first : 0;
    for (unsigned i = 0; i < length && i < max; i++) {
        const struct node *n = &g->node[g->path[(unsigned)first + i]];
        cycle[i] = (struct graph_wait){n->fiber, n->what};
    }
    explicit_bzero(g, sizeof *g); /* unreachable.c scans all memory for addresses */
    cc__mem_free(g);
    return length;
}
