/* pool.c - a channel as a pool: items are created on demand up to the capacity, reset on return, destroyed with it. */
#include "harness.h"

#include "../../battery/battery.h"

struct shop {
    atomic_int made, cleaned, destroyed, failures_left, in_use;
    CCChan *ch;
};

struct item {
    int number; /* 1, 2, … */
    int uses;
};

static int make_item(void *place, void *context) {
    struct shop *shop = context;
    CHECK_EQ(cc_chan_cap(shop->ch) > 0, true); /* not under the lock: the channel can be used here */
    if (atomic_load(&shop->failures_left) > 0) {
        atomic_fetch_sub(&shop->failures_left, 1);
        return ENOSPC;
    }
    struct item *item = malloc(sizeof *item);
    CHECK(item != NULL);
    item->number = atomic_fetch_add(&shop->made, 1) + 1;
    item->uses = 0;
    memcpy(place, &item, sizeof item);
    return 0;
}

static void clean_item(void *place, void *context) {
    struct shop *shop = context;
    struct item *item;
    memcpy(&item, place, sizeof item);
    item->uses = 0;
    (void)cc_chan_len(shop->ch);
    atomic_fetch_add(&shop->cleaned, 1);
}

static void destroy_item(void *place, void *context) {
    struct shop *shop = context;
    struct item *item;
    memcpy(&item, place, sizeof item);
    free(item);
    atomic_fetch_add(&shop->destroyed, 1);
}

static void open_shop(struct shop *shop, size_t capacity) {
    memset(shop, 0, sizeof *shop);
    shop->ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(struct item *),
                                                 .capacity = capacity,
                                                 .on_create = make_item,
                                                 .on_reset = clean_item,
                                                 .on_destroy = destroy_item,
                                                 .context = shop});
    CHECK(shop->ch != NULL);
}

static struct item *take(struct shop *shop) {
    struct item *item = NULL;
    CHECK_EQ(cc_chan_recv(shop->ch, &item, sizeof item), 0);
    CHECK(item != NULL);
    return item;
}

static void give(struct shop *shop, struct item *item) {
    CHECK_EQ(cc_chan_send(shop->ch, &item, sizeof item), 0);
}

static void *life_of_a_pool(void *unused) {
    (void)unused;
    struct shop shop;
    open_shop(&shop, 3);
    CHECK_EQ(shop.made, 0); /* nothing in advance */
    struct item *items[3], *item = NULL;
    for (int i = 0; i < 3; i++) items[i] = take(&shop);
    CHECK_EQ(shop.made, 3);
    CHECK_EQ(cc_chan_recv_try(shop.ch, &item, sizeof item), EAGAIN); /* the capacity is a limit */
    CHECK_EQ(cc_chan_recv_until(shop.ch, &item, sizeof item, cc_after_ms(1)), ETIMEDOUT);
    items[1]->uses = 9;
    give(&shop, items[1]);
    CHECK_EQ(shop.cleaned, 1);
    item = take(&shop);
    CHECK(item == items[1]);
    CHECK_EQ(item->uses, 0); /* cleaned */
    CHECK_EQ(shop.made, 3);
    for (int i = 0; i < 3; i++) give(&shop, items[i]);
    CHECK_EQ(cc_chan_len(shop.ch), 3);
    for (int i = 0; i < 3; i++) give(&shop, take(&shop)); /* a pool with free items creates no more */
    CHECK_EQ(shop.made, 3);
    CHECK_EQ(shop.destroyed, 0);
    cc_chan_free(shop.ch);
    CHECK_EQ(shop.destroyed, 3);
    return NULL;
}

TEST_WORKERS(life_of_a_pool) {
    life_of_a_pool(NULL);
    CHECK_EQ(cc_run(life_of_a_pool, NULL, NULL), 0);
}

TEST(a_closed_pool) {
    struct shop shop;
    open_shop(&shop, 3);
    struct item *kept = take(&shop), *item = NULL;
    give(&shop, take(&shop)); /* creates a second one, because the first was not returned */
    CHECK_EQ(shop.made, 2);
    CHECK_EQ(cc_chan_close(shop.ch), 0);
    CHECK_EQ(cc_chan_recv(shop.ch, &item, sizeof item), 0); /* a free item is received */
    CHECK_EQ(item->number, 2);
    CHECK_EQ(cc_chan_recv(shop.ch, &kept, 1), EINVAL);
    struct item *none = NULL;
    CHECK_EQ(cc_chan_recv(shop.ch, &none, sizeof none), EPIPE); /* and none is created */
    CHECK(none == NULL);
    CHECK_EQ(cc_chan_send(shop.ch, &kept, sizeof kept), EPIPE); /* the sender still owns it */
    CHECK_EQ(shop.made, 2);
    cc_chan_free(shop.ch);
    CHECK_EQ(shop.destroyed, 0); /* both are ours */
    free(kept);
    free(item);
}

