/* calls.c - operations on everything but channels: tasks, nurseries, locks, time; failures and panics. */
#include "ops.h"

#include <stddef.h>

/* ---- tasks ---- */

bool task_copy(unsigned slot, CCTask *copy, unsigned *actor) {
    CCTask task = {world.tasks[slot]};
    *actor = world.task_actor[slot];
    if (task.id == 0) return false;
    int rc = cc_task_dup(&task, copy);
    if (rc == ESRCH && !world.exact) return false; /* another actor has detached it meanwhile */
    REQUIRE(rc == 0, "cc_task_dup answered %d", rc);
    return true;
}

static void task_keep(unsigned slot, CCTask task, const struct actor *child) {
    uint64_t none = 0;
    if (world.exact && world.tasks[slot] == 0) world.task_actor[slot] = child->id;
    if (!atomic_compare_exchange_strong(&world.tasks[slot], &none, task.id))
        REQUIRE(cc_task_detach(&task) == 0, "cc_task_detach");
}

void op_spawn(struct actor *self, const struct op *op) {
    bool inside = op->code == OP_SPAWN, own = self->nursery != NULL && !(op->b & 2);
    CCNursery *n = own ? self->nursery : self->base_nursery;
    if (inside && n == NULL) return;
    struct actor *child = actor_new(op->a);
    if (child == NULL) return;
    CCTask task;
    CCSpawnOptions options = {.name = "actor"};
    const CCSpawnOptions *given = op->b & 4 ? &options : NULL; /* a task with a name is never run by its joiner */
    trace(self, "%s actor %u", op_name(op->code), child->id);
    child->rooted = inside && self->rooted;
    child->base_nursery = inside ? n : NULL;
    model_look(self);
    if (inside) {
        REQUIRE(cc_nursery_spawn_ex(n, &task, actor_main, child, given) == 0, "cc_nursery_spawn_ex");
        model_spawned(child, own ? self->model_nursery : self->base);
    } else {
        REQUIRE(cc_spawn(&task, actor_main, child, given) == 0, "cc_spawn");
        CCTask copy;
        REQUIRE(cc_task_dup(&task, &copy) == 0, "cc_task_dup");
        world.outside[child->id] = copy.id;
        model_spawned(child, NULL);
    }
    if (op->b & 1)
        task_keep((op->b >> 3) % TASKS, task, child);
    else
        REQUIRE(cc_task_detach(&task) == 0, "cc_task_detach");
}

void op_join(struct actor *self, const struct op *op) {
    CCTask task;
    unsigned actor;
    enum form form = form_of(op, OP_JOIN);
    if (!task_copy(op->a % TASKS, &task, &actor)) return;
    CCDeadline deadline = deadline_of(form, op->b);
    void *result = NULL;
    struct call c = {.self = self,
                     .kind = CALL_ARMS,
                     .try_only = form == TRY,
                     .deadline = deadline.ns,
                     .count = 1,
                     .park = PARK_JOIN,
                     .arms = {{ARM_JOIN, actor, 0, 0}}};
    trace(self, "%s actor %u", op_name(op->code), actor);
    model_begin(&c);
    int rc = form == FOREVER ? cc_task_join(&task, &result)
             : form == TRY   ? cc_task_join_try(&task, &result)
                             : cc_task_join_until(&task, &result, deadline);
    trace(self, "%s: %d", op_name(op->code), rc);
    model_end(&c, rc, 0, 0, result);
    bool consumed = rc == 0 || rc == ENOTRECOVERABLE;
    REQUIRE(consumed == (task.id == 0), "a join answered %d, and the handle is %s", rc,
            task.id == 0 ? "gone" : "there");
    if (!consumed) REQUIRE(cc_task_detach(&task) == 0, "cc_task_detach");
    books_answer(self, rc, deadline.ns, form != TRY);
}

void op_detach(struct actor *self, const struct op *op) {
    CCTask task = {atomic_exchange(&world.tasks[op->a % TASKS], 0)};
    (void)self;
    if (task.id != 0) REQUIRE(cc_task_detach(&task) == 0 && task.id == 0, "cc_task_detach");
}

void op_cancel_task(struct actor *self, const struct op *op) {
    CCTask task;
    unsigned actor;
    if (!task_copy(op->a % TASKS, &task, &actor)) return;
    trace(self, "cancels actor %u", actor);
    model_look(self);
    REQUIRE(cc_task_cancel(&task) == 0, "cc_task_cancel");
    if (world.exact && !world.actors[actor].ended) world.actors[actor].task_cancelled = true;
    REQUIRE(cc_task_detach(&task) == 0, "cc_task_detach");
}

/* ---- nurseries ---- */

void op_cancel(struct actor *self, const struct op *op) {
    bool own = self->nursery != NULL && !(op->a & 1);
    CCNursery *n = own ? self->nursery : self->base_nursery;
    int code = op->b & 1 ? EIO : 0;
    if (n == NULL) return;
    trace(self, "cancels %s nursery", own ? "its own" : "its parent's");
    model_look(self);
    REQUIRE(cc_nursery_cancel_with(n, code, NULL) == 0, "cc_nursery_cancel_with");
    if (world.exact) model_cancel(own ? self->model_nursery : self->base, code > 0 ? code : ECANCELED);
}

