/* cc_broadcast.h - broadcasts, latest values and oneshots, between fibers and OS threads.
 *
 * A broadcast delivers every value to every subscriber. A CCLatest holds the latest value. A oneshot carries one value,
 * once.
 */
#ifndef CCC_CC_BROADCAST_H
#define CCC_CC_BROADCAST_H

#include <ccc/cc_base.h>
#include <ccc/cc_channel.h>
#include <ccc/cc_sync.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* ---- broadcast ---- */

typedef struct CCBroadcast CCBroadcast;

/* What a send does when a subscriber's buffer is full. */
typedef enum CCSlowMode {
    CC_SLOW_BLOCK,    /* waits until the subscriber has received; if several are full, for one after the other */
    CC_SLOW_DROP_OLD, /* the subscriber loses its oldest value (cc_chan_dropped of its channel counts them) */
    /* The subscriber is removed: it receives what is buffered, then ENOBUFS. It learns that when it next receives: one
     * that passes the values on to a slow peer needs a deadline for its writes. */
    CC_SLOW_DISCONNECT
} CCSlowMode;

/* A field that is 0 or NULL means the default. */
typedef struct CCBroadcastConfig {
    size_t elem_size;
    size_t capacity; /* of each subscriber; at least 1 */
    CCSlowMode slow;
    /* As in CCChanConfig, called for each copy that a subscriber does not receive, perhaps while the broadcast is
     * locked: it must not use the broadcast, and must not wait for anybody who does. */
    void (*on_drop)(void *value, void *context);
    void *context;
    const char *name; /* of the subscribers' channels, for dumps */
    /* For values that own memory or a reference: called for each subscriber with a copy of the bytes that were sent,
     * makes it the subscriber's own (a further reference, another allocation), and returns 0 or the error of the send;
     * a negative result becomes ENOMEM. What was sent stays the sender's. A copy that no subscriber receives is passed
     * to on_drop. Called as on_drop is, but a panic may leave it, and then leaves the send. */
    int (*on_copy)(void *value, void *context);
    uint64_t reserved[3]; /* 0; see cc_base.h */
} CCBroadcastConfig;

/* Creates a broadcast. Returns NULL and sets errno on error. EINVAL: NULL, a capacity of 0, an unknown mode, a nonzero
 * reserved word; ENOMEM. Any context; does not switch. */
CC_API CCBroadcast *cc_broadcast_create(const CCBroadcastConfig *config);

/* Closes and frees it. Subscribers receive what is buffered, then EPIPE, and free their channels (cc_chan_free). No
 * other call may be in progress or follow. NULL is allowed. Any context; switches. */
CC_API void cc_broadcast_free(CCBroadcast *b);

/* Returns a channel that gets every value sent from now on (not one whose send is already waiting), for cc_chan_recv,
 * CC_FOR_RECV and arms of a select. Returns NULL and sets errno on error. EPIPE: closed; ENOMEM; EINVAL: NULL. Does not
 * wait for a send in progress. Any context; switches, but is not cancelled. */
CC_API CCChan *cc_broadcast_subscribe(CCBroadcast *b);

/* Ends a subscription and frees the channel, whether it was disconnected or not. A send that waits for this subscriber
 * continues; the call does not wait for a send that waits for another one. A fiber that is receiving from the channel
 * needs its own reference (cc_chan_ref), and gets EPIPE. EINVAL: NULL. Any context; switches, but is not cancelled. */
CC_API int cc_broadcast_unsubscribe(CCBroadcast *b, CCChan *subscriber);

/* Sends a copy of *value to every subscriber; all of them see all values in the same order. Returns 0 also without
 * subscribers. EINVAL: NULL or a wrong size; EPIPE: closed; ENOMEM. ECANCELED, EPIPE by a concurrent close, and _until
 * ETIMEDOUT: the caller was waiting for a subscriber or another sender; subscribers that had room, or gained room
 * during the wait, have received the value, the others have not. The same after an error of on_copy, which is returned,
 * and ENOMEM. _try: EAGAIN, no subscriber has received it: one is full (CC_SLOW_BLOCK), or another call is in progress.
 * Any context; switches, _try does not. */
CC_API int cc_broadcast_send(CCBroadcast *b, const void *value, size_t size);
CC_API int cc_broadcast_send_try(CCBroadcast *b, const void *value, size_t size);
CC_API int cc_broadcast_send_until(CCBroadcast *b, const void *value, size_t size, CCDeadline deadline);

/* The same as _until, and stores how many subscribers have got the value, on an error too: each has it in its buffer,
 * where CC_SLOW_DROP_OLD may still drop it, or has received it. delivered may be NULL. */
CC_API int cc_broadcast_send_count(CCBroadcast *b, const void *value, size_t size, size_t *delivered,
                                   CCDeadline deadline);

/* Further sends, and one that waits for a subscriber, return EPIPE; subscribers receive what is buffered, then EPIPE.
 * EINVAL: NULL. Any context; switches, but is not cancelled. */
