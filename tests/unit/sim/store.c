/* store.c - the store of apps/cc-store under simulated faults: three or five nodes that crash and are partitioned,
 * clients that retry, linearizability of the requests, and the invariants of the protocol; and bugs that seeds find. */
#include "store.h"
#include "history.h"
#include "sim_net.h"

#include <stdlib.h>

enum {
    ASKERS = 5,
    REQUESTS = 8,
    KEYS = 2,
    EVENTS = ASKERS * REQUESTS,
    TROUBLE_MS = 5000,
    LIMIT_MS = 400000,
    TERMS = 4096,
    INDEXES = 4096
};

static const char *const all_nodes[] = {"tcp://n0:7", "tcp://n1:7", "tcp://n2:7", "tcp://n3:7", "tcp://n4:7"};

/* ---- nodes ---- */

struct plan {
    unsigned nodes;
    struct store_config configs[5];
    CCSimHost hosts[5], askers[ASKERS];
    uint64_t random, pace;
    atomic_uint left; /* clients */
    history_clock clock;
    struct history_event events[KEYS][EVENTS];
    atomic_uint counts[KEYS];
    bool stuck;
    bool at_elections; /* that is where faults happen, with these parameters */
    uint64_t cut_ms[2], crash_ms;
    unsigned leaders_crash;                /* of four */
    atomic_uint noticed[5];                /* events of each node */
    atomic_uint_fast64_t applied[INDEXES]; /* by index: a hash of what the first node has applied */
    atomic_uint leaders[TERMS];            /* by term: 1 + the node */
    _Atomic(const char *) broken;          /* a property of the protocol */
    uint64_t crash_at[5], start_at[5];
};

/* A node whose disk or network fails is restarted, as a service manager would. */
static void *node(void *arg) {
    while (store_run(arg) != ECANCELED)
        if (cc_sleep_ms(100) != 0) break;
    return NULL;
}

static uint64_t draw(struct plan *p, uint64_t below) {
    p->random = p->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (p->random >> 33) % below;
}

/* ---- clients ---- */

struct asker {
    struct plan *plan;
    unsigned number;
};

/* A register for each key: 0 until it is written. Values are unique. */
static void request(struct plan *p, struct store_client *c, uint64_t *random, unsigned value) {
    char key[2] = "a", text[16];
    size_t size;
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    unsigned which = (unsigned)(*random >> 40) % KEYS;
    bool writes = (*random >> 50) % 2 == 0;
    key[0] = (char)('a' + which);
    struct history_event e = {.op = writes ? HISTORY_WRITE : HISTORY_READ, .call = history_call(&p->clock)};
    if (writes) e.value = value;
    size = writes ? (size_t)snprintf(text, sizeof text, "%u", value) : sizeof text - 1;
    int error = store_call(c, writes ? OP_PUT : OP_GET, key, text, &size, cc_after_ms(LIMIT_MS));
    if (error == ETIMEDOUT) p->stuck = true;
    if (error == 0 && !writes) {
        text[size] = 0;
        e.value = (uint32_t)strtoul(text, NULL, 10);
    }
    CHECK(error == 0 || (error == ENOENT && !writes) || error == ETIMEDOUT);
    e.ret = history_return(&p->clock);
    if (error != ETIMEDOUT) p->events[which][atomic_fetch_add(&p->counts[which], 1)] = e;
}

static void *asker(void *arg) {
    struct asker a = *(struct asker *)arg;
    struct store_client c;
    uint64_t random = cc_sim_seed() * 77 + a.number;
    store_client_init(&c, a.number + 1, a.plan->nodes, all_nodes);
    for (unsigned i = 0; i < REQUESTS; i++) {
        request(a.plan, &c, &random, 1 + a.number * REQUESTS + i);
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        CHECK_EQ(cc_sleep_ms((random >> 40) % 400), 0);
    }
    store_client_close(&c);
    atomic_fetch_sub(&a.plan->left, 1);
    return NULL;
}

/* ---- trouble ---- */

static void start(struct plan *p, unsigned i) {
    if (!cc_sim_is_up(p->hosts[i])) CHECK_EQ(cc_sim_start(p->hosts[i], node, &p->configs[i]), 0);
}

/* Faults at any moment. */
static void trouble_by_chance(struct plan *p, uint64_t end) {
    while (cc_now_ns() < end && atomic_load(&p->left) > 0) {
        unsigned one = (unsigned)draw(p, p->nodes), other = (unsigned)draw(p, p->nodes);
        switch (draw(p, 6)) {
        case 0:
        case 1:
            if (cc_sim_is_up(p->hosts[one])) CHECK_EQ(cc_sim_crash(p->hosts[one]), 0);
            break;
        case 2:
            for (unsigned i = 0; i < p->nodes; i++) /* all at once */
                if (cc_sim_is_up(p->hosts[i])) CHECK_EQ(cc_sim_crash(p->hosts[i]), 0);
            break;
        case 3:
            for (unsigned i = 0; i < p->nodes; i++) /* alone, but for its clients */
                if (i != one) CHECK_EQ(cc_sim_partition(p->hosts[i], p->hosts[one], cc_after_ms(draw(p, 2500))), 0);
            break;
        default:
            if (one != other) CHECK_EQ(cc_sim_partition(p->hosts[one], p->hosts[other], cc_after_ms(draw(p, 2000))), 0);
            break;
        }
        CHECK_EQ(cc_sleep_ms(draw(p, p->pace)), 0);
        for (unsigned i = 0; i < p->nodes; i++)
            if (draw(p, 2) == 0) start(p, i);
        CHECK_EQ(cc_sleep_ms(draw(p, p->pace)), 0);
    }
}

