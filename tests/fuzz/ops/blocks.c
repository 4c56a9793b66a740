/* blocks.c - operations with a body: the body is the next few operations, and a panic may leave it from anywhere.
 *
 * The calls of the model are deferred, before and after the library's own deferred call, so that they are made in the
 * right order whichever way the block is left.
 */
#include "ops.h"

#include <stddef.h>

struct block {
    struct actor *self;
    const struct op *op;
    unsigned from, to;
    bool done; /* left by its end, not by a panic */
    /* As it was before. */
    unsigned depth;
    CCNursery *nursery;
    struct model_scope *model_nursery;
    /* Its own. */
    struct model_scope *scope;
    CCNursery *own;
    struct call call;
    int result;
    bool begun, model_begun;
    CCPanic why;
};

static void enter(struct block *b) {
    b->depth = b->self->depth++;
    b->nursery = b->self->nursery;
    b->model_nursery = b->self->model_nursery;
}

static void leave(struct block *b) {
    b->self->depth = b->depth;
    b->self->nursery = b->nursery;
    b->self->model_nursery = b->model_nursery;
}

/* ---- nurseries ---- */

static void nursery_before(void *block) {
    struct block *b = block;
    struct actor *self = b->self;
    leave(b);
    trace(self, "leaves its nursery%s", b->done ? "" : " by a panic");
    if (!b->done) {
        model_look(self);
        (void)cc_nursery_cancel(b->own);
        if (world.exact) model_cancel(b->scope, ECANCELED);
    }
    model_scope_leave(self, b->scope);
    b->call = (struct call){.self = self,
                            .kind = CALL_CHILDREN,
                            .nursery = b->scope,
                            .to_the_end = true,
                            .park = PARK_NURSERY,
                            .deadline = UINT64_MAX};
    model_begin(&b->call);
}

static void nursery_after(void *block) {
    struct block *b = block;
    if (world.exact) model_scope_end(b->scope); /* the real one has ended; the model's state stays a little longer */
    model_end(&b->call, b->result, 0, 0, NULL);
    trace(b->self, "its nursery has ended: %d", b->result);
    if (!world.exact) return;
    REQUIRE(model_explains(&b->call, b->result) ||
                (b->result == ECANCELED && b->scope->code == 0 && model_cancelled(b->self)),
            "actor %u: a nursery answered %d, expected %d", b->self->id, b->result, model_outcome(b->scope));
}

static void run_nursery(struct block *b) {
    struct actor *self = b->self;
    bool keep_going = b->op->a & 1;
    CCNurseryConfig config = {.mode = keep_going ? CC_NURSERY_KEEP_GOING : CC_NURSERY_FIRST, .result = &b->result};
    if (b->op->a & 2) config.deadline = cc_after_ns(delay_ns(1 + (b->op->a >> 2) % 7));
    CC_DEFER(nursery_after, b);
    CCNursery *n CC_CLEANUP(cc_nursery_leave) = cc_nursery_enter(&config);
    b->own = n;
    b->scope = model_scope_enter(self, (struct scope *)(void *)n, true, keep_going,
                                 config.deadline.ns == 0 ? UINT64_MAX : config.deadline.ns);
    CC_DEFER(nursery_before, b);
    self->nursery = n;
    self->model_nursery = b->scope;
    run_ops(self, b->from, b->to);
    b->done = true;
}

/* ---- deadlines ---- */

/* The end may wait for a deadline that is just firing. */
static void deadline_before(void *block) {
    struct block *b = block;
    leave(b);
    model_scope_leave(b->self, b->scope);
    if (world.exact) model_scope_end(b->scope);
    b->call = (struct call){.self = b->self, .kind = CALL_SETTLE, .deadline = UINT64_MAX};
    model_begin(&b->call);
}

static void deadline_after(void *block) {
    struct block *b = block;
    model_end(&b->call, 0, 0, 0, NULL);
}

static void run_deadline(struct block *b) {
    CCDeadline deadline = cc_after_ns(delay_ns(1 + b->op->a % 7));
    CC_DEFER(deadline_after, b);
    CCDeadlineScope scope CC_CLEANUP(cc_deadline_leave);
    (void)cc_deadline_enter(&scope, deadline);
    b->scope = model_scope_enter(b->self, scope.scope, false, false, deadline.ns);
    CC_DEFER(deadline_before, b);
    REQUIRE(cc_deadline().ns <= deadline.ns, "a deadline does not count");
    run_ops(b->self, b->from, b->to);
    b->done = true;
}

