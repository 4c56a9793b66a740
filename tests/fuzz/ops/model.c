/* model.c - the simplest model of channels, selects, semaphores, events, joins and sleeps: queues of calls.
 *
 * A call either completes at once, by one of its ready arms, or is in the queue of every arm. The call that serves it
 * removes it from all of them. Written from the headers, not from the library's code.
 */
#include "ops.h"

#include <stdio.h>
#include <string.h>

/* ---- queues ---- */

static void queue_push(struct queue *q, struct call *c, unsigned arm) {
    q->of[q->count++] = (struct waiting){c, arm};
}

static void queue_remove(struct queue *q, const struct call *c) {
    unsigned kept = 0;
    for (unsigned i = 0; i < q->count; i++)
        if (q->of[i].call != c) q->of[kept++] = q->of[i];
    q->count = kept;
}

static struct queue *queue_of(const struct arms_arm *arm) {
    switch (arm->kind) {
    case ARM_SEND:
        return &world.channels[arm->object].senders;
    case ARM_RECV:
        return &world.channels[arm->object].receivers;
    case ARM_SEM:
        return &world.sems[arm->object].line;
    case ARM_EVENT:
        return &world.events[arm->object].line;
    case ARM_COND:
        return &world.locks[arm->object].line;
    default:
        return NULL;
    }
}

static void leave_queues(struct call *c) {
    for (unsigned i = 0; i < c->count; i++) {
        struct queue *q = queue_of(&c->arms[i]);
        if (q != NULL) queue_remove(q, c);
    }
}

void model_serve(struct call *c, unsigned arm, int error, uint32_t value) {
    leave_queues(c);
    c->served = true;
    c->chosen = arm;
    c->error = error;
    c->value = value;
}

/* ---- channels ---- */

static bool ready_to_send(unsigned channel) {
    struct model_channel *m = &world.channels[channel];
    return m->closed || m->receivers.count > 0 || m->count < world.plan->channels[channel].capacity ||
           world.plan->channels[channel].mode != CC_CHAN_MODE_BLOCK;
}

static bool ready_to_recv(unsigned channel) {
    struct model_channel *m = &world.channels[channel];
    return m->closed || m->count > 0 || m->senders.count > 0;
}

static void put(struct model_channel *m, uint32_t value) {
    m->ring[m->count++] = value;
}

static uint32_t take(struct model_channel *m) {
    uint32_t value = m->ring[0];
    memmove(m->ring, m->ring + 1, --m->count * sizeof *m->ring);
    return value;
}

/* Does a send that is ready; its error. */
static int do_send(unsigned channel, uint32_t value) {
    struct model_channel *m = &world.channels[channel];
    size_t capacity = world.plan->channels[channel].capacity;
    if (m->closed) return m->error;
    if (m->receivers.count > 0) {
        struct waiting w = m->receivers.of[0];
        model_serve(w.call, w.arm, 0, value);
        return 0;
    }
    if (m->count == capacity) {
        if (world.plan->channels[channel].mode == CC_CHAN_MODE_DROP_NEW) return EAGAIN;
        (void)take(m); /* drop-old */
    }
    put(m, value);
    return 0;
}

/* There is one, or a sender. */
static int do_recv(unsigned channel, uint32_t *value) {
    struct model_channel *m = &world.channels[channel];
    bool full = m->count == world.plan->channels[channel].capacity;
    if (m->count > 0) *value = take(m);
    if (full && m->senders.count > 0) {
        struct waiting w = m->senders.of[0];
        uint32_t theirs = w.call->arms[w.arm].value;
        model_serve(w.call, w.arm, 0, 0);
        if (world.plan->channels[channel].capacity == 0)
            *value = theirs;
        else
            put(m, theirs);
        return 0;
    }
    return 0;
}

/* ---- arms ---- */

static bool arm_ready(const struct call *c, const struct arms_arm *arm) {
    switch (arm->kind) {
    case ARM_SEND:
        return ready_to_send(arm->object);
    case ARM_RECV:
        return ready_to_recv(arm->object);
    case ARM_SEM:
        return world.sems[arm->object].permits > 0;
    case ARM_EVENT:
        return world.events[arm->object].set;
    case ARM_JOIN:
        return world.actors[arm->object].ended || &world.actors[arm->object] == c->self;
    case ARM_AT:
        return cc_now_ns() >= arm->at;
    case ARM_CANCEL:
        return model_cancelled(c->self);
    default:
        return false;
    }
}