/* ---- on_create fails ---- */

static void *failing_create(void *unused) {
    (void)unused;
    struct shop shop;
    open_shop(&shop, 2);
    shop.failures_left = 3;
    struct item *item = NULL;
    CHECK_EQ(cc_chan_recv(shop.ch, &item, sizeof item), ENOSPC);
    CHECK_EQ(cc_chan_recv_try(shop.ch, &item, sizeof item), ENOSPC);
    CHECK_EQ(cc_chan_recv_until(shop.ch, &item, sizeof item, CC_FOREVER), ENOSPC);
    CHECK(item == NULL);
    struct item *a = take(&shop), *b = take(&shop); /* failures use up no room */
    CHECK_EQ(shop.made, 2);
    CHECK_EQ(cc_chan_recv_try(shop.ch, &item, sizeof item), EAGAIN);
    give(&shop, a);
    give(&shop, b);
    cc_chan_free(shop.ch);
    CHECK_EQ(shop.destroyed, 2);
    return NULL;
}

TEST_WORKERS(create_fails) {
    failing_create(NULL);
    CHECK_EQ(cc_run(failing_create, NULL, NULL), 0);
}

/* A receiver waits while the only slot is taken by a create that fails: the receiver is woken, and creates. */
struct slow_shop {
    CCChan *ch;
    atomic_int calls, waiters;
};

static int slow_create(void *place, void *context) {
    struct slow_shop *shop = context;
    int call = atomic_fetch_add(&shop->calls, 1);
    if (call == 0) { /* holds the slot until all others wait */
        while (waiting_on(shop->ch, &shop->ch->receivers) != atomic_load(&shop->waiters)) cc_yield();
        return EIO;
    }
    uint64_t number = 50 + (uint64_t)call;
    memcpy(place, &number, sizeof number);
    return 0;
}

static void waiter_creates_with(enum parties kind, size_t deadline_ms) {
    struct slow_shop shop = {.waiters = 2};
    shop.ch =
        cc_chan_create_ex(&(CCChanConfig){.elem_size = 8, .capacity = 1, .on_create = slow_create, .context = &shop});
    CHECK(shop.ch != NULL);
    struct call calls[3];
    struct party parties[3];
    for (int i = 0; i < 3; i++) {
        call_init(&calls[i], shop.ch, 8, 0);
        if (deadline_ms) calls[i].deadline = cc_after_ms(deadline_ms);
        parties[i] = party_start(kind, i, call_recv_until, &calls[i]);
    }
    /* One failed; one of the two others created the item, and the last waits for it. */
    int failed = 0, served = 0;
    while (failed + served < 2) {
        failed = served = 0;
        for (int i = 0; i < 3; i++) {
            int rc = atomic_load(&calls[i].returned);
            if (rc == EIO) failed++;
            if (rc == 0) served++;
        }
        cc_yield();
    }
    CHECK_EQ(failed, 1);
    CHECK_EQ(served, 1);
    await_receivers(shop.ch, 1);
    CHECK_EQ(atomic_load(&shop.calls), 2);
    CHECK_EQ(send_number(shop.ch, 8, 51), 0); /* returned to the pool: straight to the last */
    parties_end(parties, 3);
    for (int i = 0; i < 3; i++) CHECK(calls[i].returned == EIO || (calls[i].returned == 0 && calls[i].number == 51));
    check_clean(shop.ch);
    cc_chan_free(shop.ch);
}

TEST_WORKERS(a_waiter_creates_after_a_failure) {
    for (int kind = FIBERS; kind < KINDS; kind++) {
        waiter_creates_with((enum parties)kind, 0);
        waiter_creates_with((enum parties)kind, 3600 * 1000);
    }
}

/* The first waiter is a select that takes another arm: the slot goes to the next waiter. */
struct rival {
    struct slow_shop shop;
    CCChan *other;
    size_t chosen;
};

static void *fail_and_send(void *arg) {
    struct rival *r = arg;
    uint64_t value = 0;
    CHECK_EQ(cc_chan_recv(r->shop.ch, &value, sizeof value), EIO);
    CHECK_EQ(cc_chan_send(r->other, &value, sizeof value), 0); /* before the select polls, on one worker */
    return NULL;
}

