/* range.c - cc_parallel_for, cc_parallel_reduce: every step once, in order where that matters; failures. */
#include "../contexts.h"

#include "fiber/pool.h"
#include "sched/sched.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- for ---- */

static atomic_uchar *seen;

static int mark(size_t begin, size_t end, void *arg) {
    CHECK(arg == &seen && begin < end);
    for (size_t i = begin; i < end; i++) seen[i]++;
    return 0;
}

static void for_range(size_t begin, size_t end) {
    seen = calloc(end + 1, sizeof *seen);
    CHECK_EQ(cc_parallel_for(begin, end, mark, &seen), 0);
    for (size_t i = 0; i <= end; i++) CHECK_EQ(seen[i], i >= begin && i < end);
    free(seen);
}

static void every_step_once(void) {
    CHECK_EQ(cc_parallel_for(0, 1, NULL, NULL), EINVAL);
    CHECK_EQ(cc_parallel_for(5, 5, mark, &seen), 0);
    CHECK_EQ(cc_parallel_for(6, 5, mark, &seen), 0);
    for_range(0, 1);
    for_range(3, 10);
    for_range(0, 1000);
    for_range(17, (size_t)test_scale(300000));
}

TEST_WORKERS(every_step_once) {
    in_both_contexts(every_step_once);
}

/* Steps that wait, one of which takes as long as all others: pieces are split again. */
static int uneven(size_t begin, size_t end, void *count) {
    for (size_t i = begin; i < end; i++) {
        if (i == 0)
            for (int k = 0; k < 20; k++) CHECK_EQ(cc_sleep_ms(1), 0);
        else if (i % 10 == 0)
            CHECK_EQ(cc_sleep_ms(1), 0);
        ++*(atomic_int *)count;
    }
    return 0;
}

static void steps_that_wait(void) {
    atomic_int count = 0;
    CHECK_EQ(cc_parallel_for(0, 200, uneven, &count), 0);
    CHECK_EQ(count, 200);
}

TEST_WORKERS(steps_that_wait) {
    in_both_contexts(steps_that_wait);
}

/* The scopes around the caller are those of the pieces. */
static int look_around(size_t begin, size_t end, void *deadline) {
    CHECK(begin < end);
    CHECK(cc_value(deadline) == deadline);
    CHECK_EQ(cc_deadline().ns, ((CCDeadline *)deadline)->ns);
    return 0;
}

static void scopes_around(void) {
    CCDeadline deadline = cc_after_ms(1000 * 3600);
    int rc;
    CC_NURSERY(n, .result = &rc, .deadline = deadline) {
        CHECK_EQ(cc_nursery_set_value(n, &deadline, &deadline), 0);
        CHECK_EQ(cc_parallel_for(0, 1000, look_around, &deadline), 0);
    }
    CHECK_EQ(rc, 0);
}

TEST_WORKERS(scopes_around) {
    in_both_contexts(scopes_around);
}

/* What a shield hides from the caller does not stop the pieces either. */
static int wait_and_look(size_t begin, size_t end, void *deadline) {
    CHECK(!cc_cancelled());
    for (size_t i = begin; i < end; i++) CHECK_EQ(cc_sleep_ms(1), 0);
    return look_around(begin, end, deadline);
}

static int wait_for_ever(size_t begin, size_t end, void *ended) {
    CHECK(begin < end);
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    ++*(atomic_int *)ended;
    return 0;
}

static void panic_here(size_t begin) {
    if (begin == 0) cc_panic("in a piece");
}

static int panics_at_0(size_t begin, size_t end, void *arg) {
    CHECK(begin < end && arg == NULL);
    panic_here(begin);
    return 0;
}

