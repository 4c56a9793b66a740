/* cancel_races.c - every kind of wait, ended at the same time by its object and by something else: exactly one outcome,
 * nothing lost, nothing left on a list.
 *
 * A round: a victim waits; one fiber makes the wait succeed, another one ends it (or a deadline does), both after a
 * random pause. Then the counts are compared. The table of kinds has a row for each.
 */
#include "stress.h"

#include "chan/chan.h"
#include "lock/parking_lot.h"
#include "nursery/nursery.h"
#include "task/task.h"

enum ender { BY_NURSERY, BY_TASK, BY_SCOPE_DEADLINE, BY_DEADLINE, BY_CLOSE };

/* An object without a lock: a setter sets it, and wakes the registered waiter. */
struct cell {
    _Atomic uint32_t set;
    struct fiber *_Atomic fiber;
    _Atomic uint64_t ticket;
};

struct scene {
    const struct kind *kind;
    enum ender ender;
    uint64_t rng, victim_rng, helper_rng, ender_rng;
    CCNursery *nursery;
    CCTask victim, helper;
    int outcome;
    CCDeadline deadline; /* of the wait; CC_FOREVER unless that is the ender */
    /* What the kinds wait on. */
    CCChan *ch, *other;
    CCTask target;
    CCNursery *inner;
    struct cell cell;
    struct bell bell;
    CCMutex mutex;
    CCRWLock rwlock;
    CCCond cond;
    CCSem sem;
    CCWaitGroup group;
    CCEvent event;
    bool signalled; /* under the mutex */
    uint64_t value;
    int sent;
};

struct kind {
    const char *name;
    unsigned enders;                  /* bits of enum ender that make sense */
    void (*set_up)(struct scene *s);  /* the nursery is there, nobody runs yet */
    int (*wait)(struct scene *s);     /* the victim: 0, or what ended the wait */
    void (*succeed)(struct scene *s); /* the helper */
    void (*settle)(struct scene *s);  /* the victim is gone: is anything lost, or left? joins the helper */
};

static void pause_somewhat(uint64_t *rng) {
    for (uint64_t n = below(rng, 4); n > 0; n--) cc_yield();
    if (below(rng, 2) == 0) compute_ns(below(rng, 3000));
}

static void join_helper(struct scene *s) {
    CHECK_EQ(cc_task_join(&s->helper, NULL), 0);
}

static void check_channel(CCChan *ch) {
    cc__lock_take(&ch->lock);
    CHECK(cc__list_empty(&ch->receivers));
    CHECK(cc__list_empty(&ch->senders));
    CHECK_EQ(ch->lost_claims, 0);
    cc__lock_release(&ch->lock);
    CHECK_EQ(cc_chan_len(ch), 0);
    cc_chan_free(ch);
}

static void set_up_nothing(struct scene *s) {
    (void)s;
}

/* ---- receive ---- */

static void set_up_unbuffered(struct scene *s) {
    s->ch = cc_chan_create(8, 0);
    CHECK(s->ch != NULL);
}

static void set_up_buffered(struct scene *s) {
    s->ch = cc_chan_create(8, 1);
    CHECK(s->ch != NULL);
}

static int wait_recv(struct scene *s) {
    return s->ender == BY_DEADLINE ? cc_chan_recv_until(s->ch, &s->value, 8, s->deadline)
                                   : cc_chan_recv(s->ch, &s->value, 8);
}

static void succeed_by_send(struct scene *s) {
    uint64_t value = 7;
    s->sent = cc_chan_send(s->ch, &value, 8);
}

static void settle_recv(struct scene *s) {
    if (s->outcome == 0) {
        CHECK_EQ(s->value, 7);
        join_helper(s);
        CHECK_EQ(s->sent, 0);
    } else {
        /* Nobody has received it: it is still there, unless the channel was closed before it was sent. */
        uint64_t value = 0;
        CHECK_EQ(s->value, 0);
        int rc = cc_chan_recv(s->ch, &value, 8);
        join_helper(s);
        CHECK_EQ(rc, s->sent);
        CHECK_EQ(value, rc == 0 ? 7 : 0);
    }
    check_channel(s->ch);
}

/* ---- send ---- */

