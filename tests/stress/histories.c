/* histories.c - many short histories of calls on one object, checked for linearizability, and long ones by pattern.
 *
 * Up to eight parties, fibers and OS threads, make random calls; each records its own calls and results (history.h).
 * The first never waits without a deadline, and closes in the end, so that all calls return. The remaining values are
 * then received, so that a lost value is detected.
 */
#include "../battery/battery.h"
#include "history.h"

enum { PARTIES = 8, CALLS = 40, CAPACITIES = 5 };

static const uint32_t capacities[CAPACITIES] = {0, 1, 2, 3, 5};

struct actor {
    struct table *table;
    uint32_t index, count;
    uint64_t rng;
    struct history_event events[CALLS];
};

/* One object, and its users. */
struct table {
    CCChan *ch, *silent; /* silent: only used together with ch, in a select */
    CCSem sem;
    CCMutex mutex;
    CCRWLock rw;
    history_clock clock;
    atomic_uint arrived, parties;
    /* A planted fault: now and then the second value is received before the first. */
    bool faulty;
    atomic_uint receives;
    _Atomic uint64_t kept;
    struct actor actors[PARTIES + 1];
};

static void note(struct actor *s, enum history_op op, uint64_t called, uint32_t value, int rc) {
    CHECK(s->count < CALLS);
    s->events[s->count++] = (struct history_event){
        .call = called, .ret = history_return(&s->table->clock), .value = value, .rc = rc, .op = op};
}

/* All start together, or few calls would overlap. */
static void arrive(struct table *t) {
    atomic_fetch_add(&t->arrived, 1);
    while (atomic_load(&t->arrived) < atomic_load(&t->parties)) cc_yield();
}

static CCDeadline soon(uint64_t r) {
    return cc_after_ns(r % 20000);
}

/* ---- a channel ---- */

static int receive(struct table *t, uint64_t *value, unsigned how, CCDeadline deadline) {
    if (t->faulty) {
        *value = atomic_exchange(&t->kept, 0);
        if (*value != 0) return 0;
    }
    int rc = how == 0   ? cc_chan_recv(t->ch, value, 8)
             : how == 1 ? cc_chan_recv_try(t->ch, value, 8)
                        : cc_chan_recv_until(t->ch, value, 8, deadline);
    uint64_t second, none = 0;
    if (t->faulty && rc == 0 && atomic_fetch_add(&t->receives, 1) % 8 == 7 &&
        cc_chan_recv_try(t->ch, &second, 8) == 0) {
        if (atomic_compare_exchange_strong(&t->kept, &none, *value)) *value = second;
    }
    return rc;
}

/* A select with a send and a receive, on the same channel or with a silent one in between. */
static int choose(struct actor *s, uint64_t r, uint64_t *value, enum history_op *op, bool patient) {
    struct table *t = s->table;
    uint64_t got = 0, none = 0;
    CCCase cases[3];
    size_t n = 0, chosen;
    bool sends = r & 1, receives = (r & 2) != 0 || !sends;
    if (sends) cases[n++] = (CCCase){.kind = CC_CASE_SEND, .ch = t->ch, .value = value, .size = 8};
    if (receives) cases[n++] = (CCCase){.kind = CC_CASE_RECV, .ch = t->ch, .value = &got, .size = 8};
    if (r & 4) cases[n++] = (CCCase){.kind = CC_CASE_RECV, .ch = t->silent, .value = &none, .size = 8};
    int rc = (r & 8) != 0          ? cc_select_try(cases, n, &chosen)
             : patient && (r & 16) ? cc_select(cases, n, CC_FOREVER, &chosen)
                                   : cc_select(cases, n, soon(r >> 8), &chosen);
    if (rc != 0) return rc;
    CHECK(cases[chosen].ch == t->ch);
    *op = cases[chosen].kind == CC_CASE_SEND ? HISTORY_SEND : HISTORY_RECV;
    if (*op == HISTORY_RECV) *value = got;
    return cases[chosen].error;
}

