/* scopes.c - the model's tree of scopes: cancellations, shields, the result of a nursery's wait; mutexes; the beginning
 * and the end of actors.
 */
#include "ops.h"

#include <stddef.h>

/* From the inside out: what was cancelled counts until a shield hides the rest. */
bool model_cancelled(const struct actor *a) {
    if (a->shield) return false;
    for (const struct model_scope *s = a->scope; s != NULL; s = s->parent) {
        if (s->own || s->pierced) return true;
        if (s->owner == a && s->hides) return false;
    }
    return a->task_cancelled;
}

/* ---- scopes ---- */

struct model_scope *model_scope_new(struct model_scope *parent, struct scope *real, bool nursery, bool keep_going,
                                    uint64_t deadline) {
    unsigned i = 0;
    while (world.scopes[i].used) i++; /* actors times nesting are fewer than there are */
    struct model_scope *s = &world.scopes[i];
    if (i >= world.scopes_used) world.scopes_used = i + 1;
    *s = (struct model_scope){.used = true,
                              .nursery = nursery,
                              .keep_going = keep_going,
                              .real = real,
                              .parent = parent,
                              .deadline = deadline};
    if (parent != NULL && parent->cancelled) {
        s->cancelled = s->owner_cancelled = true;
        s->pierced = parent->pierced;
        s->reason = parent->reason;
    }
    return s;
}

/* Whether its owner is shielded from cancellations above. */
static bool hidden(const struct model_scope *s) {
    if (s->owner == NULL || s->pierced) return false;
    return s->hides || (s->parent != NULL && s->parent->owner == s->owner && !s->parent->owner_cancelled);
}

struct model_scope *model_scope_enter(struct actor *self, struct scope *real, bool nursery, bool keep_going,
                                      uint64_t deadline) {
    if (!world.exact) return NULL;
    ++world.step;
    struct model_scope *s = model_scope_new(self->scope, real, nursery, keep_going, deadline);
    s->outer = self->scope;
    s->owner = self;
    s->hides = self->shield;
    s->owner_cancelled = s->cancelled && !hidden(s);
    self->scope = s;
    self->shield = false;
    return s;
}

void model_scope_leave(struct actor *self, struct model_scope *s) {
    if (!world.exact) return;
    model_look(self);
    ++world.step;
    s->owner = NULL;
    self->scope = s->outer;
    self->shield = s->hides && (self->scope == NULL || !self->scope->pierced);
}

void model_scope_end(struct model_scope *s) {
    if (world.exact) s->used = false;
}

static void spread(struct model_scope *s, int code, bool hides, bool origin) {
    if (s->cancelled && (hides || s->owner_cancelled)) return;
    s->cancelled = true;
    s->owner_cancelled = !hides;
    s->reason = code;
    s->origin = origin;
    for (unsigned i = 0; i < world.scopes_used; i++) {
        struct model_scope *below = &world.scopes[i];
        if (below->used && below->parent == s) spread(below, code, hidden(below), false);
    }
}

void model_cancel(struct model_scope *s, int code) {
    s->own = true;
    spread(s, code, false, true);
}

void model_fail(struct model_scope *s, int code) {
    if (code == ECANCELED && s->cancelled) return;
    bool first = s->code == 0;
    if (first) s->code = code;
    if (first && !s->keep_going) model_cancel(s, code);
}

int model_outcome(const struct model_scope *s) {
    if (s->code != 0 || !s->cancelled) return s->code;
    return s->origin ? s->reason : ECANCELED;
}

bool model_explains(const struct call *c, int rc) {
    const struct model_scope *s = c->nursery;
    if (rc == c->outcome || rc == model_outcome(s)) return true;
    if (s->code != 0 || s->cancelled) return false;
    for (bool own = true; s != NULL; s = s->parent, own = false) /* one that has fired since the last check */
        if (rc == (own ? ETIMEDOUT : ECANCELED) && cc_now_ns() >= s->deadline) return true;
    return false;
}

static void pierce(struct model_scope *s) {
    s->pierced = s->owner_cancelled = true;
    for (unsigned i = 0; i < world.actors_made; i++)
        if (world.actors[i].scope == s) world.actors[i].shield = false;
}

/* An actor waits for this nursery's end, was cancelled meanwhile, and therefore cancels it. */
static bool given_up(const struct model_scope *s) {
    for (unsigned i = 0; i < world.actors_made; i++) {
        const struct actor *a = &world.actors[i];
        if (a->call != NULL && a->call->kind == CALL_CHILDREN && a->call->nursery == s && a->call->to_the_end &&
            model_cancelled(a))
            return true;
    }
    return false;
}

/* Cancelled since the last check, by itself: its deadline has passed, or it was freed. Its reason must be the first of
 * them. */
static bool ended_by_itself(const struct model_scope *s) {
    return !s->own && s->real->own && (cc_now_ns() >= s->deadline || given_up(s));
}

/* Deadlines and grace periods end by themselves (OPS-2). Several may have since the last check, one below the other:
 * each has its own reason, and scopes below without one inherit it. */