static void *other_or_pool(void *arg) {
    struct rival *r = arg;
    uint64_t value = 0;
    CCCase cases[] = {CC_RECV(r->other, &value, NULL), CC_RECV(r->shop.ch, &value, NULL)};
    CHECK_EQ(cc_select_ordered(cases, 2, CC_SELECT_FIRST, CC_FOREVER, &r->chosen), 0);
    CHECK_EQ(cases[r->chosen].error, 0);
    if (r->chosen == 1) CHECK_EQ(cc_chan_send(r->shop.ch, &value, sizeof value), 0);
    return NULL;
}

static void *select_takes_another(void *unused) {
    struct rival r = {.shop.waiters = 2, .other = cc_chan_create(8, 1)};
    uint64_t value = 0;
    r.shop.ch =
        cc_chan_create_ex(&(CCChanConfig){.elem_size = 8, .capacity = 1, .on_create = slow_create, .context = &r.shop});
    CCTask maker = cc_fiber_spawn_task(fail_and_send, &r);
    while (atomic_load(&r.shop.calls) == 0) cc_yield();
    CCTask selects = cc_fiber_spawn_task(other_or_pool, &r);
    await_receivers(r.shop.ch, 1);
    CHECK_EQ(cc_chan_recv_until(r.shop.ch, &value, sizeof value, cc_after_ms(20 * 1000)), 0);
    CHECK_EQ(cc_task_join(&maker, NULL), 0);
    CHECK_EQ(cc_task_join(&selects, NULL), 0);
    cc_chan_free(r.shop.ch);
    cc_chan_free(r.other);
    return unused;
}

TEST_WORKERS(a_waiter_creates_after_a_select) {
    CHECK_EQ(cc_run(select_takes_another, NULL, NULL), 0);
}

/* The pool is freed before the waiter that is to create next has run: it gets EPIPE, as all others do. */
struct end {
    struct slow_shop shop;
    CCChan *other;
    bool selects;
};

static void *fail_and_free(void *arg) {
    struct end *e = arg;
    uint64_t value = 0;
    CHECK_EQ(cc_chan_recv(e->shop.ch, &value, sizeof value), EIO);
    cc_chan_free(e->shop.ch);
    return NULL;
}

static void *wait_for_the_end(void *arg) {
    struct end *e = arg;
    uint64_t value = 0;
    size_t chosen = 9;
    CCCase cases[] = {CC_RECV(e->other, &value, NULL), CC_RECV(e->shop.ch, &value, NULL),
                      CC_RECV(e->shop.ch, &value, NULL)};
    if (!e->selects) {
        CHECK_EQ(cc_chan_recv(e->shop.ch, &value, sizeof value), EPIPE);
    } else {
        CHECK_EQ(cc_select(cases, 3, CC_FOREVER, &chosen), 0);
        CHECK(chosen != 0 && cases[chosen].error == EPIPE);
    }
    return NULL;
}

static void *freed_before_the_next(void *unused) {
    for (int selects = 0; selects < 2; selects++) {
        struct end e = {.shop.waiters = selects ? 4 : 2, .other = cc_chan_create(8, 1), .selects = selects};
        e.shop.ch = cc_chan_create_ex(
            &(CCChanConfig){.elem_size = 8, .capacity = 1, .on_create = slow_create, .context = &e.shop});
        CCTask maker = cc_fiber_spawn_task(fail_and_free, &e), waiters[2];
        while (atomic_load(&e.shop.calls) == 0) cc_yield();
        for (int i = 0; i < 2; i++) waiters[i] = cc_fiber_spawn_task(wait_for_the_end, &e);
        CHECK_EQ(cc_task_join(&maker, NULL), 0);
        for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&waiters[i], NULL), 0);
        CHECK_EQ(atomic_load(&e.shop.calls), 1);
        cc_chan_free(e.other);
    }
    return unused;
}

TEST(freed_after_a_failure) {
    CCRuntimeConfig one = {.workers = 1, .max_workers = 1}; /* so that nobody runs before the free */
    CHECK_EQ(cc_runtime_init(&one), 0);
    CHECK_EQ(cc_run(freed_before_the_next, NULL, NULL), 0);
}

/* ---- under traffic ---- */