static void set_up_full(struct scene *s) {
    set_up_buffered(s);
    uint64_t first = 1;
    CHECK_EQ(cc_chan_send(s->ch, &first, 8), 0);
}

static int wait_send(struct scene *s) {
    uint64_t value = 7;
    return s->ender == BY_DEADLINE ? cc_chan_send_until(s->ch, &value, 8, s->deadline) : cc_chan_send(s->ch, &value, 8);
}

static void succeed_by_recv(struct scene *s) {
    uint64_t first;
    if (cc_chan_cap(s->ch) > 0) {
        CHECK_EQ(cc_chan_recv(s->ch, &first, 8), 0);
        CHECK_EQ(first, 1);
    }
    s->sent = cc_chan_recv(s->ch, &s->value, 8);
}

static void settle_send(struct scene *s) {
    if (s->outcome == 0) {
        join_helper(s);
        CHECK_EQ(s->sent, 0);
        CHECK_EQ(s->value, 7);
    } else {
        /* Nobody has got it: the helper gets another one, or EPIPE. */
        uint64_t value = 8;
        int rc = cc_chan_send(s->ch, &value, 8);
        CHECK_EQ(rc, s->ender == BY_CLOSE ? EPIPE : 0);
        join_helper(s);
        CHECK_EQ(s->sent, rc);
        CHECK_EQ(s->value, rc == 0 ? 8 : 0);
    }
    check_channel(s->ch);
}

/* ---- select: one arm that the helper serves, and one that nobody does ---- */

static void set_up_two(struct scene *s) {
    set_up_unbuffered(s);
    s->other = cc_chan_create(8, 0);
    CHECK(s->other != NULL);
}

static int wait_select(struct scene *s) {
    uint64_t never = 0;
    size_t chosen = 99;
    CCCase cases[] = {CC_RECV(s->other, &never, NULL), CC_RECV(s->ch, &s->value, NULL),
                      CC_SEND(s->other, &never, NULL)};
    int rc =
        cc_select(cases, 2 + below(&s->victim_rng, 2), s->ender == BY_DEADLINE ? s->deadline : CC_FOREVER, &chosen);
    if (rc != 0) return rc;
    CHECK_EQ(chosen, 1);
    return cases[1].error;
}

static int wait_select_arm(struct scene *s) {
    size_t chosen = 99;
    CCCase cases[] = {CC_RECV(s->ch, &s->value, NULL), CC_CANCEL()};
    int rc = cc_select(cases, 2, s->ender == BY_DEADLINE ? s->deadline : CC_FOREVER, &chosen);
    if (rc != 0) return rc;
    return chosen == 1 ? ECANCELED : cases[0].error;
}

static void settle_select(struct scene *s) {
    settle_recv(s);
    check_channel(s->other);
}

static void settle_select_arm(struct scene *s) {
    settle_recv(s);
}

/* ---- sleep: its success is the time ---- */

static void set_up_sleep(struct scene *s) {
    s->deadline = cc_after_ns(below(&s->rng, 20000));
}

static int wait_sleep(struct scene *s) {
    int rc = cc_sleep_until(s->deadline);
    if (rc == 0) CHECK(cc_now_ns() >= s->deadline.ns);
    return rc;
}

static void succeed_alone(struct scene *s) {
    (void)s;
}

/* ---- join ---- */

static void *ring_ends_it(void *arg) {
    (void)bell_wait(&((struct scene *)arg)->bell);
    return arg;
}

static void set_up_join(struct scene *s) {
    s->target = spawn(ring_ends_it, s);
}

static int wait_join(struct scene *s) {
    void *result = NULL;
    int rc = s->ender == BY_DEADLINE ? cc_task_join_until(&s->target, &result, s->deadline)
                                     : cc_task_join(&s->target, &result);
    CHECK_EQ(rc == 0, result == s);
    CHECK_EQ(rc == 0, s->target.id == 0);
    return rc;
}

static void succeed_by_ring(struct scene *s) {
    bell_ring(&s->bell);
}

