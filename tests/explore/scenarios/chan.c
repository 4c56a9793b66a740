/* chan.c - channels between OS threads: the lists, the ring, close, deadlines, the end of the memory. No runtime: the
 * waits block on futexes, the claims and lists are those of fibers too.
 */
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCChan *ch;
static uint64_t got[4];
static int rc[4];

static void create(size_t capacity) {
    ch = cc_chan_create(sizeof(uint64_t), capacity);
    EX_CHECK(ch != NULL);
}
static void cap0(void) {
    create(0);
}
static void cap1(void) {
    create(1);
}
static void cap2(void) {
    create(2);
}
static void send(int who, uint64_t value) {
    rc[who] = cc_chan_send(ch, &value, sizeof value);
}
static void recv(int who) {
    uint64_t value = 0;
    rc[who] = cc_chan_recv(ch, &value, sizeof value);
    if (rc[who] == 0) got[who] += value;
}
/* What is left in the ring; there are no waiters. */
static uint64_t left(void) {
    uint64_t sum = 0, value;
    while (cc_chan_recv_try(ch, &value, sizeof value) == 0) sum += value;
    return sum;
}
static uint64_t received(void) {
    return got[0] + got[1] + got[2] + got[3];
}

static void send1(void) {
    send(0, 1);
}
static void send10(void) {
    send(1, 10);
}
static void recv_a(void) {
    recv(2);
}
static void recv_b(void) {
    recv(3);
}
static void recv_a_twice(void) {
    recv(2);
    recv(2);
}
static void close_it(void) {
    EX_EQ(cc_chan_close(ch), 0);
}
static void check11(void) {
    EX_EQ(received(), 11);
    EX_EQ(left(), 0);
}
static void check1(void) {
    EX_EQ(received(), 1);
}

SCENARIO(chan0_1x1, "rendezvous: one sends, one receives", .setup = cap0, .threads = {send1, recv_a}, .check = check1);
SCENARIO(chan0_2x2, "rendezvous: two send, two receive", .setup = cap0, .threads = {send1, send10, recv_a, recv_b},
         .check = check11);
SCENARIO(chan1_2x1, "one slot: two send, one receives twice", .setup = cap1, .threads = {send1, send10, recv_a_twice},
         .check = check11);
SCENARIO(chan1_2x2, "one slot: two send, two receive", .setup = cap1, .threads = {send1, send10, recv_a, recv_b},
         .check = check11);

/* ---- order ---- */

static void send_three(void) {
    for (uint64_t i = 1; i <= 3; i++) send(0, i);
}
static void recv_three(void) {
    for (uint64_t i = 1; i <= 3; i++) {
        uint64_t value = 0;
        EX_EQ(cc_chan_recv(ch, &value, sizeof value), 0);
        EX_EQ(value, i);
    }
}
SCENARIO(chan1_order, "CHAN-1: three values through one slot, in order", .setup = cap1,
         .threads = {send_three, recv_three});
SCENARIO(chan2_order, "three values through two slots, in order", .setup = cap2, .threads = {send_three, recv_three});

/* ---- close ---- */

static void receivers_see_close(void) {
    EX_EQ(rc[2], EPIPE);
    EX_EQ(rc[3], EPIPE);
}
SCENARIO(chan0_close_receivers, "CHAN-3: close ends two waits", .setup = cap0, .threads = {recv_a, recv_b, close_it},
         .check = receivers_see_close);

static void senders_see_close(void) {
    EX_EQ(rc[0], EPIPE);
    EX_EQ(rc[1], EPIPE);
}
SCENARIO(chan0_close_senders, "CHAN-3: close ends two sends", .setup = cap0, .threads = {send1, send10, close_it},
         .check = senders_see_close);

/* CHAN-2: the value is with the receiver, or its send has failed. */
static void one_place(void) {
    EX_EQ(received() + left(), rc[0] == 0 ? 1 : 0);
    EX_CHECK(rc[0] == 0 || rc[0] == EPIPE);
    EX_EQ(rc[2] == 0, received() == 1);
}
SCENARIO(chan0_close_race, "CHAN-2: send, receive and close at once, rendezvous", .setup = cap0,
         .threads = {send1, recv_a, close_it}, .check = one_place);
SCENARIO(chan1_close_race, "the same with a slot: what was accepted is received", .setup = cap1,
         .threads = {send1, recv_a, close_it}, .check = one_place);

static void fill(void) {
    cap1();
    uint64_t value = 100;
    EX_EQ(cc_chan_send(ch, &value, sizeof value), 0);
}
static void drained(void) {
    EX_EQ(received() + left(), 100 + (rc[0] == 0 ? 1 : 0));
}
static void let_in(void) {
    EX_EQ(received() + left(), 101);
    EX_EQ(rc[0], 0);
}
SCENARIO(chan1_full, "a receive lets a waiting sender continue", .setup = fill, .threads = {send1, recv_a},
         .check = let_in);
