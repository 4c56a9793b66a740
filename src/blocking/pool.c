/* pool.c - pools and their threads.
 *
 * BLOCK-1  While the queue is not empty there is a thread that is not on the idle list, or about to be started: a
 *          thread checks the queue, under the lock, before it becomes idle or ends. A caller that queues a call takes
 *          an idle thread off the list, or starts one, in the same critical section, unless all are busy. If a thread
 *          cannot be started and would be the only one, all queued calls fail. Otherwise the caller tries again from
 *          time to time, while its call is queued: those that are busy may be so for ever.
 * BLOCK-2  A call belongs to its caller until it is dequeued, to both while it runs, and to its caller once it is DONE.
 *          A call that was abandoned while it ran belongs to the thread. The lock decides which: the second to take it
 *          sees what the first has done.
 * BLOCK-3  Every thread that has ended is joined: by the next one that ends, the last one by the caller that ends the
 *          pool's threads. After that the threads and their thread-local variables are gone.
 * BLOCK-4  `calls` counts those that are queued and those that occupy a thread, with their function or their clean-up.
 *          A call is no longer counted once its caller can submit the next one. So while there are no more calls than
 *          threads, some thread that is not idle has no call and takes the queued one (BLOCK-1): no other thread is
 *          started.
 */
#include "blocking/pool.h"

#include "base/mem.h"
#include "os/clock.h"
#include "os/thread.h"
#include "panic/panic.h"
#include "sched/upcalls.h"

#include <errno.h>
#include <stdio.h>

struct pool_thread {
    struct link link;      /* idle */
    _Atomic uint32_t word; /* futex; 1: taken off the list */
    int tid;
};

enum { MAX_DEFAULT = 64, SLOW_SHARE = 4 };

static struct {
    pthread_mutex_t ending; /* held to end threads or free a pool */
    struct lock lock;       /* of `pools` */
    struct CCPool *_Atomic pools;
    _Atomic uint32_t max;      /* threads of the default pool */
    _Atomic uint64_t idle_ns;  /* a thread that was idle for this long ends */
    _Atomic uint32_t calls;    /* in progress, in all pools; futex of a shutdown */
    _Atomic uint32_t draining; /* which waits for that */
    _Atomic uint32_t names;
} blocking = {.ending = PTHREAD_MUTEX_INITIALIZER, .max = MAX_DEFAULT, .idle_ns = UINT64_C(10) * 1000 * 1000 * 1000};

#define EMPTY(list) \
    { &(list), &(list) }
#define BUILT_IN(i) \
    { .queue = EMPTY(built_in[i].queue), .running = EMPTY(built_in[i].running), .idle = EMPTY(built_in[i].idle) }
enum { DEFAULT, FILES, SLOW, BUILT_INS };
static CCPool built_in[BUILT_INS] = {BUILT_IN(DEFAULT), BUILT_IN(FILES), BUILT_IN(SLOW)};

static bool is_built_in(CCPool *pool) {
    return (uintptr_t)pool < BUILT_INS;
}

CCPool *cc__pool_resolve(CCPool *pool) {
    return is_built_in(pool) ? &built_in[(uintptr_t)pool] : pool;
}

static unsigned limit_of(CCPool *pool) {
    unsigned max = cc__get(&blocking.max);
    if (pool->max != 0) return pool->max;
    if (pool != &built_in[SLOW]) return max;
    return max < SLOW_SHARE ? 1 : max / SLOW_SHARE;
}

/* ---- calls ---- */

static _Thread_local bool own_thread __attribute__((tls_model("initial-exec")));

bool cc__pool_is_own(void) {
    return own_thread;
}

int cc__pool_call(CCTaskFn fn, void *arg, void **result) {
    CCPanic why;
    int rc = cc__panic_try(fn, arg, result, &why);
    if (rc != 0) cc__report_unstopped(&why);
    return rc;
}

static void *call_cleanup(void *arg) {
    struct blocking_call *call = arg;
    call->cleanup(call->arg, call->result);
    return NULL;
}

static void clean_up(CCPool *pool, struct blocking_call *call) {
    if (call->cleanup != NULL) (void)cc__pool_call(call_cleanup, call, NULL);
    cc__mem_free(call);
    cc__lock_take(&pool->lock);
    pool->calls--;
    cc__lock_release(&pool->lock);
}