static void in_a_shield(void) {
    CCDeadline deadline = cc_after_ms(1000 * 3600);
    int rc;
    CC_NURSERY(n, .result = &rc, .deadline = deadline) {
        CHECK_EQ(cc_nursery_set_value(n, &deadline, &deadline), 0);
        CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, NULL), 0);
        CHECK_EQ(cc_parallel_for(0, 40, wait_and_look, &deadline), ECANCELED);
        CC_SHIELD {
            CHECK_EQ(cc_parallel_for(0, 40, wait_and_look, &deadline), 0);
            atomic_int ended = 0;
            bool late = false;
            CC_WITH_DEADLINE(cc_after_ms(5), &late) {
                CHECK_EQ(cc_parallel_for(0, 40, wait_for_ever, &ended), ECANCELED);
            }
            CHECK(late && ended > 0);
            CHECK_EQ(cc_parallel_for(0, 40, panics_at_0, NULL), ENOTRECOVERABLE);
        }
    }
    CHECK_EQ(rc, EXDEV);
}

TEST_WORKERS(in_a_shield) {
    in_both_contexts(in_a_shield);
}

/* A call within a call. */
static int inner(size_t begin, size_t end, void *count) {
    *(atomic_int *)count += (int)(end - begin);
    return 0;
}

static int outer(size_t begin, size_t end, void *count) {
    for (size_t i = begin; i < end; i++) CHECK_EQ(cc_parallel_for(0, 500, inner, count), 0);
    return 0;
}

static void nested(void) {
    atomic_int count = 0;
    CHECK_EQ(cc_parallel_for(0, 40, outer, &count), 0);
    CHECK_EQ(count, 40 * 500);
}

TEST_WORKERS(nested) {
    in_both_contexts(nested);
}

/* ---- failures ---- */

static atomic_int steps;

static int fails_at_70(size_t begin, size_t end, void *arg) {
    (void)arg;
    for (size_t i = begin; i < end; i++) {
        steps++;
        if (i == 70) return ENOENT;
        int rc = cc_sleep_ms(1);
        if (rc != 0) return rc; /* another piece has failed */
    }
    return 0;
}

static int panics_at_70(size_t begin, size_t end, void *arg) {
    (void)arg;
    for (size_t i = begin; i < end; i++)
        if (i == 70) cc_panic("at 70");
    return 0;
}

static int waits(size_t begin, size_t end, void *arg) {
    (void)begin, (void)end, (void)arg;
    steps++;
    return cc_sleep_until(CC_FOREVER);
}

static void call_panics(void *rc) {
    *(int *)rc = cc_parallel_for(0, 100, panics_at_70, NULL);
}

/* No errno value, of any piece. */
static int fails_oddly(size_t begin, size_t end, void *code) {
    for (size_t i = begin; i < end; i++) {
        if (i == 7 || i == 70) return *(int *)code;
        int rc = cc_sleep_ms(1);
        if (rc != 0) return rc;
    }
    return 0;
}

static void failures(void) {
    static const int odd[] = {-1, CC_ERROR_MAX + 1, INT_MIN};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        CHECK_EQ(cc_parallel_for(0, 100, fails_oddly, (void *)(uintptr_t)&odd[i]), EINVAL);
    steps = 0;
    CHECK_EQ(cc_parallel_for(0, 1000000, fails_at_70, NULL), ENOENT);
    CHECK(steps < 1000000);
    int rc = 0;
    CCPanic why;
    if (cc_try(call_panics, &rc, &why) == 0) /* a piece of another task, or the caller's own */
        CHECK_EQ(rc, ENOTRECOVERABLE);
    else
        CHECK(strcmp(why.message, "at 70") == 0);
    steps = 0;
    for (uint64_t ms = 3; steps == 0; ms *= 2) { /* on a busy machine none of them may run before */
        CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(ms)) {
            CHECK_EQ(cc_parallel_for(0, 10, waits, NULL), ECANCELED);
        }
        CHECK_EQ(rc, ETIMEDOUT);
    }
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK_EQ(cc_parallel_for(0, 100000000, waits, NULL), ECANCELED);
    }
}

TEST_WORKERS(failures) {
    in_both_contexts(failures);
}

/* ---- reduce ---- */

static int add(size_t begin, size_t end, void *value, void *arg) {
    (void)arg;
    for (size_t i = begin; i < end; i++) *(uint64_t *)value += i;
    return 0;
}