/* Does an arm that is ready. */
static void arm_do(struct call *c, unsigned index) {
    struct arms_arm *arm = &c->arms[index];
    c->error = 0;
    c->chosen = index;
    switch (arm->kind) {
    case ARM_SEND:
        c->error = do_send(arm->object, arm->value);
        break;
    case ARM_RECV: {
        struct model_channel *m = &world.channels[arm->object];
        if (m->count == 0 && m->senders.count == 0)
            c->error = m->error;
        else
            c->error = do_recv(arm->object, &c->value);
        break;
    }
    case ARM_SEM:
        world.sems[arm->object].permits--;
        break;
    case ARM_JOIN: {
        struct actor *target = &world.actors[arm->object];
        c->error = target == c->self ? EDEADLK : target->status;
        c->result = target->result;
        break;
    }
    default:
        break;
    }
}

/* ---- a call ---- */

void model_begin(struct call *c) {
    if (!world.exact) return;
    model_look(c->self);
    c->step = ++world.step;
    if (c->kind == CALL_NOTHING) return;
    if (c->kind == CALL_SETTLE) c->self->call = c;
    for (unsigned i = 0; i < c->count; i++)
        if (arm_ready(c, &c->arms[i])) c->ready |= 1u << i;
    if (c->kind == CALL_SLEEP && cc_now_ns() >= c->deadline) c->ready = 1;
    if (c->kind == CALL_MUTEX && world.locks[c->mutex].holder == NULL && !model_contended(c->mutex)) c->ready = 1;
    if (c->kind == CALL_CHILDREN && c->nursery->children == 0) {
        c->ready = 1;
        c->outcome = model_outcome(c->nursery);
    }
    if (c->ready != 0 || c->try_only) return;
    c->self->call = c;
    for (unsigned i = 0; i < c->count; i++) {
        struct queue *q = queue_of(&c->arms[i]);
        if (q != NULL) queue_push(q, c, i);
        if (c->arms[i].kind == ARM_COND) model_unlock(c->self, c->arms[i].object);
    }
}

/* What was done at once, by one of the arms that were ready. */
static void end_at_once(struct call *c, int rc, unsigned chosen) {
    REQUIRE(world.step == c->step || c->kind == CALL_CHILDREN,
            "actor %u was switched away from in a call that need not wait", c->self->id);
    if (c->ready == 0) {
        REQUIRE(rc == EAGAIN, "actor %u: a try that was not ready answered %d", c->self->id, rc);
        return;
    }
    if (c->kind == CALL_SLEEP) REQUIRE(rc == 0, "a sleep until the past answered %d", rc);
    if (c->kind == CALL_MUTEX) REQUIRE(rc == 0, "a free mutex was not taken: %d", rc);
    if (c->kind != CALL_ARMS) return;
    if (!c->select) chosen = 0;
    if (c->select) REQUIRE(rc == 0, "actor %u: a select with arms that are ready answered %d", c->self->id, rc);
    REQUIRE(chosen < c->count && (c->ready >> chosen & 1), "actor %u: arm %u was chosen, which is not ready",
            c->self->id, chosen);
    if (c->first) REQUIRE((c->ready & ((1u << chosen) - 1)) == 0, "an arm before %u was ready", chosen);
    arm_do(c, chosen);
}

/* Time or a cancellation has ended it. */
static void end_gone(struct call *c, int rc, unsigned chosen) {
    uint64_t now = cc_now_ns();
    leave_queues(c);
    bool by_time = rc == ETIMEDOUT && now >= c->deadline, by_cancel = rc == ECANCELED && model_cancelled(c->self);
    if (c->kind == CALL_SLEEP && rc == 0) by_time = now >= c->deadline;
    if (c->select && rc == 0 && chosen < c->count) {
        const struct arms_arm *arm = &c->arms[chosen];
        by_time = arm->kind == ARM_AT && now >= arm->at;
        by_cancel = arm->kind == ARM_CANCEL && model_cancelled(c->self);
    }
    REQUIRE(by_time || by_cancel, "actor %u: %d (arm %u) without a reason; deadline %lld ns from now, %s", c->self->id,
            rc, chosen, (long long)(c->deadline - now), model_cancelled(c->self) ? "cancelled" : "not cancelled");
}