static void one_call_less(void) {
    /* seq_cst, as cc__blocking_drain: one of the two sees the other. */
    if (cc__sub_seq(&blocking.calls, 1) == 1 && cc__get_seq(&blocking.draining) != 0)
        cc__futex_wake(&blocking.calls, INT32_MAX);
}

/* Claims the caller if it waits; the call may be freed as soon as the lock is released. */
static void complete_locked(struct blocking_call *call, int status, void *result, struct wakes *wakes) {
    cc__list_remove(&call->link);
    call->state = CALL_DONE;
    call->status = status;
    call->result = result;
    if (call->waiter != NULL) (void)cc__wakes_claim_locked(wakes, call->waiter, WAKE_OBJECT);
}

static void make_call(CCPool *pool, struct blocking_call *call) {
    void *result = NULL;
    struct wakes wakes;
    cc__wakes_init(&wakes);
    int status = cc__pool_call(call->fn, call->arg, &result);
    cc__lock_take(&pool->lock);
    bool abandoned = call->abandoned; /* BLOCK-2 */
    complete_locked(call, status, result, &wakes);
    if (!abandoned) pool->calls--; /* BLOCK-4 */
    cc__lock_release(&pool->lock);
    cc__wakes_flush(&wakes);
    if (abandoned) clean_up(pool, call);
    one_call_less();
}

/* ---- threads ---- */

static struct blocking_call *take_locked(CCPool *pool, int tid) {
    if (cc__list_empty(&pool->queue)) return NULL;
    struct blocking_call *call = container_of(cc__list_pop_front(&pool->queue), struct blocking_call, link);
    call->state = CALL_RUNS;
    call->tid = tid;
    call->since = cc__clock_now();
    cc__list_push_back(&pool->running, &call->link);
    return call;
}

/* False: the thread was idle for idle_ns and has to end. */
static bool rest_locked(CCPool *pool, struct pool_thread *self) {
    uint64_t since = cc__clock_real(), until;
    cc__set(&self->word, 0);
    cc__list_push_front(&pool->idle, &self->link);
    do {
        cc__lock_release(&pool->lock);
        cc__futex_wait(&self->word, 0, since + cc__get(&blocking.idle_ns));
        cc__lock_take(&pool->lock);
        if (cc__get(&self->word) != 0) return true;
        until = since + cc__get(&blocking.idle_ns); /* re-read each time: cc__blocking_exit changes it */
    } while (cc__clock_real() < until);
    cc__list_remove(&self->link);
    return false;
}

static void *run_thread(void *arg) {
    CCPool *pool = arg;
    struct pool_thread self = {.tid = cc__thread_id()};
    struct blocking_call *call;
    char name[16];
    own_thread = true;
    cc__thread_if_ended(cc__upcall_thread_ended);
    snprintf(name, sizeof name, "ccc/block-%u", cc__add_relaxed(&blocking.names, 1) % 100000);
    cc__thread_name(name);
    cc__lock_take(&pool->lock);
    do { /* BLOCK-1 */
        while ((call = take_locked(pool, self.tid)) != NULL) {
            cc__lock_release(&pool->lock);
            make_call(pool, call);
            cc__lock_take(&pool->lock);
        }
    } while (!pool->closing && rest_locked(pool, &self));
    bool ended = pool->ended; /* BLOCK-3 */
    pthread_t before = pool->last;
    pool->ended = true;
    pool->last = pthread_self();
    cc__thread_if_ended(NULL);
    cc__worker_ends();
    cc__sub(&pool->threads, 1);
    cc__lock_release(&pool->lock);
    cc__futex_wake(&pool->threads, INT32_MAX);
    if (ended) cc__thread_join(before);
    return NULL;
}

/* No thread could be started. Existing threads make the calls; if there are none, the queued calls fail. */
static CC_COLD void fail_queued(CCPool *pool) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    uint32_t failed = 0;
    cc__lock_take(&pool->lock);
    if (cc__sub(&pool->threads, 1) == 1)
        for (; !cc__list_empty(&pool->queue); failed++)
            complete_locked(container_of(cc__get(&pool->queue.next), struct blocking_call, link), EAGAIN, NULL, &wakes);
    pool->calls -= failed;
    cc__lock_release(&pool->lock);
    cc__wakes_flush(&wakes);
    while (failed-- > 0) one_call_less();
}