static void settle_join(struct scene *s) {
    join_helper(s);
    void *result = NULL;
    if (s->outcome != 0) {
        struct fiber *f = cc__task_lock(s->target);
        CHECK(f != NULL); /* the handle is what it was */
        CHECK(f->joiners.first == NULL);
        cc__lock_release(&f->join_lock);
        CHECK_EQ(cc_task_join(&s->target, &result), 0);
        CHECK(result == s);
    }
}

/* ---- nursery ---- */

static void set_up_nursery(struct scene *s) {
    s->inner = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    CHECK_EQ(cc_nursery_spawn(s->inner, ring_ends_it, s), 0);
}

/* This one leaves the children alone. */
static int wait_nursery(struct scene *s) {
    return cc_nursery_wait_until(s->inner, s->ender == BY_DEADLINE ? s->deadline : CC_FOREVER);
}

/* This one cancels them, and still waits. The bell is not affected. */
static int wait_nursery_to_the_end(struct scene *s) {
    int rc = cc_nursery_wait(s->inner);
    CHECK_EQ(cc_nursery_children(s->inner), 0);
    return rc;
}

static void settle_nursery(struct scene *s) {
    join_helper(s);
    int rc = cc_nursery_wait(s->inner);
    CHECK(rc == 0 || s->outcome == ECANCELED);
    CHECK(cc__list_empty(&s->inner->scope.waiters) && cc__list_empty(&s->inner->scope.members));
    CHECK_EQ(cc_nursery_free(s->inner), 0);
}

/* ---- locks: somebody holds one until the bell rings; what must not be lost is the lock ---- */

static void *hold_mutex(void *arg) {
    struct scene *s = arg;
    CHECK_EQ(cc_mutex_lock(&s->mutex), 0);
    atomic_store(&s->cell.set, 1);
    (void)bell_wait(&s->bell);
    CHECK_EQ(cc_mutex_unlock(&s->mutex), 0);
    return NULL;
}

static void *hold_rwlock(void *arg) {
    struct scene *s = arg;
    CHECK_EQ(cc_rwlock_read_lock(&s->rwlock), 0);
    atomic_store(&s->cell.set, 1);
    (void)bell_wait(&s->bell);
    CHECK_EQ(cc_rwlock_read_unlock(&s->rwlock), 0);
    return NULL;
}

static void set_up_held(struct scene *s, CCTaskFn hold) {
    s->target = spawn(hold, s);
    while (atomic_load(&s->cell.set) == 0) cc_yield();
}

static void set_up_mutex(struct scene *s) {
    set_up_held(s, hold_mutex);
}

static void set_up_rwlock(struct scene *s) {
    set_up_held(s, hold_rwlock);
}

static int wait_mutex(struct scene *s) {
    int rc = s->ender == BY_DEADLINE ? cc_mutex_lock_until(&s->mutex, s->deadline) : cc_mutex_lock(&s->mutex);
    if (rc == 0) CHECK_EQ(cc_mutex_unlock(&s->mutex), 0);
    return rc;
}

static int wait_rwlock(struct scene *s) {
    int rc = s->ender == BY_DEADLINE ? cc_rwlock_write_lock_until(&s->rwlock, s->deadline)
                                     : cc_rwlock_write_lock(&s->rwlock);
    if (rc == 0) CHECK_EQ(cc_rwlock_write_unlock(&s->rwlock), 0);
    return rc;
}

/* Free, and nobody waits for it. */
static void check_mutex(CCMutex *mutex) {
    CHECK_EQ(cc_mutex_lock_try(mutex), 0);
    CHECK_EQ(cc_mutex_unlock(mutex), 0);
    struct bucket *bucket = cc__bucket_of(mutex);
    cc__lock_take(&bucket->lock);
    CHECK(cc__bucket_first_locked(bucket, mutex) == NULL);
    cc__lock_release(&bucket->lock);
}

static void settle_mutex(struct scene *s) {
    join_helper(s);
    join(s->target);
    check_mutex(&s->mutex);
}

static void settle_rwlock(struct scene *s) {
    join_helper(s);
    join(s->target);
    CHECK_EQ(cc_rwlock_write_lock_try(&s->rwlock), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&s->rwlock), 0);
    CHECK_EQ(cc_rwlock_read_lock_try(&s->rwlock), 0);
    CHECK_EQ(cc_rwlock_read_unlock(&s->rwlock), 0);
}

