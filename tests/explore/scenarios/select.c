/* select.c - waiting for the first of several, between OS threads. */
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCChan *a, *b;
static uint64_t got[4], sent[4];
static int rc[4];
static size_t chosen[4];

static void two(void) {
    a = cc_chan_create(sizeof(uint64_t), 0);
    b = cc_chan_create(sizeof(uint64_t), 0);
}
static void two_slots(void) {
    a = cc_chan_create(sizeof(uint64_t), 1);
    b = cc_chan_create(sizeof(uint64_t), 1);
}
static uint64_t sum(const uint64_t *list) {
    return list[0] + list[1] + list[2] + list[3];
}
static uint64_t left(CCChan *ch) {
    uint64_t value, all = 0;
    while (cc_chan_recv_try(ch, &value, sizeof value) == 0) all += value;
    return all;
}
/* SELECT-2, SELECT-3: what was sent is received, once, and nothing is left behind. */
static void conserved(void) {
    EX_EQ(sum(sent), sum(got) + left(a) + left(b));
}

/* One case that succeeded: what it moved. */
static void count(int who, const CCCase *c, uint64_t value) {
    if (c->error != 0) return;
    if (c->kind == CC_CASE_SEND) sent[who] += value;
    if (c->kind == CC_CASE_RECV) got[who] += value;
}

/* ---- two selects that cross ---- */

static void cross_a(void) {
    uint64_t out = 1, in = 0;
    CCCase cases[] = {CC_SEND(a, &out, NULL), CC_RECV(b, &in, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen[0]), 0);
    count(0, &cases[chosen[0]], chosen[0] == 0 ? out : in);
}
static void cross_b(void) {
    uint64_t out = 10, in = 0;
    CCCase cases[] = {CC_SEND(b, &out, NULL), CC_RECV(a, &in, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen[1]), 0);
    count(1, &cases[chosen[1]], chosen[1] == 0 ? out : in);
}
static void met(void) {
    EX_EQ(chosen[0], 1 - chosen[1]);
    conserved();
}
SCENARIO(select_cross, "two selects on two channels, in opposite order", .setup = two, .threads = {cross_a, cross_b},
         .check = met);

/* ---- one select, several others ---- */

static void recv_either(void) {
    uint64_t x = 0, y = 0;
    CCCase cases[] = {CC_RECV(a, &x, NULL), CC_RECV(b, &y, NULL)};
    rc[0] = cc_select(cases, 2, CC_FOREVER, &chosen[0]);
    EX_EQ(rc[0], 0);
    count(0, &cases[chosen[0]], chosen[0] == 0 ? x : y);
}
static void recv_either_soon(void) {
    uint64_t x = 0, y = 0;
    CCCase cases[] = {CC_RECV(a, &x, NULL), CC_RECV(b, &y, NULL)};
    rc[0] = cc_select(cases, 2, cc_after_ns(5000), &chosen[0]);
    EX_CHECK(rc[0] == 0 || rc[0] == ETIMEDOUT);
    if (rc[0] == 0) count(0, &cases[chosen[0]], chosen[0] == 0 ? x : y);
}
static void send_soon(int who, CCChan *ch, uint64_t value) {
    rc[who] = cc_chan_send_until(ch, &value, sizeof value, cc_after_ns(5000));
    EX_CHECK(rc[who] == 0 || rc[who] == ETIMEDOUT);
    if (rc[who] == 0) sent[who] += value;
}
static void send_a_soon(void) {
    send_soon(1, a, 1);
}
static void send_b_soon(void) {
    send_soon(2, b, 10);
}
static void recv_either_close(void) {
    recv_either();
    EX_EQ(cc_chan_close(a), 0);
    EX_EQ(cc_chan_close(b), 0);
}
static void send_until_closed(int who, CCChan *ch, uint64_t value) {
    rc[who] = cc_chan_send(ch, &value, sizeof value);
    EX_CHECK(rc[who] == 0 || rc[who] == EPIPE);
    if (rc[who] == 0) sent[who] += value;
}
static void send_a_closed(void) {
    send_until_closed(1, a, 1);
}
static void send_b_closed(void) {
    send_until_closed(2, b, 10);
}
static void one_sent(void) {
    EX_EQ((rc[1] == 0) + (rc[2] == 0), 1);
    conserved();
}
SCENARIO(select_two_senders, "SELECT-2: a select and two senders: one is served, and then both see the close",
         .setup = two, .threads = {recv_either_close, send_a_closed, send_b_closed}, .check = one_sent);
