/* lost.c - a proof by looking everywhere.
 *
 * A fiber waits for a channel, a task, a lock's holder or a nursery's children. If nobody who can go on can reach what
 * it waits for, it waits for ever. Who can go on: whoever runs, is ready, sleeps, waits with a deadline or for something
 * that is not of the kinds above, and every OS thread. From their stacks, and from all memory of the program that is no
 * fiber's stack, what they reach is followed; a fiber that waits for something reached can go on too, and its stack
 * counts from then on; and so on until nothing changes.
 *
 * LOST-1  A word in memory that equals a channel's address reaches it. So nothing is claimed that is not so, as long as
 *         addresses are kept in whole words; but stale words make the claims fewer.
 * LOST-2  Nobody moves while we look: all workers sleep, and every thread but the caller's waits in a call of ours.
 *         Else an address could be carried past us, and nothing is claimed.
 * LOST-3  What is found is told as what it is: only a cancellation could end such a wait.
 */
#include "diag/lost.h"

#include "arch/frame.h"
#include "base/mem.h"
#include "diag/deadlock.h"
#include "diag/dump.h"
#include "plat/memory.h"
#include "plat/peek.h"
#include "plat/thread.h"
#include "sched/idle.h"

#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES_MAX = 65536,
    CHANNELS_LOG2 = 17, /* twice as many places as candidates can name channels */
    CHUNK = 64 * 1024,
    SKIPS_MAX = CANDIDATES_MAX + 4096,
};
#define MEMORY_LIMIT (UINT64_C(4) << 30)

struct range {
    uintptr_t low, high;
};

struct candidate {
    struct fiber *fiber;
    struct wait_what what;
    uintptr_t sp, high;
    struct scope *scope;
    struct range block; /* its arguments, where they were allocated: they are its own, like its stack */
    bool live;
};

struct channel {
    uintptr_t at; /* 0: no channel */
    bool reached;
};

struct search {
    unsigned count, skips, at_skip;
    bool too_many;
    struct range skip[SKIPS_MAX];
    uintptr_t least, most; /* of the channels' addresses */
    struct candidate candidate[CANDIDATES_MAX];
    struct channel channel[1 << CHANNELS_LOG2];
    uintptr_t words[CHUNK / sizeof(uintptr_t)];
};

/* ---- channels ---- */

static struct channel *place_of(struct search *s, uintptr_t at) {
    size_t i = (size_t)((uint64_t)at * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CHANNELS_LOG2));
    while (s->channel[i].at != 0 && s->channel[i].at != at) i = (i + 1) % ((size_t)1 << CHANNELS_LOG2);
    return &s->channel[i];
}

static void want_channel(struct search *s, const void *at) {
    uintptr_t address = (uintptr_t)at;
    if (address == 0) return;
    place_of(s, address)->at = address;
    if (address < s->least) s->least = address;
    if (address > s->most) s->most = address;
}

static bool reached(struct search *s, const void *at) {
    return place_of(s, (uintptr_t)at)->reached;
}

