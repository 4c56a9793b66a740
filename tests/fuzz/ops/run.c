/* run.c - an actor: a fiber that runs a program, and informs the model of each operation. */
#include "ops.h"

#include <stddef.h>
#include <string.h>

uint64_t delay_ns(unsigned operand) {
    static const uint64_t delays[] = {0, 1000, 3000, 10000, 30000, 100000, 300000, 1000000};
    return delays[operand & 7];
}

enum form form_of(const struct op *op, unsigned plain) {
    return op->code == plain ? FOREVER : op->code == plain + 1 ? TRY : UNTIL;
}

CCDeadline deadline_of(enum form form, unsigned operand) {
    return form == UNTIL ? cc_after_ns(delay_ns(operand)) : CC_FOREVER;
}

/* ---- channels ---- */

static void send(struct actor *self, const struct op *op) {
    unsigned channel = op->a % CHANNELS;
    CCChan *ch = world.ch[channel];
    size_t size = world.plan->channels[channel].size;
    enum form form = form_of(op, OP_SEND);
    if (ch == NULL) return;
    unsigned char bytes[VALUE_MAX];
    uint32_t value = books_value(self);
    books_write(bytes, size, value);
    if (op->b >> 3 == 31) { /* not what the channel carries */
        REQUIRE(cc_chan_send(ch, bytes, size + 1) == EINVAL, "a wrong size was taken");
        return;
    }
    CCDeadline deadline = deadline_of(form, op->b);
    struct call c = {.self = self,
                     .kind = CALL_ARMS,
                     .try_only = form == TRY,
                     .deadline = deadline.ns,
                     .count = 1,
                     .park = PARK_QUEUE,
                     .arms = {{ARM_SEND, channel, value, 0}}};
    trace(self, "%s channel %u, value %#x", op_name(op->code), channel, value);
    model_begin(&c);
    int rc = form == FOREVER ? cc_chan_send(ch, bytes, size)
             : form == TRY   ? cc_chan_send_try(ch, bytes, size)
                             : cc_chan_send_until(ch, bytes, size, deadline);
    model_end(&c, rc, 0, 0, NULL);
    trace(self, "%s: %d", op_name(op->code), rc);
    if (rc == 0) books_sent(channel, value);
    if (rc == EAGAIN)
        REQUIRE(form == TRY || world.plan->channels[channel].mode == CC_CHAN_MODE_DROP_NEW,
                "EAGAIN from a send that waits");
    books_answer(self, rc, deadline.ns, form != TRY);
}

static void recv(struct actor *self, const struct op *op) {
    unsigned channel = op->a % CHANNELS;
    CCChan *ch = world.ch[channel];
    size_t size = world.plan->channels[channel].size;
    enum form form = form_of(op, OP_RECV);
    if (ch == NULL) return;
    unsigned char bytes[VALUE_MAX];
    CCDeadline deadline = deadline_of(form, op->b);
    struct call c = {.self = self,
                     .kind = CALL_ARMS,
                     .try_only = form == TRY,
                     .deadline = deadline.ns,
                     .count = 1,
                     .park = PARK_QUEUE,
                     .arms = {{ARM_RECV, channel, 0, 0}}};
    trace(self, "%s channel %u", op_name(op->code), channel);
    model_begin(&c);
    int rc = form == FOREVER ? cc_chan_recv(ch, bytes, size)
             : form == TRY   ? cc_chan_recv_try(ch, bytes, size)
                             : cc_chan_recv_until(ch, bytes, size, deadline);
    uint32_t value = rc == 0 ? books_received(self, channel, bytes) : 0;
    trace(self, "%s: %d, value %#x", op_name(op->code), rc, value);
    model_end(&c, rc, 0, value, NULL);
    if (rc == EAGAIN) REQUIRE(form == TRY, "EAGAIN from a receive that waits");
    books_answer(self, rc, deadline.ns, form != TRY);
}

static void close_channel(struct actor *self, const struct op *op) {
    unsigned channel = op->a % CHANNELS;
    CCChan *ch = world.ch[channel];
    int error = op->b & 1 ? ECONNRESET : 0;
    bool gone = op->code == OP_FREE && world.exact; /* several workers could still be about to use it */
    if (ch == NULL) return;
    trace(self, "%s channel %u", op_name(op->code), channel);
    model_close(self, channel, gone ? 0 : error, gone);
    if (gone) {
        books_dropped(channel, cc_chan_dropped(ch));
        world.ch[channel] = NULL;
        cc_chan_free(ch);
    } else {
        REQUIRE(cc_chan_close_err(ch, error) == 0, "cc_chan_close_err");
    }
}