static void *use_channel(void *actor) {
    struct actor *s = actor;
    struct table *t = s->table;
    bool patient = s->index != 0;
    arrive(t);
    for (int i = 0, closed = 0; i < CALLS - 8 && closed < 3; i++) {
        uint64_t r = test_random(&s->rng), value = (uint64_t)s->index << 16 | (uint64_t)(i + 1);
        enum history_op op = r & 1 ? HISTORY_SEND : HISTORY_RECV;
        CCDeadline deadline = soon(r >> 16);
        uint64_t called = history_call(&t->clock);
        unsigned how = (r >> 1) % 4; /* waits, does not, until, among several */
        int rc;
        if (how == 0 && !patient) how = 1;
        if (how == 3 && !t->faulty) {
            rc = choose(s, r >> 8, &value, &op, patient);
            if (rc == EAGAIN || rc == ETIMEDOUT) continue; /* it says nothing about one channel alone */
        } else if (op == HISTORY_SEND) {
            rc = how == 0   ? cc_chan_send(t->ch, &value, 8)
                 : how == 1 ? cc_chan_send_try(t->ch, &value, 8)
                            : cc_chan_send_until(t->ch, &value, 8, deadline);
        } else {
            rc = receive(t, &value, how, deadline);
        }
        note(s, op, called, rc == 0 || op == HISTORY_SEND ? (uint32_t)value : 0, rc);
        if (rc == EPIPE) closed++;
    }
    if (s->index == 0) {
        uint64_t called = history_call(&t->clock);
        note(s, HISTORY_CLOSE, called, 0, cc_chan_close(t->ch));
    }
    return NULL;
}

static void receive_the_rest(struct table *t, struct actor *s) {
    int rc = 0;
    for (s->count = 0; rc == 0;) {
        uint64_t value = 0, called = history_call(&t->clock);
        rc = receive(t, &value, 1, CC_FOREVER);
        note(s, HISTORY_RECV, called, (uint32_t)value, rc);
    }
    CHECK_EQ(rc, EPIPE);
}

/* ---- locks ---- */

static void *use_semaphore(void *actor) {
    struct actor *s = actor;
    struct table *t = s->table;
    arrive(t);
    for (int i = 0; i + 2 <= CALLS; i += 2) {
        uint64_t r = test_random(&s->rng), called = history_call(&t->clock);
        int rc = r % 3 == 0   ? cc_sem_acquire(&t->sem)
                 : r % 3 == 1 ? cc_sem_acquire_try(&t->sem)
                              : cc_sem_acquire_until(&t->sem, soon(r >> 8));
        note(s, HISTORY_ACQUIRE, called, 0, rc);
        if (rc != 0) continue;
        if (r & 1 << 20) cc_yield();
        called = history_call(&t->clock);
        note(s, HISTORY_RELEASE, called, 1, cc_sem_release(&t->sem, 1));
    }
    return NULL;
}

static void *use_mutex(void *actor) {
    struct actor *s = actor;
    struct table *t = s->table;
    arrive(t);
    for (int i = 0; i + 2 <= CALLS; i += 2) {
        uint64_t r = test_random(&s->rng), called = history_call(&t->clock);
        int rc = r % 3 == 0   ? cc_mutex_lock(&t->mutex)
                 : r % 3 == 1 ? cc_mutex_lock_try(&t->mutex)
                              : cc_mutex_lock_until(&t->mutex, soon(r >> 8));
        note(s, HISTORY_ACQUIRE, called, 0, rc);
        if (rc != 0) continue;
        if (r & 1 << 20) cc_yield();
        called = history_call(&t->clock);
        note(s, HISTORY_RELEASE, called, 0, cc_mutex_unlock(&t->mutex));
    }
    return NULL;
}