/* ---- condition: it returns with the mutex, whatever ended it ---- */

static int wait_cond(struct scene *s) {
    CC_SHIELD CHECK_EQ(cc_mutex_lock(&s->mutex), 0);
    int rc = 0;
    while (!s->signalled && rc == 0)
        rc = s->ender == BY_DEADLINE ? cc_cond_wait_until(&s->cond, &s->mutex, s->deadline)
                                     : cc_cond_wait(&s->cond, &s->mutex);
    CHECK_EQ(cc_mutex_unlock(&s->mutex), 0);
    return rc;
}

static void succeed_by_signal(struct scene *s) {
    CHECK_EQ(cc_mutex_lock(&s->mutex), 0);
    s->signalled = true;
    CHECK_EQ(cc_cond_signal(&s->cond), 0);
    CHECK_EQ(cc_mutex_unlock(&s->mutex), 0);
}

static void settle_cond(struct scene *s) {
    join_helper(s);
    check_mutex(&s->mutex);
}

/* ---- permits, counts, events ---- */

static int wait_sem(struct scene *s) {
    return s->ender == BY_DEADLINE ? cc_sem_acquire_until(&s->sem, s->deadline) : cc_sem_acquire(&s->sem);
}

static void succeed_by_release(struct scene *s) {
    CHECK_EQ(cc_sem_release(&s->sem, 1), 0);
}

static void settle_sem(struct scene *s) {
    join_helper(s);
    if (s->outcome != 0) CHECK_EQ(cc_sem_acquire_try(&s->sem), 0); /* the permit is still there */
    CHECK_EQ(cc_sem_acquire_try(&s->sem), EAGAIN);                 /* and there is no other */
}

static void set_up_group(struct scene *s) {
    CHECK_EQ(cc_wait_group_add(&s->group, 1), 0);
}

static int wait_group(struct scene *s) {
    return s->ender == BY_DEADLINE ? cc_wait_group_wait_until(&s->group, s->deadline) : cc_wait_group_wait(&s->group);
}

static void succeed_by_done(struct scene *s) {
    CHECK_EQ(cc_wait_group_done(&s->group), 0);
}

static void settle_group(struct scene *s) {
    join_helper(s);
    CHECK_EQ(cc_wait_group_wait_try(&s->group), 0);
}

static int wait_event(struct scene *s) {
    return s->ender == BY_DEADLINE ? cc_event_wait_until(&s->event, s->deadline) : cc_event_wait(&s->event);
}

static void succeed_by_event(struct scene *s) {
    CHECK_EQ(cc_event_set(&s->event), 0);
}

static void settle_event(struct scene *s) {
    join_helper(s);
    CHECK_EQ(cc_event_wait_try(&s->event), 0);
}

/* ---- objects without a lock ---- */

static int cell_publish(void *object, struct waiter *waiter, void *io) {
    struct cell *cell = object;
    (void)io;
    atomic_store(&cell->ticket, waiter->ticket);
    (void)atomic_exchange(&cell->fiber, waiter->fiber);
    if (atomic_load(&cell->set) != 0) (void)cc__waiter_wake(waiter, WAKE_OBJECT);
    return 0;
}

/* Wakers keep the record and the ticket, not the waiter: there is nothing to wait for. */
static void cell_unpublish(void *object, struct waiter *waiter) {
    (void)waiter;
    atomic_store(&((struct cell *)object)->fiber, NULL);
}

static const struct waitable_ops cell_ops = {cell_publish, cell_unpublish};

static int wait_cell(struct scene *s) {
    uint64_t deadline = s->ender == BY_DEADLINE ? s->deadline.ns : WAIT_FOREVER;
    if (atomic_load(&s->cell.set) != 0) return 0;
    int rc = cc__fiber_wait(&s->cell, NULL, &cell_ops, deadline, PARK_FLAG);
    CHECK(rc == 0 || rc == ETIMEDOUT || rc == ECANCELED);
    if (rc == 0) CHECK_EQ(atomic_load(&s->cell.set), 1);
    return rc;
}