SCENARIO(select_deadline, "a select with a deadline and two senders with theirs", .setup = two,
         .threads = {recv_either_soon, send_a_soon, send_b_soon}, .check = conserved);

/* Each of the two waits leaves nothing behind for the other. */
static void recv_both(void) {
    recv_either();
    recv_either();
}
static void send_a(void) {
    uint64_t value = 1;
    EX_EQ(cc_chan_send(a, &value, sizeof value), 0);
    sent[1] += value;
}
static void send_b(void) {
    uint64_t value = 10;
    EX_EQ(cc_chan_send(b, &value, sizeof value), 0);
    sent[2] += value;
}
SCENARIO(select_twice, "SELECT-3: two selects in a row, two senders", .setup = two,
         .threads = {recv_both, send_a, send_b}, .check = conserved);

static void close_a(void) {
    EX_EQ(cc_chan_close(a), 0);
}
static void closed_or_served(void) {
    EX_EQ(rc[0], 0);
    conserved();
}
SCENARIO(select_close, "a select, a close of one channel, a sender at the other", .setup = two,
         .threads = {recv_either, close_a, send_b_soon}, .check = closed_or_served);

static void recv_same(void) {
    uint64_t x = 0, y = 0;
    CCCase cases[] = {CC_RECV(a, &x, NULL), CC_RECV(a, &y, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen[0]), 0);
    got[0] += chosen[0] == 0 ? x : y;
    EX_EQ(chosen[0] == 0 ? y : x, 0);
}
SCENARIO(select_same_twice, "SELECT-1: one channel in two cases", .setup = two, .threads = {recv_same, send_a},
         .check = conserved);

static void send_or_recv_same(void) {
    uint64_t out = 5, in = 0;
    CCCase cases[] = {CC_SEND(a, &out, NULL), CC_RECV(a, &in, NULL)};
    rc[3] = cc_select(cases, 2, cc_after_ns(5000), &chosen[3]);
    if (rc[3] == 0) count(3, &cases[chosen[3]], chosen[3] == 0 ? out : in);
}
static void recv_a(void) {
    uint64_t in = 0;
    EX_EQ(cc_chan_recv_until(a, &in, sizeof in, cc_after_ns(50000)) == 0 ? 0 : 1, in == 0);
    got[2] += in;
}
SCENARIO(select_both_ways, "send and receive on one channel; it never matches itself", .setup = two,
         .threads = {send_or_recv_same, recv_a, send_a_soon}, .check = conserved);

static void send_either(void) {
    uint64_t x = 1, y = 10;
    CCCase cases[] = {CC_SEND(a, &x, NULL), CC_SEND(b, &y, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen[3]), 0);
    count(3, &cases[chosen[3]], chosen[3] == 0 ? x : y);
}
SCENARIO(select_pair, "two selects, same direction of channels", .setup = two, .threads = {recv_either, send_either},
         .check = conserved);
SCENARIO(select_pair_slots, "the same with a slot in each", .setup = two_slots, .threads = {recv_either, send_either},
         .check = conserved);
static void try_either(void) {
    uint64_t x = 0, y = 0;
    CCCase cases[] = {CC_RECV(a, &x, NULL), CC_RECV(b, &y, NULL)};
    rc[2] = cc_select_try(cases, 2, &chosen[2]);
    if (rc[2] == 0) count(2, &cases[chosen[2]], chosen[2] == 0 ? x : y);
}
static void send_either_soon(void) {
    uint64_t x = 1, y = 10;
    CCCase cases[] = {CC_SEND(a, &x, NULL), CC_SEND(b, &y, NULL)};
    rc[3] = cc_select(cases, 2, cc_after_ns(5000), &chosen[3]);
    if (rc[3] == 0) count(3, &cases[chosen[3]], chosen[3] == 0 ? x : y);
}
SCENARIO(select_try, "a try, a select that sends, one that receives", .setup = two,
         .threads = {try_either, send_either_soon, recv_either_soon}, .check = conserved);
