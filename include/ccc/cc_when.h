/* cc_when.h - a select that keeps each arm together with its body.
 *
 *   for (bool open = true; open;)
 *       CC_WHEN {
 *           CC_ON_RECV(in, &v)      { use(v); }
 *           CC_ON_CLOSED(in)        { open = false; }
 *           CC_ON_JOIN(&task, &res) { done(res); }
 *           CC_ON_AFTER_MS(100)     { puts("nothing for a tenth of a second"); }
 *           CC_ON_CANCEL()          { return; }
 *       }
 *
 * Exactly one arm is executed, and its body runs; if several are ready, a random one, or in a CC_WHEN_ORDERED the first
 * in the order of the block. The expressions of an arm are evaluated once, before the wait. The block contains only
 * arms; they may be in loops and behind if and else, provided that the conditions hold or fail both times, because the
 * block is executed twice: before the wait to collect the arms and after it to find the body. So they must not depend
 * on what an arm changes (a variable that it receives into), on the time, or on what others change: copy such a
 * condition to a variable before the block. It is a loop: break and continue in a body leave the block, not a loop
 * around it. Blocks nest.
 * A block holds up to 16 arms, CC_WHEN_N(64) { … } and CC_WHEN_ORDERED_N(64) { … } up to 64; at most CC_SELECT_MAX.
 *
 * If the wait is cancelled, no body runs, unless there is a CC_ON_CANCEL: a loop around a block without one must check
 * cc_cancelled.
 *
 * The block panics with a message on a pointer to a value of the wrong size, an empty task handle, an uninitialised
 * ticker, a NULL event, semaphore, nursery or process, a child that waits for its own nursery, too many arms, and out
 * of memory; on a closed channel of a CC_ON_RECV or CC_ON_SEND without a CC_ON_CLOSED in the block; and if the arm that
 * was executed is not found again, because a condition has changed (not detected within a loop of arms). Any context;
 * switches, unless there is a CC_ON_DEFAULT.
 */
#ifndef CCC_CC_WHEN_H
#define CCC_CC_WHEN_H

#include <ccc/cc_chan_handle.h>
#include <ccc/cc_future.h>
#include <ccc/cc_select.h>
#include <ccc/cc_sync.h>

/* Nested blocks declare the same names: suppress -Wshadow. */
#if defined(__GNUC__)
#pragma GCC system_header
#endif

CC_BEGIN_DECLS

#define CC_WHEN CC_WHEN_N(16)
#define CC_WHEN_N(n) CC__WHEN_BLOCK(n, cc_when_choose)

/* A block that takes the first arm that is ready: for a stop before work, or an urgent channel before another. An arm
 * that is always ready starves those below it. If none is ready, the first that becomes ready is taken. */
#define CC_WHEN_ORDERED CC_WHEN_ORDERED_N(16)
#define CC_WHEN_ORDERED_N(n) CC__WHEN_BLOCK(n, cc_when_choose_ordered)

/* A value was received into *pointer, or *pointer was sent, or a token, where the channel's elements have no size and
 * the pointer is NULL; _OF: with a typed handle (cc_chan_handle.h). A NULL channel is never ready. A send on a full
 * drop-new channel is ready: CC_WHEN_ERROR is EAGAIN. */
#define CC_ON_RECV(channel, pointer) CC__ON(cc_when_recv_(CC__WHEN, (channel), (pointer), CC__SIZE_AT(pointer)))
#define CC_ON_SEND(channel, pointer) CC__ON(cc_when_send_(CC__WHEN, (channel), (pointer), CC__SIZE_AT(pointer)))
#define CC_ON_RECV_OF(handle, pointer) \
    CC__ON(cc_when_recv_(CC__WHEN, (handle).ch, CC__RECEIVES(handle, pointer), sizeof *(pointer)))
#define CC_ON_SEND_OF(handle, pointer) \
    CC__ON(cc_when_send_(CC__WHEN, (handle).ch, CC__SENDS(handle, pointer), sizeof *(pointer)))
