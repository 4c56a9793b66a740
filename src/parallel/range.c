/* range.c - parallel loops and reductions over a range, which is split while workers are idle.
 *
 * A piece works through its part of the range in blocks, from the left. A block takes ten to twenty microseconds.
 * Between two blocks it checks whether a worker is idle; if so, and if few fibers wait in its own queue, it splits off
 * the right half of the rest as a task, and continues with the left half. When its part is done, it joins its splits,
 * the latest first: that is the one next to it on the right. The joiner runs a split that has not started, as a call.
 *
 * Ranges nest: a step may process a range of its own. While a worker is idle, a piece of an inner range first looks at
 * the enclosing pieces in its fiber, and splits the outermost that has steps left: that hands over more work at the
 * same cost. So small and nested ranges cost little more than their steps.
 *
 * RANGE-1  A split's record lies in the arena of the nursery, which outlives all pieces.
 * RANGE-2  Values are combined from left to right: a piece's own, then its splits', the latest first.
 * RANGE-3  begin and end of a piece delimit the steps that have not been started: a block is taken off before its
 *          function is called, so that pieces of ranges nested in that block may split the rest. All of them belong to
 *          the same fiber.
 * RANGE-4  A value is combined, returned or dropped, once. A split's value that was not combined is dropped when no
 *          piece is left; the value of a failed piece is not combined.
 */
#include "base/error.h"
#include "base/mem.h"
#include "fiber/defer.h"
#include "os/clock.h"
#include "sched/sched.h"
#include "wait/cancel.h"

#include <ccc/cc_nursery.h>
#include <ccc/cc_parallel.h>
#include <errno.h>
#include <string.h>

enum {
    BLOCK_NS = 10000,     /* a block shorter than this is doubled. Measured: a check costs 40 ns; bench/range_sum */
    BLOCK_MAX_NS = 40000, /* a longer one is halved */
    ALONE_NS = 10000,     /* less is not worth a nursery. Guess: a few times its cost */
    ALONE_MIN = 64,       /* per worker: a shorter range is split at once, as each of its steps may take long */
    VALUE_SMALL = 64,     /* the largest value, in bytes, that lies in the frame */
    QUEUE_ENOUGH = 2,     /* fibers in the worker's own queue that others may take: a spawner keeps one for itself */
};

struct job {
    CCRangeFn each; /* or `how` */
    const CCReduction *how;
    void *arg;
    CCNursery *nursery;
    struct split *_Atomic splits; /* all of them, by `older`; only if values have to be dropped */
};

/* A part of the range that was split off. */
struct split {
    struct split *next; /* the one to the right of it */
    struct split *older;
    struct job *job;
    bool combined; /* RANGE-4 */
    CCTask task;
    size_t begin, end, block;
    _Alignas(max_align_t) unsigned char value[];
};

/* One piece: its part of the range, and its progress. */
struct piece {
    struct job *job;   /* without a nursery there are no other pieces */
    size_t begin, end; /* RANGE-3 */
    size_t block;
    struct split *splits;
    void *value;
    struct piece *outer; /* in the same fiber: the piece with the step that this one runs in */
};

static bool somebody_is_idle(void) {
    struct worker *w = cc__worker();
    return cc__get(&cc__sched.want) != 0 && w != NULL && cc__get(&w->runq.count) < QUEUE_ENOUGH;
}

/* A value that is not an errno value could not be told from success after passing through the nursery. */
static int call(const struct job *job, size_t begin, size_t end, void *value) {
    int rc = job->how != NULL ? job->how->range(begin, end, value, job->arg) : job->each(begin, end, job->arg);
    return rc >= 0 && rc <= CC_ERROR_MAX ? rc : EINVAL;
}

/* Runs the next `size` steps. */
static int do_steps(struct piece *p, size_t size) {
    size_t begin = p->begin;
    p->begin += size; /* RANGE-3 */
    return call(p->job, begin, begin + size, p->value);
}

/* Runs the next block, which begins at *now; sets *now to its end. */
static int do_block(struct piece *p, uint64_t *now) {
    size_t left = p->end - p->begin;
    int rc = do_steps(p, p->block < left ? p->block : left);
    uint64_t end = cc__clock_now(), took = end - *now;
    *now = end;
    if (took < BLOCK_NS && p->block < SIZE_MAX / 2) p->block *= 2;
    if (took > BLOCK_MAX_NS && p->block > 1) p->block /= 2;
    return rc;
}

static void *run_split(void *split);

