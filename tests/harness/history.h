/* history.h - histories of calls on one object, and a check that they are linearizable.
 *
 * An event is a call with its result and two stamps. A history is linearizable if there is a sequential order of its
 * calls that keeps every "returned before the other was called", and in which each call has the result that it had.
 *
 * history_check searches for such an order (Wing and Gong's search with Lowe's cache of visited states). The search is
 * exact except for the cache's keys, hashes of 128 bits: a collision could hide a violation, not invent one.
 * history_check_long looks for the patterns that every violation by a FIFO queue shows (a value from nowhere, a value
 * twice, two values in the wrong order, a value that was lost), which takes a sort: for millions of events.
 *
 * HISTORY-1  A call's stamp is read before the call, a return's is drawn after it. A stamp that is not smaller than
 *            another call's return is ordered after that return, by release and acquire. So "before" in a history is
 *            true; a stamp that was read too early or drawn too late only widens an interval, and the check accepts
 *            more.
 */
#ifndef CCC_TESTS_HISTORY_H
#define CCC_TESTS_HISTORY_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY_UNUSED __attribute__((unused))

enum { HISTORY_QUEUE_MAX = 8, HISTORY_EVENTS_MAX = 4096 };

enum history_object { HISTORY_CHANNEL, HISTORY_SEMAPHORE, HISTORY_MUTEX, HISTORY_RWLOCK, HISTORY_REGISTER };

enum history_op {
    HISTORY_SEND,
    HISTORY_RECV,
    HISTORY_CLOSE,
    HISTORY_ACQUIRE, /* also: lock, write lock */
    HISTORY_RELEASE, /* also: unlock; a semaphore gets `value` permits */
    HISTORY_READ_LOCK,
    HISTORY_READ_UNLOCK,
    HISTORY_WRITE, /* of a register, which begins with 0 */
    HISTORY_READ,
};

struct history_event {
    uint64_t call, ret;
    uint32_t value; /* that was sent or received */
    int rc;
    enum history_op op;
};

/* ---- stamps ---- */

typedef _Atomic uint64_t history_clock;

static inline uint64_t history_call(history_clock *clock) {
    return atomic_load_explicit(clock, memory_order_acquire); /* HISTORY-1 */
}

static inline uint64_t history_return(history_clock *clock) {
    return atomic_fetch_add_explicit(clock, 1, memory_order_release) + 1; /* HISTORY-1 */
}

/* ---- what each call alone would do ---- */

struct history_state {
    uint32_t queue[HISTORY_QUEUE_MAX];
    uint32_t count; /* of the queue; permits; readers */
    bool closed;    /* or: locked */
    bool hand;      /* a rendezvous: the receive that belongs to the send comes next, */
    uint64_t until; /* and was called before this, when the send returned */
};

static inline bool history_step_channel(struct history_state *s, const struct history_event *e, uint32_t capacity) {
    bool passed_over = e->rc == EAGAIN || e->rc == ETIMEDOUT;
    if (s->hand && (e->op != HISTORY_RECV || e->rc != 0 || e->call >= s->until)) return false;
    switch (e->op) {
    case HISTORY_SEND:
        if (e->rc == EPIPE) return s->closed;
        if (passed_over) return !s->closed && (capacity == 0 || s->count == capacity);
        if (e->rc != 0 || s->closed || (capacity > 0 && s->count == capacity)) return false;
        s->hand = capacity == 0;
        s->until = e->ret;
        s->queue[s->count++] = e->value;
        return true;
    case HISTORY_RECV:
        if (e->rc == EPIPE) return s->closed && s->count == 0;
        if (passed_over) return !s->closed && s->count == 0;
        if (e->rc != 0 || s->count == 0 || s->queue[0] != e->value) return false;
        s->hand = false;
        s->count--;
        memmove(s->queue, s->queue + 1, s->count * sizeof *s->queue);
        return true;
    case HISTORY_CLOSE:
        s->closed = true;
        return e->rc == 0;
    default:
        return false;
    }
}

static inline bool history_step_lock(struct history_state *s, const struct history_event *e,
                                     enum history_object object) {
    bool passed_over = e->rc == EAGAIN || e->rc == ETIMEDOUT;
    switch (e->op) {
    case HISTORY_ACQUIRE:
        if (object == HISTORY_SEMAPHORE) {
            if (passed_over) return s->count == 0;
            return e->rc == 0 && s->count-- > 0;
        }
        if (passed_over) return s->closed || s->count > 0 || object == HISTORY_RWLOCK; /* or somebody stands in line */
        if (e->rc != 0 || s->closed || s->count > 0) return false;
        s->closed = true;
        return true;
    case HISTORY_RELEASE:
        if (object == HISTORY_SEMAPHORE)
            s->count += e->value;
        else if (!s->closed)
            return false;
        s->closed = false;
        return e->rc == 0;
    case HISTORY_READ_LOCK:
        if (passed_over) return true;
        if (e->rc != 0 || s->closed) return false;
        s->count++;
        return true;
    case HISTORY_READ_UNLOCK:
        return e->rc == 0 && s->count-- > 0;
    default:
        return false;
    }
}

