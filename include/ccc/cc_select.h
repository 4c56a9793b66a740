/* cc_select.h - wait for the first of several operations: a send, a receive, the end of a task or process, a point in
 * time, a cancellation, readiness of a descriptor, a wake key, an event, a semaphore permit, the end of a nursery's
 * children.
 *
 * Exactly one arm is executed; the others have no effect.
 */
#ifndef CCC_CC_SELECT_H
#define CCC_CC_SELECT_H

#include <ccc/cc_channel.h>
#include <ccc/cc_task.h>
#include <ccc/cc_time.h>
#include <ccc/cc_wake_key.h>

CC_BEGIN_DECLS

/* cc_process.h */
typedef struct CCProcess CCProcess;
struct CCProcessStatus;
/* cc_nursery.h */
typedef struct CCNursery CCNursery;
/* cc_sync.h */
struct CCEvent;
struct CCSem;

typedef enum CCCaseKind {
    CC_CASE_NONE, /* never ready; nor is a NULL channel */
    CC_CASE_SEND,
    CC_CASE_RECV,
    CC_CASE_JOIN,     /* a task's end; consumes the handle like cc_task_join */
    CC_CASE_AT,       /* a point in time */
    CC_CASE_CANCEL,   /* the caller's cancellation; without such an arm the call returns ECANCELED */
    CC_CASE_READABLE, /* a descriptor; behaviour and errors as cc_fd_wait (cc_fd.h) */
    CC_CASE_WRITABLE,
    CC_CASE_EXITED,     /* a process's end; like cc_process_wait */
    CC_CASE_KEY,        /* the wake of a key; like cc_wake_key_wait, but the key stays open if another arm is chosen */
    CC_CASE_EVENT,      /* an event is set, or was set during the wait; like cc_event_wait */
    CC_CASE_ACQUIRE,    /* takes a permit of a semaphore, in FIFO order with all waiters; like cc_sem_acquire */
    CC_CASE_NURSERY_END /* a nursery has no children; like cc_nursery_wait, but without hooks and failures */
} CCCaseKind;

typedef struct CCCase {
    CCCaseKind kind;
    union {
        CCChan *ch;            /* send, recv */
        CCProcess *process;    /* exited */
        uint64_t key_id;       /* key */
        struct CCEvent *event; /* event */
        struct CCSem *sem;     /* acquire */
        CCNursery *nursery;    /* nursery end */
    };
    void *value; /* send: read; recv: written; join: a void * that gets the result, or NULL; exited: a CCProcessStatus,
                    or NULL; key: a uint64_t, or NULL */
    union {
        size_t size;         /* send, recv: of *value */
        uint64_t key_ticket; /* key */
    };
    CCTask *task;        /* join */
    CCDeadline deadline; /* at */
    int error;           /* out, for the chosen arm: 0, or what the single operation would have returned;
                          * for an invalid arm: EINVAL, EDEADLK */
    int fd;              /* readable, writable */
    int *status;         /* NULL, or also receives `error` */
} CCCase;

/* How an arm is chosen when several are ready. */
typedef enum CCSelectOrder {
    CC_SELECT_FAIR, /* a random one, with equal probability */
    CC_SELECT_FIRST /* the first in the array */
} CCSelectOrder;

#define CC_SELECT_MAX 256

/* Waits until an arm can proceed, executes it, and stores its index in *chosen. 0: cases[*chosen].error has its result;
 * a closed channel is ready, with EPIPE. ETIMEDOUT: the deadline passed first; ECANCELED: the caller was cancelled, or
 * is a fiber and the runtime is shutting down: no arm was executed. EINVAL: NULL, more than CC_SELECT_MAX arms, a wrong
 * size or handle in an arm. EDEADLK: the caller is a child of a nursery whose end it would wait for. n == 0, or arms
 * that can never be ready: waits for the deadline. ENOMEM. Any context; switches. */
CC_API int cc_select(CCCase *cases, size_t n, CCDeadline deadline, size_t *chosen);
/* Does not wait: EAGAIN if no arm is ready. */
CC_API int cc_select_try(CCCase *cases, size_t n, size_t *chosen);
/* The general form. */
CC_API int cc_select_ordered(CCCase *cases, size_t n, CCSelectOrder order, CCDeadline deadline, size_t *chosen);

