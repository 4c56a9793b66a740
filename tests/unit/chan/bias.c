/* bias.c - a channel biased to a worker, and its revocation. */
#include "harness.h"

#include "../../programs/where.h"
#include "../crew.h"
#include "chan/chan.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#ifndef CC_TSAN /* where no channel is biased */

enum { MANY = 500 };

static void begin(unsigned workers) {
    CCRuntimeConfig config = {.workers = workers};
    CHECK_EQ(cc_runtime_init(&config), 0);
}

static CCChan *biased_channel(void) {
    CCChan *ch = cc_chan_create(sizeof(uint64_t), 1);
    for (uint64_t i = 0; i < MANY; i++) { /* the slow path, which counts uses: try on a full channel */
        CHECK_EQ(cc_chan_send_try(ch, &i, sizeof i), i == 0 ? 0 : EAGAIN);
    }
    uint64_t v;
    CHECK_EQ(cc_chan_recv(ch, &v, sizeof v), 0);
    return ch;
}

static bool is_biased(CCChan *ch) {
    return cc__get(&ch->bias) != 0;
}

static void *gets_biased(void *arg) {
    CCChan **out = arg;
    CCChan *ch = biased_channel();
    CHECK(is_biased(ch));
    CHECK_EQ(cc__get(&ch->bias), cc__worker()->core.tag);
    for (uint64_t i = 0, v; i < MANY; i++) {
        CHECK_EQ(cc_chan_send(ch, &i, sizeof i), 0);
        CHECK_EQ(cc_chan_send_try(ch, &i, sizeof i), EAGAIN);
        CHECK_EQ(cc_chan_recv(ch, &v, sizeof v), 0);
        CHECK_EQ(v, i);
        CHECK_EQ(cc_chan_recv_try(ch, &v, sizeof v), EAGAIN);
    }
    uint64_t last = 77;
    CHECK_EQ(cc_chan_send(ch, &last, sizeof last), 0);
    if (out != NULL)
        *out = ch;
    else
        cc_chan_free(ch);
    return NULL;
}

TEST(one_worker_gets_it) {
    begin(1);
    CHECK_EQ(cc_run(gets_biased, NULL, NULL), 0);
}

/* Values of every size that is copied in a special way, and of sizes between, leave the bytes around them alone. */
struct flow {
    CCChan *ch;
    size_t size, n;
};

static void fill(unsigned char *bytes, size_t size, size_t i) {
    for (size_t k = 0; k < size; k++) bytes[k] = (unsigned char)(i * 7 + k + 1);
}

static void *send_all(void *arg) {
    struct flow *flow = arg;
    unsigned char value[16];
    for (size_t i = 0; i < flow->n; i++) {
        fill(value, flow->size, i);
        CHECK_EQ(cc_chan_send(flow->ch, value, flow->size), 0);
    }
    return NULL;
}

static void *flows_of_all_sizes(void *arg) {
    for (size_t size = 1; size <= 16; size++)
        for (size_t capacity = 0; capacity <= 3; capacity++) {
            struct flow flow = {cc_chan_create(size, capacity), size, MANY};
            CCTask sender = cc_fiber_spawn_task(send_all, &flow);
            for (size_t i = 0; i < flow.n; i++) {
                unsigned char got[18], want[18];
                memset(got, 0xaa, sizeof got);
                memset(want, 0xaa, sizeof want);
                fill(want + 1, size, i);
                CHECK_EQ(cc_chan_recv(flow.ch, got + 1, size), 0);
                CHECK_EQ(memcmp(got, want, sizeof got), 0);
                CHECK_EQ(cc_chan_recv(flow.ch, got + 1, size == 8 ? 4 : 8), EINVAL);
                if (i % 50 == 0) cc_yield(); /* so that the sender has to wait, too */
            }
            CHECK(is_biased(flow.ch));
            CHECK_EQ(cc_task_join(&sender, NULL), 0);
            cc_chan_free(flow.ch);
        }
    return arg;
}

TEST(values_of_all_sizes) {
    begin(1);
    CHECK_EQ(cc_run(flows_of_all_sizes, NULL, NULL), 0);
}

/* An OS thread revokes the bias, and finds what was sent. */
TEST(a_thread_revokes) {
    begin(2);
    CCChan *ch = NULL;
    CHECK_EQ(cc_run(gets_biased, &ch, NULL), 0);
    uint64_t v = 0;
    CHECK_EQ(cc_chan_recv(ch, &v, sizeof v), 0);
    CHECK_EQ(v, 77);
    CHECK(!is_biased(ch));
    cc_chan_free(ch);
}

/* A bias to a worker that has ended has no effect: neither after a shutdown nor after the next start, whatever the
 * address of its worker. */