/* The protocol's invariants: one leader in a term; all nodes apply the same entries. */
static void see_notice(void *arg, unsigned id, const struct store_notice *notice) {
    struct plan *p = arg;
    atomic_fetch_or(&p->noticed[id], notice->event);
    if (notice->event == EVENT_LEADS && notice->term < TERMS) {
        unsigned leader = atomic_exchange(&p->leaders[notice->term], id + 1);
        if (leader != 0 && leader != id + 1) atomic_store(&p->broken, "two nodes lead in one term");
    } else if (notice->event == EVENT_APPLIES && notice->index < INDEXES) {
        uint64_t hash = 5381 + notice->term;
        for (size_t i = 0; i < notice->size; i++) hash = hash * 33 + ((const unsigned char *)notice->command)[i];
        uint64_t first = atomic_exchange(&p->applied[notice->index], hash);
        if (first != 0 && first != hash) atomic_store(&p->broken, "two nodes apply different entries");
    }
}

static uint64_t after_ms(uint64_t ms) {
    return cc_now_ns() + ms * 1000000;
}

/* For node i, by what it has done. */
static void plan_faults(struct plan *p, unsigned i) {
    unsigned what = atomic_exchange(&p->noticed[i], 0);
    if (what & EVENT_STANDS && draw(p, 2) == 0) {
        for (unsigned k = 0; k < p->nodes; k++)
            if (k != i)
                CHECK_EQ(cc_sim_partition(p->hosts[i], p->hosts[k], cc_after_ms(draw(p, p->cut_ms[draw(p, 2)]))), 0);
    }
    if (what & EVENT_VOTES && draw(p, 2) == 0) {
        p->crash_at[i] = after_ms(draw(p, 12));
        p->start_at[i] = p->crash_at[i];
    }
    if (what & EVENT_LEADS && draw(p, 4) < p->leaders_crash) {
        p->crash_at[i] = after_ms(draw(p, p->crash_ms));
        p->start_at[i] = p->crash_at[i] + draw(p, 600) * 1000000;
    }
}

/* Faults at critical moments: candidates are cut off, nodes that have voted and leaders crash soon after. */
static void trouble_at_elections(struct plan *p, uint64_t end) {
    while (cc_now_ns() < end && atomic_load(&p->left) > 0) {
        for (unsigned i = 0; i < p->nodes; i++) {
            plan_faults(p, i);
            if (p->crash_at[i] != 0 && cc_now_ns() >= p->crash_at[i]) {
                if (cc_sim_is_up(p->hosts[i])) CHECK_EQ(cc_sim_crash(p->hosts[i]), 0);
                p->crash_at[i] = 0;
            }
            if (p->crash_at[i] == 0 && cc_now_ns() >= p->start_at[i]) start(p, i);
        }
        CHECK_EQ(cc_sleep_ms(1 + draw(p, 2)), 0);
    }
}

static void trouble(struct plan *p) {
    uint64_t end = after_ms(TROUBLE_MS);
    if (p->at_elections)
        trouble_at_elections(p, end);
    else
        trouble_by_chance(p, end);
    for (unsigned i = 0; i < p->nodes; i++) {
        start(p, i);
        for (unsigned k = 0; k < i; k++) CHECK_EQ(cc_sim_heal(p->hosts[i], p->hosts[k]), 0);
    }
}

/* ---- one seed ---- */

static void prepare(struct plan *p) {
    CCSimNet net;
    char name[16];
    CHECK_EQ(cc_sim_net(&net), 0);
    if (net.latency_min_us > 1000) net.latency_min_us = 1000; /* elections take some hundred milliseconds */
    if (net.latency_max_us > 8000) net.latency_max_us = 8000;
    if (net.window < 512) net.window = 512;
    if (net.partition_ppm > 1000) net.partition_ppm = 1000;
    use_net(net);
    p->random = cc_sim_seed() * 1009 + 1;
    p->nodes = draw(p, 2) == 0 ? 5 : 3;
    p->pace = (uint64_t[]){60, 300, 600}[draw(p, 3)];
    p->at_elections = draw(p, 3) == 0;
    p->cut_ms[0] = 40, p->cut_ms[1] = (uint64_t[]){40, 300, 1000}[draw(p, 3)];
    p->crash_ms = (uint64_t[]){30, 100, 400}[draw(p, 3)];
    p->leaders_crash = (unsigned)draw(p, 5);
    unsigned spread = (unsigned[]){5, 50, 300}[draw(p, 3)]; /* a small one: several stand at the same time */
    for (unsigned i = 0; i < p->nodes; i++) {
        snprintf(name, sizeof name, "n%u", i);
        CHECK_EQ(cc_sim_host(&p->hosts[i], name), 0);
        p->configs[i] = (struct store_config){.id = i,
                                              .count = p->nodes,
                                              .listen = "tcp://[::]:7",
                                              .directory = "/",
                                              .snapshot_after = 12,
                                              .election_ms = 250,
                                              .spread_ms = spread,
                                              .notice = see_notice,
                                              .notice_arg = p};
        memcpy(p->configs[i].where, all_nodes, sizeof all_nodes);
    }
}