CC_API int cc_broadcast_close(CCBroadcast *b);

/* The number of subscribers; 0 for NULL. Any context; switches, but is not cancelled. */
CC_API size_t cc_broadcast_subscribers(CCBroadcast *b);

/* ---- the latest value ---- */

typedef struct CCLatest CCLatest;

/* Creates one with a copy of *value as version 1. Returns NULL and sets errno on error. EINVAL: value is NULL and the
 * size is not 0; ENOMEM. Any context; does not switch. */
CC_API CCLatest *cc_latest_create(const void *value, size_t size);
/* Frees it; no other call may be in progress or follow. NULL is allowed. Any context; does not switch. */
CC_API void cc_latest_free(CCLatest *latest);

/* Sets the value and increments the version. EPIPE: closed. EINVAL: NULL, or a wrong size. Any context; switches, but
 * is not cancelled. */
CC_API int cc_latest_set(CCLatest *latest, const void *value, size_t size);

/* Waits until the version differs from *seen, then copies value and version. A caller that starts with 0 gets the
 * current value at once, and then each change, or the latest of several. EPIPE: closed, and there is no newer version.
 * EINVAL as above. _try: EAGAIN; _until: ETIMEDOUT, ENOMEM; ECANCELED. Any context; switches, _try only briefly while
 * another call is in progress. */
CC_API int cc_latest_wait(CCLatest *latest, uint64_t *seen, void *value, size_t size);
CC_API int cc_latest_wait_try(CCLatest *latest, uint64_t *seen, void *value, size_t size);
CC_API int cc_latest_wait_until(CCLatest *latest, uint64_t *seen, void *value, size_t size, CCDeadline deadline);

/* No more changes. EINVAL: NULL. Any context; switches, but is not cancelled. */
CC_API int cc_latest_close(CCLatest *latest);

/* ---- oneshot ---- */

/* One value, sent once, without an allocation: the user provides the memory, {0} is ready to use, and the fields are
 * private. The first send or close wins; any number of receivers get its value or error. As with locks (cc_sync.h), a
 * receiver may free it once it has returned, if no other call follows.
 *
 *   CC_ONESHOT_OF(Answer, struct reply);
 *   Answer a = {0};
 *   CC_GO(ask, .answer = &a);                  it calls Answer_send(self->answer, reply)
 *   rc = Answer_recv_until(&a, &reply, deadline);
 */
typedef struct CCOneshot {
    CCEvent done;
    uint32_t claimed;
    int error;
} CCOneshot;

/* `place` is the storage for the value, `size` bytes, beside the oneshot. send: EPIPE: already sent or closed. close:
 * receivers get `error`, or EPIPE if it is 0; EPIPE as above. recv: 0, or the error of the close; EAGAIN, ETIMEDOUT,
 * ECANCELED, ENOMEM. EINVAL: NULL, or a negative error. Any context; the receives switch, _try does not. */
CC_API int cc_oneshot_send(CCOneshot *o, void *place, const void *value, size_t size);
CC_API int cc_oneshot_close(CCOneshot *o, int error);
CC_API int cc_oneshot_recv(CCOneshot *o, const void *place, void *value, size_t size);
CC_API int cc_oneshot_recv_try(CCOneshot *o, const void *place, void *value, size_t size);
CC_API int cc_oneshot_recv_until(CCOneshot *o, const void *place, void *value, size_t size, CCDeadline deadline);

/* Defines a oneshot type for T. */
#define CC_ONESHOT_OF(Name, T)                                                                \
    CC__ASSERT_PLAIN(T, "what a oneshot carries is copied like memory");                      \
    typedef struct Name {                                                                     \
        CCOneshot oneshot;                                                                    \
        T value;                                                                              \
    } Name;                                                                                   \
    CC_UNUSED static inline int Name##_send(Name *o, T value) {                               \
        return cc_oneshot_send(&o->oneshot, &o->value, &value, sizeof value);                 \
    }                                                                                         \
    CC_UNUSED static inline int Name##_close(Name *o, int error) {                            \
        return cc_oneshot_close(&o->oneshot, error);                                          \
    }                                                                                         \
    CC_UNUSED static inline int Name##_recv(Name *o, T *value) {                              \
        return cc_oneshot_recv(&o->oneshot, &o->value, value, sizeof *value);                 \
    }                                                                                         \
    CC_UNUSED static inline int Name##_recv_try(Name *o, T *value) {                          \
        return cc_oneshot_recv_try(&o->oneshot, &o->value, value, sizeof *value);             \
    }                                                                                         \
    CC_UNUSED static inline int Name##_recv_until(Name *o, T *value, CCDeadline deadline) {   \
        return cc_oneshot_recv_until(&o->oneshot, &o->value, value, sizeof *value, deadline); \
    }                                                                                         \
    typedef int Name##_is_a_oneshot_type /* takes the semicolon */

CC_END_DECLS

#endif