/* That channel, of a receive or send in the same block, is closed (and empty, for a receive); CC_WHEN_ERROR: EPIPE, or
 * the error of cc_chan_close_err. Also if the arm has failed otherwise: a pool's on_create (its error), or a drop-old
 * send without memory (ENOMEM). */
#define CC_ON_CLOSED(channel) CC__ON(cc_when_closed_(CC__WHEN, (channel)))

/* The task has ended; the handle is consumed. CC_WHEN_ERROR: as cc_task_join. result_pointer: a void **, or NULL. */
#define CC_ON_JOIN(task_pointer, result_pointer) \
    CC__ON(cc_when_join_(CC__WHEN, CC__POINTER_TO(CCTask, task_pointer), (result_pointer), NULL))
/* The same for a started future: cc_await or CC_AWAIT in the body does not wait. A future that CC_START could not start
 * is ready: CC_WHEN_ERROR is the error of CC_START. */
#define CC_ON_AWAIT(future_pointer) \
    CC__ON_THEN(cc_when_await_(CC__WHEN, &(future_pointer)->future), cc_when_awaited_(&cc_when_->when))

/* The deadline has passed; the given number of milliseconds has passed. */
#define CC_ON_UNTIL(point) CC__ON(cc_when_at_(CC__WHEN, (point)))
#define CC_ON_AFTER_MS(ms) CC_ON_UNTIL(cc_after_ms(ms))

/* The descriptor is readable or writable, as by cc_fd_wait; CC_WHEN_ERROR: its error, EBADF if it was closed. */
#define CC_ON_READABLE(descriptor) CC__ON(cc_when_fd_(CC__WHEN, CC_CASE_READABLE, (descriptor)))
#define CC_ON_WRITABLE(descriptor) CC__ON(cc_when_fd_(CC__WHEN, CC_CASE_WRITABLE, (descriptor)))

/* The next tick of a CCTicker (cc_time.h) was due and was taken; CC_WHEN_ERROR: EAGAIN: another caller that waits for
 * the same ticker has taken it. */
#define CC_ON_TICK(ticker_pointer) \
    CC__ON_THEN(cc_when_tick_(CC__WHEN, CC__POINTER_TO(CCTicker, ticker_pointer)), cc_when_ticked_(&cc_when_->when))

/* A key (cc_wake_key.h) was woken, with a value; CC_WHEN_ERROR: ESRCH, the key has expired. The key stays open if
 * another arm is chosen. value_pointer: a uint64_t *, or NULL. */
#define CC_ON_KEY(key, value_pointer) CC__ON(cc_when_key_(CC__WHEN, (key), (value_pointer)))

/* The event (cc_sync.h) is set, or was set during the wait even if it has been reset since. */
#define CC_ON_EVENT(event_pointer) CC__ON(cc_when_event_(CC__WHEN, CC__POINTER_TO(CCEvent, event_pointer)))
/* A permit of the semaphore was taken; the program has to release it. Selects and cc_sem_acquire are served in FIFO
 * order. No permit is taken if another arm is chosen. */
#define CC_ON_ACQUIRE(sem_pointer) CC__ON(cc_when_acquire_(CC__WHEN, CC__POINTER_TO(CCSem, sem_pointer)))

/* The nursery (cc_nursery.h) has no children, or had none at some moment of the wait. Also works in the block of a
 * CC_NURSERY. cc_nursery_wait in the body returns their failure and runs the exit hooks; it does not wait for children
 * unless more are started. */
#define CC_ON_NURSERY_END(nursery) CC__ON(cc_when_nursery_end_(CC__WHEN, CC__POINTER_TO(CCNursery, nursery)))

/* The process (cc_process.h) has ended. status_pointer: a CCProcessStatus *, or NULL. */
#define CC_ON_EXITED(process, status_pointer) \
    CC__ON(cc_when_exited_(CC__WHEN, CC__POINTER_TO(CCProcess, process), (status_pointer)))

/* The caller is cancelled. */
#define CC_ON_CANCEL() CC__ON(cc_when_kind_(CC__WHEN, CC_CASE_CANCEL))

/* No other arm is ready: the block does not wait. */
#define CC_ON_DEFAULT() CC__ON(cc_when_default_(CC__WHEN))

