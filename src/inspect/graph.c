/* graph.c - the wait-for graph: edges and cycles. */
#include "inspect/waits.h"

#include "base/mem.h"
#include "os/safe_copy.h"

#include <string.h>

/* ---- edges ---- */

enum { NEARBY = 32 }; /* words that are searched behind a pointer: the beginning of a struct */

/* Copies what a word of the fiber's points to: a channel is often a member of a struct. Not from the fiber's own stack:
 * its live part is searched anyway, and the rest is stale. Nor from records of fibers, which hold what those wait for.
 */
static bool copy_near(uintptr_t near[NEARBY], const struct view *v, uintptr_t word) {
    if (word % sizeof(void *) != 0 || word <= 4096 || (word >= v->low && word < v->high) || cc__pool_slab_of(word) != 0)
        return false;
    return cc__safe_copy(near, (const void *)word, NEARBY * sizeof *near);
}

static bool among(const uintptr_t *words, size_t n, uintptr_t value) {
    for (size_t i = 0; i < n; i++)
        if (words[i] == value) return true;
    return false;
}

/* Calls fn for parts of the live part of the fiber's stack, or its arguments if it has not run, until fn returns true.
 * False: it never did. */
static bool each_part(const struct view *v,
                      bool (*fn)(void *arg, const struct view *v, const uintptr_t *words, size_t n), void *arg) {
    uintptr_t words[128];
    if (!v->started)
        return v->state == FIBER_RUNNABLE && cc__safe_copy(words, v->fiber->args, FIBER_INLINE_ARGS) &&
               fn(arg, v, words, FIBER_INLINE_ARGS / sizeof words[0]);
    uintptr_t from = v->sp != 0 ? v->sp : v->low;
    for (uintptr_t at = from & ~(uintptr_t)7; at < v->high;) {
        size_t n = v->high - at < sizeof words ? v->high - at : sizeof words;
        if (!cc__safe_copy(words, (const void *)at, n)) return false;
        if (fn(arg, v, words, n / sizeof words[0])) return true;
        at += n;
    }
    return false;
}

static bool has_value(void *value, const struct view *v, const uintptr_t *words, size_t n) {
    uintptr_t near[NEARBY], wanted = *(const uintptr_t *)value;
    if (among(words, n, wanted)) return true;
    for (size_t i = 0; i < n; i++)
        if (copy_near(near, v, words[i]) && among(near, NEARBY, wanted)) return true;
    return false;
}

/* Whether it holds that value, or memory that it points to does. */
static bool mentions(const struct view *v, uintptr_t value) {
    return each_part(v, has_value, &value);
}

/* ---- references: which fibers mention what others wait for, found by one pass over all stacks ---- */

enum { EDGES = 8, ROOM_MAX = 1 << 17 };

struct reference {
    uintptr_t object;
    unsigned count; /* of the fibers that mention it */
    struct fiber *fiber[EDGES + 1], *last;
};

/* Valid from cc__graph_begin to cc__graph_end. */
static struct {
    size_t room, objects; /* room: a power of two; 0: there is none */
    uintptr_t least, most;
    struct reference *at;
} references;

/* Its entry, or the free one where it belongs. */
static struct reference *reference_of(uintptr_t object) {
    size_t mask = references.room - 1, i = (size_t)((uint64_t)object * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (references.at[i].object != 0 && references.at[i].object != object) i = (i + 1) & mask;
    return &references.at[i];
}

static void want(uintptr_t object) {
    if (object == 0 || 2 * references.objects >= references.room) return; /* others are searched for one by one */
    struct reference *r = reference_of(object);
    references.objects += r->object == 0;
    r->object = object;
    if (references.least == 0 || object < references.least) references.least = object;
    if (object > references.most) references.most = object;
}

static bool is_for_users(const struct arm *arm) {
    return arm->kind != CC_CASE_JOIN && arm->kind != CC_CASE_NURSERY_END && !cc__arm_is_fd(arm);
}

/* The objects that only users can serve; returns how many there are, the same one perhaps several times. */
static size_t each_object(void (*fn)(uintptr_t object)) {
    struct view v;
    struct arm arms[EDGES];
    size_t count = 0;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        if (!cc__view_take(slot, false, &v) || v.state != FIBER_PARKED || v.moves) continue;
        enum wait_object kind = cc__park_object(v.reason);
        if (kind == OBJECT_CHANNEL) {
            count++;
            if (fn != NULL) fn(v.object);
        }
        uint32_t n = kind == OBJECT_ARMS ? cc__wait_arms(cc__view_what(&v), arms, EDGES) : 0;
        for (uint32_t i = 0; i < n && i < EDGES; i++) {
            if (!is_for_users(&arms[i])) continue;
            count++;
            if (fn != NULL) fn((uintptr_t)arms[i].object);
        }
    }
    return count;
}