static void add_up(void *value, const void *right, void *arg) {
    (void)arg;
    *(uint64_t *)value += *(const uint64_t *)right;
}

/* Not commutative: the interval that is covered, and whether it was put together in order. */
struct span {
    size_t begin, end;
    bool broken;
    char padding[77];
};

static int append(size_t begin, size_t end, void *value, void *pause) {
    struct span *s = value;
    if (*(bool *)pause && begin % 7 == 0) CHECK_EQ(cc_sleep_ms(1), 0);
    if (s->begin == s->end)
        *s = (struct span){.begin = begin, .end = end};
    else if (s->end != begin)
        s->broken = true;
    s->end = end;
    return 0;
}

static void append_span(void *value, const void *right, void *arg) {
    struct span *s = value;
    const struct span *r = right;
    (void)arg;
    if (r->broken || (s->begin != s->end && r->begin != r->end && s->end != r->begin)) s->broken = true;
    if (s->begin == s->end) s->begin = r->begin;
    if (r->begin != r->end) s->end = r->end;
}

static void reduce(void) {
    uint64_t zero = 0, sum = 77;
    CCReduction r = {.size = sizeof sum, .identity = &zero, .range = add, .combine = add_up};
    CHECK_EQ(cc_parallel_reduce(3, 3, &r, NULL, &sum), 0);
    CHECK_EQ(sum, 0);
    uint64_t n = (uint64_t)test_scale(3000000);
    CHECK_EQ(cc_parallel_reduce(0, n, &r, NULL, &sum), 0);
    CHECK_EQ(sum, n * (n - 1) / 2);
    CHECK_EQ(cc_parallel_reduce(0, 1, NULL, NULL, &sum), EINVAL);
    CHECK_EQ(cc_parallel_reduce(0, 1, &r, NULL, NULL), EINVAL);
    r.reserved[0] = 1;
    CHECK_EQ(cc_parallel_reduce(0, 1, &r, NULL, &sum), EINVAL);
    struct span empty = {0}, span;
    CCReduction s = {.size = sizeof span, .identity = &empty, .range = append, .combine = append_span};
    for (int round = 0; round < 4; round++) {
        bool pause = round % 2 != 0;
        size_t end = pause ? 300 : 200000;
        CHECK_EQ(cc_parallel_reduce(5, end, &s, &pause, &span), 0);
        CHECK(span.begin == 5 && span.end == end && !span.broken);
    }
}

TEST_WORKERS(reduce) {
    in_both_contexts(reduce);
}

/* Ranges inside of the steps of a range, which may split it: its values still come in order. */
static int append_and_add(size_t begin, size_t end, void *value, void *pause) {
    const uint64_t zero = 0;
    CCReduction r = {.size = sizeof zero, .identity = &zero, .range = add, .combine = add_up};
    for (size_t i = begin; i < end; i++) {
        uint64_t sum = 0;
        size_t n = i % 3 == 0 ? 2000 : 20;
        CHECK_EQ(cc_parallel_reduce(0, n, &r, NULL, &sum), 0);
        CHECK_EQ(sum, n * (n - 1) / 2);
        CHECK_EQ(append(i, i + 1, value, pause), 0);
    }
    return 0;
}

static void reduce_nested(void) {
    struct span empty = {0}, span;
    CCReduction s = {.size = sizeof span, .identity = &empty, .range = append_and_add, .combine = append_span};
    for (int round = 0; round < 4; round++) {
        bool pause = round % 2 != 0;
        size_t end = pause ? 100 : (size_t)test_scale(3000) + 100;
        CHECK_EQ(cc_parallel_reduce(5, end, &s, &pause, &span), 0);
        CHECK(span.begin == 5 && span.end == end && !span.broken);
    }
}

TEST_WORKERS(reduce_nested) {
    in_both_contexts(reduce_nested);
}

/* The innermost of three fails, or panics, at one of its steps, while others have parts of all ranges. */
static int third(size_t begin, size_t end, void *how) {
    for (size_t i = begin; i < end; i++)
        if (++steps == 500) {
            if (*(bool *)how) cc_panic("in the third");
            return ENOENT;
        }
    return 0;
}

