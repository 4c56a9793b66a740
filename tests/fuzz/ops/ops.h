/* ops.h - programs of operations that the fuzzer generates, the world that they run in, and the model that checks them.
 *
 *   decode.c   bytes -> programs; a mutator that keeps records whole
 *   run.c      an actor (a fiber) runs its program, and informs the model before and after each operation; channels
 *   calls.c    the other operations
 *   blocks.c   the operations that have a body: nurseries, deadlines, shields, tries, locks
 *   model.c    channels, select, semaphores, events, joins, sleeps: which calls wait, which are served, with what
 *   scopes.c   the model's nurseries, deadlines, shields and cancellations; mutexes; the end of actors
 *   books.c    invariants for any number of workers: every value once, in order, errors only for a reason
 *   sim.c      time that stands still while a fiber can run, and jumps when none can
 *   main.c     one input: a runtime, the guardian, the end
 *
 * OPS-1  With one worker nothing happens between an operation's beginning and its end, unless it waits. So the order in
 *        which operations begin is the order in which they take effect, and the model makes each step at that moment.
 * OPS-2  Asynchronous events (a deadline, a grace period) are read from the runtime's state, at the next step; they
 *        must have been due.
 * OPS-3  At every step the fibers that wait in the model are parked in the runtime, and no others; so a lost wake is
 *        detected by the next operation of any fiber, not by a hang.
 * OPS-4  Every program ends: the outermost nursery has a deadline and a grace period, and its end cancels the rest.
 */
#ifndef CCC_TESTS_FUZZ_OPS_H
#define CCC_TESTS_FUZZ_OPS_H

#include "nursery/scope.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    CHANNELS = 4,
    PROGRAMS = 6,
    PROGRAM_MAX = 40, /* operations of one program */
    ACTORS = 40,
    ARMS = 5,
    TASKS = 4,
    NESTING = 6,                   /* of blocks */
    SCOPES = ACTORS * NESTING + 1, /* and the one around all */
    THINGS = 2,                    /* of each: mutex with its condition, semaphore, event */
    BUDGET = 800,                  /* operations of one run */
    SEQUENCE = 4096,               /* values of one actor: BUDGET times ARMS, and more */
    VALUE_MAX = 64,                /* bytes of an element */
    CAPACITY_MAX = 5,
};

/* ---- programs ---- */

enum code {
    OP_SEND,
    OP_SEND_TRY,
    OP_SEND_UNTIL,
    OP_RECV,
    OP_RECV_TRY,
    OP_RECV_UNTIL,
    OP_SELECT,
    OP_CLOSE,
    OP_FREE,
    OP_ASK,
    OP_YIELD,
    OP_SLEEP,
    OP_NURSERY, /* from here to the loop they have a body */
    OP_DEADLINE,
    OP_SHIELD,
    OP_TRY,
    OP_LOCK,
    OP_LOOP,
    OP_SPAWN, /* in a nursery */
    OP_TASK,  /* in none */
    OP_JOIN,
    OP_JOIN_TRY,
    OP_JOIN_UNTIL,
    OP_DETACH,
    OP_CANCEL_TASK,
    OP_CANCEL,
    OP_SET_DEADLINE,
    OP_WAIT_UNTIL,
    OP_PANIC,
    OP_FAIL,
    OP_ACQUIRE,
    OP_ACQUIRE_TRY,
    OP_ACQUIRE_UNTIL,
    OP_RELEASE,
    OP_EVENT_SET,
    OP_EVENT_RESET,
    OP_EVENT_WAIT,
    OP_EVENT_UNTIL,
    OP_COND_WAIT,
    OP_COND_UNTIL,
    OP_COND_SIGNAL,
    OP_COND_ALL,
    OP_CODES
};

/* Four bytes of the input: whose, what, and two operands. */
struct op {
    uint8_t code, a, b;
};

struct program {
    unsigned count;
    struct op ops[PROGRAM_MAX];
};

struct plan {
    struct {
        size_t size, capacity;
        CCChanMode mode;
    } channels[CHANNELS];
    unsigned starters; /* programs that are started at the beginning */
    struct program programs[PROGRAMS];
};

/* False: too short to be one. */
bool plan_decode(struct plan *plan, const uint8_t *data, size_t size);
void plan_print(const struct plan *plan);
const char *op_name(unsigned code);

/* ---- the model's objects ---- */