/* Splits off the right half. Without memory the piece keeps it. */
static void split_off(struct piece *p) {
    struct job *job = p->job;
    size_t size = job->how != NULL ? job->how->size : 0;
    struct split *s = cc_nursery_alloc(job->nursery, sizeof *s + size); /* RANGE-1 */
    if (s == NULL) return;
    s->job = job;
    s->begin = p->begin + (p->end - p->begin) / 2;
    s->end = p->end;
    s->block = p->block;
    if (size > 0) memcpy(s->value, job->how->identity, size);
    if (cc_nursery_spawn_ex(job->nursery, &s->task, run_split, s, NULL) != 0) return;
    if (job->how != NULL && job->how->drop != NULL) {
        s->older = cc__get(&job->splits);
        while (!cc__cas(&job->splits, &s->older, s)) { /* drop_values comes after all pieces */
        }
    }
    p->end = s->begin;
    s->next = p->splits;
    p->splits = s;
}

/* A worker is idle, and this piece could be split. False: an enclosing piece was split instead. An enclosing piece
 * without a nursery opens it only at its next step, which may be far away. */
static bool should_split(struct piece *p) { /* RANGE-3 */
    struct piece *from = NULL;
    for (struct piece *o = p->outer; o != NULL; o = o->outer)
        if (o->begin < o->end && o->job->nursery != NULL) from = o;
    if (from == NULL) return true;
    split_off(from);
    return false;
}

/* However the piece ends, the nursery waits for the splits that it has not joined. */
static void drop_splits(void *piece) {
    for (struct split *s = ((struct piece *)piece)->splits; s != NULL; s = s->next)
        if (s->task.id != 0) (void)cc_task_detach(&s->task);
}

/* 0, or an error: of a block, or ECANCELED. */
static int do_piece(struct piece *p) {
    CC_DEFER(drop_splits, p);
    uint64_t now = cc__clock_now();
    while (p->begin < p->end) {
        if (cc_cancelled()) return ECANCELED;
        if (somebody_is_idle() && should_split(p) && p->end - p->begin > p->block) split_off(p);
        int rc = do_block(p, &now);
        if (rc != 0) return rc;
    }
    for (struct split *s = p->splits; s != NULL; s = s->next) { /* RANGE-2 */
        void *failed = NULL;
        int rc = cc_task_join(&s->task, &failed);
        if (rc != 0) return rc;
        if (failed != NULL) return (int)(intptr_t)failed; /* RANGE-4 */
        s->combined = true;
        if (p->job->how != NULL) p->job->how->combine(p->value, s->value, p->job->arg);
    }
    return 0;
}

/* The deferred entry only marks a piece in its fiber; there is nothing to do. */
static void leave_piece(void *piece) {
    (void)piece;
}

/* The next enclosing piece, up to a protected call or a panic in progress. */
static struct piece *piece_around(const CCDefer *mark) {
    const CCDefer *d = mark->next;
    while (d != NULL && d->fn != MARK_FIBER && d->fn != MARK_TRY && d->fn != MARK_PANIC) {
        if (d->fn == leave_piece) return d->arg;
        d = d->next;
    }
    return NULL;
}

static void *run_split(void *split) {
    struct split *s = split;
    struct piece p = {.job = s->job, .begin = s->begin, .end = s->end, .block = s->block, .value = s->value};
    CC_DEFER(leave_piece, &p);
    int rc = do_piece(&p);
    return rc == 0 ? NULL : cc_fail(rc, "a piece of the range has failed");
}

/* Works without a nursery until the range is done, or takes long enough that another worker might do a part. A range of
 * few steps is done step by step, without reading the clock, until a worker is idle. */
static int do_alone(struct piece *p) {
    bool few = p->end - p->begin < (size_t)ALONE_MIN * cc_worker_count();
    uint64_t start = few ? 0 : cc__clock_now(), now = start;
    while (p->begin < p->end) {
        if (cc_cancelled()) return ECANCELED;
        if ((few || now - start >= ALONE_NS) && somebody_is_idle() && should_split(p)) return 0;
        int rc = few ? do_steps(p, 1) : do_block(p, &now);
        if (rc != 0) return rc;
    }
    return 0;
}

/* No piece is left. */
static void drop_values(void *job) { /* RANGE-4 */
    struct job *j = job;
    for (struct split *s = cc__get(&j->splits); s != NULL; s = s->older)
        if (!s->combined) j->how->drop(s->value, j->arg);
}

struct rest {
    CCNursery *nursery;
    int failed;
};