/* ---- shields ---- */

static void shield_before(void *block) {
    struct block *b = block;
    leave(b);
    model_unshield(b->self, b->model_begun);
}

static void run_shield(struct block *b) {
    b->model_begun = model_shield(b->self);
    CCShield shield CC_CLEANUP(cc_shield_leave);
    (void)cc_shield_enter(&shield);
    CC_DEFER(shield_before, b);
    if (world.exact) REQUIRE(shield.begun == b->model_begun, "actor %u: a shield is up, or is not", b->self->id);
    run_ops(b->self, b->from, b->to);
    b->done = true;
}

/* ---- tries ---- */

static void stop_panic(void *block) {
    struct block *b = block;
    CCPanic why;
    bool stopped = cc_recover(&why);
    REQUIRE(stopped == b->self->raised, "actor %u: cc_recover found %s panic", b->self->id, stopped ? "a" : "no");
}

static void tried(void *block) {
    struct block *b = block;
    if (b->op->a & 1) (void)cc_defer(stop_panic, b);
    run_ops(b->self, b->from, b->to);
    b->done = true;
}

static void run_try(struct block *b) {
    struct actor *self = b->self;
    bool outer = self->raised;
    self->raised = false;
    int rc = cc_try(tried, b, &b->why);
    leave(b);
    REQUIRE(b->done == !self->raised, "actor %u: a try was left in the wrong way", self->id);
    REQUIRE(rc == (self->raised && !(b->op->a & 1) ? ENOTRECOVERABLE : 0), "actor %u: cc_try answered %d", self->id,
            rc);
    self->raised = outer;
}

/* ---- locks ---- */

static void unlock(void *block) {
    struct block *b = block;
    unsigned mutex = b->op->a % THINGS;
    leave(b);
    b->self->held &= ~(1u << mutex);
    model_look(b->self);
    model_unlock(b->self, mutex);
    trace(b->self, "unlocks mutex %u", mutex);
    REQUIRE(cc_mutex_unlock(&world.mutex[mutex]) == 0, "cc_mutex_unlock");
}

static void run_lock(struct block *b) {
    struct actor *self = b->self;
    unsigned mutex = b->op->a % THINGS, form = b->op->a >> 1 & 3;
    if (self->held >> mutex & 1) { /* it is not recursive */
        leave(b);
        return;
    }
    CCDeadline deadline = form == 1 ? cc_after_ns(delay_ns(b->op->a >> 3)) : CC_FOREVER;
    struct call c = {.self = self, .kind = CALL_MUTEX, .mutex = mutex, .deadline = deadline.ns, .park = PARK_MUTEX};
    if (form == 2) {
        /* The designated waiter may not have run yet: the result of a try of a free mutex with waiters cannot be
         * predicted. */
        c.kind = CALL_NOTHING;
        model_begin(&c);
        bool predictable = world.exact && (world.locks[mutex].holder != NULL || !model_contended(mutex));
        int rc = cc_mutex_lock_try(&world.mutex[mutex]);
        if (predictable)
            REQUIRE((rc == 0) == (world.locks[mutex].holder == NULL), "a try of mutex %u answered %d", mutex, rc);
        if (rc != 0) {
            leave(b);
            return;
        }
        if (world.exact) world.locks[mutex].holder = self;
    } else {
        model_begin(&c);
        int rc = cc_mutex_lock_until(&world.mutex[mutex], deadline);
        model_end(&c, rc, 0, 0, NULL);
        books_answer(self, rc, deadline.ns, true);
        if (rc != 0) {
            leave(b);
            return;
        }
    }
    trace(self, "holds mutex %u", mutex);
    self->held |= 1u << mutex;
    CC_DEFER(unlock, b);
    run_ops(self, b->from, b->to);
    b->done = true;
}

void block_run(struct actor *self, const struct op *op, unsigned from, unsigned to) {
    struct block b = {.self = self, .op = op, .from = from, .to = to};
    if (self->depth == NESTING) return;
    enter(&b);
    switch (op->code) {
    case OP_NURSERY:
        run_nursery(&b);
        return;
    case OP_DEADLINE:
        run_deadline(&b);
        return;
    case OP_SHIELD:
        if (!self->rooted)
            leave(&b);
        else
            run_shield(&b);
        return;
    case OP_TRY:
        run_try(&b);
        return;
    default:
        run_lock(&b);
        return;
    }
}