static void *customer(void *arg) {
    struct shop *shop = arg;
    for (long i = 0; i < test_rounds(300, 30000); i++) {
        struct item *item = NULL;
        int rc = cc_chan_recv(shop->ch, &item, sizeof item);
        if (rc == ENOSPC) continue;
        CHECK_EQ(rc, 0);
        CHECK(atomic_fetch_add(&shop->in_use, 1) < 4); /* never more than exist */
        CHECK_EQ(item->uses++, 0);                     /* no other holder */
        if (i % 5 == 0) cc_yield();
        CHECK_EQ(item->uses, 1);
        atomic_fetch_sub(&shop->in_use, 1);
        give(shop, item);
    }
    return NULL;
}

static void customers(enum parties kind, size_t failures) {
    struct shop shop;
    open_shop(&shop, 4);
    shop.failures_left = (int)failures;
    struct party parties[8];
    for (int i = 0; i < 8; i++) parties[i] = party_start(kind, i, customer, &shop);
    parties_end(parties, 8);
    CHECK(shop.made >= 1 && shop.made <= 4);
    CHECK_EQ(cc_chan_len(shop.ch), shop.made); /* all have come back */
    check_clean(shop.ch);
    cc_chan_free(shop.ch);
    CHECK_EQ(shop.destroyed, shop.made);
}

TEST_WORKERS(customers) {
    for_each_kind(customers, 0);
    for_each_kind(customers, (size_t)test_scale(100));
}

/* A pool that the program fills itself: no on_create. */
TEST(filled_by_hand) {
    struct shop shop = {0};
    shop.ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(void *),
                                                .capacity = 2,
                                                .on_reset = clean_item,
                                                .on_destroy = destroy_item,
                                                .context = &shop});
    CHECK(shop.ch != NULL);
    struct item *item = NULL;
    CHECK_EQ(cc_chan_recv_try(shop.ch, &item, sizeof item), EAGAIN);
    item = calloc(1, sizeof *item);
    item->uses = 3;
    give(&shop, item);
    CHECK_EQ(take(&shop)->uses, 0);
    give(&shop, item);
    cc_chan_free(shop.ch);
    CHECK_EQ(shop.destroyed, 1);
    CHECK_EQ(shop.cleaned, 2);
}

/* A select can return an item to a pool, which resets it as after a send. */
TEST(select_cleans_too) {
    struct shop shop;
    open_shop(&shop, 2);
    struct item *item = take(&shop);
    item->uses = 5;
    size_t chosen = 9;
    CCCase cases[] = {CC_SEND(shop.ch, &item, NULL)};
    CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
    CHECK_EQ(cases[0].error, 0);
    CHECK_EQ(shop.cleaned, 1);
    item = take(&shop);
    CHECK_EQ(item->uses, 0);
    give(&shop, item);
    cc_chan_free(shop.ch);
}

/* on_reset may wait, and the fiber may resume on another worker: so may a select that has to wait after it. */
static void clean_slowly(void *place, void *context) {
    (void)place, (void)context;
    CHECK_EQ(cc_sleep_until(cc_after_ns(100 * 1000)), 0);
    cc_yield();
}

static void *give_by_select(void *ch) {
    for (long i = 0; i < test_rounds(30, 300); i++) {
        uint64_t value = 1;
        size_t chosen;
        CCCase cases[] = {CC_SEND(ch, &value, NULL)};
        CHECK_EQ(cc_select(cases, 1, cc_after_ns(200 * 1000), &chosen), ETIMEDOUT); /* it is full */
    }
    return NULL;
}

static void *keep_busy(void *over) {
    while (!atomic_load((atomic_bool *)over)) cc_yield();
    return NULL;
}

TEST_WORKERS(select_after_a_reset_that_waits) {
    enum { GIVERS = 12, BUSY = 4 };
    uint64_t value = 0;
    CCTask givers[GIVERS], busy[BUSY];
    atomic_bool over = false;
    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = 8, .capacity = 1, .on_reset = clean_slowly});
    CHECK_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    for (int i = 0; i < BUSY; i++) busy[i] = cc_fiber_spawn_task(keep_busy, &over);
    for (int i = 0; i < GIVERS; i++) givers[i] = cc_fiber_spawn_task(give_by_select, ch);
    for (int i = 0; i < GIVERS; i++) CHECK_EQ(cc_task_join(&givers[i], NULL), 0);
    atomic_store(&over, true);
    for (int i = 0; i < BUSY; i++) CHECK_EQ(cc_task_join(&busy[i], NULL), 0);
    cc_chan_free(ch);
}