/* In a body: the result of the arm, 0 or an errno value. */
#define CC_WHEN_ERROR (cc_when_->when.error)

/* ---- for the macros ---- */

/* The cases follow in memory. */
typedef struct CCWhen {
    uint32_t count;     /* arms that were collected */
    uint32_t otherwise; /* the default; UINT32_MAX: none */
    uint32_t at;        /* the next arm, in the search for the body */
    uint32_t chosen;    /* whose body runs */
    int error;
    uint32_t spare;
} CCWhen;

/* Waits, and chooses the body; false: none. */
CC_API bool cc_when_choose(CCWhen *when);
CC_API bool cc_when_choose_ordered(CCWhen *when);
/* Panic: too many arms; the chosen arm is another one, or none, in the search for the body. */
CC_API void cc_when_overflow(size_t room);
CC_API void cc_when_changed(void);

#define CC__WHEN_BLOCK(n, choose)                                                                           \
    for (                                                                                                   \
        struct {                                                                                            \
            CCWhen when;                                                                                    \
            CCCase cases[n];                                                                                \
            uint32_t marks[n];                                                                              \
        } cc_when_room_,                                                                                    \
        *cc_when_ = (cc_when_begin_(&cc_when_room_.when), &cc_when_room_), *cc_collects_ = cc_when_;        \
        cc_when_ != NULL;                                                                                   \
        cc_when_ = (cc_collects_ != NULL ? choose(&cc_when_room_.when) : cc_when_end_(&cc_when_room_.when)) \
                       ? (cc_collects_ = NULL, &cc_when_room_)                                              \
                       : NULL)

/* A pointer to anything else does not compile. */
#ifndef __cplusplus
#define CC__POINTER_TO(T, pointer) _Generic((pointer), T * : (pointer))
#else
#define CC__POINTER_TO(T, pointer) (pointer)
#endif
#define CC__WHEN &cc_when_->when, sizeof cc_when_->cases / sizeof(CCCase)
#define CC__ON(add) CC__ON_THEN(add, true)
/* A loop that runs once, not an if: an else after the body belongs to a condition around the arm, or does not
 * compile. */
#define CC__ON_THEN(add, then) CC__ON_MARKED(__COUNTER__, add, then)
#define CC__ON_MARKED(mark, add, then)                                                                            \
    for (bool cc_body_ = cc_collects_ != NULL ? cc_when_mark_((add), &cc_when_->when, cc_when_->marks, mark)      \
                                              : cc_when_finds_(&cc_when_->when, cc_when_->marks, mark) && (then); \
         cc_body_; cc_body_ = false)

static inline void cc_when_begin_(CCWhen *when) {
    when->count = 0;
    when->otherwise = UINT32_MAX;
}
/* The mark says which arm of the program the case is. */
static inline bool cc_when_mark_(bool added, const CCWhen *when, uint32_t *marks, uint32_t mark) {
    marks[when->count - 1] = mark;
    return added;
}
static inline bool cc_when_finds_(CCWhen *when, const uint32_t *marks, uint32_t mark) {
    if (when->at++ != when->chosen) return false;
    if (marks[when->chosen] != mark) cc_when_changed();
    return true;
}
static inline bool cc_when_end_(const CCWhen *when) {
    if (when->at <= when->chosen) cc_when_changed();
    return false;
}