/* A select in the form of a switch: the labels are the indices of the arms, or one of the constants below.
 *
 *   int v, closed;
 *   CC_MATCH(CC_RECV(in, &v, &closed), CC_SEND(out, &w, NULL), CC_AFTER_MS(100)) {
 *   case 0: if (!closed) use(v); break;
 *   case 1: puts("sent"); break;
 *   case 2: puts("a tenth of a second has passed"); break;
 *   case CC_MATCH_FAILED: return;
 *   }
 */
#ifndef __cplusplus
#define CC_MATCH(...) switch (cc_match((CCCase[]){__VA_ARGS__}, sizeof((CCCase[]){__VA_ARGS__}) / sizeof(CCCase), true))
/* The same without waiting. */
#define CC_MATCH_TRY(...) \
    switch (cc_match((CCCase[]){__VA_ARGS__}, sizeof((CCCase[]){__VA_ARGS__}) / sizeof(CCCase), false))
#else /* at the end of this file */
#define CC_MATCH(...) switch (cc_match_cxx_({__VA_ARGS__}, true))
#define CC_MATCH_TRY(...) switch (cc_match_cxx_({__VA_ARGS__}, false))
#endif

#define CC_MATCH_NONE (-1)   /* CC_MATCH_TRY: no arm is ready */
#define CC_MATCH_FAILED (-2) /* cancelled, no memory, or a malformed arm */

/* The arms: initialisers of a CCCase. *pointer has the element size of the channel, and the pointer is NULL for a
 * channel whose elements have no size; for channels of CC_CHAN_OF there are arms that also check the type
 * (cc_chan_handle.h). */
#ifndef __cplusplus
/* The size of what it points to; NULL has some size, which is ignored. */
#define CC__SIZE_AT(pointer) \
    sizeof *_Generic((pointer), void * : (char *)0, const void * : (char *)0, default : (pointer))
#define CC_SEND(channel, pointer, where)                                                                            \
    {                                                                                                               \
        .kind = CC_CASE_SEND, .ch = (channel), .value = (void *)(uintptr_t)(pointer), .size = CC__SIZE_AT(pointer), \
        .status = (where)                                                                                           \
    }
#define CC_RECV(channel, pointer, where) \
    { .kind = CC_CASE_RECV, .ch = (channel), .value = (pointer), .size = CC__SIZE_AT(pointer), .status = (where) }
#define CC_JOIN(task_pointer, result_pointer, where) \
    { .kind = CC_CASE_JOIN, .task = (task_pointer), .value = (result_pointer), .status = (where) }
#define CC_EXITED(process_pointer, status_pointer, where) \
    { .kind = CC_CASE_EXITED, .process = (process_pointer), .value = (status_pointer), .status = (where) }
#define CC_KEY_CASE(key, value_pointer, where) \
    { .kind = CC_CASE_KEY, .key_id = (key).id, .value = (value_pointer), .key_ticket = (key).ticket, .status = (where) }
#define CC_EVENT_CASE(event_pointer) \
    { .kind = CC_CASE_EVENT, .event = (event_pointer) }
#define CC_ACQUIRE_CASE(sem_pointer) \
    { .kind = CC_CASE_ACQUIRE, .sem = (sem_pointer) }
#define CC_NURSERY_END_CASE(nursery_pointer) \
    { .kind = CC_CASE_NURSERY_END, .nursery = (nursery_pointer) }
#define CC_AT(point) \
    { .kind = CC_CASE_AT, .deadline = (point) }
#define CC_CANCEL() \
    { .kind = CC_CASE_CANCEL }
#define CC_READABLE_CASE(descriptor, where) \
    { .kind = CC_CASE_READABLE, .fd = (descriptor), .status = (where) }
#define CC_WRITABLE_CASE(descriptor, where) \
    { .kind = CC_CASE_WRITABLE, .fd = (descriptor), .status = (where) }
