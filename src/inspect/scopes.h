/* scopes.h - the tree of nurseries and scopes, looked at from outside. */
#ifndef CC_INSPECT_SCOPES_H
#define CC_INSPECT_SCOPES_H

#include "inspect/view.h"

/* The scopes that live, as far as fibers lead to them: at most `max`, parents before what is below them. Returns how
 * many were found. */
struct scope_seen {
    const struct scope *at, *parent;
    uint32_t children, members;
    bool nursery, cancelled;
    uint64_t deadline; /* UINT64_MAX: none */
    unsigned depth;
    char name[CC_FIBER_NAME_MAX];
};
unsigned cc__scopes_list(struct scope_seen *seen, unsigned max);

#endif