TEST(a_bias_does_not_outlive_its_runtime) {
    for (int round = 0; round < 3; round++) {
        begin(1);
        CCChan *ch = NULL;
        CHECK_EQ(cc_run(gets_biased, &ch, NULL), 0);
        CHECK(is_biased(ch));
        CHECK_EQ(cc_runtime_shutdown(10000), 0);
        uint64_t v = 0;
        if (round == 1) begin(1);
        if (round == 2) begin(3);
        CHECK_EQ(cc_chan_recv(ch, &v, sizeof v), 0);
        CHECK_EQ(v, 77);
        CHECK(!is_biased(ch));
        cc_chan_free(ch);
        CHECK_EQ(cc_runtime_shutdown(10000), 0);
    }
}

static void *asks_everything(void *arg) {
    (void)arg;
    /* What revokes a bias: close, a select with a deadline, deadlines, free. */
    for (int what = 0; what < 4; what++) {
        CCChan *ch = biased_channel();
        CHECK(is_biased(ch));
        uint64_t v = 5;
        size_t chosen;
        CCCase cases[] = {CC_RECV(ch, &v, NULL)};
        switch (what) {
        case 0:
            CHECK_EQ(cc_chan_close(ch), 0);
            CHECK_EQ(cc_chan_send(ch, &v, sizeof v), EPIPE);
            CHECK_EQ(cc_chan_recv(ch, &v, sizeof v), EPIPE);
            break;
        case 1:
            CHECK_EQ(cc_select(cases, 1, cc_after_ns(1000), &chosen), ETIMEDOUT);
            CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
            CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
            break;
        case 2:
            CHECK_EQ(cc_chan_recv_until(ch, &v, sizeof v, cc_after_ns(1000)), ETIMEDOUT);
            CHECK_EQ(cc_chan_send_until(ch, &v, sizeof v, cc_after_ns(1000)), 0);
            CHECK_EQ(cc_chan_send_until(ch, &v, sizeof v, cc_after_ns(1000)), ETIMEDOUT);
            break;
        default:
            break;
        }
        cc_chan_free(ch);
    }
    return NULL;
}

/* ---- selects ---- */

static struct {
    CCChan *chans[2];
    uint64_t each, sum, received;
    bool stays; /* the channels stay biased to the end */
} pick;

static void *feeds(void *arg) {
    CCChan *ch = arg;
    for (uint64_t i = 1; i <= pick.each; i++) CHECK_EQ(cc_chan_send(ch, &i, sizeof i), 0);
    return NULL;
}

static void *picks(void *arg) {
    (void)arg;
    uint64_t a, b;
    size_t chosen;
    CCCase cases[] = {CC_RECV(pick.chans[0], &a, NULL), CC_RECV(pick.chans[1], &b, NULL)};
    for (uint64_t i = 0; i < 2 * pick.each; i++) {
        CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
        CHECK_EQ(cases[chosen].error, 0);
        pick.sum += chosen == 0 ? a : b;
        pick.received++;
    }
    if (pick.stays) CHECK(is_biased(pick.chans[0]) && is_biased(pick.chans[1]));
    /* Nothing is left: neither an arm on a list nor one whose claim was lost. */
    for (int i = 0; i < 2; i++) {
        CHECK(cc__list_empty(&pick.chans[i]->receivers) && cc__list_empty(&pick.chans[i]->senders));
        CHECK_EQ(pick.chans[i]->lost_claims, 0);
    }
    return NULL;
}

static void pick_all(unsigned workers, size_t capacity) {
    begin(workers);
    for (int i = 0; i < 2; i++) pick.chans[i] = cc_chan_create(sizeof(uint64_t), capacity);
    pick.each = 1000 + (uint64_t)test_scale(20000); /* some hundred uses make a bias */
    CCTask consumer, feeders[2];
    consumer = cc_fiber_spawn_task(picks, NULL);
    for (int i = 0; i < 2; i++) feeders[i] = cc_fiber_spawn_task(feeds, pick.chans[i]);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&feeders[i], NULL), 0);
    CHECK_EQ(cc_task_join(&consumer, NULL), 0);
    CHECK_EQ(pick.received, 2 * pick.each);
    CHECK_EQ(pick.sum, pick.each * (pick.each + 1));
    for (int i = 0; i < 2; i++) cc_chan_free(pick.chans[i]);
}

/* On one worker the channels of a select become biased, and stay biased. */
TEST(a_biased_select) {
    pick.stays = true;
    pick_all(1, 0);
}

TEST(a_biased_select_with_slots) {
    pick.stays = true;
    pick_all(1, 3);
}

TEST(a_select_among_workers) {
    pick_all(4, 0);
}

/* All cases are always ready, and all channels stay biased: each is chosen equally often, or the first, as asked. */
static void *selects_in_order(void *arg) {
    CCSelectOrder order = *(CCSelectOrder *)arg;
    enum { CASES = 3, ROUNDS = 3000 };
    CCChan *chans[CASES];
    CCCase cases[CASES];
    long count[CASES] = {0};
    uint64_t value = 1;
    for (int i = 0; i < CASES; i++) {
        chans[i] = biased_channel();
        CHECK_EQ(cc_chan_send(chans[i], &value, sizeof value), 0);
        cases[i] = (CCCase)CC_RECV(chans[i], &value, NULL);
    }
    for (int i = 0; i < ROUNDS; i++) {
        size_t chosen;
        CHECK_EQ(cc_select_ordered(cases, CASES, order, CC_FOREVER, &chosen), 0);
        count[chosen]++;
        CHECK_EQ(cc_chan_send(chans[chosen], &value, sizeof value), 0);
    }
    if (order == CC_SELECT_FIRST) CHECK_EQ(count[0], ROUNDS);
    for (int i = 0; i < CASES; i++) {
        /* A standard deviation is 26: this is ten. */
        if (order == CC_SELECT_FAIR) CHECK(count[i] > ROUNDS / CASES - 260 && count[i] < ROUNDS / CASES + 260);
        CHECK(is_biased(chans[i]));
        cc_chan_free(chans[i]);
    }
    return NULL;
}

