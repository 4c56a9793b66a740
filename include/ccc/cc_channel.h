/* cc_channel.h - bounded channels between fibers and OS threads, in any combination.
 *
 * A channel carries values of one fixed size, which may be 0. Capacity 0 is a rendezvous: the value goes straight from
 * the sender to the receiver. The capacity is exact: a channel of capacity 3 holds 3 values.
 *
 * If send returns 0, exactly one receiver gets the value, provided that someone keeps receiving. If send returns an
 * error, no receiver ever gets it. Close stops only sending: buffered values are still received.
 */
#ifndef CCC_CC_CHANNEL_H
#define CCC_CC_CHANNEL_H

#include <ccc/cc_base.h>
#include <ccc/cc_task.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

typedef struct CCChan CCChan;

/* What a send does when the channel is full. */
typedef enum CCChanMode {
    CC_CHAN_MODE_BLOCK,    /* waits */
    CC_CHAN_MODE_DROP_NEW, /* EAGAIN: the new value is rejected */
    CC_CHAN_MODE_DROP_OLD  /* drops the oldest value and counts it (cc_chan_dropped) */
} CCChanMode;

/* A field that is 0 or NULL means the default. */
typedef struct CCChanConfig {
    size_t elem_size;
    size_t capacity;
    CCChanMode mode; /* the drop modes need a capacity */
    /* Object pool: on_create creates an item when a receive (in any form, or in a select) finds the channel empty
     * and fewer than `capacity` items exist; on_reset is called on an item that is sent back; on_destroy on each
     * item when the channel is freed. Each gets `context`. on_create returns 0 or an error, which the receive
     * returns (ENOMEM for a negative one); it may be NULL with the others set. They run outside the channel's lock
     * and may wait; on_destroy must not panic. on_reset runs before the attempt to send, also if the send then
     * fails, and for every select that has the send among its arms and waits. An item that is not sent back keeps
     * its place: repair a broken one and send it back. */
    int (*on_create)(void *item, void *context);
    void (*on_reset)(void *item, void *context);
    void (*on_destroy)(void *item, void *context);
    void *context;
    /* Carries tasks (elem_size 0 or sizeof(CCTask)); see cc_chan_send_task. */
    bool ordered;
    const char *name; /* for dumps; copied as by cc_fiber_set_name, at most CC_CHAN_NAME_MAX - 1 bytes */
    /* Called, with `context`, for each value that was sent and will never be received: those dropped by drop-old and
     * those still buffered when the channel is freed. For values that own resources, such as pointers. Not for pools
     * and ordered channels. Runs outside the channel's lock, on a copy. Must not panic. */
    void (*on_drop)(void *value, void *context);
    uint64_t reserved[3]; /* 0; see cc_base.h */
} CCChanConfig;

#define CC_CHAN_NAME_MAX 32

/* Creates a channel. Returns NULL and sets errno on error. ENOMEM: no memory, or an impossibly large capacity. Any
 * context; does not switch. */
CC_API CCChan *cc_chan_create(size_t elem_size, size_t capacity);
/* The same with all settings. EINVAL: NULL, or contradictory settings. Any context; does not switch. */
CC_API CCChan *cc_chan_create_ex(const CCChanConfig *config);

/* Adds a reference, to be released with cc_chan_free, and returns ch; NULL returns NULL. Any context; does not
 * switch. */
CC_API CCChan *cc_chan_ref(CCChan *ch);

/* Releases a reference. Releasing the last one closes the channel, ends all waits on it with EPIPE, drops buffered
 * values (on_drop; on_destroy for a pool) and frees the memory. NULL is allowed. A double free aborts the program with
 * a message where it is detected. Any context; does not switch. */
CC_API void cc_chan_free(CCChan *ch);

/* Sends a copy of *value. size must be the channel's (EINVAL). EPIPE, or the error of cc_chan_close_err: closed.
 * EAGAIN: _try on a full channel, or drop-new. ETIMEDOUT: _until. ECANCELED: the caller, a fiber or an OS thread inside
 * a block, was cancelled (cc_nursery.h) while it waited, or is a fiber whose wait was ended by a shutdown of the
 * runtime. ENOMEM: _until, no memory for a timer; drop-old with on_drop and values above 128 bytes, no memory for a
 * copy. On every error no receiver gets the value. EINVAL: NULL. Any context; switches, _try does not. */
CC_API int cc_chan_send(CCChan *ch, const void *value, size_t size);
CC_API int cc_chan_send_try(CCChan *ch, const void *value, size_t size);
CC_API int cc_chan_send_until(CCChan *ch, const void *value, size_t size, CCDeadline deadline);

/* Receives into *value. EPIPE, or the error of cc_chan_close_err: closed and empty. EAGAIN: _try on an empty
 * channel. The others as above; on an error *value is untouched. Any context; switches, _try does not. */
CC_API int cc_chan_recv(CCChan *ch, void *value, size_t size);
CC_API int cc_chan_recv_try(CCChan *ch, void *value, size_t size);
CC_API int cc_chan_recv_until(CCChan *ch, void *value, size_t size, CCDeadline deadline);

/* Loops over the received values until the channel is closed and empty, or the caller is cancelled (check with
 * cc_cancelled):
 *
 *   CC_FOR_RECV(int, v, ch) { sum += v; }
 *
 * A T whose size differs from the channel's, and NULL, panic with a message. For a channel of CC_CHAN_OF use
 * CC_FOR_RECV_OF (cc_chan_handle.h). cc_chan_next receives one value; false: the loop ends. Any context; switches. */
#define CC_FOR_RECV(T, var, channel) CC__FOR_RECV(T, var, channel, CC__UNIQUE(cc_from_), CC__UNIQUE(cc_once_))
#define CC__FOR_RECV(T, var, channel, from, once)                             \
    for (CCChan *from = (channel), **once = &from; once != NULL; once = NULL) \
        for (T var; cc_chan_next(from, &var, sizeof var);)
CC_API bool cc_chan_next(CCChan *ch, void *value, size_t size);

/* Ordered channels. cc_chan_send_task sends the task's handle and consumes it. If the send fails, it joins the task
 * instead; a cancelled sender (ECANCELED) cancels the task first, and still waits for its end. cc_chan_recv_task
 * receives the next handle and joins that task: results arrive in the order of sending, and a slow task delays those
 * behind it. ECANCELED: does not wait for the task; if the handle was already received, the result is lost. Any
 * context; switches. */
CC_API int cc_chan_send_task(CCChan *ch, CCTask *task);
CC_API int cc_chan_recv_task(CCChan *ch, void **result);

/* Closes the channel for sending. Senders and, once the buffer is empty, receivers return EPIPE, or `error` (a positive
 * errno value; 0: EPIPE). The first close wins; further ones do nothing. EINVAL: NULL, or a negative error. Any
 * context; does not switch. */
CC_API int cc_chan_close(CCChan *ch);
CC_API int cc_chan_close_err(CCChan *ch, int error);

/* The number of buffered values; the capacity; whether it is closed, and then what its closer wrote before is visible;
 * the number of values dropped by drop-old. 0 and false for NULL. Any context; does not switch. */
CC_API size_t cc_chan_len(CCChan *ch);
CC_API size_t cc_chan_cap(CCChan *ch);
CC_API bool cc_chan_is_closed(CCChan *ch);
CC_API uint64_t cc_chan_dropped(CCChan *ch);

CC_END_DECLS

#endif