#else
#define CC__SIZE_AT(pointer) cc_size_at_(pointer)
#define CC_SEND(channel, pointer, where) cc_case_send_((channel), (pointer), (where))
#define CC_RECV(channel, pointer, where) cc_case_recv_((channel), (pointer), (where))
#define CC_JOIN(task_pointer, result_pointer, where) cc_case_join_((task_pointer), (result_pointer), (where))
#define CC_EXITED(process_pointer, status_pointer, where) cc_case_exited_((process_pointer), (status_pointer), (where))
#define CC_KEY_CASE(key, value_pointer, where) cc_case_key_((key), (value_pointer), (where))
#define CC_EVENT_CASE(event_pointer) cc_case_event_(event_pointer)
#define CC_ACQUIRE_CASE(sem_pointer) cc_case_acquire_(sem_pointer)
#define CC_NURSERY_END_CASE(nursery_pointer) cc_case_nursery_end_(nursery_pointer)
#define CC_AT(point) cc_case_at_(point)
#define CC_CANCEL() cc_case_(CC_CASE_CANCEL)
#define CC_READABLE_CASE(descriptor, where) cc_case_fd_(CC_CASE_READABLE, (descriptor), (where))
#define CC_WRITABLE_CASE(descriptor, where) cc_case_fd_(CC_CASE_WRITABLE, (descriptor), (where))
#endif
#define CC_AFTER_MS(ms) CC_AT(cc_after_ms(ms))

/* For CC_MATCH: returns the index of the arm, or one of the constants above. */
CC_API int cc_match(CCCase *cases, size_t n, bool wait);

CC_END_DECLS

#ifdef __cplusplus
inline CCCase cc_case_(CCCaseKind kind) {
    CCCase c;
    c.kind = kind;
    c.ch = NULL;
    c.value = NULL;
    c.size = 0;
    c.task = NULL;
    c.deadline.ns = 0;
    c.error = 0;
    c.fd = -1;
    c.status = NULL;
    return c;
}
inline CCCase cc_case_of_(CCCaseKind kind, CCChan *ch, const void *value, size_t size, int *status) {
    CCCase c = cc_case_(kind);
    c.ch = ch;
    c.value = const_cast<void *>(value);
    c.size = size;
    c.status = status;
    return c;
}
template <size_t n> inline int cc_match_cxx_(CCCase (&&cases)[n], bool wait) {
    return cc_match(cases, n, wait);
}
/* A null pointer is for elements without a size. */
template <typename T> inline size_t cc_size_at_(T *) {
    return sizeof(T);
}
inline size_t cc_size_at_(decltype(nullptr)) {
    return 0;
}
template <typename T> inline CCCase cc_case_send_(CCChan *ch, const T *value, int *status) {
    return cc_case_of_(CC_CASE_SEND, ch, value, sizeof *value, status);
}
inline CCCase cc_case_send_(CCChan *ch, decltype(nullptr), int *status) {
    return cc_case_of_(CC_CASE_SEND, ch, nullptr, 0, status);
}
template <typename T> inline CCCase cc_case_recv_(CCChan *ch, T *value, int *status) {
    return cc_case_of_(CC_CASE_RECV, ch, value, sizeof *value, status);
}
inline CCCase cc_case_recv_(CCChan *ch, decltype(nullptr), int *status) {
    return cc_case_of_(CC_CASE_RECV, ch, nullptr, 0, status);
}
inline CCCase cc_case_join_(CCTask *task, void **result, int *status) {
    CCCase c = cc_case_of_(CC_CASE_JOIN, NULL, result, 0, status);
    c.task = task;
    return c;
}
inline CCCase cc_case_fd_(CCCaseKind kind, int fd, int *status) {
    CCCase c = cc_case_(kind);
    c.fd = fd;
    c.status = status;
    return c;
}
inline CCCase cc_case_exited_(CCProcess *process, struct CCProcessStatus *result, int *status) {
    CCCase c = cc_case_of_(CC_CASE_EXITED, NULL, result, 0, status);
    c.process = process;
    return c;
}
inline CCCase cc_case_key_(CCWakeKey key, uint64_t *value, int *status) {
    CCCase c = cc_case_of_(CC_CASE_KEY, NULL, value, 0, status);
    c.key_id = key.id;
    c.key_ticket = key.ticket;
    return c;
}
inline CCCase cc_case_event_(struct CCEvent *event) {
    CCCase c = cc_case_(CC_CASE_EVENT);
    c.event = event;
    return c;
}
inline CCCase cc_case_acquire_(struct CCSem *sem) {
    CCCase c = cc_case_(CC_CASE_ACQUIRE);
    c.sem = sem;
    return c;
}
inline CCCase cc_case_nursery_end_(CCNursery *nursery) {
    CCCase c = cc_case_(CC_CASE_NURSERY_END);
    c.nursery = nursery;
    return c;
}
inline CCCase cc_case_at_(CCDeadline deadline) {
    CCCase c = cc_case_(CC_CASE_AT);
    c.deadline = deadline;
    return c;
}
#endif

#endif