SCENARIO(chan1_close_full, "close while a sender waits at a full channel", .setup = fill,
         .threads = {send1, recv_a, close_it}, .check = drained);

/* ---- without waiting, or not for long ---- */

static void try_send1(void) {
    uint64_t value = 1;
    rc[0] = cc_chan_send_try(ch, &value, sizeof value);
}
static void try_recv(void) {
    uint64_t value = 0;
    rc[3] = cc_chan_recv_try(ch, &value, sizeof value);
    if (rc[3] == 0) got[3] += value;
}
static void tried(void) {
    EX_EQ(received() + left(), rc[0] == 0 ? 1 : 0);
}
static void try_recv_too(void) {
    uint64_t value = 0;
    rc[2] = cc_chan_recv_try(ch, &value, sizeof value);
    if (rc[2] == 0) got[2] += value;
}
static void recv_or_closed(void) {
    recv(2);
    EX_CHECK(rc[2] == 0 || rc[2] == EPIPE);
}
static void try_then_close(void) {
    try_send1();
    close_it();
}
SCENARIO(chan0_try_send, "a try meets a receiver that waits, or not", .setup = cap0,
         .threads = {try_then_close, recv_or_closed, try_recv}, .check = tried);
SCENARIO(chan1_try, "tries at one slot", .setup = cap1, .threads = {try_send1, try_recv, try_recv_too}, .check = tried);

static void recv_soon(void) {
    uint64_t value = 0;
    rc[2] = cc_chan_recv_until(ch, &value, sizeof value, cc_after_ns(5000));
    EX_CHECK(rc[2] == 0 || rc[2] == ETIMEDOUT || (rc[2] == EPIPE && cc_chan_is_closed(ch)));
    if (rc[2] == 0) got[2] += value;
}
static void send_soon(void) {
    uint64_t value = 1;
    rc[0] = cc_chan_send_until(ch, &value, sizeof value, cc_after_ns(5000));
    EX_CHECK(rc[0] == 0 || rc[0] == ETIMEDOUT);
}
SCENARIO(chan0_deadlines, "WAIT-1: both sides have a deadline: both succeed or none", .setup = cap0,
         .threads = {send_soon, recv_soon}, .check = tried);
static void recv_too(void) {
    recv(3);
}
static void two_or_close(void) {
    EX_EQ(received(), rc[0] == 0 ? 1 : 0);
}
static void send_soon_close(void) {
    send_soon();
    close_it();
}
SCENARIO(chan0_deadline_next, "a receiver times out; the next one gets the value", .setup = cap0,
         .threads = {send_soon_close, recv_soon, recv_too}, .check = two_or_close);

static uint64_t before;
static void write_close(void) {
    before = 1;
    close_it();
}
static void look_closed(void) {
    if (cc_chan_is_closed(ch)) EX_EQ(before, 1);
}
SCENARIO(chan_closed_seen, "a caller that finds a channel closed sees what was written before the close", .setup = cap0,
         .threads = {write_close, look_closed});

/* ---- modes and memory ---- */

static void drop_old(void) {
    CCChanConfig config = {.elem_size = sizeof(uint64_t), .capacity = 1, .mode = CC_CHAN_MODE_DROP_OLD};
    ch = cc_chan_create_ex(&config);
}
static void drop_check(void) {
    uint64_t kept = received() + left();
    EX_CHECK(kept == 11 || ((kept == 1 || kept == 10) && cc_chan_dropped(ch) == 1));
}
SCENARIO(chan_drop_old, "the newest value stays", .setup = drop_old, .threads = {send1, send10, try_recv},
         .check = drop_check);

static CCChan *mine;
static void two_refs(void) {
    cap0();
    mine = cc_chan_ref(ch);
}
static void recv_soon_free(void) {
    recv_soon();
    cc_chan_free(mine);
}
static void send_soon_free(void) {
    send_soon();
    cc_chan_free(ch);
}
static void both_or_none(void) {
    EX_EQ(rc[0] == 0, rc[2] == 0);
}
SCENARIO(chan_free_lost_claim, "CHAN-6: each side frees its reference; claims are lost", .setup = two_refs,
         .threads = {send_soon_free, recv_soon_free}, .check = both_or_none);

/* A value larger than a word is copied whole. */
static struct { uint64_t a, b, c; } large = {1, 2, 3};
static void cap1_large(void) {
    ch = cc_chan_create(sizeof large, 1);
}
static void send_large(void) {
    for (uint64_t i = 0; i < 2; i++) {
        large.a = large.b = large.c = i;
        EX_EQ(cc_chan_send(ch, &large, sizeof large), 0);
    }
}
static void recv_large(void) {
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t v[3] = {9, 9, 9};
        EX_EQ(cc_chan_recv(ch, v, sizeof v), 0);
        EX_EQ(v[0], i);
        EX_EQ(v[2], i);
    }
}
SCENARIO(chan1_large, "values of three words", .setup = cap1_large, .threads = {send_large, recv_large});