static void look_for_ends(void) {
    bool ended[sizeof world.scopes / sizeof *world.scopes] = {false};
    for (unsigned i = 0; i < world.scopes_used; i++) {
        struct model_scope *s = &world.scopes[i];
        if (!s->used || !ended_by_itself(s)) continue;
        s->own = true;
        if (s->owner_cancelled) continue;
        s->cancelled = s->owner_cancelled = ended[i] = true;
        s->reason = s->real->reason.code;
        s->origin = s->real->origin;
    }
    for (unsigned i = 0; i < world.scopes_used; i++)
        for (unsigned k = 0; ended[i] && k < world.scopes_used; k++)
            if (world.scopes[k].used && world.scopes[k].parent == &world.scopes[i])
                spread(&world.scopes[k], world.scopes[i].reason, hidden(&world.scopes[k]), false);
}

/* A scope is looked at before those below it, which were made later and may stand anywhere: hence the second round. */
void model_look_at_scopes(void) {
    for (int round = 0; round < 2; round++) {
        look_for_ends();
        for (unsigned i = 0; i < world.scopes_used; i++) {
            struct model_scope *s = &world.scopes[i];
            if (!s->used) continue;
            bool cancelled = cc__get(&s->real->cancelled) != 0;
            if (s->real->pierced && !s->pierced && s->cancelled) pierce(s);
            if (round == 0) continue;
            REQUIRE(cancelled == s->cancelled, "a scope is %scancelled", cancelled ? "" : "not ");
            REQUIRE(!cancelled || s->real->reason.code == s->reason, "a scope was cancelled by %d, not %d",
                    s->real->reason.code, s->reason);
            REQUIRE(s->real->pierced == s->pierced, "a scope's shields hold, or do not");
            REQUIRE((cc__get(&s->real->owner_cancelled) != 0) == s->owner_cancelled,
                    "the owner of a scope is %scancelled", s->owner_cancelled ? "not " : "");
            if (s->nursery)
                REQUIRE(s->real->children == s->children, "a nursery has %u children, expected %u", s->real->children,
                        s->children);
        }
    }
}

/* ---- shields ---- */

bool model_shield(struct actor *self) {
    if (!world.exact) return false;
    model_look(self);
    ++world.step;
    bool begun = !self->shield && (self->scope == NULL || !self->scope->pierced);
    if (begun) self->shield = true;
    return begun;
}

void model_unshield(struct actor *self, bool begun) {
    if (!world.exact) return;
    model_look(self);
    ++world.step;
    if (begun) self->shield = false;
}

/* ---- actors ---- */

void model_spawned(struct actor *child, struct model_scope *nursery) {
    if (!world.exact) return;
    ++world.step;
    child->base = child->scope = nursery;
    if (nursery != NULL) nursery->children++;
}

void model_started(struct actor *self) {
    if (!world.exact) return;
    model_look(self);
    ++world.step;
}

/* Its function is about to return, and no other actor runs before the runtime has processed the end. */
void model_ended(struct actor *self) {
    self->status = self->panicked ? ENOTRECOVERABLE : 0;
    self->result = self->panicked     ? NULL
                   : self->fails != 0 ? CC_ERROR(self->fails)
                                      : (void *)((uintptr_t)(self->id + 1) * 0x10000);
    if (!world.exact) return;
    model_look(self);
    ++world.step;
    REQUIRE(self->scope == self->base, "actor %u ends in a scope that is not its own", self->id);
    self->ended = true;
    if (self->base != NULL) {
        if (self->panicked)
            model_fail(self->base, ENOTRECOVERABLE);
        else if (self->fails != 0 && !self->reported)
            model_fail(self->base, self->fails);
        self->base->children--;
    }
    for (unsigned i = 0; i < world.actors_made; i++) {
        struct call *c = world.actors[i].call;
        if (c == NULL || c->served || c->gone) continue;
        if (c->kind == CALL_CHILDREN && c->nursery == self->base) c->outcome = model_outcome(c->nursery);
        /* Its failure has cancelled the joiner before its end was published; a joiner that is about to run it sees
         * both. */
        if (model_cancelled(&world.actors[i]) && !model_yields(&world.actors[i])) continue;
        for (unsigned k = 0; k < c->count; k++) {
            if (c->arms[k].kind != ARM_JOIN || c->arms[k].object != self->id) continue;
            model_serve(c, k, self->status, 0);
            c->result = self->result;
            break;
        }
    }
}

/* ---- mutexes ---- */

void model_unlock(struct actor *self, unsigned mutex) {
    if (!world.exact) return;
    ++world.step;
    REQUIRE(world.locks[mutex].holder == self, "actor %u unlocks what it does not hold", self->id);
    world.locks[mutex].holder = NULL;
}

bool model_contended(unsigned mutex) {
    for (unsigned i = 0; i < world.actors_made; i++) {
        const struct call *c = world.actors[i].call;
        if (c == NULL) continue;
        if (c->kind == CALL_MUTEX && c->mutex == mutex) return true;
        if (c->kind == CALL_ARMS && c->arms[0].kind == ARM_COND && c->arms[0].object == mutex && (c->served || c->gone))
            return true;
    }
    return false;
}