/* queue[0] is the value. */
static inline bool history_step_register(struct history_state *s, const struct history_event *e) {
    s->count = 1;
    if (e->op == HISTORY_READ) return e->value == s->queue[0];
    s->queue[0] = e->value;
    return e->op == HISTORY_WRITE;
}

static inline bool history_step(struct history_state *s, const struct history_event *e, enum history_object object,
                                uint32_t capacity) {
    if (object == HISTORY_REGISTER) return history_step_register(s, e);
    return object == HISTORY_CHANNEL ? history_step_channel(s, e, capacity) : history_step_lock(s, e, object);
}

/* ---- the search ---- */

struct history_key {
    uint64_t a, b;
};

/* One call or one return, in the order of their stamps. */
struct history_node {
    uint64_t at;
    const struct history_event *event;
    uint32_t next, prev, match; /* indices; match: a call's return; 0: it is a return */
};

struct history_search {
    struct history_node nodes[2 * HISTORY_EVENTS_MAX + 2];
    struct {
        uint32_t node;
        struct history_state state;
        struct history_key set;
    } stack[HISTORY_EVENTS_MAX];
    struct history_key *seen; /* a hash set */
    size_t room, used;
    uint64_t tried;
};

enum history_verdict { HISTORY_GOOD, HISTORY_BAD, HISTORY_UNDECIDED };

static inline uint64_t history_mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The set of calls that are done, and the state that they have led to. */
static inline struct history_key history_key_of(struct history_key set, const struct history_state *s) {
    uint64_t h = (uint64_t)s->count << 2 | (uint64_t)s->closed << 1 | s->hand;
    for (uint32_t i = 0; i < s->count && i < HISTORY_QUEUE_MAX; i++) h = history_mix(h * 31 + s->queue[i] + 1);
    return (struct history_key){set.a ^ history_mix(h + 1), set.b ^ history_mix(h ^ UINT64_C(0x9e3779b97f4a7c15))};
}

static inline struct history_key history_toggle(struct history_key set, uint32_t node) {
    return (struct history_key){set.a ^ history_mix(node * 2 + 1), set.b ^ history_mix(~(uint64_t)node)};
}

static inline bool history_insert(struct history_key *table, size_t room, struct history_key key) {
    size_t i = key.a & (room - 1);
    for (; table[i].a != 0 || table[i].b != 0; i = (i + 1) & (room - 1))
        if (table[i].a == key.a && table[i].b == key.b) return false;
    table[i] = key;
    return true;
}

/* False: it was there. */
static inline bool history_remember(struct history_search *h, struct history_key key) {
    if (h->used * 2 >= h->room) {
        size_t room = h->room == 0 ? 1024 : h->room * 2;
        struct history_key *bigger = calloc(room, sizeof *bigger);
        if (bigger == NULL) abort();
        for (size_t i = 0; i < h->room; i++)
            if (h->seen[i].a != 0 || h->seen[i].b != 0) (void)history_insert(bigger, room, h->seen[i]);
        free(h->seen);
        h->seen = bigger;
        h->room = room;
    }
    if (!history_insert(h->seen, h->room, key)) return false;
    h->used++;
    return true;
}

static int history_by_stamp(const void *left, const void *right) {
    uint64_t l = ((const struct history_node *)left)->at, r = ((const struct history_node *)right)->at;
    return l < r ? -1 : l > r;
}

/* Node 0 is the list's head. Returns drawn at a stamp come before calls that have read it. */
static inline void history_arrange(struct history_search *h, const struct history_event *events, uint32_t n) {
    struct history_node *nodes = h->nodes + 1;
    for (uint32_t i = 0; i < n; i++) {
        nodes[2 * i] = (struct history_node){.at = events[i].call * 2 + 1, .event = &events[i], .match = 1};
        nodes[2 * i + 1] = (struct history_node){.at = events[i].ret * 2, .event = &events[i]};
    }
    qsort(nodes, 2 * n, sizeof *nodes, history_by_stamp);
    uint32_t *call_of = malloc(n * sizeof *call_of);
    if (call_of == NULL && n > 0) abort();
    for (uint32_t i = 1; i <= 2 * n; i++) {
        struct history_node *node = &h->nodes[i];
        node->prev = i - 1;
        node->next = i < 2 * n ? i + 1 : 0;
        if (node->match != 0)
            call_of[node->event - events] = i;
        else
            h->nodes[call_of[node->event - events]].match = i;
    }
    h->nodes[0] = (struct history_node){.next = n > 0 ? 1 : 0, .prev = 2 * n};
    free(call_of);
}