static void *run_plan(void *arg) {
    struct plan *p = arg;
    struct asker askers[ASKERS];
    prepare(p);
    for (unsigned i = 0; i < p->nodes; i++) start(p, i);
    atomic_store(&p->left, ASKERS);
    for (unsigned i = 0; i < ASKERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%u", i);
        askers[i] = (struct asker){p, i};
        CHECK_EQ(cc_sim_host(&p->askers[i], name), 0);
        CHECK_EQ(cc_sim_start(p->askers[i], asker, &askers[i]), 0);
    }
    trouble(p);
    while (atomic_load(&p->left) > 0) CHECK_EQ(cc_sleep_ms(100), 0);
    for (unsigned i = 0; i < p->nodes; i++) CHECK_EQ(cc_sim_crash(p->hosts[i]), 0);
    for (unsigned i = 0; i < p->nodes; i++)
        while (cc_sim_fibers(p->hosts[i]) > 0) CHECK_EQ(cc_sleep_ms(1), 0);
    return NULL;
}

/* True: the history is not linearizable, an invariant was violated, or no more requests were answered. */
static bool fails(uint64_t seed, bool shows) {
    struct plan *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    CHECK_EQ(cc_sim_run(seed, run_plan, p, NULL), 0);
    const char *broken = atomic_load(&p->broken);
    bool bad = p->stuck || broken != NULL;
    if (broken != NULL && shows) printf("seed %llu: %s\n", (unsigned long long)seed, broken);
    if (bad && shows) printf("seed %llu: somebody was not answered\n", (unsigned long long)seed);
    for (unsigned k = 0; k < KEYS && !p->stuck; k++) {
        uint32_t n = atomic_load(&p->counts[k]);
        if (history_check(p->events[k], n, HISTORY_REGISTER, 0, 0, 1000000) != HISTORY_BAD) continue;
        bad = true;
        if (!shows) continue;
        printf("seed %llu: no order of these explains what was read\n", (unsigned long long)seed);
        history_print(p->events[k], n);
    }
    free(p);
    return bad;
}

TEST(seeds, .timeout = 600) {
    uint64_t seeds = test_rounds(12, 10000);
    for (uint64_t seed = 1; seed <= seeds; seed++) CHECK(!fails(seed, true));
}

/* The same seed, the same history. */
TEST(seeds_repeat, .timeout = 600) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct plan *p[2];
        for (int i = 0; i < 2; i++) {
            p[i] = calloc(1, sizeof *p[i]);
            CHECK(p[i] != NULL);
            CHECK_EQ(cc_sim_run(seed, run_plan, p[i], NULL), 0);
        }
        CHECK(memcmp(p[0]->events, p[1]->events, sizeof p[0]->events) == 0);
        free(p[0]);
        free(p[1]);
    }
}

/* ---- planted bugs ---- */

/* Searches for a seed that finds it, and checks that it finds it again. */
static void find_bug(enum store_bug bug, uint64_t most) {
    store_bug = bug;
    uint64_t seed = 1;
    while (seed <= most && !fails(seed, false)) seed++;
    fprintf(stderr, "%s: seed %llu\n", store_bug_names[bug], (unsigned long long)seed);
    CHECK(seed <= most);
    CHECK(fails(seed, false));
}

/* The first six need few seeds, the last one some thousands. */
TEST(seeds_find_bugs, .timeout = 3000) {
    static const enum store_bug bugs[] = {
        BUG_NO_SYNC,         BUG_VOTE_FOR_ANYBODY,     BUG_HALF_IS_ENOUGH,  BUG_EARLY_ANSWER,
        BUG_ANSWER_BY_INDEX, BUG_VOTE_IS_FORGOTTEN,    BUG_NO_TERM_CHECK,   BUG_LOCAL_READS,
        BUG_NO_SESSIONS,     BUG_SNAPSHOT_WITHOUT_IDS, BUG_OLD_TERM_COMMITS};
    for (size_t i = 0; i < (test_long() ? sizeof bugs / sizeof bugs[0] : 6); i++) find_bug(bugs[i], 10000);
}