static void refuse_to_clean(void *place, void *context) {
    (void)place;
    if (atomic_load((atomic_bool *)context)) cc_panic("not clean");
}

static void give_by_large_select(void *ch) {
    enum { CASES = 20 }; /* more than fit into a frame */
    uint64_t value = 1;
    size_t chosen;
    CCCase cases[CASES];
    for (int i = 0; i < CASES; i++) cases[i] = (CCCase)CC_SEND(ch, &value, NULL);
    MAY_FAIL(cc_select(cases, CASES, CC_FOREVER, &chosen));
}

/* A panic in on_reset leaves nothing behind: of interest to leak checkers. */
TEST(a_reset_that_panics) {
    atomic_bool refuse = false;
    uint64_t value = 0;
    CCChan *ch = cc_chan_create_ex(
        &(CCChanConfig){.elem_size = 8, .capacity = 1, .on_reset = refuse_to_clean, .context = &refuse});
    CHECK_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    atomic_store(&refuse, true);
    CHECK_EQ(cc_try(give_by_large_select, ch, NULL), ENOTRECOVERABLE);
    cc_chan_free(ch);
}

/* A select receives from a pool as a receive does, and creates an item if there is none yet. */
TEST(select_creates_too) {
    struct shop shop;
    open_shop(&shop, 2);
    struct item *items[3] = {NULL};
    size_t chosen;
    for (int i = 0; i < 2; i++) {
        CCCase cases[] = {CC_RECV(shop.ch, &items[i], NULL)};
        CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
        CHECK_EQ(cases[0].error, 0);
        CHECK(items[i] != NULL);
        CHECK_EQ(shop.made, i + 1);
    }
    CCCase more[] = {CC_RECV(shop.ch, &items[2], NULL)};
    CHECK_EQ(cc_select_try(more, 1, &chosen), EAGAIN); /* both are out */
    CHECK_EQ(shop.made, 2);
    give(&shop, items[1]);
    CHECK_EQ(cc_select_try(more, 1, &chosen), 0);
    CHECK(items[2] == items[1]);
    give(&shop, items[0]);
    give(&shop, items[2]);
    cc_chan_free(shop.ch);
    CHECK_EQ(shop.destroyed, 2);
}

/* An error of on_create is the result of the arm; the slot is free again. */
TEST(a_failed_create_wakes_a_select) {
    struct shop shop;
    open_shop(&shop, 1);
    struct item *item = NULL;
    size_t chosen;
    CCCase cases[] = {CC_RECV(shop.ch, &item, NULL)};
    shop.failures_left = 1;
    CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
    CHECK_EQ(cases[0].error, ENOSPC);
    CHECK(item == NULL);
    CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
    CHECK_EQ(cases[0].error, 0);
    give(&shop, item);
    cc_chan_free(shop.ch);
}

/* ---- on_create panics: the slot is free again, and its waiter is woken ---- */

static int panic_create(void *place, void *context) {
    struct slow_shop *shop = context;
    if (atomic_fetch_add(&shop->calls, 1) == 0) {
        while (waiting_on(shop->ch, &shop->ch->receivers) != atomic_load(&shop->waiters)) cc_yield();
        cc_panic("no item");
    }
    memset(place, 1, 8);
    return 0;
}

static void recv_in_scope(void *ch) {
    uint64_t value;
    (void)cc_chan_recv(ch, &value, sizeof value);
}

static void *recv_and_panic(void *ch) {
    CCPanic why;
    CHECK_EQ(cc_try(recv_in_scope, ch, &why), ENOTRECOVERABLE);
    return NULL;
}

TEST_WORKERS(create_panics) {
    for (int kind = FIBERS; kind <= THREADS; kind++) {
        struct slow_shop shop = {.waiters = 1};
        shop.ch = cc_chan_create_ex(
            &(CCChanConfig){.elem_size = 8, .capacity = 1, .on_create = panic_create, .context = &shop});
        CHECK(shop.ch != NULL);
        struct party first = party_start((enum parties)kind, 0, recv_and_panic, shop.ch);
        while (atomic_load(&shop.calls) == 0) cc_yield();
        struct call call;
        call_init(&call, shop.ch, 8, 0);
        struct party second = party_start((enum parties)kind, 1, call_recv_until, &call);
        party_end(&first);
        party_end(&second);
        CHECK_EQ(call.returned, 0);
        CHECK_EQ(shop.calls, 2);
        check_clean(shop.ch);
        cc_chan_free(shop.ch);
    }
}
