/* end.c - the end of a nursery's children, as an arm of a select.
 *
 * The scope's lock guards the number of children, and is taken before those of the scopes below (SCOPE-1). A select
 * takes its locks in the order of their addresses, so it must not take this one. The arms of a nursery therefore have
 * a lock of their own, taken inside the scope's, and a copy of the one bit that they check.
 *
 * END-1  Once the first select has prepared an arm, `end.reached` is true iff there is no child: it changes with the
 *        number, under both locks. Before that it is not read.
 * END-2  The last child claims the arms before it releases the scope's lock, and wakes them after that. Freeing the
 *        nursery takes that lock, so a select woken by the end cannot free it before the last access (CHILD-1).
 */
#include "nursery/nursery.h"

#include <errno.h>

void cc__nursery_not_ended_locked(CCNursery *n) { /* END-1 */
    cc__lock_take(&n->end.lock);
    n->end.reached = false;
    cc__lock_release(&n->end.lock);
}

void cc__nursery_ended_locked(CCNursery *n, struct wakes *wakes) { /* END-2 */
    cc__lock_take(&n->end.lock);
    n->end.reached = true;
    while (!cc__list_empty(&n->end.arms)) {
        struct arm *arm = container_of(cc__list_pop_front(&n->end.arms), struct arm, link);
        (void)cc__arm_claim_locked(wakes, arm, 0); /* false: something else has woken that select */
    }
    cc__lock_release(&n->end.lock);
}

static bool has_ended(CCNursery *n) {
    cc__lock_take(&n->scope.lock);
    bool ended = n->scope.children == 0;
    cc__lock_release(&n->scope.lock);
    return ended;
}

static int look(struct worker *w, const CCCase *c) {
    if (unlikely(c->nursery == NULL)) return EINVAL;
    if (unlikely(cc__nursery_is_child(c->nursery))) return EDEADLK;
    if (w != NULL) return LOOK_OUTSIDE; /* has_ended takes a lock */
    return has_ended(c->nursery) ? LOOK_READY : LOOK_NOT_READY;
}

static int try(const CCCase *c) {
    return has_ended(c->nursery) ? 0 : ARM_WAIT;
}

static unsigned prepare(struct arm *arm, const CCCase *c) {
    CCNursery *n = c->nursery;
    cc__lock_take(&n->scope.lock);
    if (!n->selected) {
        cc__list_init(&n->end.arms);
        n->end.reached = n->scope.children == 0;
        n->selected = true;
    }
    cc__lock_release(&n->scope.lock);
    arm->object = n;
    arm->lock = &n->end.lock;
    return WAKE_OBJECT;
}

static int look_locked(struct arm *arm) {
    return ((CCNursery *)arm->object)->end.reached ? ARM_AGAIN : 0;
}

static void link_locked(struct arm *arm) {
    cc__list_push_back(&((CCNursery *)arm->object)->end.arms, &arm->link);
}

static void unlink_arm(struct arm *arm) {
    cc__lock_take(arm->lock);
    if (arm->linked) cc__list_remove(&arm->link);
    arm->linked = false;
    cc__lock_release(arm->lock);
}

const struct arm_ops cc__arm_nursery_end = {.look = look,
                                            .try = try,
                                            .prepare = prepare,
                                            .link = link_locked,
                                            .unlink = unlink_arm,
                                            .look_locked = look_locked};