static void ask(struct actor *self, const struct op *op) {
    unsigned channel = op->a % CHANNELS;
    CCChan *ch = world.ch[channel];
    if (ch == NULL) return;
    model_ask(self, channel, cc_chan_len(ch), cc_chan_is_closed(ch));
    REQUIRE(cc_chan_len(ch) <= cc_chan_cap(ch), "more than fits");
}

/* ---- select ---- */

struct choice {
    CCCase cases[ARMS];
    unsigned char bytes[ARMS][VALUE_MAX];
    CCTask tasks[ARMS];
    void *results[ARMS];
    struct call call;
};

static void add_arm(struct actor *self, struct choice *s, const struct op *op) {
    unsigned i = s->call.count++, channel = op->a % CHANNELS;
    size_t size = world.plan->channels[channel].size;
    struct arms_arm *arm = &s->call.arms[i];
    CCCase *c = &s->cases[i];
    switch (op->code % 8) {
    case 0:
    case 1:
    case 2:
        *c = (CCCase){.kind = CC_CASE_SEND, .ch = world.ch[channel], .value = s->bytes[i], .size = size};
        *arm = (struct arms_arm){world.ch[channel] != NULL ? ARM_SEND : ARM_NEVER, channel, books_value(self), 0};
        books_write(s->bytes[i], size, arm->value);
        break;
    case 3:
    case 4:
    case 5:
        *c = (CCCase){.kind = CC_CASE_RECV, .ch = world.ch[channel], .value = s->bytes[i], .size = size};
        *arm = (struct arms_arm){world.ch[channel] != NULL ? ARM_RECV : ARM_NEVER, channel, 0, 0};
        break;
    case 6:
        if (op->b & 1) {
            *c = (CCCase){.kind = CC_CASE_CANCEL};
            *arm = (struct arms_arm){.kind = ARM_CANCEL};
            break;
        }
        *c = (CCCase){.kind = CC_CASE_AT, .deadline = cc_after_ns(delay_ns(op->a))};
        *arm = (struct arms_arm){.kind = ARM_AT, .at = c->deadline.ns};
        break;
    default:
        *c = (CCCase){.kind = CC_CASE_JOIN, .task = &s->tasks[i], .value = &s->results[i]};
        *arm = (struct arms_arm){.kind = ARM_JOIN};
        if (!task_copy(op->a % TASKS, &s->tasks[i], &arm->object)) {
            *c = (CCCase){.kind = CC_CASE_NONE};
            *arm = (struct arms_arm){.kind = ARM_NEVER};
        }
        break;
    }
}

static void select_one(struct actor *self, const struct op *op, const struct op *arms, unsigned n) {
    struct choice s = {.call = {.self = self, .kind = CALL_ARMS, .select = true, .park = PARK_SELECT}};
    enum form form = (enum form)(op->b % 3);
    size_t chosen = ARMS;
    for (unsigned i = 0; i < n; i++) add_arm(self, &s, &arms[i]);
    CCDeadline deadline = deadline_of(form, op->b >> 3);
    s.call.deadline = deadline.ns;
    s.call.try_only = form == TRY;
    s.call.first = form != TRY && (op->b & 128) != 0;
    trace(self, "selects among %u arms, the first is %d on %u", n, (int)s.call.arms[0].kind, s.call.arms[0].object);
    model_begin(&s.call);
    int rc = form == TRY
                 ? cc_select_try(s.cases, n, &chosen)
                 : cc_select_ordered(s.cases, n, s.call.first ? CC_SELECT_FIRST : CC_SELECT_FAIR, deadline, &chosen);
    struct arms_arm *arm = rc == 0 ? &s.call.arms[chosen] : NULL;
    int error = rc == 0 ? s.cases[chosen].error : rc;
    uint32_t value = 0;
    if (rc == 0 && error == 0 && arm->kind == ARM_RECV) value = books_received(self, arm->object, s.bytes[chosen]);
    trace(self, "select: %d, arm %zu, error %d, value %#x", rc, chosen, error, value);
    model_end(&s.call, rc, (unsigned)chosen, value, rc == 0 ? s.results[chosen] : NULL);
    if (world.exact && rc == 0 && (s.call.served || s.call.ready != 0))
        REQUIRE(error == s.call.error, "actor %u: arm %zu ended with %d, expected %d", self->id, chosen, error,
                s.call.error);
    if (rc == 0 && error == 0 && arm->kind == ARM_SEND) books_sent(arm->object, arm->value);
    for (unsigned i = 0; i < n; i++)
        if (s.tasks[i].id != 0) REQUIRE(cc_task_detach(&s.tasks[i]) == 0, "cc_task_detach");
    books_answer(self, error, deadline.ns, form != TRY);
}

/* ---- programs ---- */

