/* packets.c - packets in flight in the simulated network, ordered by time; and random numbers. */
#include "sim/system.h"

#include "base/mem.h"
#include "base/rng.h"
#include "os/clock.h"

#include <string.h>

enum { HEAP_MIN = 64, SLOW_TIMES = 50, CUT_MAX_NS = 1000000000 /* ten times that */ };

/* ---- random numbers ---- */

uint32_t cc__sys_draw(uint32_t n) {
    return (uint32_t)((cc__rng_next(&cc__sys.random) >> 32) * n >> 32);
}

bool cc__sys_chance(uint32_t ppm) {
    return ppm != 0 && cc__sys_draw(1000000) < ppm;
}

/* ---- packets ---- */

static bool before(const struct packet *a, const struct packet *b) {
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static bool heap_grow(void) {
    size_t room = cc__sys.heap_room == 0 ? HEAP_MIN : cc__sys.heap_room * 2;
    struct packet **more = cc__mem_alloc(room * sizeof(struct packet *));
    if (more == NULL) return false;
    if (cc__sys.heap_count > 0) memcpy(more, cc__sys.heap, cc__sys.heap_count * sizeof(struct packet *));
    cc__mem_free(cc__sys.heap);
    cc__sys.heap = more;
    cc__sys.heap_room = room;
    return true;
}

static void heap_push(struct packet *p) {
    if (cc__sys.heap_count == cc__sys.heap_room && !heap_grow()) {
        cc__mem_free(p); /* lost, for lack of memory */
        return;
    }
    size_t i = cc__sys.heap_count++;
    for (; i > 0 && before(p, cc__sys.heap[(i - 1) / 2]); i = (i - 1) / 2) cc__sys.heap[i] = cc__sys.heap[(i - 1) / 2];
    cc__sys.heap[i] = p;
}

static struct packet *heap_pop(void) {
    struct packet *first = cc__sys.heap[0], *moved = cc__sys.heap[--cc__sys.heap_count];
    size_t i = 0, n = cc__sys.heap_count;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(cc__sys.heap[child + 1], cc__sys.heap[child])) child++;
        if (!before(cc__sys.heap[child], moved)) break;
        cc__sys.heap[i] = cc__sys.heap[child];
    }
    if (n > 0) cc__sys.heap[i] = moved;
    return first;
}

struct packet *cc__sys_packet(enum packet_kind kind, const struct sock *from, size_t size) {
    struct packet *p = cc__mem_alloc_small(sizeof *p + size);
    if (p == NULL) return NULL;
    p->kind = kind;
    p->from = from->self;
    p->to = from->other;
    p->from_host = from->host;
    p->to_host = from->peer_host;
    p->size = size;
    return p;
}

bool cc__sys_is_cut(uint32_t a, uint32_t b) {
    return cc__sys.cut_until[a][b] > cc__clock_now();
}

/* The seed may separate two hosts. */
static void perhaps_cut(uint32_t a, uint32_t b) {
    if (a == b || !cc__sys_chance(cc__sys.net.partition_ppm) || cc__sys_is_cut(a, b)) return;
    uint64_t ns = (uint64_t)cc__sys_draw(CUT_MAX_NS) * (1 + cc__sys_draw(10));
    cc__sys.cut_until[a][b] = cc__sys.cut_until[b][a] = cc__clock_now() + ns;
    cc__sys.stats.partitions++;
}

uint64_t cc__sys_latency(uint32_t from_host, uint32_t to_host, bool is_local) {
    const CCSimNet *net = &cc__sys.net;
    if (is_local) return cc__sys_draw(5000);
    uint64_t ns = (uint64_t)net->latency_min_us * 1000;
    uint32_t spread = net->latency_max_us - net->latency_min_us;
    ns += (uint64_t)cc__sys_draw(spread + 1) * 1000 + cc__sys_draw(1000);
    if (cc__sys_chance(net->slow_ppm)) ns *= 2 + cc__sys_draw(SLOW_TIMES - 1);
    perhaps_cut(from_host, to_host);
    return ns;
}

void cc__sys_send_after(struct packet *p, uint64_t delay) {
    p->due = cc__clock_now() + delay;
    p->order = cc__sys.orders++;
    heap_push(p);
}