enum arm_kind { ARM_NEVER, ARM_SEND, ARM_RECV, ARM_SEM, ARM_EVENT, ARM_COND, ARM_JOIN, ARM_AT, ARM_CANCEL };
enum call_kind { CALL_NOTHING, CALL_ARMS, CALL_SLEEP, CALL_MUTEX, CALL_CHILDREN, CALL_SETTLE };

struct actor;

/* One operation under way. */
struct call {
    struct actor *self;
    enum call_kind kind;
    bool select; /* its answer names an arm */
    bool first;  /* the first arm that is ready, not any */
    bool try_only;
    bool to_the_end; /* CALL_CHILDREN: a cancellation does not end it */
    uint64_t deadline;
    unsigned count;
    struct arms_arm {
        enum arm_kind kind;
        unsigned object; /* channel, semaphore, event, actor */
        uint32_t value;  /* ARM_SEND */
        uint64_t at;     /* ARM_AT */
    } arms[ARMS];
    struct model_scope *nursery; /* CALL_CHILDREN */
    int outcome;                 /* and what it was when no child was left */
    unsigned mutex;
    unsigned park; /* what the runtime calls this wait */
    /* What the model has found out. */
    unsigned long step;
    uint32_t ready; /* arms that can be done at once; 0: it waits */
    bool served;    /* by another call: the rest is what the call must return */
    bool gone;      /* by a deadline or a cancellation: it is in no queue any more */
    int error;
    unsigned chosen;
    uint32_t value;
    void *result;
};

struct waiting {
    struct call *call;
    unsigned arm;
};

struct queue {
    unsigned count;
    struct waiting of[ACTORS * ARMS];
};

struct model_scope {
    bool used, nursery, cancelled, pierced, keep_going;
    bool own;             /* cancelled itself, and not only from above */
    bool origin;          /* `reason` was given here, not above: the nursery's wait returns it */
    bool owner_cancelled; /* its owner's waits are cancelled, or would be without a shield inside */
    bool hides;           /* its owner's shield was up when it entered */
    struct scope *real;
    const struct actor *owner; /* who has entered it */
    struct model_scope *parent, *outer;
    uint64_t deadline;
    unsigned children;
    int code, reason; /* of the first failure; of the cancellation */
};

struct actor {
    unsigned id;
    const struct program *program;
    struct fiber *fiber; /* NULL: has not started */
    struct call *call;   /* what it waits for */
    bool ended, panicked, finished, stop, shield, task_cancelled, reported;
    bool rooted; /* the nursery around all is around it too: no shield of its lasts for ever */
    struct model_scope *scope, *base;
    CCNursery *nursery; /* its innermost block's, with what the model knows of it; NULL: none */
    struct model_scope *model_nursery;
    CCNursery *base_nursery; /* that it is a child of */
    unsigned depth, held;    /* held: bits of mutexes */
    bool raised;             /* a panic is in progress */
    atomic_uint sequence;    /* others check whether there can be such a value */
    int fails;               /* the error that it ends with */
    void *result;
    int status;
    uint16_t seen[CHANNELS][ACTORS]; /* by producer: the number that the next value has at least */
};

struct world {
    const struct plan *plan;
    atomic_bool exact; /* one worker, simulated time, and the model */
    CCChan *ch[CHANNELS];
    CCNursery *root;
    CCMutex mutex[THINGS];
    CCCond cond[THINGS];
    CCSem sem[THINGS];
    CCEvent event[THINGS];
    _Atomic uint64_t tasks[TASKS]; /* handles */
    _Atomic uint32_t task_actor[TASKS];
    atomic_long budget;
    atomic_uint actors_made;
    struct actor actors[ACTORS];
    _Atomic uint64_t outside[ACTORS]; /* handles of those that no nursery ends */
    /* The model's. */
    unsigned long step;
    struct model_channel {
        bool closed, gone;
        int error;
        unsigned count;
        uint32_t ring[CAPACITY_MAX];
        struct queue senders, receivers;
    } channels[CHANNELS];
    struct {
        uint32_t permits;
        struct queue line;
    } sems[THINGS];
    struct {
        bool set;
        struct queue line;
    } events[THINGS];
    struct {
        struct actor *holder;
        struct queue line; /* of the condition */
    } locks[THINGS];
    unsigned scopes_used; /* none is beyond */
    struct model_scope scopes[SCOPES];
};

extern struct world world;

/* Reports what is wrong, with the program, and aborts. */
__attribute__((noreturn, format(printf, 1, 2))) void wrong(const char *format, ...);
#define REQUIRE(condition, ...) ((condition) ? (void)0 : wrong(__VA_ARGS__))
/* A line of what happens, if OPS_TRACE is set. */
extern bool tracing;
__attribute__((format(printf, 2, 3))) void trace(const struct actor *self, const char *format, ...);

