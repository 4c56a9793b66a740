/* scopes.c - the tree of scopes, collected from the fibers that are in them or wait for them; listed from the top. */
#include "inspect/survey.h"

#include "base/mem.h"
#include "os/safe_copy.h"

#include <string.h>

enum { KNOWN_FIRST = 64, KNOWN_MAX = 1 << 20 };

/* Those found so far. Numbers in the lists are counted from 1; 0: none. */
struct known {
    unsigned count, room; /* room: a power of two */
    struct node {
        struct scope_seen scope;
        uint32_t up, below, next; /* the one around it, the first one in it, the next one beside it */
    } * node;
    uint32_t *table; /* 2 * room of them, by a hash of the address */
};

bool cc__scope_read(const struct scope *at, struct scope_seen *seen) {
    CCNursery n;
    if (!cc__safe_copy(&n.scope, at, sizeof n.scope)) return false;
    *seen = (struct scope_seen){.at = at,
                                .parent = n.scope.parent,
                                .children = n.scope.children,
                                .nursery = n.scope.nursery,
                                .cancelled = cc__get(&n.scope.cancelled) != 0,
                                .deadline = cc__get(&n.scope.deadline)};
    if (!seen->nursery || !cc__safe_copy(&n, at, sizeof n)) return true;
    memcpy(seen->name, n.name, sizeof seen->name - 1);
    return true;
}

/* Its place in the table, or the free one where it belongs. */
static uint32_t *place_of(const struct known *known, const struct scope *at) {
    size_t mask = 2 * (size_t)known->room - 1, i = (size_t)((uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (known->table[i] != 0 && known->node[known->table[i] - 1].scope.at != at) i = (i + 1) & mask;
    return &known->table[i];
}

/* Some scopes are on stacks, and unreachable.c scans all memory for addresses. */
static void forget(struct known *known) {
    if (known->node != NULL) explicit_bzero(known->node, known->room * sizeof *known->node);
    cc__mem_free(known->node);
    cc__mem_free(known->table);
    *known = (struct known){0};
}

/* Room for one more. False: no memory, or there are too many. */
static bool make_room(struct known *known) {
    if (known->count < known->room) return true;
    struct known larger = {.count = known->count, .room = known->room != 0 ? 2 * known->room : KNOWN_FIRST};
    if (larger.room > KNOWN_MAX) return false;
    larger.node = cc__mem_alloc(larger.room * sizeof *larger.node);
    larger.table = cc__mem_alloc(2 * (size_t)larger.room * sizeof *larger.table);
    if (larger.node == NULL || larger.table == NULL) {
        forget(&larger);
        return false;
    }
    if (known->count > 0) memcpy(larger.node, known->node, known->count * sizeof *larger.node);
    for (unsigned i = 0; i < larger.count; i++) *place_of(&larger, larger.node[i].scope.at) = i + 1;
    forget(known);
    *known = larger;
    return true;
}

/* The scope, and all above it. Returns the scope; NULL: it cannot be read. */
static struct scope_seen *know(struct known *known, const struct scope *first) {
    for (const struct scope *at = first; at != NULL && make_room(known) && *place_of(known, at) == 0;) {
        struct node *added = &known->node[known->count];
        *added = (struct node){.up = 0};
        if (!cc__scope_read(at, &added->scope)) break;
        *place_of(known, at) = ++known->count;
        at = added->scope.parent;
    }
    uint32_t number = known->room != 0 ? *place_of(known, first) : 0;
    return number != 0 ? &known->node[number - 1].scope : NULL;
}

static void collect(struct known *known) {
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct view v;
        if (!cc__view_take(slot, false, &v) || v.moves) continue;
        if (v.scope != NULL) {
            struct scope_seen *s = know(known, v.scope);
            if (s != NULL) s->members++;
        }
        if (v.state == FIBER_PARKED && cc__park_object(v.reason) == OBJECT_NURSERY)
            (void)know(known, (const struct scope *)v.object);
    }
}

/* Makes the lists, in the order in which the scopes were found. Returns the first one that is in no other. */
static uint32_t link_all(struct known *known) {
    uint32_t top = 0;
    for (uint32_t i = known->count; i > 0; i--) {
        struct node *node = &known->node[i - 1];
        node->up = node->scope.parent != NULL ? *place_of(known, node->scope.parent) : 0;
        uint32_t *list = node->up != 0 ? &known->node[node->up - 1].below : &top;
        node->next = *list;
        *list = i;
    }
    return top;
}

/* Each is followed by those in it. */
unsigned cc__scopes_list(struct scope_seen *seen, unsigned max) {
    struct known known = {0};
    unsigned n = 0, depth = 0;
    collect(&known);
    for (uint32_t i = link_all(&known); i != 0; n++) {
        const struct node *node = &known.node[i - 1];
        if (n < max) {
            seen[n] = node->scope;
            seen[n].depth = depth;
        }
        if (node->below != 0) {
            i = node->below;
            depth++;
            continue;
        }
        for (; node->next == 0 && node->up != 0; depth--) node = &known.node[node->up - 1];
        i = node->next;
    }
    forget(&known);
    return n;
}