static inline void history_unlink(struct history_node *nodes, uint32_t i) {
    nodes[nodes[i].prev].next = nodes[i].next;
    nodes[nodes[i].next].prev = nodes[i].prev;
}

static inline void history_relink(struct history_node *nodes, uint32_t i) {
    nodes[nodes[i].prev].next = i;
    nodes[nodes[i].next].prev = i;
}

/* Any order of the calls of the events, n of them at most HISTORY_EVENTS_MAX, on an object that begins with `count`
 * permits, or on a channel. Gives up after `limit` states. */
HISTORY_UNUSED static enum history_verdict history_check(const struct history_event *events, uint32_t n,
                                                         enum history_object object, uint32_t capacity, uint32_t count,
                                                         uint64_t limit) {
    struct history_search *h = calloc(1, sizeof *h);
    if (h == NULL || n > HISTORY_EVENTS_MAX || capacity > HISTORY_QUEUE_MAX) abort();
    struct history_state state = {.count = count};
    struct history_key set = {0, 0};
    uint32_t depth = 0;
    enum history_verdict verdict = HISTORY_GOOD;
    history_arrange(h, events, n);
    for (uint32_t at = h->nodes[0].next; h->nodes[0].next != 0;) {
        struct history_node *node = &h->nodes[at];
        if (at != 0 && node->match != 0) { /* a call: can it be the next one? */
            struct history_state after = state;
            struct history_key then = history_toggle(set, at);
            if (history_step(&after, node->event, object, capacity) &&
                history_remember(h, history_key_of(then, &after))) {
                h->stack[depth].node = at;
                h->stack[depth].state = state;
                h->stack[depth++].set = set;
                state = after;
                set = then;
                history_unlink(h->nodes, at);
                history_unlink(h->nodes, node->match);
                at = h->nodes[0].next;
                if (++h->tried > limit) {
                    verdict = HISTORY_UNDECIDED;
                    break;
                }
            } else {
                at = node->next;
            }
            continue;
        }
        if (depth == 0) { /* a return of one that cannot have been before it, and nothing left to change */
            verdict = HISTORY_BAD;
            break;
        }
        depth--;
        at = h->stack[depth].node;
        state = h->stack[depth].state;
        set = h->stack[depth].set;
        history_relink(h->nodes, h->nodes[at].match);
        history_relink(h->nodes, at);
        at = h->nodes[at].next;
    }
    free(h->seen);
    free(h);
    return verdict;
}

HISTORY_UNUSED static void history_print(const struct history_event *events, uint32_t n) {
    static const char *const names[] = {"send",      "recv",        "close", "acquire", "release",
                                        "read_lock", "read_unlock", "write", "read"};
    for (uint32_t i = 0; i < n; i++)
        fprintf(stderr, "%6llu ... %6llu  %s %#x: %d\n", (unsigned long long)events[i].call,
                (unsigned long long)events[i].ret, names[events[i].op], events[i].value, events[i].rc);
}

/* ---- patterns ---- */

/* One value's two events; a receive that never was has stamps of 0. */
struct history_value {
    uint64_t send_call, send_ret, recv_call, recv_ret;
};

static int history_by_send_call(const void *left, const void *right) {
    uint64_t l = ((const struct history_value *)left)->send_call, r = ((const struct history_value *)right)->send_call;
    return l < r ? -1 : l > r;
}

static int history_by_send_ret(const void *left, const void *right) {
    uint64_t l = ((const struct history_value *)left)->send_ret, r = ((const struct history_value *)right)->send_ret;
    return l < r ? -1 : l > r;
}

/* What is wrong with n values that were sent once each and, all of them, received once; NULL: nothing. Sorts them. */
HISTORY_UNUSED static const char *history_check_long(struct history_value *values, size_t n) {
    struct history_value *earlier = malloc((n + 1) * sizeof *earlier);
    const char *what = NULL;
    if (earlier == NULL) abort();
    memcpy(earlier, values, n * sizeof *earlier);
    qsort(earlier, n, sizeof *earlier, history_by_send_ret);
    qsort(values, n, sizeof *values, history_by_send_call);
    uint64_t latest = 0; /* call of a receive of a value whose send had returned before this one's was called */
    for (size_t i = 0, k = 0; i < n && what == NULL; i++) {
        const struct history_value *v = &values[i];
        for (; k < n && earlier[k].send_ret <= v->send_call; k++)
            if (earlier[k].recv_call > latest) latest = earlier[k].recv_call;
        if (v->recv_ret == 0)
            what = "a value was lost";
        else if (v->recv_ret <= v->send_call)
            what = "a value was received before it was sent";
        else if (k > 0 && latest >= v->recv_ret)
            what = "a value has overtaken one that was sent before it";
    }
    free(earlier);
    return what;
}

#endif