static void *use_rwlock(void *actor) {
    struct actor *s = actor;
    struct table *t = s->table;
    arrive(t);
    for (int i = 0; i + 2 <= CALLS; i += 2) {
        uint64_t r = test_random(&s->rng), called = history_call(&t->clock);
        bool reads = r >> 32 & 1;
        int rc = r % 3 == 0   ? (reads ? cc_rwlock_read_lock : cc_rwlock_write_lock)(&t->rw)
                 : r % 3 == 1 ? (reads ? cc_rwlock_read_lock_try : cc_rwlock_write_lock_try)(&t->rw)
                              : (reads ? cc_rwlock_read_lock_until : cc_rwlock_write_lock_until)(&t->rw, soon(r >> 8));
        note(s, reads ? HISTORY_READ_LOCK : HISTORY_ACQUIRE, called, 0, rc);
        if (rc != 0) continue;
        if (r & 1 << 20) cc_yield();
        called = history_call(&t->clock);
        rc = (reads ? cc_rwlock_read_unlock : cc_rwlock_write_unlock)(&t->rw);
        note(s, reads ? HISTORY_READ_UNLOCK : HISTORY_RELEASE, called, 0, rc);
    }
    return NULL;
}

/* ---- many histories ---- */

struct tally {
    long histories, calls, overlaps, undecided, bad;
};

static uint32_t gather(const struct table *t, struct history_event *all, struct tally *tally) {
    uint32_t n = 0;
    for (unsigned i = 0; i <= PARTIES; i++) {
        memcpy(all + n, t->actors[i].events, t->actors[i].count * sizeof *all);
        n += t->actors[i].count;
    }
    for (uint32_t i = 0; i < n; i++)
        if (all[i].ret > all[i].call + 1) tally->overlaps++; /* somebody else returned meanwhile */
    tally->calls += n;
    tally->histories++;
    return n;
}

static void play(struct table *t, enum history_object object, enum parties kind, uint64_t *rng, struct tally *tally) {
    static void *(*const uses[])(void *) = {use_channel, use_semaphore, use_mutex, use_rwlock};
    struct party parties[PARTIES];
    struct history_event all[(PARTIES + 1) * CALLS];
    uint32_t capacity = capacities[test_random(rng) % CAPACITIES], permits = 1 + (uint32_t)(test_random(rng) % 3);
    int n = 2 + (int)(test_random(rng) % (PARTIES - 1));
    t->ch = new_chan(8, capacity);
    t->silent = new_chan(8, 1);
    t->sem = (CCSem)CC_SEM_INIT(permits);
    atomic_store(&t->parties, (unsigned)n);
    for (int i = 0; i < n; i++) {
        t->actors[i] = (struct actor){.table = t, .index = (uint32_t)i, .rng = test_random(rng)};
        parties[i] = party_start(kind, i, uses[object], &t->actors[i]);
    }
    parties_end(parties, n);
    t->actors[PARTIES].table = t;
    if (object == HISTORY_CHANNEL) receive_the_rest(t, &t->actors[PARTIES]);
    uint32_t count = gather(t, all, tally);
    enum history_verdict verdict =
        history_check(all, count, object, capacity, object == HISTORY_SEMAPHORE ? permits : 0, 2000000);
    if (verdict == HISTORY_UNDECIDED) tally->undecided++;
    if (verdict == HISTORY_BAD) {
        tally->bad++;
        if (!t->faulty) {
            history_print(all, count);
            test_fail(__FILE__, __LINE__, "no order explains these %u calls, capacity %u", count, capacity);
        }
    }
    cc_chan_free(t->ch);
    cc_chan_free(t->silent);
}