void cc__sys_answer(const struct packet *to, struct packet *p) {
    p->from_host = to->to_host;
    p->to_host = to->from_host;
    p->due = to->due + cc__sys_latency(p->from_host, p->to_host, false);
    p->order = cc__sys.orders++;
    heap_push(p);
}

void cc__sys_send(struct sock *from, struct packet *p) { /* SYS-4 */
    uint64_t delay = cc__sys_latency(p->from_host, p->to_host, from->is_local);
    p->due = cc__clock_now() + delay;
    if (p->due < from->last_due) p->due = from->last_due;
    from->last_due = p->due;
    p->order = cc__sys.orders++;
    heap_push(p);
}

static bool is_timer(const struct packet *p) {
    return p->kind >= TIMER_CONNECT;
}

/* Whether a partition holds the packet up; frees it if it is one that gets lost. */
static bool is_held(struct packet *p) {
    uint64_t until = cc__sys.cut_until[p->from_host][p->to_host];
    if (is_timer(p) || p->from_host == p->to_host || until <= p->due) return false;
    cc__sys.stats.held++;
    if (p->kind == PACKET_MESSAGE || p->kind == PACKET_UNREACHABLE) {
        cc__sys.stats.losses++;
        cc__mem_free(p);
    } else if (until != UINT64_MAX) {
        p->due = until;
        p->held = true;
        heap_push(p);
    } else {
        p->next = NULL;
        *(cc__sys.held_last != NULL ? &cc__sys.held_last->next : &cc__sys.held) = p;
        cc__sys.held_last = p;
    }
    return true;
}

/* Makes packets that wait in the heap for the end of a partition due now. */
static void release_heap(void) {
    size_t count = cc__sys.heap_count;
    for (size_t i = cc__sys.heap_count = 0; i < count; i++) {
        struct packet *p = cc__sys.heap[i];
        if (p->held) p->due = cc__clock_now();
        heap_push(p); /* its place is at i, or before */
    }
}

void cc__sys_release_held(void) {
    release_heap();
    struct packet *list = cc__sys.held, *next;
    cc__sys.held = cc__sys.held_last = NULL;
    for (; list != NULL; list = next) {
        next = list->next;
        list->due = cc__clock_now();
        heap_push(list);
    }
}

/* Whether it is a timer that its socket no longer needs. */
static bool is_void(const struct packet *p) {
    if (!is_timer(p)) return false;
    const struct sock *s = cc__sys_find(p->to);
    if (s == NULL || s->broken || s->crashed) return true;
    return p->kind == TIMER_CONNECT          ? s->kind != SOCK_CONNECTING
           : p->kind == TIMER_UNACKNOWLEDGED ? s->unacknowledged == 0
           : p->kind == TIMER_WINDOW         ? s->credit > 0
                                             : s->kind != SOCK_CONNECTED;
}

void cc__sys_deliver_due(void) { /* SYS-2 */
    while (cc__sys.heap_count > 0 && cc__sys.heap[0]->due <= cc__clock_now()) {
        struct packet *p = heap_pop();
        if (is_held(p)) continue;
        if (is_timer(p) ? is_void(p) : !cc__sys.hosts[p->to_host].is_up) {
            cc__mem_free(p); /* there is no receiver */
            continue;
        }
        if (!is_timer(p)) cc__sys.stats.packets++;
        if (p->kind == PACKET_MESSAGE || p->kind == PACKET_UNREACHABLE)
            cc__message_deliver(p);
        else
            cc__stream_deliver(p);
    }
}

uint64_t cc__sys_next_packet(void) {
    while (cc__sys.heap_count > 0 && is_void(cc__sys.heap[0])) cc__mem_free(heap_pop());
    return cc__sys.heap_count > 0 ? cc__sys.heap[0]->due : UINT64_MAX;
}

static void free_list(struct packet *list) {
    for (struct packet *next; list != NULL; list = next) {
        next = list->next;
        cc__mem_free(list);
    }
}

void cc__sys_free_packets(void) {
    for (size_t i = 0; i < cc__sys.heap_count; i++) cc__mem_free(cc__sys.heap[i]);
    free_list(cc__sys.held);
    cc__mem_free(cc__sys.heap);
}