static void run_op(struct actor *self, const struct op *op) { /* OPS-1 */
    switch (op->code) {
    case OP_SEND:
    case OP_SEND_TRY:
    case OP_SEND_UNTIL:
        send(self, op);
        break;
    case OP_RECV:
    case OP_RECV_TRY:
    case OP_RECV_UNTIL:
        recv(self, op);
        break;
    case OP_CLOSE:
    case OP_FREE:
        close_channel(self, op);
        break;
    case OP_ASK:
        ask(self, op);
        break;
    case OP_YIELD:
        cc_yield();
        break;
    case OP_SLEEP:
        op_sleep_a_while(self, op);
        break;
    case OP_SPAWN:
    case OP_TASK:
        op_spawn(self, op);
        break;
    case OP_JOIN:
    case OP_JOIN_TRY:
    case OP_JOIN_UNTIL:
        op_join(self, op);
        break;
    case OP_DETACH:
        op_detach(self, op);
        break;
    case OP_CANCEL_TASK:
        op_cancel_task(self, op);
        break;
    case OP_CANCEL:
        op_cancel(self, op);
        break;
    case OP_SET_DEADLINE:
        op_set_deadline(self, op);
        break;
    case OP_WAIT_UNTIL:
        op_wait_until(self, op);
        break;
    case OP_PANIC:
        op_raise_panic(self);
        break;
    case OP_FAIL:
        op_fail(self, op);
        break;
    case OP_ACQUIRE:
    case OP_ACQUIRE_TRY:
    case OP_ACQUIRE_UNTIL:
        op_acquire(self, op);
        break;
    case OP_RELEASE:
        model_release(self, op->a % THINGS, op->b % 4);
        REQUIRE(cc_sem_release(&world.sem[op->a % THINGS], op->b % 4) == 0, "cc_sem_release");
        break;
    case OP_EVENT_SET:
        model_event(self, op->a % THINGS, true);
        REQUIRE(cc_event_set(&world.event[op->a % THINGS]) == 0, "cc_event_set");
        break;
    case OP_EVENT_RESET:
        model_event(self, op->a % THINGS, false);
        REQUIRE(cc_event_reset(&world.event[op->a % THINGS]) == 0, "cc_event_reset");
        break;
    case OP_EVENT_WAIT:
    case OP_EVENT_UNTIL:
        op_wait_event(self, op);
        break;
    case OP_COND_WAIT:
    case OP_COND_UNTIL:
        op_wait_cond(self, op);
        break;
    case OP_COND_SIGNAL:
    case OP_COND_ALL:
        model_signal(self, op->a % THINGS, op->code == OP_COND_ALL);
        REQUIRE((op->code == OP_COND_ALL ? cc_cond_broadcast : cc_cond_signal)(&world.cond[op->a % THINGS]) == 0,
                "cc_cond_signal");
        break;
    default:
        break;
    }
}

void run_ops(struct actor *self, unsigned from, unsigned to) {
    const struct op *ops = self->program->ops;
    for (unsigned i = from; i < to && !self->stop;) {
        const struct op *op = &ops[i++];
        unsigned body = 1 + op->b % 6, end = i + body < to ? i + body : to;
        if (atomic_fetch_sub(&world.budget, 1) <= 0) {
            self->stop = true;
            return;
        }
        switch (op->code) {
        case OP_SELECT: {
            unsigned n = 1 + op->a % ARMS;
            if (n > to - i) n = to - i;
            select_one(self, op, &ops[i], n);
            i += n;
            break;
        }
        case OP_LOOP:
            for (unsigned k = (op->a & 7) == 7 ? 80 : 2 + (op->a & 3); k > 0 && !self->stop; k--) run_ops(self, i, end);
            i = end;
            break;
        case OP_NURSERY:
        case OP_DEADLINE:
        case OP_SHIELD:
        case OP_TRY:
        case OP_LOCK:
            block_run(self, op, i, end);
            i = end;
            break;
        default:
            run_op(self, op);
            break;
        }
    }
}

/* ---- actors ---- */

struct actor *actor_new(unsigned program) {
    unsigned id = world.actors_made;
    do
        if (id == ACTORS) return NULL;
    while (!atomic_compare_exchange_weak(&world.actors_made, &id, id + 1));
    struct actor *a = &world.actors[id];
    a->id = id;
    a->program = &world.plan->programs[program % PROGRAMS];
    return a;
}

/* Whichever way it ends. */
static void actor_over(void *actor) {
    struct actor *self = actor;
    self->panicked = !self->finished;
    trace(self, "ends%s", self->panicked ? " by a panic" : "");
    model_ended(self);
}

void *actor_main(void *actor) {
    struct actor *self = actor;
    self->fiber = cc__sched_current(cc__worker());
    trace(self, "begins");
    model_started(self);
    CC_DEFER(actor_over, self);
    run_ops(self, 0, self->program->count);
    self->finished = true;
    return self->fails != 0 ? CC_ERROR(self->fails) : (void *)((uintptr_t)(self->id + 1) * 0x10000);
}