static int wait_park_if(struct scene *s) {
    struct fiber *self = cc__sched_current(cc__worker());
    atomic_store(&s->cell.ticket, cc__park_open(self, PARK_FLAG));
    (void)atomic_exchange(&s->cell.fiber, self);
    unsigned reason = cc__park_if(self, &s->cell.set, 0);
    CHECK(reason == 0 || reason == WAKE_OBJECT || reason == WAKE_CANCEL);
    if (reason != WAKE_CANCEL) CHECK_EQ(atomic_load(&s->cell.set), 1);
    return reason == WAKE_CANCEL ? ECANCELED : 0;
}

static void succeed_by_setting(struct scene *s) {
    (void)atomic_exchange(&s->cell.set, 1);
    struct fiber *f = atomic_load(&s->cell.fiber);
    if (f != NULL) (void)cc__fiber_wake(f, atomic_load(&s->cell.ticket), WAKE_OBJECT);
}

/* ---- the table ---- */

#define CANCELS (1u << BY_NURSERY | 1u << BY_TASK | 1u << BY_SCOPE_DEADLINE)
#define TIMED (1u << BY_DEADLINE)
#define CLOSED (1u << BY_CLOSE)

static const struct kind kinds[] = {
    {"recv, rendezvous", CANCELS | TIMED | CLOSED, set_up_unbuffered, wait_recv, succeed_by_send, settle_recv},
    {"recv, buffered", CANCELS | TIMED | CLOSED, set_up_buffered, wait_recv, succeed_by_send, settle_recv},
    {"send, rendezvous", CANCELS | TIMED | CLOSED, set_up_unbuffered, wait_send, succeed_by_recv, settle_send},
    {"send, buffered", CANCELS | TIMED, set_up_full, wait_send, succeed_by_recv, settle_send},
    {"select", CANCELS | TIMED | CLOSED, set_up_two, wait_select, succeed_by_send, settle_select},
    {"select with an arm", CANCELS | TIMED | CLOSED, set_up_unbuffered, wait_select_arm, succeed_by_send,
     settle_select_arm},
    {"sleep", CANCELS, set_up_sleep, wait_sleep, succeed_alone, join_helper},
    {"join", CANCELS | TIMED, set_up_join, wait_join, succeed_by_ring, settle_join},
    {"nursery", CANCELS | TIMED, set_up_nursery, wait_nursery, succeed_by_ring, settle_nursery},
    {"nursery, to the end", CANCELS, set_up_nursery, wait_nursery_to_the_end, succeed_by_ring, settle_nursery},
    {"mutex", CANCELS | TIMED, set_up_mutex, wait_mutex, succeed_by_ring, settle_mutex},
    {"rwlock", CANCELS | TIMED, set_up_rwlock, wait_rwlock, succeed_by_ring, settle_rwlock},
    {"condition", CANCELS | TIMED, set_up_nothing, wait_cond, succeed_by_signal, settle_cond},
    {"semaphore", CANCELS | TIMED, set_up_nothing, wait_sem, succeed_by_release, settle_sem},
    {"wait group", CANCELS | TIMED, set_up_group, wait_group, succeed_by_done, settle_group},
    {"event", CANCELS | TIMED, set_up_nothing, wait_event, succeed_by_event, settle_event},
    {"object without a lock", CANCELS | TIMED, set_up_nothing, wait_cell, succeed_by_setting, join_helper},
    {"park_if", CANCELS, set_up_nothing, wait_park_if, succeed_by_setting, join_helper},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- a round ---- */

static void *victim_main(void *arg) {
    struct scene *s = arg;
    pause_somewhat(&s->victim_rng);
    s->outcome = s->kind->wait(s);
    return NULL;
}

static void *helper_main(void *arg) {
    struct scene *s = arg;
    pause_somewhat(&s->helper_rng);
    s->kind->succeed(s);
    return NULL;
}

static void *ender_main(void *arg) {
    struct scene *s = arg;
    pause_somewhat(&s->ender_rng);
    switch (s->ender) {
    case BY_NURSERY:
        CHECK_EQ(cc_nursery_cancel(s->nursery), 0);
        break;
    case BY_TASK:
        CHECK_EQ(cc_task_cancel(&s->victim), 0);
        break;
    case BY_SCOPE_DEADLINE:
        CHECK_EQ(cc_nursery_set_deadline(s->nursery, cc_after_ns(below(&s->ender_rng, 3000))), 0);
        break;
    case BY_DEADLINE:
        break;
    case BY_CLOSE:
        CHECK_EQ(cc_chan_close(s->ch), 0);
        break;
    }
    return NULL;
}

static const int ended_with[] = {ECANCELED, ECANCELED, ECANCELED, ETIMEDOUT, EPIPE};

struct tally {
    atomic_long succeeded[KINDS], ended[KINDS];
};

static void one_round(struct tally *tally, enum ender ender, size_t kind, uint64_t *rng) {
    struct scene s = {.kind = &kinds[kind], .ender = ender, .rng = test_random(rng), .deadline = CC_FOREVER};
    s.victim_rng = test_random(rng);
    s.helper_rng = test_random(rng);
    s.ender_rng = test_random(rng);
    s.nursery = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    CHECK(s.nursery != NULL);
    if (ender == BY_DEADLINE) s.deadline = cc_after_ns(below(rng, 20000));
    s.kind->set_up(&s);
    CHECK_EQ(cc_nursery_spawn_ex(s.nursery, &s.victim, victim_main, &s, NULL), 0);
    CCTask ender_task;
    if (below(rng, 2) == 0) {
        s.helper = spawn(helper_main, &s);
        ender_task = spawn(ender_main, &s);
    } else {
        ender_task = spawn(ender_main, &s);
        s.helper = spawn(helper_main, &s);
    }
    CCTask victim;
    CHECK_EQ(cc_task_dup(&s.victim, &victim), 0);
    CHECK_EQ(cc_task_join(&victim, NULL), 0);
    join(ender_task);
    CHECK_EQ(cc_task_detach(&s.victim), 0);
    CHECK(s.outcome == 0 || s.outcome == ended_with[ender]);
    atomic_fetch_add(s.outcome == 0 ? &tally->succeeded[kind] : &tally->ended[kind], 1);
    s.kind->settle(&s);
    int rc = cc_nursery_wait(s.nursery);
    CHECK(rc == 0 || rc == ECANCELED || rc == ETIMEDOUT);
    CHECK(cc__list_empty(&s.nursery->scope.members));
    CHECK_EQ(cc_nursery_free(s.nursery), 0);
}

struct rounds {
    enum ender ender;
    struct tally tally;
};

enum { DIRECTORS = 4 };

static void *direct(void *arg) {
    struct rounds *r = arg;
    uint64_t rng = test_seed() ^ cc_fiber_id();
    long each = test_rounds(2000, 100000) / DIRECTORS + 1;
    for (size_t kind = 0; kind < KINDS; kind++)
        if (kinds[kind].enders & 1u << r->ender)
            for (long i = 0; i < each; i++) one_round(&r->tally, r->ender, kind, &rng);
    return NULL;
}

static void race(enum ender ender) {
    static struct rounds r;
    r.ender = ender;
    CCTask directors[DIRECTORS];
    for (int i = 0; i < DIRECTORS; i++) directors[i] = spawn(direct, &r);
    for (int i = 0; i < DIRECTORS; i++) join(directors[i]);
    finish();
    long succeeded = 0, ended = 0;
    for (size_t kind = 0; kind < KINDS; kind++) {
        if (!(kinds[kind].enders & 1u << ender)) continue;
        printf("%-24s %ld succeeded, %ld ended\n", kinds[kind].name, r.tally.succeeded[kind], r.tally.ended[kind]);
        succeeded += r.tally.succeeded[kind];
        ended += r.tally.ended[kind];
    }
    /* A race that one side always wins would test nothing. */
    if (test_rounds(2000, 100000) >= 2000) CHECK(succeeded > 0 && ended > 0);
}

TEST_WORKERS(nursery_cancel, .timeout = 300) {
    race(BY_NURSERY);
}

TEST_WORKERS(task_cancel, .timeout = 300) {
    race(BY_TASK);
}

TEST_WORKERS(scope_deadline, .timeout = 300) {
    race(BY_SCOPE_DEADLINE);
}

TEST_WORKERS(own_deadline, .timeout = 300) {
    race(BY_DEADLINE);
}

TEST_WORKERS(close, .timeout = 300) {
    race(BY_CLOSE);
}
