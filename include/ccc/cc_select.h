/* cc_select.h - wait for the first of several things: a send, a receive, a task's end, a moment, a
 * cancellation.
 *
 * Exactly one arm happens; of those that are not chosen nothing is left behind.
 */
#ifndef CCC_CC_SELECT_H
#define CCC_CC_SELECT_H

#include <ccc/cc_channel.h>
#include <ccc/cc_task.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

typedef enum CCCaseKind {
    CC_CASE_NONE, /* never ready; so is a channel that is NULL */
    CC_CASE_SEND,
    CC_CASE_RECV,
    CC_CASE_JOIN,  /* a task's end; consumes the handle like cc_task_join */
    CC_CASE_AT,    /* a point in time */
    CC_CASE_CANCEL /* the calling fiber's cancellation; without such an arm the call returns ECANCELED */
} CCCaseKind;

typedef struct CCCase {
    CCCaseKind kind;
    CCChan *ch;          /* send, recv */
    void *value;         /* send: read; recv: written; join: a void * that gets the result, or NULL */
    size_t size;         /* send, recv: of *value */
    CCTask *task;        /* join */
    CCDeadline deadline; /* at */
    int error;           /* out, for the arm that was chosen: 0, or what the call alone would have returned */
    int *status;         /* NULL, or a second place for `error` */
} CCCase;

/* How an arm is chosen when several are ready. */
typedef enum CCSelectOrder {
    CC_SELECT_FAIR, /* all with the same probability */
    CC_SELECT_FIRST /* the first in the array */
} CCSelectOrder;

#define CC_SELECT_MAX 256

/* Waits until an arm can proceed, does it, and stores its index. 0: *chosen and cases[*chosen].error say what
 * happened: a closed channel is ready, with EPIPE. ETIMEDOUT: the deadline came first; ECANCELED: the calling
 * fiber was cancelled, or the runtime shuts down: no arm happened. EINVAL: NULL, more than CC_SELECT_MAX arms, a
 * wrong size or handle in an arm. n == 0, or arms that can never be ready: waits for the deadline. ENOMEM. Any
 * context; switches. */
CC_API int cc_select(CCCase *cases, size_t n, CCDeadline deadline, size_t *chosen);
/* Does not wait: EAGAIN when no arm is ready. */
CC_API int cc_select_try(CCCase *cases, size_t n, size_t *chosen);
/* The general form. */
CC_API int cc_select_ordered(CCCase *cases, size_t n, CCSelectOrder order, CCDeadline deadline, size_t *chosen);

/* Reads like a switch: the labels are the positions of the arms, or one of the words below.
 *
 *   int v, closed;
 *   CC_MATCH(CC_RECV(in, &v, &closed), CC_SEND(out, &w, NULL), CC_AFTER_MS(100)) {
 *   case 0: if (!closed) use(v); break;
 *   case 1: puts("sent"); break;
 *   case 2: puts("a tenth of a second has passed"); break;
 *   case CC_MATCH_FAILED: return;
 *   }
 */
#define CC_MATCH(...) switch (cc_match((CCCase[]){__VA_ARGS__}, sizeof((CCCase[]){__VA_ARGS__}) / sizeof(CCCase), true))
/* The same without waiting. */
#define CC_MATCH_TRY(...) \
    switch (cc_match((CCCase[]){__VA_ARGS__}, sizeof((CCCase[]){__VA_ARGS__}) / sizeof(CCCase), false))

#define CC_MATCH_NONE (-1)   /* CC_MATCH_TRY: no arm is ready */
#define CC_MATCH_FAILED (-2) /* cancelled, no memory, or a malformed arm */

#define CC_SEND(channel, pointer, where) \
    { .kind = CC_CASE_SEND, .ch = (channel), .value = (void *)(pointer), .size = sizeof *(pointer), .status = (where) }
#define CC_RECV(channel, pointer, where) \
    { .kind = CC_CASE_RECV, .ch = (channel), .value = (pointer), .size = sizeof *(pointer), .status = (where) }
#define CC_JOIN(task_pointer, result_pointer, where) \
    { .kind = CC_CASE_JOIN, .task = (task_pointer), .value = (result_pointer), .status = (where) }
#define CC_AT(point) \
    { .kind = CC_CASE_AT, .deadline = (point) }
#define CC_AFTER_MS(ms) CC_AT(cc_after_ms(ms))
#define CC_ON_CANCEL() \
    { .kind = CC_CASE_CANCEL }

/* For CC_MATCH: the index of the arm, or one of the words above. */
CC_API int cc_match(CCCase *cases, size_t n, bool wait);

CC_END_DECLS

#endif