/* ---- the model: all of it does nothing unless world.exact ---- */

/* Around every operation. The end gets what the call has answered. */
void model_begin(struct call *c);
void model_end(struct call *c, int rc, unsigned chosen, uint32_t value, void *result);

/* Operations that never wait. */
void model_close(struct actor *self, unsigned channel, int error, bool gone);
void model_release(struct actor *self, unsigned sem, uint32_t n);
void model_event(struct actor *self, unsigned event, bool set);
void model_signal(struct actor *self, unsigned cond, bool all);
void model_ask(struct actor *self, unsigned channel, size_t len, bool closed);

/* The state of all actors, compared with the runtime's. self: the running one, or NULL. */
void model_look(struct actor *self);
/* A joiner that is about to run the task on its own stack yields now and then: it is ready, and nobody has woken it. */
bool model_yields(const struct actor *a);
/* The worker has nothing to run, and will sleep until then. */
void model_idle(uint64_t until);
/* The call is over, by this arm; its actor will see it. */
void model_serve(struct call *c, unsigned arm, int error, uint32_t value);

/* Whether its waits are cancelled. */
bool model_cancelled(const struct actor *a);
/* A scope below `parent`; the same below the actor's, which it enters. */
struct model_scope *model_scope_new(struct model_scope *parent, struct scope *real, bool nursery, bool keep_going,
                                    uint64_t deadline);
struct model_scope *model_scope_enter(struct actor *self, struct scope *real, bool nursery, bool keep_going,
                                      uint64_t deadline);
void model_scope_leave(struct actor *self, struct model_scope *s);
void model_scope_end(struct model_scope *s);
void model_cancel(struct model_scope *s, int code);
void model_fail(struct model_scope *s, int code);
void model_look_at_scopes(void);
bool model_shield(struct actor *self);
void model_unshield(struct actor *self, bool begun);
void model_spawned(struct actor *child, struct model_scope *nursery);
void model_started(struct actor *self);
void model_ended(struct actor *self);
void model_unlock(struct actor *self, unsigned mutex);
/* An actor may be about to use it. */
bool model_contended(unsigned mutex);
int model_outcome(const struct model_scope *s);
/* Whether a wait may return that: the outcome when the last child ended, or when the wait returned. */
bool model_explains(const struct call *c, int rc);

/* ---- books ---- */

void books_open(void);
uint32_t books_value(struct actor *self);
void books_write(void *to, size_t size, uint32_t value);
void books_sent(unsigned channel, uint32_t value);
/* The value, all its bytes checked; 0 for a size of 0. self: NULL for what was left in the end. */
uint32_t books_received(struct actor *self, unsigned channel, const void *from);
/* The channel is freed: how much it has dropped by its mode, or still holds. */
void books_dropped(unsigned channel, uint64_t n);
/* All is over. */
void books_close(void);
/* A result that must have a reason. */
void books_answer(struct actor *self, int rc, uint64_t deadline, bool waits);

/* ---- running ---- */

enum form { FOREVER, TRY, UNTIL };

/* Which of the three operations from `plain` on it is, and the deadline that goes with it. */
enum form form_of(const struct op *op, unsigned plain);
CCDeadline deadline_of(enum form form, unsigned operand);

/* A duplicated handle of the task in a slot, and its actor. False: there is none. */
bool task_copy(unsigned slot, CCTask *copy, unsigned *actor);

void op_spawn(struct actor *self, const struct op *op);
void op_join(struct actor *self, const struct op *op);
void op_detach(struct actor *self, const struct op *op);
void op_cancel_task(struct actor *self, const struct op *op);
void op_cancel(struct actor *self, const struct op *op);
void op_set_deadline(struct actor *self, const struct op *op);
void op_wait_until(struct actor *self, const struct op *op);
void op_sleep_a_while(struct actor *self, const struct op *op);
void op_acquire(struct actor *self, const struct op *op);
void op_wait_event(struct actor *self, const struct op *op);
void op_wait_cond(struct actor *self, const struct op *op);
void op_fail(struct actor *self, const struct op *op);
void op_raise_panic(struct actor *self);

struct actor *actor_new(unsigned program);
void *actor_main(void *actor);
void run_ops(struct actor *self, unsigned from, unsigned to);
void block_run(struct actor *self, const struct op *op, unsigned from, unsigned to);
uint64_t delay_ns(unsigned operand);

/* ---- time ---- */

void sim_start(void);

#endif
