/* pool.c - fiber records: each is in one list only, an id identifies one fiber, and every slot can be inspected. */
#include "harness.h"

#include "../crew.h"
#include "base/mem.h"
#include "fiber/pool.h"
#include "fiber/state.h"
#include "os/vm.h"

static void open_pool(void) {
    cc__vm_init();
    cc__pool_init();
}

TEST(starts_empty) {
    open_pool();
    CHECK_EQ(cc__pool_size(), 0);
    CHECK(cc__pool_at(0) == NULL);
    CHECK(cc__pool_at(UINT32_MAX) == NULL);
    CHECK(cc__pool_find(0) == NULL);
    CHECK(cc__pool_find(1) == NULL);
    CHECK(cc__pool_find(UINT64_MAX) == NULL);
    cc__pool_destroy();
}

TEST(ids_lead_back) {
    open_pool();
    struct fiber *f = cc__pool_take_slow(NULL);
    CHECK(f != NULL);
    CHECK_EQ(cc__word_state(cc__get(&f->word)), FIBER_IDLE);
    CCFiberId id = cc__pool_id(f);
    CHECK(id != 0);
    CHECK_EQ(id >> 63, 0); /* a regular fiber */
    CHECK(cc__pool_find(id) == f);
    CHECK(cc__pool_at(f->slot) == f);
    CHECK_EQ(cc__pool_size(), 1);
    struct fiber *g = cc__pool_take_slow(NULL);
    CHECK(g != f);
    CHECK(cc__pool_id(g) != id);
    CHECK_EQ(cc__pool_size(), 2);
    cc__pool_destroy();
}

/* A reused slot has another id; the old id still leads to readable memory. */
TEST(stale_id_is_recognised) {
    open_pool();
    struct fiber *f = cc__pool_take_slow(NULL);
    CCFiberId old = cc__pool_id(f);
    f->generation = (f->generation + 1) & CC_FIBER_GENERATION_MAX; /* as when a task ends */
    cc__pool_give_slow(NULL, f);
    struct fiber *again = cc__pool_take_slow(NULL);
    CHECK(again == f);
    CHECK(cc__pool_find(old) == again);
    CHECK(cc__pool_id(again) != old);
    f->generation = 0x7fffffffu; /* the last one: the id's top bit stays clear */
    CHECK_EQ(cc__pool_id(f) >> 63, 0);
    cc__pool_destroy();
}

/* A record that has used up its generations is retired: however it is returned, it is not allocated again. */
TEST(used_up_record_is_retired) {
    open_pool();
    struct fiber_cache cache = {.count = 0};
    struct fiber *used_up[2];
    for (int i = 0; i < 2; i++) {
        struct fiber *f = used_up[i] = cc__pool_take(&cache);
        CCFiberId first = cc__pool_id(f);
        uint32_t before_first = (cc__get(&f->generation) - 1) & CC_FIBER_GENERATION_MAX;
        cc__set(&f->generation, (before_first - 1) & CC_FIBER_GENERATION_MAX);
        CCFiberId last = cc__pool_id(f);
        cc__pool_give(&cache, f);
        CHECK(cc__pool_take(&cache) == f); /* one more use is left */
        cc__set(&f->generation, before_first);
        if (i == 0)
            cc__pool_give(&cache, f);
        else
            cc__pool_give_slow(NULL, f);
        CHECK(cc__pool_find(first) == f);
        CHECK(cc__pool_id(f) != first && cc__pool_id(f) != last);
    }
    CHECK(used_up[0] != used_up[1]);
    cc__pool_flush(&cache);
    uint32_t size = cc__pool_size();
    for (uint32_t i = 0; i < size - 2; i++) {
        struct fiber *f = cc__pool_take_slow(NULL);
        CHECK(f != used_up[0] && f != used_up[1]);
    }
    CHECK_EQ(cc__pool_size(), size); /* no other one was lost */
    CHECK_EQ(cc__pool_take_slow(NULL)->slot, size);
    cc__pool_destroy();
}

/* A handle from before a restart must not name a fiber after it. */
TEST(restarts_change_the_generation) {
    CCFiberId last[8];
    for (int run = 0; run < 8; run++) {
        open_pool();
        struct fiber *f = cc__pool_take_slow(NULL);
        CHECK_EQ(f->slot, 0);
        last[run] = cc__pool_id(f);
        for (int before = 0; before < run; before++) CHECK(last[before] != last[run]);
        cc__pool_destroy();
        CHECK(cc__pool_find(last[run]) == NULL);
        CHECK_EQ(cc__pool_size(), 0);
    }
}

