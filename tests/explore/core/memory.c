/* memory.c - what a load may return, and which plain accesses race.
 *
 * Each location keeps its last stores. A thread must see at least what it has seen before and what is ordered before
 * it, by acquire of a release; beyond that a load may return any of the later stores. The three modes:
 *
 *   sc     every load returns the latest store
 *   tso    every load acquires, every store releases, every read-modify-write is a full fence: only a load may overtake
 *          an earlier store of its thread, as on x86
 *   weak   the orders of the source (C11, without loads that see a later store)
 *
 * Two clocks a thread: `ordered` grows by release and acquire only and decides about races; `seen` grows by fences and
 * membarrier too and decides about visibility. The order of sequentially consistent operations (C11 7.17.3; C++11 29.3)
 * is the order in which they are executed here:
 *
 *   - Such a load sees at least the last such store of its location (29.3p3), and what was stored before a fence that
 *     came earlier (p5).
 *   - A load of any order behind a fence sees at least the last such store of its location before that fence (p4). So a
 *     fence on one side and a read-modify-write with a load, all of them sequentially consistent, on the other make a
 *     pair.
 *   - Of two fences the later one sees what was stored before the earlier one (p6).
 *
 * As in C11 none of these orders other locations: a sequentially consistent read-modify-write is not a fence.
 *
 * MEMORY-1  Memory always holds the latest store: a read-modify-write, the kernel, and a plain read use that.
 * MEMORY-2  A value in memory that differs from the latest store was written by a plain store: the history restarts.
 * MEMORY-3  A location whose accesses are ordered by release and acquire in every run, as those under a lock are, needs
 *           no switch: a switch at the operation that orders them has the same outcome. Which locations are contended
 *           is learned from previous runs, and fixed during a run.
 * MEMORY-4  Freeing memory is a write of all of it: an atomic word in it is contended unless the access is ordered
 *           before the free. For frames, whose return is not visible: THREADS-5.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

enum { STORES = 8, LOCATIONS = 1 << 14, NOBODY = 255 };

struct store {
    uint64_t value;
    uint8_t thread;
    bool releases;
    uint64_t seq;                     /* sequentially consistent: its place in their order; else 0 */
    struct clock ordered, seen;       /* of a release */
    uint32_t first_seen[THREADS_MAX]; /* when each thread read or wrote it; 0: not yet */
};

struct location {
    const volatile void *addr;
    bool contended, found; /* two accesses, one of them a write, were not ordered: known before this run; in this one */
    uint32_t run;
    unsigned size;
    uint32_t count; /* stores in this run, the first one included */
    uint32_t last_seq;
    uint32_t read_at[THREADS_MAX], written_at[THREADS_MAX]; /* by each thread, in this run */
    struct store stores[STORES];
};

static struct location *table[LOCATIONS];
static struct location *all;
static const volatile char *addresses[LOCATIONS / 2]; /* of all of them, close together */
static unsigned used, run_number, fresh;
static struct clock fences;          /* what was stored before any fence so far */
static uint64_t seq_now;             /* sequentially consistent stores and fences so far */
static uint64_t fenced[THREADS_MAX]; /* when each thread last had a fence, by seq_now */
bool memory_learning, memory_barrier_asked;

void memory_begin(void) {
    run_number++;
    memset(&fences, 0, sizeof fences);
    memset(fenced, 0, sizeof fenced);
    seq_now = 0;
    if (fresh == 0) return;
    fresh = 0;
    for (unsigned i = 0; i < used; i++) all[i].contended = all[i].found;
}

static struct location *last; /* found */

