/* cc_channel.h - bounded channels between fibers and OS threads, in any mix.
 *
 * A channel carries values of one size, any size, 0 included. Capacity 0 is a rendezvous: the value goes
 * straight from the sender to the receiver. A capacity is exact: a channel of capacity 3 holds 3.
 *
 * send returned 0: exactly one receiver gets the value, if anyone keeps receiving. send returned an error:
 * nobody ever gets it. Close stops sending only: what was sent is received first.
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
    CC_CHAN_MODE_DROP_NEW, /* EAGAIN: the new value is not taken */
    CC_CHAN_MODE_DROP_OLD  /* the oldest value makes room, and is counted (cc_chan_dropped) */
} CCChanMode;

/* A field that is 0 or NULL means the default. */
typedef struct CCChanConfig {
    size_t elem_size;
    size_t capacity;
    CCChanMode mode; /* the drop modes need a capacity */
    /* A pool: on_create makes a new item when a receive finds none and fewer than `capacity` exist; on_reset is
     * called on an item that is sent back; on_destroy on each item when the channel is freed. Each gets
     * `context`. on_create returns 0 or an error, which the receive returns. on_create may be NULL with the
     * others set. They run outside the channel's lock. on_reset runs before the attempt to send: also when the send
     * then fails, and for every select that waits with the send among its arms. */
    int (*on_create)(void *item, void *context);
    void (*on_reset)(void *item, void *context);
    void (*on_destroy)(void *item, void *context);
    void *context;
    /* Carries tasks (elem_size 0 or sizeof(CCTask)); see cc_chan_send_task. */
    bool ordered;
    const char *name; /* for dumps; copied, cut at CC_CHAN_NAME_MAX - 1 bytes */
    /* Called, with `context`, for each value that was sent and that nobody will receive: what drop-old drops, and what
     * is left when the channel is freed. For values that own something, a pointer for one. Not for pools and ordered
     * channels. It runs outside the channel's lock, and gets a copy. */
    void (*on_drop)(void *value, void *context);
    uint64_t reserved[3]; /* 0; see cc_base.h */
} CCChanConfig;

#define CC_CHAN_NAME_MAX 32

/* A new channel. NULL, and errno: ENOMEM: no memory, or a capacity too large for any memory. Any context; does not
 * switch. */
CC_API CCChan *cc_chan_create(size_t elem_size, size_t capacity);
/* The same with all settings; EINVAL: NULL, or settings that contradict each other. Any context; does not switch. */
CC_API CCChan *cc_chan_create_ex(const CCChanConfig *config);

/* Another reference, to be given up with cc_chan_free; NULL gives NULL. Any context; does not switch. */
CC_API CCChan *cc_chan_ref(CCChan *ch);

/* Gives up a reference. With the last one the channel is closed, all waits on it end with EPIPE,
 * buffered values are dropped (on_drop; on_destroy for a pool), and the memory is freed. NULL is allowed. Freeing a
 * channel twice aborts the program with a message where it is detected. Any context; does not switch. */
CC_API void cc_chan_free(CCChan *ch);

/* Sends a copy of *value. size must be the channel's (EINVAL). EPIPE, or the error of cc_chan_close_err: closed;
 * nobody gets the value. EAGAIN: _try on a full channel, or drop-new. ETIMEDOUT: _until, nobody gets the value.
 * ECANCELED: the caller, a fiber or an OS thread in a block, was cancelled (cc_nursery.h) while it waited, or is a
 * fiber whose wait a shutdown of the runtime has ended: nobody gets the value. ENOMEM: _until, no memory for a timer;
 * drop-old with on_drop and values above 128 bytes, none for a copy. EINVAL: NULL. Any context; switches, _try does
 * not. */
CC_API int cc_chan_send(CCChan *ch, const void *value, size_t size);
CC_API int cc_chan_send_try(CCChan *ch, const void *value, size_t size);
CC_API int cc_chan_send_until(CCChan *ch, const void *value, size_t size, CCDeadline deadline);

/* Receives into *value. EPIPE, or the error of cc_chan_close_err: closed and empty. EAGAIN: _try on an empty
 * channel. The others as above; on an error *value is untouched. Any context; switches, _try does not. */
CC_API int cc_chan_recv(CCChan *ch, void *value, size_t size);
CC_API int cc_chan_recv_try(CCChan *ch, void *value, size_t size);
CC_API int cc_chan_recv_until(CCChan *ch, void *value, size_t size, CCDeadline deadline);

/* A loop over what is received, until the channel is closed and empty; or until the caller is cancelled, which it can
 * ask (cc_cancelled):
 *
 *   CC_FOR_RECV(int, v, ch) { sum += v; }
 *
 * A T of another size than the channel's, and NULL, panic with a message. For a channel of CC_CHAN_OF there is
 * CC_FOR_RECV_OF (cc_chan_handle.h). cc_chan_next: receives; false: it is over. Any context; switches. */
#define CC_FOR_RECV(T, var, channel) CC__FOR_RECV(T, var, channel, CC__UNIQUE(cc_from_), CC__UNIQUE(cc_once_))
#define CC__FOR_RECV(T, var, channel, from, once)                             \
    for (CCChan *from = (channel), **once = &from; once != NULL; once = NULL) \
        for (T var; cc_chan_next(from, &var, sizeof var);)
CC_API bool cc_chan_next(CCChan *ch, void *value, size_t size);

/* Ordered channels. Sends the task's handle and consumes it; when the send fails, joins the task instead; a sender
 * that is cancelled (ECANCELED) cancels the task first, and waits for its end all the same.
 * Receives the next handle and waits for that task's end: results arrive in the order of sending. A task that
 * stalls holds up those behind it. ECANCELED: the task's end is not waited for; if the handle was already
 * received, the result is lost. Any context; switches. */
CC_API int cc_chan_send_task(CCChan *ch, CCTask *task);
CC_API int cc_chan_recv_task(CCChan *ch, void **result);

/* No more sends. Waiting senders and, once the buffer is empty, receivers return EPIPE, or with `error` (a
 * positive errno value; 0: EPIPE). The first close decides; further ones do nothing. EINVAL: NULL. Any context;
 * does not switch. */
CC_API int cc_chan_close(CCChan *ch);
CC_API int cc_chan_close_err(CCChan *ch, int error);

/* Values buffered now; capacity; whether it was closed; values dropped by drop-old. 0 and false for NULL. Any
 * context; does not switch. */
CC_API size_t cc_chan_len(CCChan *ch);
CC_API size_t cc_chan_cap(CCChan *ch);
CC_API bool cc_chan_is_closed(CCChan *ch);
CC_API uint64_t cc_chan_dropped(CCChan *ch);

CC_END_DECLS

#endif