void model_end(struct call *c, int rc, unsigned chosen, uint32_t value, void *result) {
    if (!world.exact) return;
    struct actor *self = c->self;
    self->call = NULL;
    if (c->kind == CALL_NOTHING || c->kind == CALL_SETTLE) return;
    if (c->ready != 0 || c->try_only) {
        end_at_once(c, rc, chosen);
        if (c->ready == 0 || c->kind != CALL_ARMS) goto locks;
    } else {
        ++world.step;
        model_look(self);
        if (c->kind == CALL_MUTEX || c->kind == CALL_CHILDREN) {
            bool timely = rc == ETIMEDOUT && cc_now_ns() >= c->deadline;
            bool cancelled = rc == ECANCELED && model_cancelled(self);
            if (c->kind == CALL_MUTEX)
                REQUIRE(rc == 0 || timely || cancelled, "actor %u: a lock answered %d", self->id, rc);
            else if (c->to_the_end || !(timely || cancelled))
                REQUIRE(c->nursery->children == 0, "actor %u: a nursery's wait is over with %u children: %d", self->id,
                        c->nursery->children, rc);
            goto locks;
        }
        if (!c->served) {
            end_gone(c, rc, chosen);
            goto locks;
        }
    }
    REQUIRE(!c->gone, "actor %u was served after it had left", self->id);
    int error = c->error;
    if (c->select) {
        REQUIRE(rc == 0 && chosen == c->chosen, "actor %u: select answered %d, arm %u; expected arm %u", self->id, rc,
                chosen, c->chosen);
    } else {
        REQUIRE(rc == error, "actor %u answered %d, expected %d", self->id, rc, error);
    }
    const struct arms_arm *arm = &c->arms[c->chosen];
    if (error == 0 && arm->kind == ARM_RECV && world.plan->channels[arm->object].size > 0)
        REQUIRE(value == c->value, "actor %u received %#x, expected %#x", self->id, value, c->value);
    if (arm->kind == ARM_JOIN && error != EDEADLK)
        REQUIRE(result == c->result, "actor %u: a join gave %p, expected %p", self->id, result, c->result);
locks:
    if (c->kind == CALL_MUTEX && rc == 0) {
        REQUIRE(world.locks[c->mutex].holder == NULL, "mutex %u has two holders", c->mutex);
        world.locks[c->mutex].holder = self;
    }
    if (c->kind == CALL_ARMS && c->count == 1 && c->arms[0].kind == ARM_COND) {
        REQUIRE(world.locks[c->arms[0].object].holder == NULL, "mutex %u has two holders", c->arms[0].object);
        world.locks[c->arms[0].object].holder = self;
    }
}

/* ---- what never waits ---- */

static void step(struct actor *self) {
    model_look(self);
    ++world.step;
}

void model_close(struct actor *self, unsigned channel, int error, bool gone) {
    if (!world.exact) return;
    step(self);
    struct model_channel *m = &world.channels[channel];
    m->gone = gone;
    if (gone) {
        books_dropped(channel, m->count);
        m->count = 0;
    }
    if (m->closed) return;
    m->closed = true;
    m->error = error > 0 ? error : EPIPE;
    while (m->receivers.count > 0) model_serve(m->receivers.of[0].call, m->receivers.of[0].arm, m->error, 0);
    while (m->senders.count > 0) model_serve(m->senders.of[0].call, m->senders.of[0].arm, m->error, 0);
}

void model_release(struct actor *self, unsigned sem, uint32_t n) {
    if (!world.exact) return;
    step(self);
    struct queue *line = &world.sems[sem].line;
    for (; n > 0 && line->count > 0; n--) model_serve(line->of[0].call, 0, 0, 0);
    world.sems[sem].permits += n;
}

void model_event(struct actor *self, unsigned event, bool set) {
    if (!world.exact) return;
    step(self);
    struct queue *line = &world.events[event].line;
    world.events[event].set = set;
    while (set && line->count > 0) model_serve(line->of[0].call, 0, 0, 0);
}

void model_signal(struct actor *self, unsigned cond, bool all) {
    if (!world.exact) return;
    step(self);
    struct queue *line = &world.locks[cond].line;
    if (line->count > 0) model_serve(line->of[0].call, 0, 0, 0);
    while (all && line->count > 0) model_serve(line->of[0].call, 0, 0, 0);
}

void model_ask(struct actor *self, unsigned channel, size_t len, bool closed) {
    if (!world.exact) return;
    step(self);
    struct model_channel *m = &world.channels[channel];
    REQUIRE(len == m->count, "channel %u holds %zu, expected %u", channel, len, m->count);
    REQUIRE(closed == m->closed, "channel %u is %s", channel, closed ? "closed" : "open");
}

/* ---- lockstep with the runtime ---- */