/* Counts one more thread, which the caller then starts. */
static bool wants_thread_locked(CCPool *pool) {
    uint32_t threads = cc__get(&pool->threads);
    if (pool->calls <= threads || !cc__list_empty(&pool->idle) || threads >= limit_of(pool)) return false; /* BLOCK-4 */
    cc__add(&pool->threads, 1);
    return true;
}

static bool start_thread(CCPool *pool) {
    pthread_t thread;
    if (cc__thread_start_quiet(&thread, run_thread, pool) == 0) return true;
    fail_queued(pool);
    return false;
}

bool cc__pool_submit(CCPool *pool, struct blocking_call *call) {
    struct pool_thread *idle = NULL;
    call->state = CALL_QUEUED;
    call->since = cc__clock_now();
    cc__add_seq(&blocking.calls, 1);
    cc__lock_take(&pool->lock);
    cc__list_push_back(&pool->queue, &call->link);
    pool->calls++;
    bool start = wants_thread_locked(pool);
    if (!start && !cc__list_empty(&pool->idle)) {
        idle = container_of(cc__list_pop_front(&pool->idle), struct pool_thread, link);
        cc__set(&idle->word, 1);
    }
    cc__lock_release(&pool->lock);
    if (idle != NULL) cc__futex_wake(&idle->word, 1);
    return !start || start_thread(pool);
}

bool cc__pool_submit_again(CCPool *pool) {
    cc__lock_take(&pool->lock);
    bool start = wants_thread_locked(pool);
    cc__lock_release(&pool->lock);
    return start && start_thread(pool);
}

void cc__pool_withdraw_locked(CCPool *pool, struct blocking_call *call) {
    cc__list_remove(&call->link);
    pool->calls--;
    one_call_less();
}

/* Joins the last thread that has ended, if it was not joined (BLOCK-3). */
static void join_last(CCPool *pool) {
    cc__lock_take(&pool->lock);
    bool ended = pool->ended;
    pthread_t last = pool->last;
    pool->ended = false;
    cc__lock_release(&pool->lock);
    if (ended) cc__thread_join(last);
}

/* No call is in progress or follows. */
static void end_threads(CCPool *pool) {
    uint32_t threads;
    cc__lock_take(&pool->lock);
    pool->closing = true;
    while (!cc__list_empty(&pool->idle)) {
        struct pool_thread *idle = container_of(cc__list_pop_front(&pool->idle), struct pool_thread, link);
        cc__set(&idle->word, 1);
        cc__futex_wake(&idle->word, 1);
    }
    cc__lock_release(&pool->lock);
    while ((threads = cc__get(&pool->threads)) != 0) cc__futex_wait(&pool->threads, threads, CC_FUTEX_FOREVER);
    join_last(pool);
    pool->closing = false;
}

/* ---- pools ---- */

int cc_pool_create(CCPool **pool, unsigned threads) {
    if (pool == NULL) return EINVAL;
    *pool = NULL;
    if (threads == 0 || threads > CC_POOL_THREADS_MAX) return EINVAL;
    CCPool *made = cc__mem_alloc(sizeof *made);
    if (made == NULL) return ENOMEM;
    cc__list_init(&made->queue);
    cc__list_init(&made->running);
    cc__list_init(&made->idle);
    made->max = threads;
    cc__lock_take(&blocking.lock);
    cc__set(&made->next, cc__get(&blocking.pools));
    cc__set(&blocking.pools, made);
    cc__lock_release(&blocking.lock);
    *pool = made;
    return 0;
}

int cc_pool_free(CCPool *pool) {
    if (pool == NULL) return 0;
    if (is_built_in(pool)) return EINVAL;
    if (own_thread) return EDEADLK;
    cc__lock_take(&pool->lock);
    bool busy = pool->calls != 0; /* a clean-up in progress included (BLOCK-4) */
    cc__lock_release(&pool->lock);
    if (busy) return EBUSY;
    pthread_mutex_lock(&blocking.ending);
    cc__lock_take(&blocking.lock);
    struct CCPool *_Atomic *at = &blocking.pools;
    while (cc__get(at) != pool) at = &cc__get(at)->next;
    cc__set(at, cc__get(&pool->next));
    cc__lock_release(&blocking.lock);
    end_threads(pool);
    pthread_mutex_unlock(&blocking.ending);
    cc__mem_free(pool);
    return 0;
}

/* ---- for rt ---- */