TEST(many_records_are_distinct) {
    open_pool();
    enum { MANY = 20000 }; /* more than two slabs */
    struct fiber **all = cc__mem_alloc(MANY * sizeof *all);
    struct fiber_cache cache = {.count = 0};
    for (int i = 0; i < MANY; i++) {
        all[i] = i % 3 ? cc__pool_take(&cache) : cc__pool_take_slow(NULL);
        CHECK(all[i] != NULL);
        CHECK_EQ((uintptr_t)all[i] % CC_LINE, 0);
        CHECK(cc__pool_at(all[i]->slot) == all[i]);
        CHECK(all[i]->site == NULL); /* nobody had it before */
        all[i]->site = all[i];
    }
    CHECK(cc__pool_size() >= MANY);
    CHECK(cc__pool_size() <= MANY + POOL_BATCH);
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) CHECK(cc__pool_at(slot) != NULL);
    for (int i = 0; i < MANY; i++) cc__pool_give_slow(NULL, all[i]);
    uint32_t size = cc__pool_size();
    for (int i = 0; i < MANY; i++) CHECK(cc__pool_take_slow(NULL) != NULL);
    CHECK_EQ(cc__pool_size(), size); /* used again, not made anew */
    cc__mem_free(all);
    cc__pool_destroy();
}

/* Counts a cache's list by hand. */
static uint32_t length(struct fiber_cache *cache) {
    uint32_t n = 0;
    for (struct fiber *f = cc__get(&cache->first); f != NULL; f = cc__get(&f->free_next)) n++;
    return n;
}

TEST(cache_is_bounded) {
    open_pool();
    enum { MANY = 4 * POOL_CACHE_MAX };
    struct fiber *all[MANY];
    struct fiber_cache cache = {.count = 0};
    for (int i = 0; i < MANY; i++) {
        all[i] = cc__pool_take(&cache);
        CHECK_EQ(cc__get(&cache.count), length(&cache));
    }
    uint32_t size = cc__pool_size();
    for (int i = 0; i < MANY; i++) {
        cc__pool_give(&cache, all[i]);
        CHECK(cc__get(&cache.count) <= POOL_CACHE_MAX);
        CHECK_EQ(cc__get(&cache.count), length(&cache));
    }
    cc__pool_flush(&cache);
    CHECK_EQ(cc__get(&cache.count), 0);
    CHECK(cc__get(&cache.first) == NULL);
    for (uint32_t i = 0; i < size; i++) CHECK(cc__pool_take_slow(NULL) != NULL);
    CHECK_EQ(cc__pool_size(), size); /* none was lost on the way */
    cc__pool_destroy();
}

/* The record that was returned last is taken next: it is still in the cache. */
TEST(cache_is_last_in_first_out) {
    open_pool();
    struct fiber_cache cache = {.count = 0};
    struct fiber *a = cc__pool_take(&cache), *b = cc__pool_take(&cache);
    cc__pool_give(&cache, a);
    cc__pool_give(&cache, b);
    CHECK(cc__pool_take(&cache) == b);
    CHECK(cc__pool_take(&cache) == a);
    cc__pool_destroy();
}

static long rounds;
#define MARK ((const void *)&rounds)

/* A thread marks each record that it holds; nobody else may find it marked. */
static void take_and_give(int index, void *arg) {
    (void)arg;
    enum { HELD = 700 }; /* more than a cache keeps */
    static _Thread_local struct fiber *held[HELD];
    struct fiber_cache cache = {.count = 0};
    uint64_t random = test_seed() + (uint64_t)index;
    int count = 0;
    for (long i = 0; i < rounds; i++) {
        bool shared = test_random(&random) % 8 == 0; /* as an OS thread does it */
        if (count < HELD && (count == 0 || test_random(&random) % 100 < (uint64_t)(i / 1000 % 2 ? 70 : 30))) {
            struct fiber *f = shared ? cc__pool_take_slow(NULL) : cc__pool_take(&cache);
            CHECK(f != NULL);
            CHECK(f->site == NULL);
            f->site = MARK;
            held[count++] = f;
        } else {
            int at = (int)(test_random(&random) % (uint64_t)count);
            struct fiber *f = held[at];
            held[at] = held[--count];
            CHECK(f->site == MARK);
            f->site = NULL;
            if (shared)
                cc__pool_give_slow(NULL, f);
            else
                cc__pool_give(&cache, f);
        }
    }
    while (count > 0) {
        held[--count]->site = NULL;
        cc__pool_give(&cache, held[count]);
    }
    cc__pool_flush(&cache);
}

TEST(threads_share_it) {
    open_pool();
    rounds = test_rounds(200000, 5000000);
    crew_run(4, take_and_give, NULL);
    uint32_t size = cc__pool_size();
    for (uint32_t i = 0; i < size; i++) {
        struct fiber *f = cc__pool_take_slow(NULL);
        CHECK(f->site == NULL);
        f->site = MARK; /* so that a record that is allocated twice is detected */
    }
    CHECK_EQ(cc__pool_size(), size);
    cc__pool_destroy();
}
