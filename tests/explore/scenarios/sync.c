/* sync.c - the tools of src/sync: lock, biased lock, ring. */
#include "explore.h"
#include "sync/bias.h"
#include "sync/list.h"
#include "sync/ring.h"

/* ---- lock ---- */

static struct lock lock;
static int guarded; /* plain: a lock that does not order is a race */

static void add_locked(void) {
    cc__lock_take(&lock);
    guarded++;
    cc__lock_release(&lock);
}
static void add_if_free(void) {
    if (!cc__lock_try(&lock)) return;
    guarded += 10;
    cc__lock_release(&lock);
}
static void lock_check(void) {
    EX_EQ(guarded % 10, 2);
    EX_EQ(cc__get(&lock.word), 0);
}
SCENARIO(lock_three, "LOCK-1: two take it, a third tries", .threads = {add_locked, add_locked, add_if_free},
         .check = lock_check);

/* A list of relaxed atomics under the lock: what the lock does not publish shows up as a torn list. */
static struct link list, members[3];
static void list_setup(void) {
    cc__list_init(&list);
    cc__list_push_back(&list, &members[0]);
}
static void list_push(void) {
    cc__lock_take(&lock);
    cc__list_push_back(&list, &members[1]);
    cc__lock_release(&lock);
}
static void list_pop(void) {
    cc__lock_take(&lock);
    if (!cc__list_empty(&list)) (void)cc__list_pop_front(&list);
    cc__lock_release(&lock);
}
static void list_leave(void) {
    cc__lock_take(&lock);
    cc__list_push_front(&list, &members[2]);
    cc__list_remove(&members[2]);
    cc__lock_release(&lock);
}
static void list_check(void) {
    EX_EQ(cc__list_empty(&list) ? 0 : 1, 1);
    struct link *only = cc__list_pop_front(&list);
    EX_CHECK(only == &members[1] || only == &members[0]);
    EX_CHECK(cc__list_empty(&list));
}
SCENARIO(list_locked, "a list behind the lock: push, pop, leave", .setup = list_setup,
         .threads = {list_push, list_pop, list_leave}, .check = list_check);

/* ---- biased lock ---- */

static struct bias bias;
static int inside, entries;
static _Atomic uint32_t shown; /* relaxed, as the run queue's fields are */

static void bias_setup(void) {
    cc__barrier_init(true);
}
static void section(void) {
    EX_EQ(inside, 0);
    inside = 1;
    entries++;
    cc__set(&shown, cc__get(&shown) + 1);
    inside = 0;
}
static void owner(void) {
    for (int i = 0; i < 2; i++) {
        cc__bias_enter(&bias);
        section();
        cc__bias_leave(&bias);
    }
}
static void revoker(void) {
    if (!cc__bias_revoke(&bias)) return;
    section();
    cc__bias_release(&bias);
}
static void bias_check(void) {
    EX_EQ(cc__get(&bias.owner), CC__BIAS_AWAY);
    EX_EQ(cc__get(&bias.revoked), 0);
    EX_EQ(cc__get(&shown), entries);
    EX_CHECK(entries >= 2);
}
SCENARIO(bias_two, "BIAS-1: the owner and another", .setup = bias_setup, .threads = {owner, revoker},
         .check = bias_check);
SCENARIO(bias_three, "BIAS-2, BIAS-4: the owner and two others", .setup = bias_setup,
         .threads = {owner, revoker, revoker}, .check = bias_check);

/* What lies behind the lock for others than revokers, as a channel's bias and `contested` do: a thread that clears the
 * flag and has seen the owner outside owns what the flag guards. */
static _Atomic uint32_t flag;
static int users, uses;

static void flag_setup(void) {
    cc__barrier_init(true);
    cc__set(&flag, 1);
}
static void use_shared(void) {
    EX_EQ(users, 0);
    users = 1;
    uses++;
    users = 0;
}
static void owner_looks(void) {
    for (int i = 0; i < 2; i++) {
        cc__bias_enter(&bias);
        if (cc__get_acquire(&flag)) use_shared();
        cc__bias_leave(&bias);
    }
}
static void flag_revoker(void) {
    cc__set_seq(&flag, 0);
    cc__barrier_heavy();
    while (cc__get_acquire(&bias.owner) == CC__BIAS_INSIDE) ex_relax();
    use_shared();
}
static void revoker_only(void) {
    if (cc__bias_revoke(&bias)) cc__bias_release(&bias);
}
static void flag_check(void) {
    EX_EQ(cc__get(&bias.owner), CC__BIAS_AWAY);
    EX_CHECK(uses >= 1 && uses <= 3);
}
SCENARIO(bias_flag, "BIAS-5: the owner and a thread that clears a flag", .setup = flag_setup,
         .threads = {owner_looks, flag_revoker}, .check = flag_check);