static int second(size_t begin, size_t end, void *how) {
    for (size_t i = begin; i < end; i++) {
        int rc = cc_parallel_for(0, 8, third, how);
        if (rc != 0) return rc;
    }
    return 0;
}

static int first(size_t begin, size_t end, void *how) {
    for (size_t i = begin; i < end; i++) {
        int rc = cc_parallel_for(0, 8, second, how);
        if (rc != 0) return rc;
    }
    return 0;
}

static void call_first(void *how) {
    steps = 0;
    int rc = cc_parallel_for(0, 1000, first, how);
    CHECK_EQ(rc, *(bool *)how ? ENOTRECOVERABLE : ENOENT);
}

static void nested_failures(void) {
    CCPanic why;
    for (int i = 0; i < 6; i++) {
        bool panics = i % 2 != 0;
        int rc = cc_try(call_first, &panics, &why); /* of a piece of another task, or the caller's own */
        CHECK(rc == 0 || (panics && strcmp(why.message, "in the third") == 0));
        CHECK(steps < 64000);
    }
}

TEST_WORKERS(nested_failures) {
    in_both_contexts(nested_failures);
}

static int add_and_fail(size_t begin, size_t end, void *value, void *arg) {
    (void)value, (void)arg;
    return begin <= 5000 && end > 5000 ? EIO : 0;
}

static void reduce_fails(void) {
    uint64_t zero = 0, sum = 77;
    CCReduction r = {.size = sizeof sum, .identity = &zero, .range = add_and_fail, .combine = add_up};
    CHECK_EQ(cc_parallel_reduce(0, 10000, &r, NULL, &sum), EIO);
    CHECK_EQ(sum, 77);
}

TEST_WORKERS(reduce_fails) {
    in_both_contexts(reduce_fails);
}

/* ---- values that own something ---- */

/* A chain of blocks, so that a value that is combined twice, dropped twice or forgotten is found. */
struct chain {
    struct block *first, *last;
    size_t steps;
    bool failed;
};
struct block {
    struct block *next;
};
static atomic_int blocks, combined_failed;

struct trouble {
    size_t at; /* step */
    bool panics;
};

static int lengthen(size_t begin, size_t end, void *value, void *arg) {
    struct chain *c = value;
    const struct trouble *t = arg;
    struct block *b = calloc(1, sizeof *b);
    CHECK(b != NULL);
    blocks++;
    if (c->first == NULL)
        c->first = b;
    else
        c->last->next = b;
    c->last = b;
    for (size_t i = begin; i < end; i++) {
        c->steps++;
        if (i == t->at) {
            c->failed = true;
            if (t->panics) cc_panic("in a step");
            return EDOM;
        }
        int rc = i % 8 == 0 ? cc_sleep_ms(0) : 0;
        if (rc != 0) return rc;
    }
    return 0;
}

static void join_chains(void *value, const void *right, void *arg) {
    struct chain *a = value;
    const struct chain *b = right;
    (void)arg;
    if (b->failed) combined_failed++;
    a->steps += b->steps;
    if (b->first == NULL) return;
    if (a->first == NULL)
        a->first = b->first;
    else
        a->last->next = b->first;
    a->last = b->last;
}

static void drop_chain(void *value, void *arg) {
    struct chain *c = value;
    (void)arg;
    for (struct block *b = c->first, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
        blocks--;
    }
    c->first = NULL;
}

static const struct chain no_chain;
static const CCReduction chaining = {
    .size = sizeof no_chain, .identity = &no_chain, .range = lengthen, .combine = join_chains, .drop = drop_chain};

static void chain_and_panic(void *trouble) {
    struct chain c = no_chain;
    int rc = cc_parallel_reduce(0, 2000, &chaining, trouble, &c);
    CHECK_EQ(rc, ENOTRECOVERABLE);
    CHECK(c.first == NULL);
}