/* The next case; only the fields that its kind has are set. All of them return false: no body runs yet. */
static inline CCCase *cc_when_add_(CCWhen *when, size_t room, CCCaseKind kind) {
    if (when->count == room) cc_when_overflow(room);
    CCCase *c = (CCCase *)(void *)(when + 1) + when->count++;
    c->kind = kind;
    c->status = NULL;
    return c;
}
static inline bool cc_when_kind_(CCWhen *when, size_t room, CCCaseKind kind) {
    (void)cc_when_add_(when, room, kind);
    return false;
}
static inline bool cc_when_recv_(CCWhen *when, size_t room, CCChan *ch, void *value, size_t size) {
    CCCase *c = cc_when_add_(when, room, CC_CASE_RECV);
    c->ch = ch;
    c->value = value;
    c->size = size;
    return false;
}
static inline bool cc_when_send_(CCWhen *when, size_t room, CCChan *ch, const void *value, size_t size) {
    CCCase *c = cc_when_add_(when, room, CC_CASE_SEND);
    c->ch = ch;
    c->value = (void *)(uintptr_t)value;
    c->size = size;
    return false;
}
/* Never ready by itself; `size` tells it from the default. */
static inline bool cc_when_closed_(CCWhen *when, size_t room, CCChan *ch) {
    CCCase *c = cc_when_add_(when, room, CC_CASE_NONE);
    c->ch = ch;
    c->size = 1;
    return false;
}
static inline bool cc_when_join_(CCWhen *when, size_t room, CCTask *task, void **result, int *status) {
    CCCase *c = cc_when_add_(when, room, CC_CASE_JOIN);
    c->task = task;
    c->value = result;
    c->status = status;
    return false;
}
/* A future that could not start has no task to join. */
static inline bool cc_when_await_(CCWhen *when, size_t room, CCFuture *future) {
    if (future->state != CC_FUTURE_RUNNING || future->id != 0)
        return cc_when_join_(when, room, &future->task, NULL, &future->ended);
    CCCase *c = cc_when_add_(when, room, CC_CASE_AT);
    c->deadline = CC_PASSED;
    c->value = &future->ended;
    return false;
}
static inline bool cc_when_awaited_(CCWhen *when) {
    CCCase *c = (CCCase *)(void *)(when + 1) + when->chosen;
    if (c->kind == CC_CASE_AT) when->error = *(int *)c->value;
    return true;
}
static inline bool cc_when_at_(CCWhen *when, size_t room, CCDeadline deadline) {
    CCCase *c = cc_when_add_(when, room, CC_CASE_AT);
    c->deadline = deadline;
    return false;
}
static inline bool cc_when_fd_(CCWhen *when, size_t room, CCCaseKind kind, int fd) {
    CCCase *c = cc_when_add_(when, room, kind);
    c->fd = fd;
    return false;
}
static inline bool cc_when_key_(CCWhen *when, size_t room, CCWakeKey key, uint64_t *value) {
    CCCase *c = cc_when_add_(when, room, CC_CASE_KEY);
    c->key_id = key.id;
    c->key_ticket = key.ticket;
    c->value = value;
    return false;
}
static inline bool cc_when_event_(CCWhen *when, size_t room, CCEvent *event) {
    cc_when_add_(when, room, CC_CASE_EVENT)->event = event;
    return false;
}
static inline bool cc_when_acquire_(CCWhen *when, size_t room, CCSem *sem) {
    cc_when_add_(when, room, CC_CASE_ACQUIRE)->sem = sem;
    return false;
}
static inline bool cc_when_nursery_end_(CCWhen *when, size_t room, CCNursery *nursery) {
    cc_when_add_(when, room, CC_CASE_NURSERY_END)->nursery = nursery;
    return false;
}
static inline bool cc_when_exited_(CCWhen *when, size_t room, CCProcess *process, struct CCProcessStatus *result) {
    CCCase *c = cc_when_add_(when, room, CC_CASE_EXITED);
    c->process = process;
    c->value = result;
    return false;
}
static inline bool cc_when_tick_(CCWhen *when, size_t room, CCTicker *ticker) {
    bool is_one = ticker != NULL && ticker->period != 0;
    CCCase *c = cc_when_add_(when, room, is_one ? CC_CASE_AT : CC_CASE_JOIN);
    c->task = NULL; /* a join of no task: the panic says what is wrong */
    if (is_one) c->deadline.ns = __atomic_load_n(&ticker->next.ns, __ATOMIC_RELAXED);
    c->value = ticker;
    return false;
}
static inline bool cc_when_ticked_(CCWhen *when) {
    CCCase *c = (CCCase *)(void *)(when + 1) + when->chosen;
    when->error = cc_ticker_wait_try((CCTicker *)c->value);
    return true;
}
static inline bool cc_when_default_(CCWhen *when, size_t room) {
    when->otherwise = when->count;
    cc_when_add_(when, room, CC_CASE_NONE)->size = 0;
    return false;
}

CC_END_DECLS

#endif