/* Returns how many objects the fiber mentions that it did not before. */
static size_t note_words(struct fiber *f, const uintptr_t *words, size_t n) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (words[i] < references.least || words[i] > references.most) continue;
        struct reference *r = reference_of(words[i]);
        if (r->object == 0 || r->last == f) continue;
        r->last = f;
        if (r->count < array_len(r->fiber)) r->fiber[r->count] = f;
        r->count++;
        found++;
    }
    return found;
}

/* True: the fiber mentions all objects. */
static bool note_part(void *arg, const struct view *v, const uintptr_t *words, size_t n) {
    size_t *found = arg;
    *found += note_words(v->fiber, words, n);
    for (size_t i = 0; i < n && *found < references.objects; i++) {
        uintptr_t near[NEARBY];
        if (copy_near(near, v, words[i])) *found += note_words(v->fiber, near, NEARBY);
    }
    return *found == references.objects;
}

void cc__graph_begin(void) {
    struct view v;
    size_t objects = each_object(NULL), room = 64;
    if (references.room != 0 || objects == 0) return;
    while (room < 4 * objects && room < ROOM_MAX) room *= 2;
    references.at = cc__mem_alloc(room * sizeof *references.at);
    if (references.at == NULL) return;
    references.room = room;
    references.objects = references.least = references.most = 0;
    (void)each_object(want);
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        size_t found = 0;
        if (cc__view_take(slot, false, &v)) (void)each_part(&v, note_part, &found);
    }
}

void cc__graph_end(void) {
    if (references.room == 0) return;
    explicit_bzero(references.at, references.room * sizeof *references.at); /* unreachable.c scans all memory */
    cc__mem_free(references.at);
    references.at = NULL;
    references.room = 0;
}

/* ---- servers ---- */

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

/* By the references: the fiber itself, which waits for it, is one of those that mention it. False: they do not have
 * the object. */
static bool add_known_users(struct servers *s, uintptr_t object, const struct fiber *self) {
    const struct reference *r = references.room != 0 ? reference_of(object) : NULL;
    if (r == NULL || r->object == 0) return false;
    unsigned listed = r->count < array_len(r->fiber) ? r->count : (unsigned)array_len(r->fiber), others = 0;
    for (unsigned i = 0; i < listed; i++) {
        if (r->fiber[i] == self) continue;
        add(s, r->fiber[i]);
        others++;
    }
    if (r->count > listed) s->count += r->count - 1 - others;
    return true;
}

static void add_users(struct servers *s, uintptr_t channel, const struct fiber *self) {
    struct view v;
    if (add_known_users(s, channel, self)) return;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++)
        if (cc__view_take(slot, false, &v) && v.fiber != self && mentions(&v, channel)) add(s, v.fiber);
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
    case OBJECT_ONCE:
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
            else if (is_for_users(&arms[i]))
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

enum { LOOKED_AT = 512 };

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
    case OBJECT_ONCE:
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

/* Two that wait for one channel are on the same side of it: neither can end the wait of the other. */
static bool wait_alike(const struct node *a, const struct node *b) {
    return cc__park_object(a->what.reason) == OBJECT_CHANNEL && a->what.reason == b->what.reason &&
           a->what.object == b->what.object;
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
        if (to == NULL || to->colour == CLOSED || wait_alike(n, to)) continue;
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