SCENARIO(bias_flag_revoked, "BIAS-5: the same while a third revokes", .setup = flag_setup,
         .threads = {owner_looks, flag_revoker, revoker_only}, .check = flag_check);

/* ---- ring ---- */

static struct ring_mpmc ring;
static uint64_t items[4] = {1, 10, 100, 1000};

static void ring_setup(void) {
    EX_CHECK(cc__ring_init(&ring, 2));
}
static bool ring_put(int i) {
    struct ring_claim c = cc__ring_claim_put(&ring, 1);
    if (c.n == 1) cc__ring_fill(&ring, c.position, &items[i]);
    return c.n == 1;
}
static uint64_t *ring_take(void) {
    struct ring_claim c = cc__ring_claim_take(&ring, 1);
    return c.n == 1 ? cc__ring_empty(&ring, c.position) : NULL;
}
static void put(int i) {
    items[i] += 1; /* plain: the ring publishes it */
    while (!ring_put(i)) ex_relax();
}
static void put_two(void) {
    put(0);
    put(1);
}
static void put_one(void) {
    put(2);
}
static uint64_t got[2];
static void take_some(int who, int n) {
    while (n > 0) {
        uint64_t *item = ring_take();
        if (item == NULL) {
            ex_relax();
            continue;
        }
        got[who] += *item;
        *item = 0;
        n--;
    }
}
static void take_two(void) {
    take_some(0, 2);
}
static void take_one(void) {
    take_some(1, 1);
}
static void ring_check(void) {
    EX_EQ(got[0] + got[1], 2 + 11 + 101);
    EX_CHECK(ring_take() == NULL);
}
SCENARIO(ring_2x2, "RING-1: two put, two take, two slots", .setup = ring_setup,
         .threads = {put_two, put_one, take_two, take_one}, .check = ring_check);

static void put_three(void) {
    put(0);
    put(1);
    put(2);
}
static void take_three(void) {
    take_some(0, 3);
}
SCENARIO(ring_wrap, "the ring goes round: one puts three, one takes three", .setup = ring_setup,
         .threads = {put_three, take_three}, .check = ring_check);

/* Two at a time, of which one may find space; and up to two. */
static void put_pair(void) {
    items[0] += 1;
    items[1] += 1;
    for (uint32_t n = 0; n < 2;) {
        struct ring_claim c = cc__ring_claim_put(&ring, 2 - n);
        if (c.n == 0) ex_relax();
        for (uint32_t i = 0; i < c.n; i++) cc__ring_fill(&ring, c.position + i, &items[n++]);
    }
}
static void take_pairs(void) {
    for (uint32_t n = 0; n < 2;) {
        struct ring_claim c = cc__ring_claim_take(&ring, 2 - n);
        if (c.n == 0) ex_relax();
        for (uint32_t i = 0; i < c.n; i++, n++) got[0] += *(uint64_t *)cc__ring_empty(&ring, c.position + i);
    }
}
SCENARIO(ring_pairs, "RING-1: one puts two at a time, one puts one; one takes up to two, one takes one",
         .setup = ring_setup, .threads = {put_pair, put_one, take_pairs, take_one}, .check = ring_check);

static bool full;
static void put_or_not(void) {
    items[3] += 1;
    full = !ring_put(3);
}
static void fill(void) {
    ring_setup();
    EX_CHECK(ring_put(0));
    EX_CHECK(ring_put(1));
}
static void full_check(void) {
    uint64_t sum = got[0] + got[1];
    for (uint64_t *item; (item = ring_take()) != NULL;) sum += *item;
    EX_EQ(sum, full ? 11 : 11 + 1001);
}
static void take_at_most(void) {
    uint64_t *item = ring_take();
    if (item != NULL) got[0] += *item;
}
SCENARIO(ring_full, "a put and two takes at a full ring", .setup = fill,
         .threads = {put_or_not, take_at_most, take_one}, .check = full_check);