/* Also when a panic or a C++ exception leaves the caller's own piece. */
static void stop_rest(void *rest) {
    struct rest *r = rest;
    if (r->failed != 0) (void)cc_nursery_cancel_with(r->nursery, r->failed, "a piece of the range has failed");
}

/* In a fiber. */
static int run(struct job *job, size_t begin, size_t end, void *value) {
    struct piece p = {.job = job, .begin = begin, .end = end, .block = 1, .value = value};
    CCDefer mark CC_CLEANUP(cc_defer_leave) = {NULL, leave_piece, &p, NULL};
    p.outer = piece_around(cc_defer_enter(&mark));
    int alone = do_alone(&p);
    if (alone != 0) return alone;
    if (p.begin == p.end) return 0;
    int rc = ENOMEM;
    CC_NURSERY(n, .result = &rc, .name = "parallel range") {
        struct rest rest = {n, ENOTRECOVERABLE};
        CC_DEFER(stop_rest, &rest);
        int failed = job->how != NULL && job->how->drop != NULL ? cc_nursery_at_exit(n, drop_values, job) : 0;
        job->nursery = n;
        rest.failed = failed != 0 ? failed : do_piece(&p);
        p.end = p.begin; /* RANGE-3: a range in `drop` does not split what is left, because nobody would join that */
    }
    return rc;
}

struct call_in_fiber {
    struct job *job;
    size_t begin, end;
    void *value;
    int rc;
};

static void *run_in_fiber(void *arg) {
    struct call_in_fiber *c = arg;
    c->rc = run(c->job, c->begin, c->end, c->value);
    return NULL;
}

/* The nursery of `run`, which the caller enters, would pass on to the pieces what the shield hides from the caller. */
static int run_in_shield(struct call_in_fiber *c) {
    CCNursery *n = NULL;
    int rc = cc__cancel_nursery(&(CCNurseryConfig){.name = "parallel range"}, &n);
    if (rc != 0) return rc;
    rc = cc_nursery_spawn(n, run_in_fiber, c);
    if (rc == 0) rc = cc_nursery_wait(n);
    (void)cc_nursery_free(n);
    return rc != 0 ? rc : c->rc;
}

/* A nursery instead of cc_run, so that the scopes around an OS thread also enclose the pieces. */
static int run_anywhere(struct job *job, size_t begin, size_t end, void *value) {
    if (begin >= end) return 0;
    struct call_in_fiber c = {job, begin, end, value, 0};
    _Atomic uintptr_t *own = cc__cancel_word();
    if (own != NULL && cc__cancel_hides(cc__get(own))) return run_in_shield(&c);
    if (cc_in_fiber()) return run(job, begin, end, value);
    int rc = ENOMEM;
    CC_NURSERY(n, .result = &rc, .name = "parallel range") {
        int failed = cc_nursery_spawn(n, run_in_fiber, &c);
        if (failed != 0) (void)cc_nursery_cancel_with(n, failed, "there is no fiber for the range");
    }
    return rc != 0 ? rc : c.rc;
}

int cc_parallel_for(size_t begin, size_t end, CCRangeFn fn, void *arg) {
    if (fn == NULL) return EINVAL;
    struct job job = {.each = fn, .arg = arg};
    return run_anywhere(&job, begin, end, NULL);
}

/* The value of the whole range. */
struct sum {
    const CCReduction *how;
    void *arg, *value, *large; /* large: memory for it, or NULL */
    bool returned;
};

static void end_sum(void *sum) { /* RANGE-4 */
    struct sum *s = sum;
    if (!s->returned && s->how->drop != NULL) s->how->drop(s->value, s->arg);
    cc__mem_free(s->large);
}

int cc_parallel_reduce(size_t begin, size_t end, const CCReduction *how, void *arg, void *value) {
    if (how == NULL || value == NULL || how->size == 0 || how->identity == NULL || how->range == NULL ||
        how->combine == NULL || cc__reserved_used(how))
        return EINVAL;
    _Alignas(max_align_t) unsigned char small[VALUE_SMALL];
    struct sum sum = {.how = how, .arg = arg, .value = small};
    if (how->size > sizeof small && (sum.value = sum.large = cc__mem_alloc_small(how->size)) == NULL) return ENOMEM;
    CC_DEFER(end_sum, &sum);
    memcpy(sum.value, how->identity, how->size);
    struct job job = {.how = how, .arg = arg};
    int rc = run_anywhere(&job, begin, end, sum.value);
    if (rc != 0) return rc;
    memcpy(value, sum.value, how->size);
    sum.returned = true;
    return 0;
}