/* Everything in [low, high) is in reach. True: something new was. */
static bool reach_all(struct search *s, uintptr_t low, uintptr_t high) {
    bool news = false;
    low = (low + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
    for (uintptr_t at = low; at < high;) {
        size_t n = high - at < CHUNK ? high - at : CHUNK;
        if (cc__peek(s->words, (const void *)at, n)) {
            for (size_t i = 0; i < n / sizeof(uintptr_t); i++) {
                uintptr_t word = s->words[i];
                if (word < s->least || word > s->most) continue;
                struct channel *ch = place_of(s, word);
                if (ch->at == 0 || ch->reached) continue;
                ch->reached = news = true;
            }
        }
        at += n;
    }
    return news;
}

/* ---- who waits ---- */

/* A deadline, its own or that of a scope around it, ends the wait. */
static bool has_deadline(const struct scope *at) {
    struct scope scope;
    for (int up = 0; at != NULL && up < 256; up++, at = scope.parent)
        if (!cc__peek(&scope, at, sizeof scope) || cc__get(&scope.deadline) != UINT64_MAX || scope.grace_armed)
            return true;
    return at != NULL;
}

static bool is_candidate(const struct view *v) {
    if (v->state != FIBER_PARKED || v->moves || !v->started) return false;
    switch (v->reason) {
    case PARK_QUEUE:
    case PARK_SELECT:
    case PARK_JOIN:
    case PARK_RUN:
    case PARK_MUTEX:
    case PARK_NURSERY:
        return !has_deadline(v->scope);
    default:
        return false;
    }
}

static void want_what(struct search *s, struct wait_what what) {
    struct arm arms[8];
    if (what.reason == PARK_QUEUE) want_channel(s, what.object);
    if (what.reason != PARK_SELECT) return;
    uint32_t n = cc__describe_arms(what, arms, 8);
    for (uint32_t i = 0; i < n && i < 8; i++)
        if (arms[i].kind != CC_CASE_JOIN) want_channel(s, arms[i].object);
}

/* They are in the order of their slots. */
static struct candidate *find(struct search *s, const struct fiber *f) {
    unsigned low = 0, high = s->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (s->candidate[middle].fiber == f) return &s->candidate[middle];
        if (s->candidate[middle].fiber->slot < f->slot)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static struct range block_of(struct fiber *f) {
    const struct stack *s = cc__get(&f->stack);
    struct fiber_cold cold;
    struct fiber_block block;
    if (s == NULL || !cc__peek(&cold, cc__get(&s->cold), sizeof cold) || cold.block == NULL ||
        !cc__peek(&block, cold.block, sizeof block))
        return (struct range){0, 0};
    return (struct range){(uintptr_t)cold.block, (uintptr_t)(cold.block + 1) + block.args_size};
}

static void collect(struct search *s) {
    struct view v;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        if (!cc__view_take(slot, false, &v) || !is_candidate(&v)) continue;
        if (s->count == CANDIDATES_MAX) {
            s->too_many = true;
            return;
        }
        s->candidate[s->count++] = (struct candidate){.fiber = v.fiber,
                                                      .what = cc__view_what(&v),
                                                      .sp = v.sp,
                                                      .high = v.high,
                                                      .scope = v.scope,
                                                      .block = block_of(v.fiber)};
        want_what(s, cc__view_what(&v));
    }
}

static void has_timer(void *search, struct fiber *f, uint64_t ticket) {
    (void)ticket;
    struct candidate *c = find(search, f);
    if (c != NULL) c->live = true;
}

/* ---- what is reached from the beginning ---- */

static void skip(struct search *s, uintptr_t low, uintptr_t high) {
    if (s->skips == SKIPS_MAX) s->too_many = true;
    if (!s->too_many) s->skip[s->skips++] = (struct range){low, high};
}

static int lower_first(const void *a, const void *b) {
    const struct range *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

/* Fibers' stacks and records do not count, nor does what we ourselves have written down. */
static void find_skips(struct search *s, uintptr_t below) {
    const void *bottom, *top;
    uintptr_t low, high;
    cc__thread_stack(&bottom, &top);
    skip(s, (uintptr_t)bottom, below);
    skip(s, (uintptr_t)s, (uintptr_t)(s + 1));
    for (unsigned i = 0; cc__stack_arena(i, &low, &high); i++) skip(s, low, high);
    for (unsigned i = 0; cc__pool_slab(i, &low, &high); i++) skip(s, low, high);
    for (unsigned i = 0; i < s->count; i++)
        if (s->candidate[i].block.low != 0) skip(s, s->candidate[i].block.low, s->candidate[i].block.high);
    qsort(s->skip, s->skips, sizeof s->skip[0], lower_first);
}

static void reach_memory(void *search, uintptr_t low, uintptr_t high) {
    struct search *s = search;
    /* Both go up. */
    while (s->at_skip < s->skips && s->skip[s->at_skip].high <= low) s->at_skip++;
    for (unsigned i = s->at_skip; i < s->skips && s->skip[i].low < high && low < high; i++) {
        if (s->skip[i].high <= low) continue;
        if (s->skip[i].low > low) (void)reach_all(s, low, s->skip[i].low);
        low = s->skip[i].high;
    }
    if (low < high) (void)reach_all(s, low, high);
}

static void reach_fiber(struct search *s, const struct view *v) {
    if (v->started)
        (void)reach_all(s, v->sp != 0 ? v->sp : v->low, v->high);
    else
        (void)reach_all(s, (uintptr_t)v->fiber->args, (uintptr_t)v->fiber->args + FIBER_INLINE_ARGS);
}

/* Fibers that can go on as they are. */
static void reach_from_the_living(struct search *s) {
    struct view v;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        if (!cc__view_take(slot, false, &v)) continue;
        const struct candidate *c = find(s, v.fiber);
        if (c == NULL || c->live) reach_fiber(s, &v);
        if (c != NULL && c->live) (void)reach_all(s, c->block.low, c->block.high);
    }
}

/* ---- until nothing changes ---- */

static bool lives(struct search *s, const struct fiber *f) {
    const struct candidate *c = find(s, f);
    return c == NULL || c->live;
}

/* Every child may end: then so does the wait for them. */
static bool children_live(struct search *s, const struct candidate *self) {
    const struct scope *nursery = self->what.object;
    for (unsigned i = 0; i < s->count; i++) {
        const struct candidate *c = &s->candidate[i];
        if (c == self || c->live) continue;
        struct scope scope;
        const struct scope *at = c->scope;
        for (int up = 0; at != NULL && at != nursery && up < 256; up++)
            at = cc__peek(&scope, at, sizeof scope) ? scope.parent : NULL;
        if (at == nursery) return false;
    }
    return true;
}

static bool select_lives(struct search *s, struct wait_what what) {
    struct arm arms[8];
    uint32_t n = cc__describe_arms(what, arms, 8);
    if (n == 0 || n > 8) return true; /* not all is known */
    for (uint32_t i = 0; i < n; i++)
        if (arms[i].kind == CC_CASE_JOIN ? lives(s, arms[i].object) : reached(s, arms[i].object)) return true;
    return false;
}

static bool may_go_on(struct search *s, const struct candidate *c) {
    bool thread;
    struct fiber *holder;
    switch (c->what.reason) {
    case PARK_QUEUE:
        return reached(s, c->what.object);
    case PARK_SELECT:
        return select_lives(s, c->what);
    case PARK_JOIN:
    case PARK_RUN:
        return lives(s, c->what.object);
    case PARK_MUTEX:
        holder = cc__describe_holder(c->what, &thread);
        return holder == NULL || lives(s, holder);
    case PARK_NURSERY:
        return children_live(s, c);
    default:
        return true;
    }
}

static void follow(struct search *s) {
    for (bool news = true; news;) {
        news = false;
        for (unsigned i = 0; i < s->count; i++) {
            struct candidate *c = &s->candidate[i];
            if (c->live || !may_go_on(s, c)) continue;
            c->live = news = true;
            (void)reach_all(s, c->block.low, c->block.high);
            if (c->sp != 0) (void)reach_all(s, c->sp, c->high); /* one that has lent its stack has no more to say */
        }
    }
}

/* ---- the result ---- */

static unsigned print(struct out *out, struct search *s) {
    enum { SHOWN = 32 };
    unsigned n = 0;
    for (unsigned i = 0; i < s->count; i++) n += !s->candidate[i].live;
    if (n == 0) return 0;
    cc__out(
        out,
        "%u fiber%s can never go on: what %s for is out of reach of everybody who can (all memory was looked through); "
        "only a cancellation could end %s:\n",
        n, cc__out_s(n), n == 1 ? "it waits" : "they wait", n == 1 ? "that" : "these waits");
    unsigned shown = 0;
    for (unsigned i = 0; i < s->count && shown < SHOWN; i++) {
        struct view v;
        char who[96], wait[DESCRIBE_MAX];
        if (s->candidate[i].live || !cc__view_take(s->candidate[i].fiber->slot, false, &v)) continue;
        cc__view_trim(&v);
        cc__describe_fiber(&v, who, sizeof who);
        cc__describe_wait(s->candidate[i].what, wait, sizeof wait);
        cc__out(out, "  %s waits %s\n", who, wait);
        cc__dump_frames(out, &v, "      ");
        shown++;
    }
    if (n > shown) cc__out(out, "  and %u more\n", n - shown);
    return n;
}

static unsigned search_and_print(struct out *out, struct search *s, uintptr_t below, uint64_t epoch) {
    s->least = UINTPTR_MAX;
    collect(s);
    find_skips(s, below);
    if (s->too_many) {
        cc__out(out, "fibers that can never go on: too many wait to be told apart\n");
        return 0;
    }
    cc__timer_each(has_timer, s);
    if (!cc__memory_each(MEMORY_LIMIT, reach_memory, s)) {
        cc__out(out, "fibers that can never go on: there is too much memory to look through\n");
        return 0;
    }
    reach_from_the_living(s);
    follow(s);
    return cc__idle_epoch() == epoch ? print(out, s) : 0;
}

static CC_NOINLINE unsigned look(struct out *out, uintptr_t below) {
    uint64_t epoch = cc__idle_epoch();
    if (!cc__deadlock_quiet()) {
        cc__out(out, "fibers that can never go on are not looked for while a fiber or another thread runs\n");
        return 0;
    }
    struct search *s = cc__mem_alloc(sizeof *s);
    if (s == NULL) return 0;
    unsigned n = search_and_print(out, s, below, epoch);
    explicit_bzero(s, sizeof *s); /* or the next search would find addresses here */
    cc__mem_free(s);
    return n;
}

CC_NOINLINE unsigned cc__lost_print(struct out *out) {
#if defined(CC_ASAN) || defined(CC_TSAN)
    cc__out(out, "fibers that can never go on are not looked for under a sanitizer, whose memory has no end\n");
    return 0;
#endif
    __builtin_unwind_init(); /* what callers keep in registers is in this frame, which counts */
    return look(out, cc__frame_here());
}
