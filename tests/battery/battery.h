/* battery.h - shared by the cases of the battery: parties of three kinds, values of any size, and the list of waiters.
 *
 * A program of the battery defines CAPACITY and includes cases.h: the same cases, by the same names, on every flavour.
 * No case sleeps to let another party arrive: a waiter on a channel's list is parked (its lock is released after the
 * switch), and the list is read under the lock.
 */
#ifndef CCC_TESTS_BATTERY_H
#define CCC_TESTS_BATTERY_H

#include "harness.h"

#include "chan/chan.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BATTERY_UNUSED __attribute__((unused))

/* ---- parties ---- */

enum parties { FIBERS, THREADS, MIXED, KINDS };

struct party {
    bool is_thread;
    CCTask task;
    pthread_t thread;
};

#define PARTY_MAX 16

/* With MIXED, the first is a fiber, the second an OS thread, and so on. */
BATTERY_UNUSED static struct party party_start(enum parties kind, int index, void *(*fn)(void *), void *arg) {
    struct party p = {.is_thread = kind == THREADS || (kind == MIXED && index % 2 == 1)};
    if (p.is_thread)
        CHECK_EQ(pthread_create(&p.thread, NULL, fn, arg), 0);
    else
        CHECK_EQ(cc_spawn(&p.task, fn, arg, NULL), 0);
    return p;
}

BATTERY_UNUSED static void party_end(struct party *p) {
    if (p->is_thread)
        CHECK_EQ(pthread_join(p->thread, NULL), 0);
    else
        CHECK_EQ(cc_task_join(&p->task, NULL), 0);
}

BATTERY_UNUSED static void parties_end(struct party *parties, int n) {
    for (int i = 0; i < n; i++) party_end(&parties[i]);
}

/* Calls body for each kind of parties, one after another in one runtime. */
BATTERY_UNUSED static void for_each_kind(void (*body)(enum parties kind, size_t size), size_t size) {
    for (int kind = FIBERS; kind < KINDS; kind++) body((enum parties)kind, size);
}

/* ---- who waits ---- */

BATTERY_UNUSED static int waiting_on(CCChan *ch, struct link *list) {
    int n = 0;
    cc__lock_take(&ch->lock);
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next)) n++;
    cc__lock_release(&ch->lock);
    return n;
}

BATTERY_UNUSED static void await_receivers(CCChan *ch, int n) {
    while (waiting_on(ch, &ch->receivers) != n) cc_yield();
}

BATTERY_UNUSED static void await_senders(CCChan *ch, int n) {
    while (waiting_on(ch, &ch->senders) != n) cc_yield();
}

/* Nothing is left behind: no waiter, no arm whose claim was lost. */
BATTERY_UNUSED static void check_clean(CCChan *ch) {
    CHECK_EQ(waiting_on(ch, &ch->receivers), 0);
    CHECK_EQ(waiting_on(ch, &ch->senders), 0);
    CHECK_EQ(ch->lost_claims, 0);
}

/* ---- values of any size that show when they are torn ---- */

#define VALUE_MAX 4096

/* The number, then bytes that follow from it and from their place; cut at the size. */
BATTERY_UNUSED static void value_write(void *value, size_t size, uint64_t number) {
    unsigned char *bytes = value;
    for (size_t i = 0; i < size && i < sizeof number; i++) bytes[i] = (unsigned char)(number >> (8 * i));
    for (size_t i = sizeof number; i < size; i++) bytes[i] = (unsigned char)(number * 31 + i);
}

/* The number, checked against all other bytes; of a short value what fits into it. */
BATTERY_UNUSED static uint64_t value_read(const void *value, size_t size) {
    const unsigned char *bytes = value;
    uint64_t number = 0;
    for (size_t i = 0; i < size && i < sizeof number; i++) number |= (uint64_t)bytes[i] << (8 * i);
    for (size_t i = sizeof number; i < size; i++) CHECK_EQ(bytes[i], (unsigned char)(number * 31 + i));
    return number;
}

/* What value_read will say of a number. */
BATTERY_UNUSED static uint64_t value_cut(uint64_t number, size_t size) {
    return size >= sizeof number ? number : number & ((UINT64_C(1) << (8 * size)) - 1);
}

BATTERY_UNUSED static int send_number(CCChan *ch, size_t size, uint64_t number) {
    unsigned char value[VALUE_MAX];
    value_write(value, size, number);
    return cc_chan_send(ch, value, size);
}

BATTERY_UNUSED static int send_number_try(CCChan *ch, size_t size, uint64_t number) {
    unsigned char value[VALUE_MAX];
    value_write(value, size, number);
    return cc_chan_send_try(ch, value, size);
}

BATTERY_UNUSED static int recv_number(CCChan *ch, size_t size, uint64_t *number) {
    unsigned char value[VALUE_MAX];
    int rc = cc_chan_recv(ch, value, size);
    if (rc == 0) *number = value_read(value, size);
    return rc;
}

BATTERY_UNUSED static int recv_number_try(CCChan *ch, size_t size, uint64_t *number) {
    unsigned char value[VALUE_MAX];
    int rc = cc_chan_recv_try(ch, value, size);
    if (rc == 0) *number = value_read(value, size);
    return rc;
}

BATTERY_UNUSED static CCChan *new_chan(size_t size, size_t capacity) {
    CCChan *ch = cc_chan_create(size, capacity);
    CHECK(ch != NULL);
    return ch;
}

/* Fills it with the numbers 0, 1, … */
BATTERY_UNUSED static void fill(CCChan *ch, size_t size) {
    for (size_t i = 0; i < cc_chan_cap(ch); i++) CHECK_EQ(send_number_try(ch, size, i), 0);
    CHECK_EQ(cc_chan_len(ch), cc_chan_cap(ch));
}

/* Receives the numbers 0 … n - 1 in this order. */
BATTERY_UNUSED static void drain(CCChan *ch, size_t size, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint64_t number = UINT64_MAX;
        CHECK_EQ(recv_number_try(ch, size, &number), 0);
        CHECK_EQ(number, value_cut(i, size));
    }
}

/* ---- one call of a party, and what it returned ---- */

struct call {
    CCChan *ch;
    size_t size;
    uint64_t number; /* sent, or received */
    CCDeadline deadline;
    atomic_int returned; /* -1 until then */
};

BATTERY_UNUSED static void *call_send(void *arg) {
    struct call *c = arg;
    atomic_store(&c->returned, send_number(c->ch, c->size, c->number));
    return NULL;
}

BATTERY_UNUSED static void *call_recv(void *arg) {
    struct call *c = arg;
    atomic_store(&c->returned, recv_number(c->ch, c->size, &c->number));
    return NULL;
}

BATTERY_UNUSED static void *call_send_until(void *arg) {
    struct call *c = arg;
    unsigned char value[VALUE_MAX];
    value_write(value, c->size, c->number);
    atomic_store(&c->returned, cc_chan_send_until(c->ch, value, c->size, c->deadline));
    return NULL;
}

BATTERY_UNUSED static void *call_recv_until(void *arg) {
    struct call *c = arg;
    unsigned char value[VALUE_MAX];
    int rc = cc_chan_recv_until(c->ch, value, c->size, c->deadline);
    if (rc == 0) c->number = value_read(value, c->size);
    atomic_store(&c->returned, rc);
    return NULL;
}

BATTERY_UNUSED static void call_init(struct call *c, CCChan *ch, size_t size, uint64_t number) {
    c->ch = ch;
    c->size = size;
    c->number = number;
    c->deadline = CC_FOREVER;
    atomic_init(&c->returned, -1);
}

#endif