static void histories(enum history_object object, enum parties kind, unsigned workers, bool faulty) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = workers}), 0);
    uint64_t rng = test_seed();
    struct tally tally = {0};
    long wanted = test_rounds(kind == FIBERS && workers <= 2 ? 300 : 100, 50000);
    if (faulty) wanted = 200; /* ends with the first that shows it, however slow the tool */
    struct table *t = malloc(sizeof *t);
    CHECK(t != NULL);
    for (long i = 0; i < wanted && tally.bad == 0; i++) {
        memset(t, 0, sizeof *t);
        t->faulty = faulty;
        play(t, object, kind, &rng, &tally);
    }
    free(t);
    CHECK(tally.undecided <= tally.histories / 50);
    CHECK(faulty ? tally.bad > 0 : tally.bad == 0);
    /* The runs were not trivial; one with a fault may have ended with the first. */
    CHECK(workers == 1 || faulty || wanted < 100 || tally.overlaps > 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(channel_workers_1, .timeout = 120) {
    histories(HISTORY_CHANNEL, FIBERS, 1, false);
}

TEST(channel_workers_2, .timeout = 120) {
    histories(HISTORY_CHANNEL, FIBERS, 2, false);
}

TEST(channel_workers_8, .timeout = 120) {
    histories(HISTORY_CHANNEL, FIBERS, 8, false);
}

TEST(channel_mixed, .timeout = 120) {
    histories(HISTORY_CHANNEL, MIXED, 2, false);
}

TEST(channel_threads, .timeout = 120) {
    histories(HISTORY_CHANNEL, THREADS, 1, false);
}

TEST(semaphore, .timeout = 120) {
    histories(HISTORY_SEMAPHORE, MIXED, 2, false);
}

TEST(mutex, .timeout = 120) {
    histories(HISTORY_MUTEX, MIXED, 2, false);
}

TEST(rwlock, .timeout = 120) {
    histories(HISTORY_RWLOCK, MIXED, 2, false);
}

/* The fault is in the test, not in the library, and as rare as a race: it has to be noticed. */
TEST(a_planted_fault_is_noticed, .timeout = 120) {
    histories(HISTORY_CHANNEL, MIXED, 2, true);
}

/* ---- long ones ---- */

struct flow {
    CCChan *ch;
    history_clock clock;
    uint64_t each;
    struct history_value *values;
    atomic_uint *received;
    atomic_int producing;
};

struct flow_actor {
    struct flow *flow;
    uint64_t index;
};

static void *produce(void *actor) {
    struct flow_actor *s = actor;
    struct flow *f = s->flow;
    for (uint64_t i = 0; i < f->each; i++) {
        uint64_t value = s->index * f->each + i;
        f->values[value].send_call = history_call(&f->clock);
        CHECK_EQ(cc_chan_send(f->ch, &value, 8), 0);
        f->values[value].send_ret = history_return(&f->clock);
    }
    if (atomic_fetch_sub(&f->producing, 1) == 1) CHECK_EQ(cc_chan_close(f->ch), 0);
    return NULL;
}

static void *consume(void *actor) {
    struct flow_actor *s = actor;
    struct flow *f = s->flow;
    for (;;) {
        uint64_t value, called = history_call(&f->clock);
        int rc = cc_chan_recv(f->ch, &value, 8);
        uint64_t returned = history_return(&f->clock);
        if (rc == EPIPE) return NULL;
        CHECK_EQ(rc, 0);
        CHECK(value < PARTIES / 2 * f->each);
        CHECK_EQ(atomic_fetch_add(&f->received[value], 1), 0);
        f->values[value].recv_call = called;
        f->values[value].recv_ret = returned;
    }
}

static void long_history(size_t capacity, enum parties kind, unsigned workers) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = workers}), 0);
    struct flow f = {
        .ch = new_chan(8, capacity), .each = (uint64_t)test_rounds(20000, 1000000), .producing = PARTIES / 2};
    size_t n = PARTIES / 2 * f.each;
    struct flow_actor actors[PARTIES];
    struct party parties[PARTIES];
    f.values = calloc(n, sizeof *f.values);
    f.received = calloc(n, sizeof *f.received);
    CHECK(f.values != NULL && f.received != NULL);
    for (int i = 0; i < PARTIES; i++) {
        actors[i] = (struct flow_actor){&f, (uint64_t)(i / 2)};
        parties[i] = party_start(kind, i / 2, i % 2 == 0 ? produce : consume, &actors[i]);
    }
    parties_end(parties, PARTIES);
    const char *what = history_check_long(f.values, n);
    if (what != NULL) test_fail(__FILE__, __LINE__, "%s", what);
    cc_chan_free(f.ch);
    free(f.values);
    free(f.received);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(long_rendezvous, .timeout = 240) {
    long_history(0, FIBERS, 2);
}

TEST(long_capacity_1, .timeout = 240) {
    long_history(1, FIBERS, 2);
}

TEST(long_capacity_64_workers_8, .timeout = 240) {
    long_history(64, FIBERS, 8);
}

TEST(long_mixed, .timeout = 240) {
    long_history(3, MIXED, 2);
}