static void values_are_dropped(void) {
    struct trouble none = {.at = SIZE_MAX};
    struct chain c = no_chain;
    CHECK_EQ(cc_parallel_reduce(0, 2000, &chaining, &none, &c), 0);
    CHECK_EQ(c.steps, 2000);
    drop_chain(&c, NULL);
    CHECK_EQ(blocks, 0);
    for (size_t at = 0; at < 2000; at += 333) {
        struct trouble fails = {.at = at}, panics = {.at = at, .panics = true};
        c = no_chain;
        CHECK_EQ(cc_parallel_reduce(0, 2000, &chaining, &fails, &c), EDOM);
        CHECK(c.first == NULL);
        CHECK_EQ(blocks, 0);
        (void)cc_try(chain_and_panic, &panics, NULL); /* of a piece of another task, or the caller's own */
        CHECK_EQ(blocks, 0);
    }
    int rc;
    CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(2)) {
        CHECK_EQ(cc_parallel_reduce(0, 100000000, &chaining, &none, &c), ECANCELED);
    }
    CHECK_EQ(blocks, 0);
    CHECK_EQ(combined_failed, 0);
}

TEST_WORKERS(values_are_dropped) {
    in_both_contexts(values_are_dropped);
}

/* The right one of two steps fails while the left one goes on: its value is not combined. */
static int right_fails(size_t begin, size_t end, void *value, void *arg) {
    struct chain *c = value;
    (void)arg;
    for (size_t i = begin; i < end; i++) {
        if (i == 1) {
            c->failed = true;
            return EDOM;
        }
        for (int k = 0; k < 1000 && !cc_cancelled(); k++) cc_yield(); /* until the other has failed, if it has begun */
        for (int k = 0; k < 100; k++) cc_yield();                     /* and, usually, has ended */
    }
    return 0;
}

static void failed_ones_are_not_combined(void) {
    CCReduction how = chaining;
    struct chain c = no_chain;
    how.range = right_fails;
    how.drop = NULL;
    for (int i = 0; i < test_scale(20); i++) CHECK_EQ(cc_parallel_reduce(0, 2, &how, NULL, &c), EDOM);
    CHECK_EQ(combined_failed, 0);
}

TEST_WORKERS(failed_ones_are_not_combined) {
    in_both_contexts(failed_ones_are_not_combined);
}

/* A drop processes a range of its own: it is in a step of no other, and starts nothing for one that has failed. */
static int spins(size_t begin, size_t end, void *unused) {
    (void)unused;
    for (size_t i = begin; i < end; i++)
        for (volatile int k = 0; k < 300; k++) {
        }
    return 0;
}

static int fails_at_30(size_t begin, size_t end, void *value, void *arg) {
    (void)value, (void)arg;
    for (size_t i = begin; i < end; i++) {
        CHECK_EQ(spins(0, 50, NULL), 0);
        if (i == 30) return EDOM;
    }
    return 0;
}

static void combine_nothing(void *value, const void *right, void *arg) {
    (void)value, (void)right, (void)arg;
}

static void drop_by_range(void *value, void *arg) {
    (void)value, (void)arg;
    CHECK(cc_parallel_for(0, 2000, spins, NULL) == 0 || cc_cancelled());
}

static void *fails_often(void *unused) {
    static const long none = 0;
    static const CCReduction how = {.size = sizeof none,
                                    .identity = &none,
                                    .range = fails_at_30,
                                    .combine = combine_nothing,
                                    .drop = drop_by_range};
    for (int i = 0; i < test_scale(30); i++) {
        long value;
        CHECK_EQ(cc_parallel_reduce(0, 100000, &how, NULL, &value), EDOM);
    }
    return unused;
}

static int ended_and_not_joined(void) {
    int n = 0;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++)
        n += cc__word_state(cc__get(&cc__pool_at(slot)->word)) == FIBER_DONE;
    return n;
}

TEST_WORKERS(a_range_in_a_drop) {
    CHECK_EQ(cc_run(fails_often, NULL, NULL), 0);
    while (cc__sched_active() != 0) cc_sleep_ms(1);
    CHECK_EQ(ended_and_not_joined(), 0);
}