void op_set_deadline(struct actor *self, const struct op *op) {
    if (self->nursery == NULL) return;
    CCDeadline deadline = op->a & 1 ? CC_FOREVER : cc_after_ns(delay_ns(1 + op->b % 7));
    model_look(self);
    int rc = cc_nursery_set_deadline(self->nursery, deadline);
    if (!world.exact) {
        REQUIRE(rc == 0 || rc == ETIMEDOUT, "cc_nursery_set_deadline answered %d", rc);
        return;
    }
    bool passed = cc_now_ns() >= self->model_nursery->deadline;
    REQUIRE(rc == (passed ? ETIMEDOUT : 0), "cc_nursery_set_deadline answered %d", rc);
    if (rc == 0) self->model_nursery->deadline = deadline.ns;
}

void op_wait_until(struct actor *self, const struct op *op) {
    CCDeadline deadline = cc_after_ns(delay_ns(op->b));
    if (self->nursery == NULL) {
        if (self->base_nursery != NULL)
            REQUIRE(cc_nursery_wait_until(self->base_nursery, deadline) == EDEADLK, "a child waits for itself");
        return;
    }
    struct call c = {.self = self,
                     .kind = CALL_CHILDREN,
                     .nursery = self->model_nursery,
                     .deadline = deadline.ns,
                     .park = PARK_NURSERY};
    trace(self, "waits for its children");
    model_begin(&c);
    int rc = cc_nursery_wait_until(self->nursery, deadline);
    model_end(&c, rc, 0, 0, NULL);
    trace(self, "has waited: %d", rc);
    if (!world.exact) return;
    bool timely = rc == ETIMEDOUT && cc_now_ns() >= deadline.ns, cancelled = rc == ECANCELED && model_cancelled(self);
    REQUIRE(model_explains(&c, rc) || (c.ready == 0 && (timely || cancelled)),
            "a nursery's wait answered %d, expected %d", rc, model_outcome(self->model_nursery));
}

/* ---- the rest ---- */

void op_sleep_a_while(struct actor *self, const struct op *op) {
    CCDeadline deadline = cc_after_ns(delay_ns(op->a));
    struct call c = {.self = self, .kind = CALL_SLEEP, .deadline = deadline.ns, .park = PARK_SLEEP};
    trace(self, "sleeps");
    model_begin(&c);
    int rc = cc_sleep_until(deadline);
    model_end(&c, rc, 0, 0, NULL);
    trace(self, "has slept: %d", rc);
    REQUIRE(rc != 0 || cc_now_ns() >= deadline.ns, "a sleep ended early");
    books_answer(self, rc, deadline.ns, true);
}

void op_acquire(struct actor *self, const struct op *op) {
    unsigned i = op->a % THINGS;
    CCSem *sem = &world.sem[i];
    enum form form = form_of(op, OP_ACQUIRE);
    CCDeadline deadline = deadline_of(form, op->b);
    struct call c = {.self = self,
                     .kind = CALL_ARMS,
                     .try_only = form == TRY,
                     .deadline = deadline.ns,
                     .count = 1,
                     .park = PARK_SEM,
                     .arms = {{ARM_SEM, i, 0, 0}}};
    trace(self, "%s %u", op_name(op->code), i);
    model_begin(&c);
    int rc = form == FOREVER ? cc_sem_acquire(sem)
             : form == TRY   ? cc_sem_acquire_try(sem)
                             : cc_sem_acquire_until(sem, deadline);
    model_end(&c, rc, 0, 0, NULL);
    trace(self, "%s: %d", op_name(op->code), rc);
    books_answer(self, rc, deadline.ns, form != TRY);
}

void op_wait_event(struct actor *self, const struct op *op) {
    unsigned i = op->a % THINGS;
    CCDeadline deadline = deadline_of(op->code == OP_EVENT_UNTIL ? UNTIL : FOREVER, op->b);
    struct call c = {.self = self,
                     .kind = CALL_ARMS,
                     .deadline = deadline.ns,
                     .count = 1,
                     .park = PARK_EVENT,
                     .arms = {{ARM_EVENT, i, 0, 0}}};
    trace(self, "waits for event %u", i);
    model_begin(&c);
    int rc = cc_event_wait_until(&world.event[i], deadline);
    model_end(&c, rc, 0, 0, NULL);
    books_answer(self, rc, deadline.ns, true);
}

void op_wait_cond(struct actor *self, const struct op *op) {
    unsigned i = op->a % THINGS;
    if (!(self->held >> i & 1)) return;
    CCDeadline deadline = deadline_of(op->code == OP_COND_UNTIL ? UNTIL : FOREVER, op->b);
    struct call c = {.self = self,
                     .kind = CALL_ARMS,
                     .deadline = deadline.ns,
                     .count = 1,
                     .park = PARK_COND,
                     .arms = {{ARM_COND, i, 0, 0}}};
    trace(self, "waits for condition %u", i);
    model_begin(&c);
    int rc = cc_cond_wait_until(&world.cond[i], &world.mutex[i], deadline);
    model_end(&c, rc, 0, 0, NULL);
    trace(self, "has waited for condition %u: %d", i, rc);
    books_answer(self, rc, deadline.ns, true);
}

void op_raise_panic(struct actor *self) {
    trace(self, "panics");
    self->raised = true;
    cc_panic("actor %u", self->id);
}

void op_fail(struct actor *self, const struct op *op) {
    static const int errors[] = {EIO, ECANCELED, 42, ETIMEDOUT};
    self->fails = errors[op->a & 3];
    self->stop = true;
    trace(self, "fails with %d", self->fails);
    if (!(op->b & 1) || self->base_nursery == NULL) return;
    model_look(self);
    (void)cc_fail(self->fails, "actor %u", self->id);
    if (world.exact) {
        self->reported = !(self->fails == ECANCELED && self->base->cancelled);
        model_fail(self->base, self->fails);
    }
}