TEST(a_biased_select_keeps_its_order) {
    begin(1);
    for (CCSelectOrder order = CC_SELECT_FAIR; order <= CC_SELECT_FIRST; order++)
        CHECK_EQ(cc_run(selects_in_order, &order, NULL), 0);
}

/* Parked in a biased select, and then revoked: by a value from a thread, by a close. */
static void *waits_biased(void *arg) {
    uint64_t a = 0, b = 0;
    size_t chosen = 9;
    for (int i = 0; i < 2; i++) pick.chans[i] = biased_channel();
    CCCase cases[] = {CC_RECV(pick.chans[0], &a, NULL), CC_RECV(pick.chans[1], &b, NULL)};
    CHECK_EQ(cc_event_set(arg), 0);
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(cases[1].error, 0);
    CHECK_EQ(b, 33);
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 0);
    CHECK_EQ(cases[0].error, EPIPE);
    return NULL;
}

TEST(a_biased_select_is_revoked) {
    begin(1);
    CCEvent there = {0};
    CCTask task = cc_fiber_spawn_task(waits_biased, &there);
    CHECK_EQ(cc_event_wait(&there), 0);
    uint64_t v = 33;
    CHECK_EQ(cc_chan_send(pick.chans[1], &v, sizeof v), 0);
    while (cc_chan_len(pick.chans[1]) != 0) sched_yield();
    CHECK_EQ(cc_chan_close(pick.chans[0]), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    for (int i = 0; i < 2; i++) cc_chan_free(pick.chans[i]);
}

TEST(what_takes_the_lock) {
    begin(1);
    CHECK_EQ(cc_run(asks_everything, NULL, NULL), 0);
}
#endif

/* ---- bias under contention: fibers of one worker, of others, and threads ---- */

static struct {
    CCChan *to, *fro;
    uint64_t rounds;
    atomic_uint_least64_t stolen;
} game;

static void *ping(void *arg) {
    (void)arg;
    for (uint64_t i = 0, v; i < game.rounds; i++) {
        CHECK_EQ(cc_chan_send(game.to, &i, sizeof i), 0);
        CHECK_EQ(cc_chan_recv(game.fro, &v, sizeof v), 0);
        CHECK_EQ(v, i);
    }
    CHECK_EQ(cc_chan_close(game.to), 0);
    return NULL;
}

static void *pong(void *arg) {
    (void)arg;
    for (uint64_t v; cc_chan_recv(game.to, &v, sizeof v) == 0;) CHECK_EQ(cc_chan_send(game.fro, &v, sizeof v), 0);
    return NULL;
}

/* Uses the channels from an OS thread all the time: receives a value and sends it back, if there is one. */
static void interfere(int index, void *arg) {
    CCChan *ch = index % 2 ? game.to : game.fro;
    atomic_bool *over = arg;
    uint64_t v;
    while (!atomic_load(over)) {
        if (cc_chan_recv_try(ch, &v, sizeof v) == 0) {
            CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
            atomic_fetch_add(&game.stolen, 1);
        }
        (void)cc_chan_dropped(ch); /* takes the lock */
        sched_yield();
    }
}

static void play(size_t capacity, int threads) {
    struct crew crew;
    atomic_bool over = false;
    game.to = cc_chan_create(sizeof(uint64_t), capacity);
    game.fro = cc_chan_create(sizeof(uint64_t), capacity);
    game.rounds = (uint64_t)test_rounds(20000, 5000000);
    CCTask a = cc_fiber_spawn_task(pong, NULL), b = cc_fiber_spawn_task(ping, NULL);
    crew_start(&crew, threads, interfere, &over);
    CHECK_EQ(cc_task_join(&b, NULL), 0);
    CHECK_EQ(cc_task_join(&a, NULL), 0);
    atomic_store(&over, true);
    crew_join(&crew);
    CHECK_EQ(game.to->lost_claims, 0);
    CHECK_EQ(game.fro->lost_claims, 0);
    cc_chan_free(game.to);
    cc_chan_free(game.fro);
}

TEST_WORKERS(ping_pong_alone) {
    play(0, 0);
    play(1, 0);
    play(128, 0);
}

TEST_WORKERS(ping_pong_beside_threads) {
    if (under_valgrind()) SKIP("valgrind runs one thread at a time, and threads that never block starve the others");
    play(1, 1);
    play(1, 2);
    play(128, 2);
}