bool model_yields(const struct actor *a) {
    uint64_t word = cc__get(&a->fiber->word);
    return a->call->park == PARK_JOIN && cc__word_state(word) == FIBER_RUNNABLE && cc__word_reason(word) == 0;
}

/* Where the runtime has the actor; OPS-3. */
static void look_at(struct actor *a) {
    struct call *c = a->call;
    uint64_t word = cc__get(&a->fiber->word);
    unsigned reason = cc__word_reason(word);
    bool parked = cc__word_state(word) == FIBER_PARKED || cc__word_state(word) == FIBER_PARKING;
    bool here = parked && reason == c->park;
    if (c->kind == CALL_MUTEX || c->kind == CALL_CHILDREN || c->kind == CALL_SETTLE) return;
    if (c->served || c->gone) {
        REQUIRE(!here, "actor %u should have been woken (%s)", a->id, cc__park_name(reason));
        return;
    }
    if (model_yields(a)) return;
    if (here) {
        REQUIRE(!model_cancelled(a), "actor %u is cancelled, and waits (%s)", a->id, cc__park_name(reason));
        return;
    }
    if (!parked) {
        uint64_t deadline = c->deadline;
        for (unsigned i = 0; i < c->count; i++)
            if (c->arms[i].kind == ARM_AT && c->arms[i].at < deadline) deadline = c->arms[i].at;
        if (reason == WAKE_TIMER)
            REQUIRE(cc_now_ns() >= deadline, "actor %u: a timer fired %llu ns early", a->id,
                    (unsigned long long)(deadline - cc_now_ns()));
        else
            REQUIRE(reason == WAKE_CANCEL && model_cancelled(a), "actor %u was woken (%s) for no reason", a->id,
                    cc__wake_name(reason));
    }
    c->gone = true;
    leave_queues(c);
}

void model_look(struct actor *self) {
    if (!world.exact) return;
    model_look_at_scopes();
    for (unsigned i = 0; i < world.actors_made; i++) {
        struct actor *a = &world.actors[i];
        if (a != self && a->call != NULL) look_at(a);
    }
}

static void idle_call(struct actor *a, uint64_t until) {
    struct call *c = a->call;
    uint64_t deadline = c->deadline;
    REQUIRE(!c->served && !c->gone && c->kind != CALL_SETTLE, "actor %u has been woken, and all sleep", a->id);
    for (unsigned i = 0; i < c->count; i++)
        if (c->arms[i].kind == ARM_AT && c->arms[i].at < deadline) deadline = c->arms[i].at;
    REQUIRE(deadline > cc_now_ns(), "actor %u: its time is over, and all sleep", a->id);
    REQUIRE(until <= deadline, "actor %u waits until %llu, and the worker sleeps until %llu", a->id,
            (unsigned long long)deadline, (unsigned long long)until);
    if (c->kind == CALL_MUTEX) {
        REQUIRE(world.locks[c->mutex].holder != NULL, "actor %u waits for mutex %u, which is free", a->id, c->mutex);
        REQUIRE(!model_cancelled(a), "actor %u is cancelled, and waits for a mutex", a->id);
    }
    if (c->kind == CALL_CHILDREN) {
        REQUIRE(c->nursery->children > 0, "actor %u waits for no children", a->id);
        REQUIRE(c->to_the_end || !model_cancelled(a), "actor %u is cancelled, and waits for children", a->id);
    }
}

/* A waiter for the mutex of a condition variable delays nothing as long as the mutex is held. */
static bool relocks(const struct call *c) {
    return c->kind == CALL_ARMS && c->count == 1 && c->arms[0].kind == ARM_COND && (c->served || c->gone) &&
           world.locks[c->arms[0].object].holder != NULL;
}

void model_idle(uint64_t until) {
    if (!world.exact) return;
    unsigned alive = 0;
    uint64_t now = cc_now_ns();
    model_look(NULL);
    for (unsigned i = 0; i < world.actors_made; i++) {
        struct actor *a = &world.actors[i];
        if (a->ended) continue;
        alive++;
        REQUIRE(a->fiber != NULL, "actor %u was never started, and all sleep", a->id);
        REQUIRE(a->call != NULL, "actor %u can run, and all sleep", a->id);
        if (!relocks(a->call)) idle_call(a, until);
    }
    for (unsigned i = 0; i < world.scopes_used; i++) {
        struct model_scope *s = &world.scopes[i];
        if (s->used && !s->cancelled) REQUIRE(s->deadline > now, "a scope's deadline has passed, and all sleep");
    }
    REQUIRE(alive == 0 || until != UINT64_MAX, "%u actors wait, and nothing will wake them", alive);
}
