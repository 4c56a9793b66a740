/* scopes.c - the tree of scopes, collected from the fibers that are in them or wait for them; listed from the top. */
#include "inspect/survey.h"

#include "base/mem.h"
#include "os/safe_copy.h"

#include <string.h>

enum { KNOWN_MAX = 512, DEPTH_MAX = 64 };

struct known {
    unsigned count;
    struct scope_seen scope[KNOWN_MAX];
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

static struct scope_seen *find(struct known *known, const struct scope *at) {
    for (unsigned i = 0; i < known->count; i++)
        if (known->scope[i].at == at) return &known->scope[i];
    return NULL;
}

/* The scope, and all above it. */
static void know(struct known *known, const struct scope *at) {
    while (at != NULL && known->count < KNOWN_MAX && find(known, at) == NULL) {
        struct scope_seen *added = &known->scope[known->count];
        if (!cc__scope_read(at, added)) return;
        known->count++;
        at = added->parent;
    }
}

static void collect(struct known *known) {
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct view v;
        if (!cc__view_take(slot, false, &v) || v.moves) continue;
        if (v.scope != NULL) {
            know(known, v.scope);
            struct scope_seen *s = find(known, v.scope);
            if (s != NULL) s->members++;
        }
        if (v.state == FIBER_PARKED && cc__park_object(v.reason) == OBJECT_NURSERY)
            know(known, (const struct scope *)v.object);
    }
}

/* Lists the scopes right below `parent`, each followed by those below it. */
static unsigned draw(const struct known *known, const struct scope *parent, unsigned depth, struct scope_seen *seen,
                     unsigned n, unsigned max) {
    if (depth > DEPTH_MAX) return n;
    for (unsigned i = 0; i < known->count; i++) {
        if (known->scope[i].parent != parent) continue;
        if (n < max) {
            seen[n] = known->scope[i];
            seen[n].depth = depth;
        }
        n = draw(known, known->scope[i].at, depth + 1, seen, n + 1, max);
    }
    return n;
}

unsigned cc__scopes_list(struct scope_seen *seen, unsigned max) {
    struct known *known = cc__mem_alloc(sizeof *known);
    if (known == NULL) return 0;
    known->count = 0;
    collect(known);
    unsigned n = draw(known, NULL, 0, seen, 0, max);
    cc__mem_free(known);
    return n;
}