static struct location *find(const volatile void *addr) {
    if (last != NULL && last->addr == addr) return last;
    size_t at = ((uintptr_t)addr >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 50;
    while (table[at] != NULL && table[at]->addr != addr) at = (at + 1) % LOCATIONS;
    if (table[at] == NULL) {
        if (all == NULL && (all = malloc(LOCATIONS * sizeof *all)) == NULL) abort();
        if (used == LOCATIONS / 2) ex_fail("more than %d locations", LOCATIONS / 2);
        addresses[used] = addr;
        table[at] = &all[used++];
        memset(table[at], 0, sizeof *table[at]);
        table[at]->addr = addr;
    }
    return last = table[at];
}

void memory_forget(void) {
    memset(table, 0, sizeof table);
    used = fresh = 0;
    memory_barrier_asked = false;
    free(all);
    all = NULL;
    last = NULL;
}

bool memory_contended(const volatile void *addr) {
    return addr == NULL || settings.strategy == BY_LEARNING || settings.strategy == BY_REPLAY || find(addr)->contended;
}

static uint64_t peek(const volatile void *addr, unsigned size) { /* MEMORY-1 */
    switch (size) {
    case 1:
        return *(const volatile uint8_t *)addr;
    case 2:
        return *(const volatile uint16_t *)addr;
    case 4:
        return *(const volatile uint32_t *)addr;
    default:
        return *(const volatile uint64_t *)addr;
    }
}

static void poke(volatile void *addr, unsigned size, uint64_t value) {
    switch (size) {
    case 1:
        *(volatile uint8_t *)addr = (uint8_t)value;
        break;
    case 2:
        *(volatile uint16_t *)addr = (uint16_t)value;
        break;
    case 4:
        *(volatile uint32_t *)addr = (uint32_t)value;
        break;
    default:
        *(volatile uint64_t *)addr = value;
        break;
    }
}

static struct store *at_index(struct location *l, uint32_t i) {
    return &l->stores[i % STORES];
}

static void begin_history(struct location *l, uint64_t value) {
    l->count = 1;
    l->last_seq = 0;
    memset(&l->stores[0], 0, sizeof l->stores[0]);
    l->stores[0].value = value;
    l->stores[0].thread = NOBODY;
}

/* Whether an access of another thread is not ordered before this one. */
static bool is_contended(const struct location *l, const struct vthread *t, bool writes) {
    for (int i = 0; i < THREADS_MAX; i++) {
        if (i == current) continue;
        if (l->written_at[i] > t->ordered.at[i] || (writes && l->read_at[i] > t->ordered.at[i])) return true;
    }
    return false;
}

static void found(struct location *l) {
    if (l->found) return;
    l->found = true;
    fresh++;
    memory_learning = true;
}

void memory_freed(const void *from, size_t size) {
    for (unsigned i = 0; i < used; i++) {
        if ((size_t)(addresses[i] - (const char *)from) >= size) continue;
        struct location *l = &all[i];
        if (l->run == run_number && is_contended(l, &threads[current], true)) found(l);
    }
}

/* The location as of this step, its history up to date. */
static struct location *enter(const volatile void *addr, unsigned size, bool writes) { /* MEMORY-2 */
    if (state_freed(addr)) ex_fail("an atomic access to memory that was freed (%p)", (const void *)addr);
    if (threads_left_frame(addr))
        ex_fail("an atomic access to a frame that its thread has left (%p)", (const void *)addr);
    struct location *l = find(addr);
    uint64_t value = peek(addr, size);
    if (l->run != run_number) {
        l->run = run_number;
        memset(l->read_at, 0, sizeof l->read_at);
        memset(l->written_at, 0, sizeof l->written_at);
        begin_history(l, value);
    } else if (at_index(l, l->count - 1)->value != value || l->size != size) {
        begin_history(l, value);
    }
    l->size = size;
    struct vthread *t = &threads[current];
    if (!l->found && is_contended(l, t, writes)) found(l);
    t->ordered.at[current] = ++t->seen.at[current];
    (writes ? l->written_at : l->read_at)[current] = t->ordered.at[current];
    return l;
}

static bool known(const struct store *s, const struct clock *clock) {
    if (s->thread == NOBODY) return true;
    for (int i = 0; i < THREADS_MAX; i++)
        if (s->first_seen[i] != 0 && s->first_seen[i] <= clock->at[i]) return true;
    return false;
}

/* Whether a load of the current thread may return nothing older. */
static bool must_see(const struct store *s, const struct vthread *t, enum ex_order order) {
    if (known(s, &t->seen)) return true;
    if (s->seq != 0 && s->seq < fenced[current]) return true;
    return order == EX_SEQ && known(s, &fences);
}

static void mark_seen(struct store *s) {
    if (s->thread != NOBODY && s->first_seen[current] == 0) s->first_seen[current] = threads[current].seen.at[current];
}

static void acquire(const struct store *s, enum ex_order order) {
    struct vthread *t = &threads[current];
    if (!s->releases) {
        if (settings.mode == MODE_TSO) clock_join(&t->seen, &s->seen);
        return;
    }
    bool acquires = order == EX_ACQUIRE || order == EX_ACQ_REL || order == EX_SEQ;
    if (acquires) clock_join(&t->ordered, &s->ordered);
    if (acquires || settings.mode == MODE_TSO) clock_join(&t->seen, &s->seen);
}

static void fence(void) {
    fenced[current] = ++seq_now;
    clock_join(&fences, &threads[current].seen);
    threads[current].seen = fences;
}

/* How many stores back the current thread may still read; 0: the latest only. */
static uint32_t may_read_back(struct location *l, enum ex_order order) {
    const struct vthread *t = &threads[current];
    uint32_t newest = l->count - 1, oldest = newest;
    if (settings.mode != MODE_SC)
        while (oldest > 0 && newest - oldest < STORES - 1 && !must_see(at_index(l, oldest), t, order)) oldest--;
    if (order == EX_SEQ && oldest < l->last_seq) oldest = l->last_seq;
    return newest - oldest;
}

uint64_t ex_load(const volatile void *addr, unsigned size, enum ex_order order, const char *at) {
    if (!exploring || current < 0) {
        if (current >= 0) threads_point(addr, false);
        return peek(addr, size);
    }
    threads_point(addr, false);
    struct location *l = enter(addr, size, false);
    int back = choose_value((int)may_read_back(l, order) + 1);
    struct store *s = at_index(l, l->count - 1 - (uint32_t)back);
    uint64_t value = s->value;
    note(back != 0 ? "get (old)" : "get", at, addr, value);
    mark_seen(s);
    acquire(s, order);
    return value;
}

/* order: of the store. before: what a read-modify-write has read, whose release goes on. */
static void append(struct location *l, uint64_t value, enum ex_order order, const struct store *before) {
    struct vthread *t = &threads[current];
    struct store s = {.value = value, .thread = (uint8_t)current};
    s.releases = order == EX_RELEASE || order == EX_ACQ_REL || order == EX_SEQ;
    if (s.releases) s.ordered = t->ordered;
    if (s.releases || settings.mode == MODE_TSO) s.seen = t->seen;
    if (before != NULL && before->releases) {
        s.releases = true;
        clock_join(&s.ordered, &before->ordered);
        clock_join(&s.seen, &before->seen);
    }
    s.first_seen[current] = t->seen.at[current];
    if (order == EX_SEQ) {
        l->last_seq = l->count;
        s.seq = ++seq_now;
    }
    *at_index(l, l->count++) = s;
}

void ex_store(volatile void *addr, unsigned size, uint64_t value, enum ex_order order, const char *at) {
    if (current >= 0) threads_point(addr, true);
    state_dirty(addr, size);
    if (exploring && current >= 0) {
        note("set", at, addr, value);
        append(enter(addr, size, true), value, order, NULL);
    }
    poke(addr, size, value);
}

static uint64_t apply(enum ex_rmw op, uint64_t before, uint64_t operand) {
    switch (op) {
    case EX_ADD:
        return before + operand;
    case EX_SUB:
        return before - operand;
    case EX_OR:
        return before | operand;
    case EX_AND:
        return before & operand;
    default:
        return operand;
    }
}

static uint64_t cut(uint64_t value, unsigned size) {
    return size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1);
}