static CCPool *first_pool(void) {
    cc__lock_take(&blocking.lock);
    CCPool *first = cc__get(&blocking.pools);
    cc__lock_release(&blocking.lock);
    return first;
}

void cc__blocking_configure(unsigned max_threads, uint64_t idle_ns) {
    cc__set(&blocking.max, max_threads);
    cc__set(&blocking.idle_ns, idle_ns);
}

uint32_t cc__blocking_calls(void) {
    return cc__get_seq(&blocking.calls);
}

bool cc__blocking_drain(uint64_t until) {
    uint32_t calls;
    cc__set_seq(&blocking.draining, 1);
    while ((calls = cc__blocking_calls()) != 0 && cc__clock_now() < until)
        cc__futex_wait(&blocking.calls, calls, until);
    cc__set_seq(&blocking.draining, 0);
    return calls == 0;
}

void cc__blocking_stop(void) {
    pthread_mutex_lock(&blocking.ending);
    for (int i = 0; i < BUILT_INS; i++) end_threads(&built_in[i]);
    /* Pools that are created meanwhile are added in front, and have no threads. */
    for (CCPool *pool = first_pool(); pool != NULL; pool = cc__get(&pool->next)) end_threads(pool);
    pthread_mutex_unlock(&blocking.ending);
}

void cc__blocking_exit(void) {
    cc__set(&blocking.idle_ns, UINT64_C(1) << 62); /* from now on no more threads end, ordered by the locks that
                                                    * join_last takes */
    pthread_mutex_lock(&blocking.ending);
    for (int i = 0; i < BUILT_INS; i++) join_last(&built_in[i]);
    for (CCPool *pool = first_pool(); pool != NULL; pool = cc__get(&pool->next)) join_last(pool);
    pthread_mutex_unlock(&blocking.ending);
}

static void forget(CCPool *pool) {
    pool->lock = (struct lock){0};
    cc__list_init(&pool->queue);
    cc__list_init(&pool->running);
    cc__list_init(&pool->idle);
    cc__set(&pool->threads, 0);
    pool->calls = 0;
    pool->closing = pool->ended = false;
}

void cc__blocking_forget(void) {
    blocking.ending = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    blocking.lock = (struct lock){0};
    cc__set(&blocking.calls, 0);
    own_thread = false;
    for (int i = 0; i < BUILT_INS; i++) forget(&built_in[i]);
    for (CCPool *pool = cc__get(&blocking.pools); pool != NULL; pool = cc__get(&pool->next)) forget(pool);
}

/* ---- for diagnostics ---- */

static void *each_pool(void *(*look)(CCPool *pool, void *arg), void *arg) {
    void *found = NULL;
    for (int i = 0; i < BUILT_INS && found == NULL; i++) found = look(&built_in[i], arg);
    cc__lock_take(&blocking.lock);
    for (CCPool *pool = cc__get(&blocking.pools); pool != NULL && found == NULL; pool = cc__get(&pool->next))
        found = look(pool, arg);
    cc__lock_release(&blocking.lock);
    return found;
}

static void *find_idle(CCPool *pool, void *tid) {
    void *found = NULL;
    cc__lock_take(&pool->lock);
    for (struct link *l = cc__get(&pool->idle.next); l != &pool->idle; l = cc__get(&l->next))
        if (container_of(l, struct pool_thread, link)->tid == *(int *)tid) found = pool;
    cc__lock_release(&pool->lock);
    return found;
}

bool cc__blocking_is_idle(int tid) {
    return each_pool(find_idle, &tid) != NULL;
}

struct listing {
    struct blocking_seen *seen;
    unsigned n, max;
};

static void *list_running(CCPool *pool, void *arg) {
    struct listing *to = arg;
    cc__lock_take(&pool->lock);
    for (struct link *l = cc__get(&pool->running.next); l != &pool->running; l = cc__get(&l->next)) {
        struct blocking_call *call = container_of(l, struct blocking_call, link);
        if (to->n++ < to->max)
            to->seen[to->n - 1] = (struct blocking_seen){call->fn, call->abandoned, call->tid, call->since};
    }
    cc__lock_release(&pool->lock);
    return NULL;
}

unsigned cc__blocking_list(struct blocking_seen *seen, unsigned max) {
    struct listing to = {seen, 0, max};
    (void)each_pool(list_running, &to);
    return to.n;
}