/* Reads the latest store, and appends one. */
static void rmw(struct location *l, uint64_t value, enum ex_order order) {
    struct store before = *at_index(l, l->count - 1);
    mark_seen(at_index(l, l->count - 1));
    acquire(&before, order);
    if (settings.mode == MODE_TSO) fence();
    append(l, value, order, &before);
}

uint64_t ex_rmw(volatile void *addr, unsigned size, enum ex_rmw op, uint64_t operand, enum ex_order order,
                const char *at) {
    static const char *const names[] = {"swap", "add", "sub", "or", "and"};
    if (current >= 0) threads_point(addr, true);
    state_dirty(addr, size);
    uint64_t before = peek(addr, size), value = cut(apply(op, before, operand), size);
    if (exploring && current >= 0) {
        note(names[op], at, addr, value);
        rmw(enter(addr, size, true), value, order);
    }
    poke(addr, size, value);
    return before;
}

/* The store that a compare-and-swap which fails has read: the latest, or an older one that differs; NULL: it succeeds.
 * On x86 it always reads the latest. */
static struct store *fails_by(struct location *l, uint64_t expected, enum ex_order order, bool weak) {
    struct store *latest = at_index(l, l->count - 1);
    bool ok = latest->value == expected;
    if (settings.mode != MODE_WEAK) return ok ? NULL : latest;
    uint32_t most = may_read_back(l, order), options[STORES] = {0};
    int n = 1;
    for (uint32_t back = ok && weak ? 0 : 1; back <= most; back++)
        if (back == 0 || at_index(l, l->count - 1 - back)->value != expected) options[n++] = back;
    int chosen = choose_value(n);
    return chosen == 0 ? (ok ? NULL : latest) : at_index(l, l->count - 1 - options[chosen]);
}

bool ex_cas(volatile void *addr, unsigned size, uint64_t *expected, uint64_t value, enum ex_order order, bool weak,
            const char *at) {
    if (current >= 0) threads_point(addr, true);
    uint64_t before = peek(addr, size);
    bool ok = before == *expected;
    if (exploring && current >= 0) {
        struct location *l = enter(addr, size, true);
        struct store *read = fails_by(l, *expected, order, weak);
        ok = read == NULL;
        if (!ok) {
            before = read->value;
            mark_seen(read);
            acquire(read, order);
        }
        note(ok ? "cas" : "cas (fails)", at, addr, ok ? value : before);
        if (ok) rmw(l, value, order);
    }
    if (ok) {
        state_dirty(addr, size);
        poke(addr, size, value);
    } else {
        *expected = before;
    }
    return ok;
}

/* Fences are steps of their own: which of two comes first decides who must see what, unless all see all. */
static void fence_point(void) {
    if (settings.mode != MODE_SC) threads_point(NULL, false);
}

void ex_fence(void) {
    if (!exploring || current < 0) return;
    fence_point();
    fence();
}

bool ex_membarrier_offered(void) {
    memory_barrier_asked = true;
    return !settings.symmetric;
}

void ex_membarrier(void) {
    if (settings.symmetric) ex_fail("membarrier is called, which the system does not have");
    if (!exploring || current < 0) return;
    fence_point();
    note("membarrier", "", NULL, 0);
    seq_now++;
    for (int i = 0; i < THREADS_MAX; i++) clock_join(&fences, &threads[i].seen);
    for (int i = 0; i < THREADS_MAX; i++) {
        if (threads[i].state == THREAD_FREE) continue;
        clock_join(&threads[i].seen, &fences);
        fenced[i] = seq_now;
    }
}
